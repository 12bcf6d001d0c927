import type { Descriptor, Platform } from '../model/descriptor.ts';
import { completePlatform, type PartialPlatform } from '../model/platform.ts';
import type { DraftChild, DraftEntry } from './draft.ts';

/** buildkit's mark of a manifest that speaks of another image and is none itself. */
const REFERENCE_TYPE = 'vnd.docker.reference.type';

/** The children that are images: `annotate` speaks of these, never of the attestations beside them. */
export function imagesOf(entry: DraftEntry): readonly DraftChild[] {
  return entry.children.filter((child) => !isAttestation(child));
}

/** Whether the child is an attestation that buildkit put beside an image. */
export function isAttestation({ descriptor }: DraftChild): boolean {
  return descriptor.annotations?.[REFERENCE_TYPE] === 'attestation-manifest';
}

/**
 * What is known of the child's platform: the image's own fields, each replaced by what `annotate` said. os.features
 * are only ever added, as docker adds them.
 */
export function platformFields({ descriptor, changes }: DraftChild): PartialPlatform {
  const own: PartialPlatform = descriptor.platform ?? {};
  const said: PartialPlatform = changes?.platform ?? {};
  const features = [...new Set([...(own['os.features'] ?? []), ...(said['os.features'] ?? [])])];
  return { ...own, ...said, ...(features.length === 0 ? {} : { 'os.features': features }) };
}

/** The platform that the list will show; undefined as long as os or architecture is not known. */
export function platformOf(child: DraftChild): Platform | undefined {
  return completePlatform(platformFields(child), undefined);
}

/** The child as the list will show it, with what `annotate` said. */
export function descriptorOf(child: DraftChild): Descriptor {
  const { platform: _own, annotations: own, ...descriptor } = child.descriptor;
  const platform = platformOf(child);
  const annotations = { ...own, ...child.changes?.annotations };
  return {
    ...descriptor,
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    ...(platform === undefined ? {} : { platform }),
  };
}
