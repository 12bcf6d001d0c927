import type { Platform } from '../model/descriptor.ts';
import { isDigest } from '../model/digest.ts';
import { imageReference } from '../model/image-reference.ts';
import { normalizePlatform, parsePlatform } from '../model/platform.ts';
import { isLayoutHost, type Reference, withDigest } from '../model/reference.ts';
import type { SourceRequest } from '../publish/request.ts';
import { invalid, placed } from './failure.ts';
import type { PlatformMap } from './schema.ts';

/**
 * A reference to read from. A bare `sha256:…` means the repository of the target.
 *
 * @throws PublishError `SPEC_INVALID`
 */
export function readReference(text: string, at: string, target: Reference): Reference {
  if (isDigest(text)) return withDigest(target, text);
  return placed(at, () => imageReference(text));
}

/**
 * `[PLATFORM=]REF`. No reference can hold `=` but one of a layout, so the first one always ends a platform.
 *
 * @throws PublishError `SPEC_INVALID`
 */
export function readSource(text: string, at: string, target: Reference): SourceRequest {
  const equals = isLayoutHost(text) ? -1 : text.indexOf('=');
  const platform = equals < 0 ? undefined : placed(at, () => parsePlatform(text.slice(0, equals)));
  const reference = readReference(text.slice(equals + 1), at, target);
  return { reference, ...(platform === undefined ? {} : { platform }), origin: at };
}

/**
 * A platform that is written field by field; undefined when every field is empty, which leaves it to the image's config.
 *
 * @throws PublishError `SPEC_INVALID`
 */
export function readPlatformMap(map: PlatformMap, at: string): Platform | undefined {
  const version = oneOf(at, 'os.version', map['os.version'], 'osversion', map.osversion);
  const features = oneOf(at, 'os.features', map['os.features'], 'osfeatures', map.osfeatures);
  const { os = '', architecture = '', variant = '' } = map;
  if (os === '' && architecture === '' && variant === '' && !version && !features?.length) return undefined;
  if (os === '' || architecture === '') {
    throw invalid(
      at,
      `a platform without ${os === '' ? 'os' : 'architecture'}`,
      'Write both os and architecture, or leave the platform out: the config of the image says it.',
    );
  }
  return placed(at, () =>
    normalizePlatform({
      os,
      architecture,
      ...(variant === '' ? {} : { variant }),
      ...(version ? { 'os.version': version } : {}),
      ...(features?.length ? { 'os.features': features } : {}),
    }),
  );
}

/** The value of a key with two spellings. */
function oneOf<Value>(at: string, name: string, one: Value | undefined, other: string, two: Value | undefined) {
  if (one === undefined || two === undefined) return one ?? two;
  throw invalid(at, `both "${name}" and "${other}", which are the same`, `Leave ${name}.`);
}
