import type { Platform } from '../model/descriptor.ts';
import { type Digest, isDigest } from '../model/digest.ts';
import { quoted } from '../model/quoted.ts';
import { parseReference, type Reference, withDigest } from '../model/reference.ts';
import type { SourceRequest } from '../publish/request.ts';
import { check } from './check.ts';
import { invalid, placed } from './failure.ts';
import { DESCRIPTOR } from './schema.ts';
import { readPlatformMap } from './source.ts';
import { placeAt, type TreeMap, type TreeNode } from './tree.ts';

/**
 * What a build wrote of an image, as a source: a digest, `REPOSITORY@DIGEST`, or a descriptor.
 *
 * @param repository where a digest without one lies
 * @throws PublishError `SPEC_INVALID`
 */
export function readDigestText(text: string, at: string, repository: Reference): SourceRequest {
  if (isDigest(text)) return { reference: withDigest(repository, text), origin: at };
  const reference = placed(at, () => parseReference(text));
  if (reference.digest !== undefined) return { reference, origin: at };
  throw invalid(at, `${quoted(text)} has no digest`, 'Write sha256:…, REPOSITORY@sha256:… or a descriptor.');
}

/**
 * A descriptor as `docker buildx imagetools create -f` takes it. Its size says nothing that the digest does not.
 *
 * @throws PublishError `SPEC_INVALID`
 */
export function readDescriptorMap(map: TreeMap, repository: Reference): SourceRequest {
  const manifest = map.entries.get('schemaVersion');
  if (manifest !== undefined) {
    throw invalid(
      manifest.at,
      'a manifest, where a descriptor is wanted',
      'Write its {"mediaType", "digest", "size"}.',
    );
  }
  const { digest, platform, annotations } = check(DESCRIPTOR, map, { withoutNothing: true });
  const claimed = platform === undefined ? undefined : readPlatformMap(platform, placeAt(map, ['platform']));
  return {
    reference: withDigest(repository, digestAt(digest, placeAt(map, ['digest']))),
    ...(isKnown(claimed) ? { platform: claimed } : {}),
    origin: map.at,
    ...(annotations === undefined ? {} : { annotations }),
  };
}

/** The digest in the node. */
export function readDigest(node: TreeNode): Digest {
  return digestAt(node.kind === 'text' ? node.text : '', node.at);
}

function digestAt(text: string, at: string): Digest {
  if (isDigest(text)) return text;
  throw invalid(at, `not a sha256 or sha512 digest: ${quoted(text)}`, 'Write sha256: and 64 lower-case hex digits.');
}

/** Attestations are listed as unknown/unknown, which is no claim. */
function isKnown(platform: Platform | undefined): platform is Platform {
  return platform !== undefined && platform.os !== 'unknown';
}
