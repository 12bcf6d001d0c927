import { PublishError } from '../errors.ts';
import { type Descriptor, MEDIA_TYPES } from '../model/descriptor.ts';
import { formatPlatform, matchesPlatform } from '../model/platform.ts';
import type { PublishRequest } from './request.ts';
import type { ResolvedChild, ResolvedSource } from './resolved.ts';

type Annotations = Readonly<Record<string, string>>;
type Listed = { readonly child: Pick<ResolvedChild, 'kind'>; readonly entry: Descriptor };

/** What the request says of every image, whatever its platform. */
export function ofAllImages({ entryAnnotations = [] }: PublishRequest): Annotations {
  const general = entryAnnotations.filter(({ platform }) => platform === undefined);
  return Object.fromEntries(general.flatMap(({ annotations }) => Object.entries(annotations)));
}

/** The entry with these annotations over its own. */
export function withAnnotations(entry: Descriptor, annotations: Annotations): Descriptor {
  if (Object.keys(annotations).length === 0) return entry;
  return { ...entry, annotations: { ...entry.annotations, ...annotations } };
}

/**
 * Writes the annotations that are meant for one platform; these say most, and stand over all others.
 *
 * @throws PublishError `PLATFORM_NOT_FOUND` for a platform that no entry has: an annotation that nobody gets is a mistake
 */
export function annotateByPlatform<One extends Listed>(
  request: PublishRequest,
  listed: readonly One[],
): readonly One[] {
  let annotated = listed;
  for (const { platform, annotations } of request.entryAnnotations ?? []) {
    if (platform === undefined) continue;
    let met = false;
    annotated = annotated.map((one) => {
      const { child, entry } = one;
      const meant =
        child.kind !== 'attestation' && entry.platform !== undefined && matchesPlatform(platform, entry.platform);
      if (!meant) return one;
      met = true;
      return { ...one, entry: withAnnotations(entry, annotations) };
    });
    if (!met) throw nobodyIsMeant(formatPlatform(platform), listed);
  }
  return annotated;
}

/**
 * buildx drops them without a word (docker/buildx#2148).
 *
 * @param index the annotations that the index would have
 * @throws PublishError `INDEX_TYPE_CONFLICT`
 */
export function checkAnnotations(
  { entryAnnotations = [] }: PublishRequest,
  sources: readonly ResolvedSource[],
  index: Annotations,
  mediaType: string,
): void {
  if (mediaType !== MEDIA_TYPES.dockerList) return;
  const wanted = [
    index,
    ...entryAnnotations.map(({ annotations }) => annotations),
    ...sources.map(({ request: { annotations = {} } }) => annotations),
  ];
  if (wanted.every((annotations) => Object.keys(annotations).length === 0)) return;
  throw new PublishError(
    'INDEX_TYPE_CONFLICT',
    'a Docker manifest list cannot hold annotations, and all images are Docker',
    'Add --type oci to get an OCI index, or leave the annotations out.',
  );
}

function nobodyIsMeant(platform: string, listed: readonly Listed[]): PublishError {
  const platforms = listed.flatMap(({ child, entry }) =>
    child.kind === 'attestation' || entry.platform === undefined ? [] : [formatPlatform(entry.platform)],
  );
  return new PublishError(
    'PLATFORM_NOT_FOUND',
    `an annotation is meant for ${platform}, but the index lists ${platforms.join(', ') || 'no platform'}`,
    'Name one of the platforms that it lists, or none to annotate every image.',
    { side: 'source' },
  );
}
