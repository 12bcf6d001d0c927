import { PublishError } from '../errors.ts';
import { type Descriptor, ENTRIES_MAX, isIndexType, isManifestType, type Platform } from '../model/descriptor.ts';
import { type Digest, isDigest } from '../model/digest.ts';
import {
  type ImageIndex,
  type ImageManifest,
  isImageConfigType,
  type Manifest,
  parseManifest,
} from '../model/manifest.ts';
import { formatPlatform, matchesPlatform } from '../model/platform.ts';
import { formatReference, withDigest } from '../model/reference.ts';
import { oncePerKey } from './once.ts';
import type { PublishPorts } from './ports.ts';
import type { PublishRequest, SourceRequest } from './request.ts';
import type { ChildKind, GoneEntry, ResolvedChild, ResolvedSource } from './resolved.ts';

/** An index may hold an index that holds an index; deeper ones are nobody's honest work. */
const DEEPEST = 3;

/** buildkit's mark of an attestation, and of the image it speaks of. */
const REFERENCE_TYPE = 'vnd.docker.reference.type';
const REFERENCE_DIGEST = 'vnd.docker.reference.digest';

/** What one walk over a source needs everywhere. */
type Walk = {
  readonly source: SourceRequest;
  readonly name: string;
  readonly wanted: readonly Platform[];
  readonly attestations: 'keep' | 'drop';
  /** Whether an entry whose manifest is not there is for the caller to judge. */
  readonly leavesGone: boolean;
  /** A manifest of the source's repository, read once however often it is listed. */
  readonly read: (digest: Digest) => Promise<Manifest | Gone>;
  /** Entries met so far, over all levels: counted before they are read. */
  entries: number;
};

/** A manifest that an index lists and the registry does not have. */
type Gone = { readonly kind: 'gone'; readonly error: PublishError };

/** What of a request decides which entries of a source are taken in. */
export type Taking = Pick<PublishRequest, 'platforms' | 'attestations'>;

/**
 * The children a source brings: itself when it is an image, else the images of the index, to any depth up to three,
 * each followed by its attestations as the index has them. Children whose descriptor already tells that they are not
 * wanted are not read. With `leavesGone` an entry whose manifest is not there becomes one of `gone`.
 *
 * @throws PublishError `MANIFEST_UNSUPPORTED`, `MANIFEST_INVALID`, `MANIFEST_NOT_FOUND` for a child that the index
 *   names but the repository lacks, `PLATFORM_NOT_FOUND` when `PLATFORM=` names what the index lacks
 */
export async function expandSource(
  source: SourceRequest,
  root: Manifest,
  { platforms, attestations = 'keep' }: Taking,
  bytes: Map<Digest, Uint8Array>,
  ports: PublishPorts,
  signal: AbortSignal,
  leavesGone = false,
): Promise<ResolvedSource> {
  const name = formatReference(source.reference);
  if (root.kind === 'image') {
    const descriptor = { mediaType: root.mediaType, digest: root.digest, size: root.size };
    return { request: source, root, flat: false, children: [resolvedChild(source, root, descriptor, true)] };
  }
  const wanted = picksChild(source, root) ? [source.platform] : platforms;
  const read = oncePerKey((digest: Digest) => readChild(digest, source, name, bytes, ports, signal));
  const walk: Walk = { source, name, wanted, attestations, leavesGone, read, entries: 0 };
  const members = await expandIndex(root, 1, walk);
  // With a platform named, what is lacking is told by that platform.
  if (members.length === 0 && !leavesGone && wanted.length === 0 && source.platform === undefined)
    throw listsNothing(name, root);
  const flat = root.manifests.every((entry) => !isIndexType(entry.mediaType));
  return { request: source, root, flat, ...sortOut(members) };
}

/** An entry with its manifest, or one whose manifest is not there. */
type Member = ResolvedChild | { readonly entry: Descriptor; readonly error: PublishError };

function sortOut(members: readonly Member[]): Pick<ResolvedSource, 'children' | 'gone'> {
  const children: ResolvedChild[] = [];
  const gone: GoneEntry[] = [];
  for (const member of members) {
    if ('manifest' in member) children.push(member);
    else gone.push({ ...member, at: children.length });
  }
  return { children, ...(gone.length === 0 ? {} : { gone }) };
}

/** Whether `PLATFORM=` chooses among several images, rather than labels the only one. */
export function picksChild(source: SourceRequest, root: Manifest): source is SourceRequest & { platform: Platform } {
  if (source.platform === undefined || root.kind !== 'index') return false;
  const images = root.manifests.filter(isImageEntry);
  return images.length > 1 || images.some((entry) => isIndexType(entry.mediaType));
}

async function expandIndex(index: ImageIndex, depth: number, walk: Walk): Promise<readonly Member[]> {
  if (depth > DEEPEST) {
    throw new PublishError(
      'MANIFEST_INVALID',
      `${walk.name}: indexes are nested more than ${DEEPEST} deep`,
      'Publish from the images themselves.',
      { side: 'source' },
    );
  }
  const entries = wantedEntries(index, walk);
  walk.entries += entries.length;
  if (walk.entries > ENTRIES_MAX) throw tooMany(walk.name);
  const children = await Promise.all(entries.map((entry) => expandEntry(entry, depth, walk)));
  return children.flat();
}

async function expandEntry(entry: Descriptor, depth: number, walk: Walk): Promise<readonly Member[]> {
  const { source, name } = walk;
  if (!isManifestType(entry.mediaType)) {
    throw new PublishError(
      'MANIFEST_UNSUPPORTED',
      `${name} lists ${entry.digest}, which is no manifest but ${entry.mediaType}`,
      'Only indexes of image manifests can be taken in.',
      { side: 'source' },
    );
  }
  const manifest = await walk.read(entry.digest);
  if (manifest.kind === 'gone') {
    if (!walk.leavesGone) throw manifest.error;
    return [{ entry, error: manifest.error }];
  }
  if (manifest.size !== entry.size || manifest.mediaType !== entry.mediaType) {
    throw new PublishError(
      manifest.size === entry.size ? 'MANIFEST_INVALID' : 'SIZE_MISMATCH',
      `${entry.digest} is ${manifest.mediaType} of ${manifest.size} bytes, but ${name} lists it as ${entry.mediaType} of ${entry.size} bytes`,
      'The source index is damaged; build and push it again.',
      { side: 'source' },
    );
  }
  if (manifest.kind === 'image') return [resolvedChild(source, manifest, entry, false)];
  return expandIndex(manifest, depth + 1, walk);
}

async function readChild(
  digest: Digest,
  { reference }: SourceRequest,
  name: string,
  bytes: Map<Digest, Uint8Array>,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<Manifest | Gone> {
  const answer = await ports.registry(reference.host).getManifest(reference.repository, digest, { signal });
  if (answer.kind !== 'found') {
    const message = `${name} lists a child that cannot be read: ${answer.error.message}`;
    const error = answer.error.with({ side: 'source', message });
    if (answer.kind === 'absent') return { kind: 'gone', error };
    throw error;
  }
  bytes.set(digest, answer.manifest.bytes);
  const childName = formatReference(withDigest(reference, digest));
  return parseManifest(answer.manifest.bytes, digest, answer.manifest.contentType, childName);
}

/**
 * Entries that may be wanted: those of a wanted platform, those whose platform only a config can tell, nested
 * indexes, and the attestations of all of these.
 */
function wantedEntries({ manifests }: ImageIndex, { wanted, attestations }: Walk): readonly Descriptor[] {
  const entries = attestations === 'drop' ? manifests.filter(isImageEntry) : manifests;
  if (wanted.length === 0) return entries;
  const isWanted = ({ platform }: Descriptor): boolean =>
    platform === undefined || wanted.some((want) => matchesPlatform(want, platform));
  const images = entries.filter((entry) => isImageEntry(entry) && isWanted(entry));
  const digests = new Set(images.map(({ digest }) => digest));
  return entries.filter((entry) => {
    if (isImageEntry(entry)) return isWanted(entry);
    const subject = attestationSubject(entry);
    return subject !== undefined && digests.has(subject);
  });
}

/** A child as its manifest and its entry tell of it. `isRoot`: the reference names it itself. */
export function resolvedChild(
  source: SourceRequest,
  manifest: ImageManifest,
  descriptor: Descriptor,
  isRoot: boolean,
): ResolvedChild {
  const subjects = [attestationSubject(descriptor), manifest.subject?.digest];
  const { origin, reference } = source;
  const { host, repository, tag } = reference;
  // The tag the user typed stays in the name of what it named; the children of an index have none.
  const named = tag !== undefined && isRoot ? { tag } : {};
  return {
    from: { host, repository },
    name: formatReference({ host, repository, ...named, digest: manifest.digest }),
    ...(origin === undefined ? {} : { origin }),
    manifest,
    descriptor,
    kind: kindOf(manifest, descriptor),
    subjects: subjects.filter((digest) => digest !== undefined),
  };
}

/** What a manifest is; its index entry tells attestations. */
export function kindOf(manifest: ImageManifest, entry: Descriptor | undefined): ChildKind {
  if (entry !== undefined && isAttestation(entry)) return 'attestation';
  return isImageConfigType(manifest.config.mediaType) ? 'image' : 'artifact';
}

/** Whether an entry is buildkit's attestation of another entry. */
export function isAttestation(entry: Descriptor): boolean {
  return entry.annotations?.[REFERENCE_TYPE] === 'attestation-manifest';
}

/** The digest an attestation entry speaks of; undefined when it says none. */
export function attestationSubject(entry: Descriptor): Digest | undefined {
  const subject = isAttestation(entry) ? entry.annotations?.[REFERENCE_DIGEST] : undefined;
  return subject !== undefined && isDigest(subject) ? subject : undefined;
}

function isImageEntry(entry: Descriptor): boolean {
  return !isAttestation(entry);
}

/** Nobody means to publish one architecture less, or an empty list. */
function listsNothing(name: string, { manifests }: ImageIndex): PublishError {
  if (manifests.length > 0) {
    return new PublishError(
      'PLATFORM_NOT_FOUND',
      `${name} lists nothing but attestations`,
      'Leave it out, or keep attestations.',
      { side: 'source' },
    );
  }
  return new PublishError(
    'MANIFEST_INVALID',
    `${name} is an index that lists nothing`,
    'Push its images first, or leave it out.',
    { side: 'source' },
  );
}

function tooMany(name: string): PublishError {
  return new PublishError(
    'MANIFEST_INVALID',
    `${name} lists more than ${ENTRIES_MAX} manifests`,
    'Publish from the images themselves, or choose some with --platform.',
    { side: 'source' },
  );
}

/** `PLATFORM=` names what the source's index lacks. */
export function notListed(platform: Platform, { request, root }: ResolvedSource): PublishError {
  const entries = root.kind === 'index' ? root.manifests.filter(isImageEntry) : [];
  const listed = entries.map((entry) =>
    entry.platform === undefined ? 'one without a platform' : formatPlatform(entry.platform),
  );
  return new PublishError(
    'PLATFORM_NOT_FOUND',
    `${formatReference(request.reference)} has no ${formatPlatform(platform)}; it lists ${listed.join(', ')}`,
    'Name one of the platforms it lists, or leave PLATFORM= away to take all.',
    { side: 'source' },
  );
}
