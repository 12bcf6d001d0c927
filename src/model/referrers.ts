import type { Descriptor } from './descriptor.ts';
import { algorithmOf, type Digest } from './digest.ts';
import type { Manifest } from './manifest.ts';

/** Longest algorithm and longest hash in a fallback tag, in characters. */
const ALGORITHM_MAX = 32;
const HASH_MAX = 64;

/** What cosign puts behind the digest's tag: signatures, attestations, SBOMs. */
const COSIGN_SUFFIXES: readonly string[] = ['sig', 'att', 'sbom'];

/**
 * The tag that lists the referrers of a manifest where a registry has no API for them.
 *
 * @see distribution-spec v1.1.1 spec.md, section "Referrers Tag Schema"
 */
export function fallbackTag(subject: Digest): string {
  const [algorithm = '', hash = ''] = subject.split(':');
  return `${algorithm.slice(0, ALGORITHM_MAX)}-${hash.slice(0, HASH_MAX)}`;
}

/**
 * The tags under which cosign keeps what it has to say of a manifest. None for sha512, whose tags would be longer than
 * a tag may be.
 *
 * @see https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md, section "Tag-based Discovery"
 */
export function cosignTags(subject: Digest): readonly string[] {
  if (algorithmOf(subject) !== 'sha256') return [];
  return COSIGN_SUFFIXES.map((suffix) => `${fallbackTag(subject)}.${suffix}`);
}

/**
 * How a list of referrers describes one of them: the artifactType of an image falls back to the type of its config, that
 * of an index is left out, and all annotations are repeated.
 *
 * @see distribution-spec v1.1.1 spec.md, sections "Listing Referrers" and "Pushing Manifests with Subject"
 */
export function describeReferrer(manifest: Manifest): Descriptor {
  const { mediaType, digest, size, annotations } = manifest;
  const artifactType = manifest.artifactType ?? (manifest.kind === 'image' ? manifest.config.mediaType : undefined);
  return {
    mediaType,
    digest,
    size,
    ...(annotations === undefined ? {} : { annotations }),
    ...(artifactType === undefined ? {} : { artifactType }),
  };
}
