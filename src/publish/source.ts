import { PublishError } from '../errors.ts';
import { isDigest } from '../model/digest.ts';
import { imageReference } from '../model/image-reference.ts';
import { parsePlatform } from '../model/platform.ts';
import { isLayoutHost, type Reference, withDigest } from '../model/reference.ts';
import type { SourceRequest } from './request.ts';

/**
 * Reads `[PLATFORM=]REF`. A bare `sha256:…` means the target's repository.
 *
 * Only the folder of a layout can hold `=`, so that the first one ends a platform unless the text begins with `oci:`.
 *
 * @throws PublishError `REFERENCE_INVALID`, `PLATFORM_INVALID`
 */
export function parseSource(text: string, target: Reference): SourceRequest {
  const equals = isLayoutHost(text) ? -1 : text.indexOf('=');
  if (equals < 0) return { reference: sourceReference(text, target) };
  return {
    platform: parsePlatform(text.slice(0, equals)),
    reference: sourceReference(text.slice(equals + 1), target),
  };
}

function sourceReference(text: string, target: Reference): Reference {
  if (isDigest(text)) return withDigest(target, text);
  if (text === '') {
    throw new PublishError(
      'REFERENCE_INVALID',
      'a source is empty',
      'Write [PLATFORM=]REF, for example linux/arm/v7=ghcr.io/acme/app:armv7.',
    );
  }
  return imageReference(text);
}
