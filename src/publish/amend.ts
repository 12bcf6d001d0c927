import { PublishError } from '../errors.ts';
import type { Descriptor, Platform } from '../model/descriptor.ts';
import { MEDIA_TYPES } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import { type BuiltIndex, buildIndex } from '../model/image-index.ts';
import { completePlatform, formatPlatform, platformKey } from '../model/platform.ts';
import { quoted } from '../model/quoted.ts';
import { formatReference } from '../model/reference.ts';
import { type ConfigPlatforms, type ListedChild, silent } from './entries.ts';
import { ofAllImages, withAnnotations } from './entry-annotations.ts';
import { attestationSubject, isAttestation } from './flatten.ts';
import type { PublishRequest } from './request.ts';
import type { ManifestBytes, ResolvedChild, ResolvedSource } from './resolved.ts';

/** One entry of what TARGET holds; without `listed` its manifest is not there any more. */
type Held = {
  readonly entry: Descriptor;
  readonly listed: ListedChild | undefined;
  readonly error?: PublishError;
  readonly isAttestation: boolean;
  /** Images that an attestation speaks of. */
  readonly subjects: readonly Digest[];
  /** Equal for entries that a client cannot tell apart; undefined where nothing tells the platform. */
  readonly key: string | undefined;
};

/**
 * Puts what the sources bring into what TARGET holds. An image takes the place of those of its platform, whose
 * attestations go with them; its own attestations take the places of theirs, or stand behind it. What is for another
 * platform is appended, in the order of the sources. All other entries stay as they are.
 *
 * An image that is brought anew with the same digest keeps the attestations it has, unless it brings its own.
 *
 * @throws PublishError `MANIFEST_NOT_FOUND` for an entry that stays and whose manifest is not there, `PLATFORM_INVALID`
 */
export function amendList(
  present: ResolvedSource,
  brought: readonly ListedChild[],
  request: PublishRequest,
  configs: ConfigPlatforms,
  warnings: string[],
): readonly ListedChild[] {
  const held = heldEntries(present, request, configs);
  const replacements = groupByKey(brought);
  // One list for each entry that is held: what stands in its place now.
  const places: ListedChild[][] = held.map(() => []);
  const placed = new Set<ListedChild>();
  const settled = new Set<number>();
  for (const [key, images] of replacements) {
    const at = held.flatMap((one, position) => (one.key === key ? [position] : []));
    const [first] = at;
    if (first === undefined) continue;
    const replaced = new Set(at.map((position) => held[position]?.entry.digest));
    const ours = new Set(images.map(({ entry }) => entry.digest));
    const attestations = brought.filter(
      ({ child }) => child.kind === 'attestation' && child.subjects.some((subject) => ours.has(subject)),
    );
    const attested = new Set(attestations.flatMap(({ child }) => child.subjects));
    const free = held.flatMap((one, position) => {
      if (!one.isAttestation || !one.subjects.some((subject) => replaced.has(subject))) return [];
      return one.subjects.some((subject) => ours.has(subject) && !attested.has(subject)) ? [] : [position];
    });
    for (const position of [...at, ...free]) settled.add(position);
    places[first]?.push(...images.map((image) => inTarget(image, held)));
    attestations.forEach((attestation, index) => {
      places[free[index] ?? free.at(-1) ?? first]?.push(inTarget(attestation, held));
    });
    for (const one of [...images, ...attestations]) placed.add(one);
  }

  const left = new Set(
    held.flatMap((one, at) => (one.listed === undefined && !settled.has(at) ? [one.entry.digest] : [])),
  );
  held.forEach((one, position) => {
    if (settled.has(position)) return;
    if (one.listed === undefined) leaveOut(one, present, request, warnings);
    // An attestation goes with its image.
    else if (!one.isAttestation || !one.subjects.some((subject) => left.has(subject)))
      places[position]?.push(one.listed);
  });
  return [...places.flat(), ...brought.filter((one) => !placed.has(one))];
}

/** The entries of the present index in their order, those without a manifest among them. */
function heldEntries(present: ResolvedSource, request: PublishRequest, configs: ConfigPlatforms): readonly Held[] {
  const annotations = ofAllImages(request);
  const one = (child: ResolvedChild): Held => {
    const { kind, subjects, manifest } = child;
    const told = child.descriptor.platform ?? completePlatform(configs.get(manifest.config.digest) ?? {}, undefined);
    if (present.root.kind === 'image' && told === undefined && kind === 'image') throw silent(child, {});
    // An entry that stays is written as it was; a plain image has been no entry yet.
    const platform = present.root.kind === 'image' && told !== undefined ? { platform: told } : {};
    const own = { ...child.descriptor, ...platform };
    const entry = kind === 'attestation' ? own : withAnnotations(own, annotations);
    const isOf = kind === 'attestation';
    return { entry, listed: { child, entry }, isAttestation: isOf, subjects, key: isOf ? undefined : keyOf(told) };
  };
  const held = present.children.map(one);
  // From the last to the first, so that the places of those before stay what they are.
  for (const { entry, at, error } of [...(present.gone ?? [])].reverse()) {
    const subject = attestationSubject(entry);
    const subjects = subject === undefined ? [] : [subject];
    const key = isAttestation(entry) ? undefined : keyOf(entry.platform);
    held.splice(at, 0, { entry, listed: undefined, error, isAttestation: isAttestation(entry), subjects, key });
  }
  return held;
}

function keyOf(platform: Platform | undefined): string | undefined {
  return platform === undefined ? undefined : platformKey(platform);
}

function groupByKey(brought: readonly ListedChild[]): ReadonlyMap<string, readonly ListedChild[]> {
  const groups = new Map<string, ListedChild[]>();
  for (const one of brought) {
    const key = keyOf(one.entry.platform);
    if (key === undefined || one.child.kind === 'attestation') continue;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return groups;
}

/** The same manifest that TARGET holds already is there: nothing of it is asked for again. */
function inTarget(one: ListedChild, held: readonly Held[]): ListedChild {
  const there = held.find(({ listed }) => listed?.entry.digest === one.entry.digest)?.listed;
  return there === undefined ? one : { child: { ...one.child, from: there.child.from }, entry: one.entry };
}

function leaveOut(one: Held, present: ResolvedSource, request: PublishRequest, warnings: string[]): void {
  const platform = one.entry.platform === undefined ? '' : ` (${formatPlatform(one.entry.platform)})`;
  const words = `${one.error?.message ?? one.entry.digest}${one.isAttestation ? '' : platform}`;
  if (request.ignoreMissing === true) {
    warnings.push(`${words}; left out of the index`);
    return;
  }
  throw new PublishError(
    'MANIFEST_NOT_FOUND',
    words,
    'Leave it out of the new index with --ignore-missing, or push it again; what is for its platform would replace it.',
    { side: 'target', registry: present.request.reference.host, repository: present.request.reference.repository },
  );
}

/** Annotations of the amended index: those it has, and those of the request over them. */
export function amendedAnnotations(
  request: PublishRequest,
  present: ResolvedSource | undefined,
): Readonly<Record<string, string>> {
  return present?.root.kind === 'index' ? { ...present.root.annotations, ...request.annotations } : request.annotations;
}

/** The type that amending asks for: an OCI index stays one, whatever the children are. */
export function amendedType({ type }: PublishRequest, present: ResolvedSource | undefined): PublishRequest['type'] {
  return type === 'auto' && present?.root.mediaType === MEDIA_TYPES.ociIndex ? 'oci' : type;
}

/**
 * The present index when the new one says the same: then its bytes are kept, whoever wrote them.
 *
 * @param made the index as it would be written
 */
export function sameAsPresent(
  made: BuiltIndex,
  present: ResolvedSource | undefined,
  request: PublishRequest,
  bytes: ManifestBytes,
): BuiltIndex | undefined {
  if (present === undefined || present.root.kind !== 'index' || !present.flat) return undefined;
  const { manifests, mediaType, digest, annotations = {} } = present.root;
  if (mediaType !== made.mediaType) return undefined;
  const again = buildIndex({ mediaType, manifests, annotations, layout: request.layout });
  const own = bytes.get(digest);
  return again.digest === made.digest && own !== undefined ? { bytes: own, digest, mediaType, manifests } : undefined;
}

/** What the new index does not have any more of what the present one says, for a warning. */
export function fieldsLost(present: ResolvedSource | undefined, bytes: ManifestBytes): readonly string[] {
  const own = present?.root.kind === 'index' ? bytes.get(present.root.digest) : undefined;
  if (present === undefined || own === undefined) return [];
  const document: unknown = JSON.parse(new TextDecoder().decode(own));
  const lost = Object.keys(Object(document)).filter((key) => !KEPT.has(key));
  if (lost.length === 0) return [];
  const name = formatReference(present.request.reference);
  return [`${name} has fields that the amended index does not have: ${lost.map(quoted).join(', ')}`];
}

const KEPT: ReadonlySet<string> = new Set(['schemaVersion', 'mediaType', 'manifests', 'annotations']);
