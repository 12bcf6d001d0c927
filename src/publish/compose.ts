import { PublishError } from '../errors.ts';
import { type Descriptor, MANIFEST_SIZE_MAX, MEDIA_TYPES, type Platform } from '../model/descriptor.ts';
import { type BuiltIndex, buildIndex, indexTypeFor } from '../model/image-index.ts';
import { isDockerType } from '../model/manifest.ts';
import { formatPlatform } from '../model/platform.ts';
import { amendedAnnotations, amendedType, amendList, fieldsLost, sameAsPresent } from './amend.ts';
import { type ConfigPlatforms, type ListedChild, listChildren, matchesAny } from './entries.ts';
import { annotateByPlatform, checkAnnotations, ofAllImages, withAnnotations } from './entry-annotations.ts';
import { isAttestation } from './flatten.ts';
import { checkDuplicates, checkExpected } from './platform-checks.ts';
import type { PublishRequest } from './request.ts';
import type { ManifestBytes, Resolution, ResolvedChild, ResolvedSource } from './resolved.ts';

export type { ConfigPlatforms, ListedChild } from './entries.ts';

/** The index to be, and what it lists in its order. */
export type Composition = {
  readonly index: BuiltIndex;
  readonly listed: readonly ListedChild[];
  readonly warnings: readonly string[];
};

/** Whether only the config can tell this child's platform. */
export function needsConfig(child: ResolvedChild): boolean {
  return child.kind === 'image' && child.descriptor.platform === undefined;
}

/**
 * Whether the request says something about platforms, so that configs must be read before the first write. Amending
 * does: what is replaced is found by its platform.
 */
export function namesPlatforms(request: PublishRequest): boolean {
  return (
    request.platforms.length > 0 ||
    request.amend === true ||
    request.expectPlatforms !== undefined ||
    (request.entryAnnotations ?? []).some(({ platform }) => platform !== undefined) ||
    request.sources.some((source) => source.platform !== undefined)
  );
}

/**
 * The source index whose bytes can be published as they are: it is the only source, nothing is chosen, left out,
 * relabelled, annotated or retyped, and every entry is an image manifest.
 */
export function verbatimIndex(
  request: PublishRequest,
  { sources, present }: Pick<Resolution, 'sources' | 'present'>,
): ResolvedSource | undefined {
  const [only] = sources;
  if (present !== undefined || only === undefined || sources.length > 1) return undefined;
  if (only.root.kind !== 'index' || !only.flat) return undefined;
  if (request.attestations === 'drop' && only.root.manifests.some(isAttestation)) return undefined;
  const annotations = [
    only.request.annotations ?? {},
    ...(request.entryAnnotations ?? []).map((one) => one.annotations),
  ];
  if (annotations.some((one) => Object.keys(one).length > 0)) return undefined;
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
  resolution: Pick<Resolution, 'sources' | 'present'>,
  configs: ConfigPlatforms,
  bytes: ManifestBytes,
): Composition {
  const { sources, present } = resolution;
  const warnings: string[] = [];
  const verbatim = verbatimIndex(request, resolution);
  const brought =
    verbatim !== undefined && request.expectPlatforms === undefined
      ? verbatim.children.map((child) => ({ child, entry: child.descriptor }))
      : sources.flatMap((source) => listChildren(source, request, configs, warnings));
  checkMatched(request.platforms, brought);
  if (brought.every(({ child }) => child.kind === 'attestation') && verbatim === undefined) throw nothingListed();
  if (present !== undefined) checkDuplicates(brought);
  const all = present === undefined ? brought : amendList(present, brought, request, configs, warnings);
  const listed = annotateByPlatform(request, all);
  if (request.expectPlatforms !== undefined) checkExpected(request.expectPlatforms, listed);
  if (verbatim !== undefined) {
    checkVerbatim(request, verbatim);
    return { index: verbatimBytes(verbatim, bytes), listed, warnings };
  }

  checkDuplicates(listed);
  const entries = listed.map(({ entry }) => entry);
  const annotations = amendedAnnotations(request, present);
  const mediaType = indexTypeFor(entries, amendedType(request, present));
  checkAnnotations(request, sources, annotations, mediaType);
  const made = buildIndex({ mediaType, manifests: entries, annotations, layout: request.layout });
  const same = sameAsPresent(made, present, request, bytes);
  if (same !== undefined) return { index: same, listed, warnings };
  return { index: made, listed, warnings: [...warnings, ...fieldsLost(present, bytes), ...typeWarnings(listed)] };
}

/**
 * Finds what is wrong already before configs are read: platforms that only configs can tell are left out.
 *
 * @returns whether the index can become too large by what the configs say; then they must be read before any write
 * @throws as {@link compose}
 */
export function composeEarly(
  request: PublishRequest,
  resolution: Pick<Resolution, 'sources' | 'present'>,
): 'fits' | 'in doubt' {
  const { sources } = resolution;
  const verbatim = verbatimIndex(request, resolution);
  if (verbatim !== undefined) {
    checkVerbatim(request, verbatim);
    return 'fits';
  }
  const general = ofAllImages(request);
  const listed = sources.flatMap((source) =>
    source.children.map((child): ListedChild => {
      const more = child.kind === 'attestation' ? {} : { ...general, ...source.request.annotations };
      return { child, entry: withAnnotations(child.descriptor, more) };
    }),
  );
  checkDuplicates(listed.filter(({ child }) => !needsConfig(child)));
  if (listed.length === 0) return 'fits';
  const manifests = listed.map(({ entry }) => entry);
  const children = listed.map(({ child }) => child);
  const { annotations, layout } = request;
  const mediaType = indexTypeFor(manifests, request.type);
  checkAnnotations(request, sources, annotations, mediaType);
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
