import { PublishError } from '../errors.ts';
import type { Platform } from '../model/descriptor.ts';
import { parseDigest } from '../model/digest.ts';
import { parsePlatform } from '../model/platform.ts';
import { formatReference, parseReference, type Reference, withTag } from '../model/reference.ts';
import type { IndexType, PublishRequest } from '../publish/request.ts';
import { parseSource } from '../publish/source.ts';

/** What to publish, in the words of the command line; the library door takes the same. */
export type PublishOptions = {
  /** The reference to publish, `HOST/REPOSITORY:TAG`. */
  readonly target: string;
  /** `[PLATFORM=]REF`, in the order that the index gets. */
  readonly sources: readonly string[];
  /** More tags for the same index: a tag, or a reference in the repository of the target. */
  readonly tags?: readonly string[];
  /** Default `auto`: a Docker list when all images are Docker, else an OCI index. */
  readonly type?: IndexType;
  /** Annotations of the index; a Docker list cannot hold any. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** Take only images of these platforms, such as `linux/arm/v7`. */
  readonly platforms?: readonly string[];
  /** The exact set of platforms that the index must have. */
  readonly expectPlatforms?: readonly string[];
  /** Write the platform of `PLATFORM=REF` although the image says another one. */
  readonly forcePlatform?: boolean;
  /** Copy non-distributable layers too. */
  readonly foreignLayers?: boolean;
  /** How long a source that is not there yet is asked for again, in ms. */
  readonly waitForSource?: number;
  /** Read and plan only. */
  readonly dryRun?: boolean;
  /** False: trust mounts that were confirmed, and images that the tag lists already. */
  readonly verify?: boolean;
  /** Leave a tag alone that exists with another digest; see {@link PublishRequest.noClobber} for what that can hold. */
  readonly noClobber?: boolean;
  /** The digest that every tag must hold now, unless it holds the new index already. */
  readonly expectDigest?: string;
};

/**
 * Reads the texts. Nothing is asked of a registry.
 *
 * @throws PublishError `REFERENCE_INVALID`, `PLATFORM_INVALID`, `DIGEST_INVALID`, `USAGE_INVALID`
 */
export function publishRequest(options: PublishOptions): PublishRequest {
  // The library door has callers that no compiler checks, and an empty list would take a living tag down.
  if (!Array.isArray(options.sources) || options.sources.length === 0) {
    throw new PublishError('USAGE_INVALID', 'there is no source', 'Name at least one image: TARGET SOURCE...');
  }
  const target = tagReference(options.target);
  return {
    targets: distinct([target, ...(options.tags ?? []).map((tag) => furtherTag(tag, target))]),
    sources: options.sources.map((source) => parseSource(source, target)),
    type: options.type ?? 'auto',
    annotations: options.annotations ?? {},
    layout: 'plain',
    platforms: (options.platforms ?? []).map(parsePlatform),
    ...(options.expectPlatforms === undefined ? {} : { expectPlatforms: expected(options.expectPlatforms) }),
    forcePlatform: options.forcePlatform ?? false,
    foreignLayers: options.foreignLayers ?? false,
    waitForSource: options.waitForSource ?? 0,
    dryRun: options.dryRun ?? false,
    verify: options.verify ?? true,
    ...(options.noClobber === true ? { noClobber: true } : {}),
    ...(options.expectDigest === undefined ? {} : { expectDigest: parseDigest(options.expectDigest) }),
  };
}

/**
 * A reference that can be written to: what a digest names cannot be moved.
 *
 * @throws PublishError `REFERENCE_INVALID`, `USAGE_INVALID` for one with a digest
 */
export function tagReference(text: string): Reference {
  const reference = parseReference(text);
  if (reference.digest === undefined) return reference;
  throw new PublishError(
    'USAGE_INVALID',
    `a target cannot have a digest: ${formatReference(reference)}`,
    'Leave out @sha256:…; the digest of the index is what publish prints.',
    { registry: reference.host, repository: reference.repository },
  );
}

/**
 * Another tag of the target's repository: a tag alone, or a reference.
 *
 * @throws PublishError `REFERENCE_INVALID`, `USAGE_INVALID` for another repository
 */
export function furtherTag(text: string, target: Reference): Reference {
  if (!/[/:@]/.test(text)) return withTag(target, text);
  const reference = tagReference(text);
  if (reference.host === target.host && reference.repository === target.repository) return reference;
  throw new PublishError(
    'USAGE_INVALID',
    `--tag ${formatReference(reference)} is in another repository than TARGET`,
    `Publish it on its own: manifest-publish publish ${formatReference(reference)} SOURCE...`,
    { registry: reference.host, repository: reference.repository },
  );
}

function expected(texts: readonly string[]): readonly Platform[] {
  if (texts.length > 0) return texts.map(parsePlatform);
  throw new PublishError(
    'USAGE_INVALID',
    'no platform is expected',
    'Write --expect-platforms linux/amd64,linux/arm64.',
  );
}

/** Each reference once, the first ones first. */
export function distinct(references: readonly Reference[]): readonly Reference[] {
  return [...new Map(references.map((reference) => [formatReference(reference), reference])).values()];
}
