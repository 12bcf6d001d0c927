import { INDEX_TYPES } from '../config/values.ts';
import { PublishError } from '../errors.ts';
import type { Platform } from '../model/descriptor.ts';
import { parseDigest } from '../model/digest.ts';
import { imageReference } from '../model/image-reference.ts';
import { parsePlatform } from '../model/platform.ts';
import { formatReference, type Reference, withTag, writtenReference } from '../model/reference.ts';
import type { EntryAnnotations, IndexType, PublishRequest, SourceRequest } from '../publish/request.ts';
import { parseSource } from '../publish/source.ts';
// Not the room: that would load the reader of spec files with every publish.
import { requestOf, type SpecSettings } from '../spec/settings.ts';
import {
  AMOUNT,
  BOOLEAN,
  checkOptions,
  type Kind,
  oneOf,
  PAIRS,
  PLACED_PAIRS,
  TEXT,
  TEXTS,
} from './library-options.ts';

/** What to publish, in the words of the command line; the library door takes the same. */
export type PublishOptions = {
  /** The reference to publish, `HOST/REPOSITORY:TAG`. */
  readonly target: string;
  /** `[PLATFORM=]REF`, in the order that the index gets. */
  readonly sources: readonly string[];
  /** More tags for the same index: a tag of the repository of the target, or a reference in any repository. */
  readonly tags?: readonly string[];
  /** Default `auto`: a Docker list when all images are Docker, else an OCI index. */
  readonly type?: IndexType;
  /** Annotations of the index; a Docker list cannot hold any. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** Annotations of entries, of one platform or of all; a Docker list cannot hold any. */
  readonly entryAnnotations?: readonly {
    readonly platform?: string;
    readonly annotations: Readonly<Record<string, string>>;
  }[];
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
  /** Start from what the target holds now; see {@link PublishRequest.amend}. */
  readonly amend?: boolean;
  /** Leave out sources that are not there. */
  readonly ignoreMissing?: boolean;
  /** `drop`: attestations beside images are not taken in. */
  readonly attestations?: 'keep' | 'drop';
  /** `all`: referrers and cosign's tags of every image are taken along. */
  readonly referrers?: 'none' | 'all';
};

/** What a request says besides targets and sources. What is absent was not said. */
export type RequestSettings = Omit<SpecSettings, 'tags'> & { readonly guardsImage?: true };

const KINDS: Readonly<Record<keyof PublishOptions, Kind>> = {
  target: TEXT,
  sources: TEXTS,
  tags: TEXTS,
  type: oneOf(...INDEX_TYPES),
  annotations: PAIRS,
  entryAnnotations: PLACED_PAIRS,
  platforms: TEXTS,
  expectPlatforms: TEXTS,
  forcePlatform: BOOLEAN,
  foreignLayers: BOOLEAN,
  waitForSource: AMOUNT,
  dryRun: BOOLEAN,
  verify: BOOLEAN,
  noClobber: BOOLEAN,
  expectDigest: TEXT,
  amend: BOOLEAN,
  ignoreMissing: BOOLEAN,
  attestations: oneOf('keep', 'drop'),
  referrers: oneOf('none', 'all'),
};

/**
 * Reads the texts. Nothing is asked of a registry.
 *
 * @throws PublishError `REFERENCE_INVALID`, `PLATFORM_INVALID`, `DIGEST_INVALID`, `USAGE_INVALID`
 */
export function publishRequest(options: PublishOptions): PublishRequest {
  checkOptions('the options of publish', options, KINDS);
  if (options.target === undefined) {
    throw new PublishError('USAGE_INVALID', 'there is no target', "Name one: target: 'HOST/REPOSITORY:TAG'.");
  }
  // An empty list would take a living tag down.
  if (!Array.isArray(options.sources) || options.sources.length === 0) {
    throw new PublishError('USAGE_INVALID', 'there is no source', 'Name at least one image: TARGET SOURCE...');
  }
  const tags = options.tags ?? [];
  const target = firstTarget(options.target, tags);
  const targets = [target, ...tags.map((tag) => furtherTag(tag, target))];
  const sources = options.sources.map((source) => parseSource(source, target));
  return assembleRequest(targets, sources, { ...requestSettings(options), ...targetGuard(tags) });
}

/** What may be said of a list in texts. */
export type SettingTexts = Omit<PublishOptions, 'target' | 'sources' | 'tags'>;

/**
 * Reads the texts.
 *
 * @throws PublishError `PLATFORM_INVALID`, `DIGEST_INVALID`, `USAGE_INVALID`
 */
export function requestSettings(texts: SettingTexts): RequestSettings {
  const { platforms, expectPlatforms, expectDigest, entryAnnotations, ...rest } = texts;
  return {
    ...pickSettings(rest),
    ...(platforms === undefined ? {} : { platforms: platforms.map(parsePlatform) }),
    ...(expectPlatforms === undefined ? {} : { expectPlatforms: expected(expectPlatforms) }),
    ...(expectDigest === undefined ? {} : { expectDigest: parseDigest(expectDigest) }),
    ...(entryAnnotations === undefined ? {} : { entryAnnotations: entryAnnotations.map(entryAnnotation) }),
  };
}

type PlainSettings = Omit<
  RequestSettings,
  'platforms' | 'expectPlatforms' | 'expectDigest' | 'entryAnnotations' | 'guardsImage'
>;

/** By name: callers that no compiler checks may hand in more. */
function pickSettings(texts: PlainSettings): PlainSettings {
  const { type, annotations, forcePlatform, foreignLayers, waitForSource, dryRun, verify } = texts;
  const { noClobber, amend, ignoreMissing, attestations, referrers } = texts;
  const all = { type, annotations, forcePlatform, foreignLayers, waitForSource, dryRun, verify };
  const more = { noClobber, amend, ignoreMissing, attestations, referrers };
  return Object.fromEntries(Object.entries({ ...all, ...more }).filter(([, value]) => value !== undefined));
}

function entryAnnotation({
  platform,
  annotations,
}: {
  readonly platform?: string;
  readonly annotations: Readonly<Record<string, string>>;
}): EntryAnnotations {
  return { ...(platform === undefined ? {} : { platform: parsePlatform(platform) }), annotations };
}

/** The request, with a default for everything that was not said. */
export function assembleRequest(
  targets: readonly Reference[],
  sources: readonly SourceRequest[],
  settings: RequestSettings,
): PublishRequest {
  const request = requestOf(distinct(targets), sources, settings);
  return settings.guardsImage === true ? { ...request, guardsImage: true } : request;
}

/** What has tags written as references asks for, see {@link PublishRequest.guardsImage}. */
export function targetGuard(tags: readonly string[]): { readonly guardsImage?: true } {
  return tags.some(isReference) ? { guardsImage: true } : {};
}

/**
 * TARGET, of which further tags were named.
 *
 * @throws PublishError `REFERENCE_INVALID`, `USAGE_INVALID` for one with a digest: with further tags perhaps a source
 */
export function firstTarget(text: string, tags: readonly string[]): Reference {
  try {
    return tagReference(text);
  } catch (error) {
    if (!(error instanceof PublishError) || error.code !== 'USAGE_INVALID' || tags.length === 0) throw error;
    throw error.with({
      hint: 'TARGET is missing before the sources: publish TARGET SOURCE...; -t is for further tags.',
    });
  }
}

/**
 * A reference that can be written to: what a digest names cannot be moved.
 *
 * @throws PublishError `REFERENCE_INVALID`, `USAGE_INVALID` for one with a digest
 */
export function tagReference(text: string): Reference {
  const reference = imageReference(text);
  if (reference.digest === undefined) return writtenReference(reference);
  throw new PublishError(
    'USAGE_INVALID',
    `a target cannot have a digest: ${formatReference(reference)}`,
    'Leave out @sha256:…; the digest of the index is what publish prints.',
    { registry: reference.host, repository: reference.repository },
  );
}

/**
 * Another tag for the same index: a tag alone is one of the target's repository, a reference may lie anywhere.
 *
 * @throws PublishError `REFERENCE_INVALID`, `USAGE_INVALID` for one with a digest
 */
export function furtherTag(text: string, target: Reference): Reference {
  return isReference(text) ? tagReference(text) : withTag(target, text);
}

/** What stands behind `--tag` is more than a tag. */
export function isReference(text: string): boolean {
  return /[/:@]/.test(text);
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
