import { PublishError } from '../errors.ts';
import { formatPlatform, normalizePlatform, type PartialPlatform } from '../model/platform.ts';
import { isPrintable, quoted } from '../model/quoted.ts';
import { imagesOf, platformFields } from './children.ts';
import { dockerFileName } from './docker-name.ts';
import type { Draft, DraftChild, DraftEntry } from './draft.ts';
import { isKnownPair } from './known-pairs.ts';

/** Which entry of which draft, and how the user wrote both: docker's messages repeat that. */
export type EntryName = {
  /** The source in full, as the draft keeps it. */
  readonly source: string;
  readonly shown: { readonly list: string; readonly source: string };
};

/** What `annotate` is told. Fields that are empty or absent change nothing; os.features are added. */
export type Annotation = {
  readonly platform: PartialPlatform;
  readonly annotations: Readonly<Record<string, string>>;
};

/**
 * The draft with what the user says of one entry. Platforms are spelled Go's way, `armv7` as v7; pairs of os and
 * architecture that nobody knows are taken, with a warning.
 *
 * @throws PublishError `DRAFT_NOT_FOUND`, `USAGE_INVALID` for an index of several images, `PLATFORM_INVALID` for what
 *   exists nowhere, such as arm64/v7, and for half a platform
 */
export function annotateDraft(
  draft: Draft,
  name: EntryName,
  annotation: Annotation,
): { readonly draft: Draft; readonly warnings: readonly string[] } {
  const entry = findEntry(draft, name);
  const image = onlyImage(entry, name);
  const { platform, warnings } = readChanges(annotation.platform, platformFields(image));
  const before = image.changes;
  const named = { ...before?.platform, ...platform, ...addedFeatures(before?.platform, platform) };
  const annotations = { ...before?.annotations, ...annotation.annotations };
  const changed: DraftChild = { descriptor: image.descriptor, ...changesOf(named, annotations) };
  const children = entry.children.map((child) => (child === image ? changed : child));
  return { draft: withEntry(draft, entry, { ...entry, children }), warnings };
}

/**
 * The draft without that entry.
 *
 * @throws PublishError `DRAFT_NOT_FOUND`
 */
export function removeEntry(draft: Draft, name: EntryName): Draft {
  const entry = findEntry(draft, name);
  return { ...draft, entries: draft.entries.filter((one) => one !== entry) };
}

/** Changes without empty parts, and none at all when both are empty. */
export function changesOf(
  platform: PartialPlatform,
  annotations: Readonly<Record<string, string>>,
): Pick<DraftChild, 'changes'> {
  const changes = {
    ...(Object.keys(platform).length === 0 ? {} : { platform }),
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
  };
  return Object.keys(changes).length === 0 ? {} : { changes };
}

function withEntry(draft: Draft, entry: DraftEntry, changed: DraftEntry): Draft {
  return { ...draft, entries: draft.entries.map((one) => (one === entry ? changed : one)) };
}

function findEntry({ entries }: Draft, { source, shown }: EntryName): DraftEntry {
  const entry = entries.find(({ reference }) => reference === source);
  if (entry !== undefined) return entry;
  const clash = entries.find(({ reference }) => dockerFileName(reference) === dockerFileName(source));
  throw new PublishError(
    'DRAFT_NOT_FOUND',
    `manifest for image ${shown.source} does not exist in ${shown.list}`,
    clash === undefined
      ? `See what the draft holds: manifest-publish inspect ${shown.list}`
      : `It holds ${clash.reference}, which docker keeps under the same file name; add the other with create --amend.`,
  );
}

function onlyImage(entry: DraftEntry, { shown }: EntryName): DraftChild {
  const [image, ...more] = imagesOf(entry);
  if (image !== undefined && more.length === 0) return image;
  throw new PublishError(
    'USAGE_INVALID',
    `${shown.source} is an index of ${image === undefined ? 'no image' : `${more.length + 1} images`}, annotate speaks of one`,
    `Create the list from its images: manifest-publish inspect --tree ${entry.reference} names their digests.`,
  );
}

/** What the user said, spelled Go's way, against what is known of the image so far. */
function readChanges(
  written: PartialPlatform,
  known: PartialPlatform,
): { readonly platform: PartialPlatform; readonly warnings: readonly string[] } {
  const said = withoutEmpty(written);
  if (Object.keys(said).length === 0) return { platform: {}, warnings: [] };
  const os = said.os ?? known.os;
  const architecture = said.architecture ?? known.architecture;
  if (os === undefined || architecture === undefined) throw halfPlatform(said);

  const meant = normalizePlatform({ ...said, os, architecture });
  // armhf says a variant too. The image's own one stays otherwise, and must go with a new architecture.
  const variant = said.variant === undefined && said.architecture === undefined ? undefined : meant.variant;
  if (variant === undefined && said.architecture !== undefined && known.variant !== undefined) {
    checkKept(meant.os, meant.architecture, known.variant);
  }
  const platform: PartialPlatform = {
    ...(said.os === undefined ? {} : { os: meant.os }),
    ...(said.architecture === undefined ? {} : { architecture: meant.architecture }),
    ...(variant === undefined ? {} : { variant }),
    ...(said['os.version'] === undefined ? {} : { 'os.version': said['os.version'] }),
    ...(said['os.features'] === undefined ? {} : { 'os.features': said['os.features'] }),
  };
  const shown = formatPlatform({ os: meant.os, architecture: meant.architecture });
  const unknown = isKnownPair(meant.os, meant.architecture) ? [] : [`no system is known to be ${quoted(shown)}`];
  return { platform, warnings: [...respelled(said, platform), ...unknown] };
}

function withoutEmpty(written: PartialPlatform): PartialPlatform {
  const features = written['os.features']?.filter((feature) => feature !== '');
  for (const text of [written['os.version'] ?? '', ...(features ?? [])]) {
    if (isPrintable(text)) continue;
    throw new PublishError('PLATFORM_INVALID', `${quoted(text)} cannot be shown`, 'Use printable characters only.');
  }
  return {
    ...(written.os ? { os: written.os } : {}),
    ...(written.architecture ? { architecture: written.architecture } : {}),
    ...(written.variant ? { variant: written.variant } : {}),
    ...(written['os.version'] ? { 'os.version': written['os.version'] } : {}),
    ...(features?.length ? { 'os.features': features } : {}),
  };
}

/** `--arch arm64` for an image of variant v7. A value can be replaced, not cleared, as with docker. */
function checkKept(os: string, architecture: string, variant: string): void {
  try {
    normalizePlatform({ os, architecture, variant });
  } catch (error) {
    if (!(error instanceof PublishError)) throw error;
    throw error.with({ hint: `The image has the variant ${variant}; say another one as well: --variant VARIANT.` });
  }
}

function addedFeatures(before: PartialPlatform | undefined, said: PartialPlatform): PartialPlatform {
  const features = [...new Set([...(before?.['os.features'] ?? []), ...(said['os.features'] ?? [])])];
  return features.length === 0 ? {} : { 'os.features': features };
}

function respelled(said: PartialPlatform, platform: PartialPlatform): readonly string[] {
  const keys = ['os', 'architecture', 'variant'] as const;
  const changed = keys.flatMap((key) => {
    const [from, to] = [said[key], platform[key]];
    return from !== undefined && to !== undefined && from !== to ? [`${key} ${quoted(from)} is written as ${to}`] : [];
  });
  const implied = said.variant === undefined && platform.variant !== undefined;
  return implied ? [...changed, `${quoted(said.architecture ?? '')} means the variant ${platform.variant}`] : changed;
}

function halfPlatform({ os = '', architecture = '' }: PartialPlatform): PublishError {
  return new PublishError(
    'PLATFORM_INVALID',
    `manifest entry for image has unsupported os/arch combination: ${os}/${architecture}`,
    'Say both, as the image tells neither: --os linux --arch amd64.',
  );
}
