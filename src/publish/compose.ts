import { PublishError } from '../errors.ts';
import { type Descriptor, MANIFEST_SIZE_MAX, MEDIA_TYPES, type Platform } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import { type BuiltIndex, buildIndex, indexTypeFor } from '../model/image-index.ts';
import { isDockerType } from '../model/manifest.ts';
import {
  completePlatform,
  contradiction,
  formatPlatform,
  matchesPlatform,
  type PartialPlatform,
} from '../model/platform.ts';
import { notListed, picksChild } from './flatten.ts';
import { checkDuplicates, checkExpected } from './platform-checks.ts';
import type { PublishRequest } from './request.ts';
import type { ManifestBytes, Resolution, ResolvedChild, ResolvedSource } from './resolved.ts';

/** A child that the index will list, with the entry as it will be written. */
export type ListedChild = { readonly child: ResolvedChild; readonly entry: Descriptor };

/** The index to be, and what it lists in its order. */
export type Composition = {
  readonly index: BuiltIndex;
  readonly listed: readonly ListedChild[];
  readonly warnings: readonly string[];
};

/** Platforms that image configs tell, keyed by the config's digest. */
export type ConfigPlatforms = ReadonlyMap<Digest, PartialPlatform>;

/** Whether only the config can tell this child's platform. */
export function needsConfig(child: ResolvedChild): boolean {
  return child.kind === 'image' && child.descriptor.platform === undefined;
}

/** Whether the request says something about platforms, so that configs must be read before the first write. */
export function namesPlatforms(request: PublishRequest): boolean {
  return (
    request.platforms.length > 0 ||
    request.expectPlatforms !== undefined ||
    request.sources.some((source) => source.platform !== undefined)
  );
}

/**
 * The source index whose bytes can be published as they are: it is the only source, nothing is chosen, relabelled or
 * retyped, and every entry is an image manifest.
 */
export function verbatimIndex(request: PublishRequest, sources: readonly ResolvedSource[]): ResolvedSource | undefined {
  const [only] = sources;
  if (only === undefined || sources.length > 1 || only.root.kind !== 'index' || !only.flat) return undefined;
  if (request.platforms.length > 0 || only.request.platform !== undefined) return undefined;
  if (request.layout !== 'plain' || Object.keys(request.annotations).length > 0) return undefined;
  const wanted = { auto: only.root.mediaType, oci: MEDIA_TYPES.ociIndex, docker: MEDIA_TYPES.dockerList };
  return wanted[request.type] === only.root.mediaType && only.children.length > 0 ? only : undefined;
}

/**
 * Decides what the index lists and writes it. Pure: the same sources and configs give the same bytes.
 *
 * @throws PublishError `PLATFORM_CONFLICT`, `PLATFORM_DUPLICATE`, `PLATFORM_INVALID`, `PLATFORM_NOT_FOUND`,
 *   `INDEX_TYPE_CONFLICT`, `INDEX_TOO_LARGE`
 */
export function compose(
  request: PublishRequest,
  { sources }: Resolution,
  configs: ConfigPlatforms,
  bytes: ManifestBytes,
): Composition {
  const verbatim = verbatimIndex(request, sources);
  const listed =
    verbatim !== undefined && request.expectPlatforms === undefined
      ? verbatim.children.map((child) => ({ child, entry: child.descriptor }))
      : sources.flatMap((source) => listChildren(source, request, configs));
  checkMatched(request.platforms, listed);
  if (request.expectPlatforms !== undefined) checkExpected(request.expectPlatforms, listed);
  if (verbatim !== undefined) {
    checkVerbatim(request, verbatim);
    return { index: verbatimBytes(verbatim, bytes), listed, warnings: [] };
  }

  if (listed.every(({ child }) => child.kind === 'attestation')) throw nothingListed();
  checkDuplicates(listed);
  const entries = listed.map(({ entry }) => entry);
  const { annotations, layout } = request;
  const mediaType = indexTypeFor(entries, request.type);
  checkAnnotations(annotations, mediaType);
  return {
    index: buildIndex({ mediaType, manifests: entries, annotations, layout }),
    listed,
    warnings: typeWarnings(listed),
  };
}

/**
 * Finds what is wrong already before configs are read: platforms that only configs can tell are left out.
 *
 * @returns whether the index can become too large by what the configs say; then they must be read before any write
 * @throws as {@link compose}
 */
export function composeEarly(request: PublishRequest, { sources }: Resolution): 'fits' | 'in doubt' {
  const verbatim = verbatimIndex(request, sources);
  if (verbatim !== undefined) {
    checkVerbatim(request, verbatim);
    return 'fits';
  }
  const known = sources.flatMap(({ children }) => children.filter((child) => !needsConfig(child)));
  checkDuplicates(known.map((child) => ({ child, entry: child.descriptor })));
  const children = sources.flatMap((source) => source.children);
  if (children.length === 0) return 'fits';
  const manifests = children.map(({ descriptor }) => descriptor);
  const { annotations, layout } = request;
  const mediaType = indexTypeFor(manifests, request.type);
  checkAnnotations(annotations, mediaType);
  const least = buildIndex({ mediaType, manifests, annotations, layout }).bytes.byteLength;
  const more = children
    .filter(needsConfig)
    .reduce((sum, { manifest }) => sum + mostOfConfig(manifest.config, layout), 0);
  return least + more > MANIFEST_SIZE_MAX ? 'in doubt' : 'fits';
}

/**
 * The most bytes that the platform of a config can take in the index: an empty text in os.features takes 3 of the config
 * and 14 of the index, where it stands indented on a line of its own; 19 in docker's layout.
 */
function mostOfConfig(config: Descriptor, layout: PublishRequest['layout']): number {
  return KEYS_OF_PLATFORM + config.size * (layout === 'docker' ? 7 : 5);
}

/** `"platform": {"architecture": …}` with its keys, white space and no values, in either layout; about 180 bytes. */
const KEYS_OF_PLATFORM = 256;

/** A Docker list that names an OCI manifest is published as it is, unless Docker's type was asked for. */
function checkVerbatim(request: PublishRequest, { children }: ResolvedSource): void {
  if (request.type !== 'docker') return;
  indexTypeFor(
    children.map(({ descriptor }) => descriptor),
    'docker',
  );
}

/** buildx drops them without a word (docker/buildx#2148). */
function checkAnnotations(annotations: Readonly<Record<string, string>>, mediaType: string): void {
  if (mediaType !== MEDIA_TYPES.dockerList || Object.keys(annotations).length === 0) return;
  throw new PublishError(
    'INDEX_TYPE_CONFLICT',
    'a Docker manifest list cannot hold annotations, and all images are Docker',
    'Add --type oci to get an OCI index, or leave the annotations out.',
  );
}

function nothingListed(): PublishError {
  return new PublishError(
    'PLATFORM_NOT_FOUND',
    'the index would list nothing: no source brings an image',
    'Name at least one image, or an index that lists one.',
    { side: 'source' },
  );
}

function verbatimBytes({ root }: ResolvedSource, bytes: ManifestBytes): BuiltIndex {
  const own = bytes.get(root.digest);
  if (own === undefined || root.kind !== 'index') throw new Error(`the bytes of ${root.digest} were not kept`);
  return { bytes: own, digest: root.digest, mediaType: root.mediaType, manifests: root.manifests };
}

/** One source's children as entries, in order: chosen, labelled, attestations only beside an image that stays. */
function listChildren(
  source: ResolvedSource,
  request: PublishRequest,
  configs: ConfigPlatforms,
): readonly ListedChild[] {
  const explicit = source.request.platform;
  const pick = picksChild(source.request, source.root) ? explicit : undefined;
  const label = pick === undefined ? explicit : undefined;
  const filters = [
    ...(pick === undefined ? [] : [[pick]]),
    ...(request.platforms.length > 0 ? [request.platforms] : []),
  ];

  const chosen = source.children.map((child): ListedChild | undefined => {
    if (child.kind === 'attestation') return undefined;
    const platform = platformOf(child, label, configs, request.forcePlatform);
    if (!filters.every((wanted) => matchesAny(wanted, platform))) return undefined;
    return { child, entry: { ...child.descriptor, ...(platform === undefined ? {} : { platform }) } };
  });
  const kept = new Set(chosen.map((one) => one?.entry.digest));
  if (explicit !== undefined && chosen.every((one) => one === undefined) && request.platforms.length === 0) {
    throw notListed(explicit, source);
  }
  return source.children.flatMap((child, position) => {
    if (child.kind !== 'attestation') return chosen[position] ?? [];
    const stays = filters.length === 0 || child.subjects.some((subject) => kept.has(subject));
    return stays ? [{ child, entry: child.descriptor }] : [];
  });
}

function platformOf(
  child: ResolvedChild,
  explicit: Platform | undefined,
  configs: ConfigPlatforms,
  force: boolean,
): Platform | undefined {
  const said = child.descriptor.platform ?? configs.get(child.manifest.config.digest) ?? {};
  if (explicit !== undefined) {
    const field = contradiction(said, explicit);
    if (field !== undefined && !force) throw conflict(child, field, said, explicit);
    if (field !== undefined) return explicit;
  }
  const platform = completePlatform(said, explicit);
  if (platform === undefined && child.kind === 'image') {
    throw new PublishError(
      'PLATFORM_INVALID',
      `cannot tell the platform of ${child.name}: its config has no ${said.os === undefined ? 'os' : 'architecture'}`,
      `Say it: linux/amd64=${child.name}`,
      { side: 'source' },
    );
  }
  return platform;
}

function matchesAny(wanted: readonly Platform[], platform: Platform | undefined): boolean {
  return platform !== undefined && wanted.some((want) => matchesPlatform(want, platform));
}

/** A filter that finds nothing is a mistake, not an empty list. */
function checkMatched(wanted: readonly Platform[], listed: readonly ListedChild[]): void {
  const lacking = wanted.filter((want) => !listed.some(({ entry }) => matchesAny([want], entry.platform)));
  if (lacking.length === 0) return;
  throw new PublishError(
    'PLATFORM_NOT_FOUND',
    `no source is for ${lacking.map(formatPlatform).join(', ')}`,
    'Check --platform against the sources: manifest-publish inspect --tree SOURCE',
    { side: 'source' },
  );
}

function typeWarnings(listed: readonly ListedChild[]): readonly string[] {
  const warnings: string[] = [];
  const docker = listed.filter(({ entry }) => isDockerType(entry.mediaType)).length;
  if (docker > 0 && docker < listed.length) {
    warnings.push(
      `the index lists Docker and OCI manifests (${docker} of ${listed.length} are Docker); some registries refuse that`,
    );
  }
  const seen = new Set<string>();
  for (const { entry, child } of listed) {
    if (seen.has(entry.digest)) warnings.push(`${child.name} is listed more than once; some registries refuse that`);
    seen.add(entry.digest);
  }
  return warnings;
}

function conflict(child: ResolvedChild, field: string, said: PartialPlatform, explicit: Platform): PublishError {
  const own = completePlatform(said, undefined);
  return new PublishError(
    'PLATFORM_CONFLICT',
    `${child.name} says ${own === undefined ? JSON.stringify(said) : formatPlatform(own)}, but you wrote ${formatPlatform(explicit)} (${field} differs)`,
    'Correct the platform, or insist with --force-platform.',
    { side: 'source' },
  );
}
