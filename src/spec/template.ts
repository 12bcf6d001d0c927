import { PublishError } from '../errors.ts';
import type { Platform } from '../model/descriptor.ts';
import { formatPlatform } from '../model/platform.ts';
import { quoted } from '../model/quoted.ts';
import { parseReference } from '../model/reference.ts';
import type { SourceRequest } from '../publish/request.ts';
import { placed } from './failure.ts';

/** A run of capitals that consists of placeholders, such as `ARCHVARIANT`; `ARCHIVE` is a word of its own. */
const PLACEHOLDERS = /(?<![A-Z])(?:ARCH|OS|VARIANT)+(?![A-Z])/g;
const PLACEHOLDER = /ARCH|OS|VARIANT/g;

/**
 * One source for each platform: OS, ARCH and VARIANT are replaced wherever they stand, VARIANT by nothing where a platform
 * has none. manifest-tool replaces the first of each only, and also within longer words.
 *
 * @param origin where the template was written; absent for the command line
 * @throws PublishError `USAGE_INVALID`, `REFERENCE_INVALID`; with an origin `SPEC_INVALID`
 */
export function expandTemplate(
  template: string,
  platforms: readonly Platform[],
  origin?: string,
): readonly SourceRequest[] {
  const read = (): readonly SourceRequest[] => platforms.map((platform) => expand(template, platform, origin));
  return origin === undefined ? read() : placed(origin, read);
}

function expand(template: string, platform: Platform, origin: string | undefined): SourceRequest {
  const { os, architecture, variant = '' } = platform;
  const values: Readonly<Record<string, string>> = { OS: os, ARCH: architecture, VARIANT: variant };
  const text = template.replace(PLACEHOLDERS, (run) => run.replace(PLACEHOLDER, (name) => values[name] ?? name));
  if (text === template) {
    throw new PublishError(
      'USAGE_INVALID',
      `the template ${quoted(template)} has none of OS, ARCH and VARIANT`,
      'Write for example ghcr.io/acme/app-ARCHVARIANT:1.',
    );
  }
  try {
    return { reference: parseReference(text), platform, ...(origin === undefined ? {} : { origin }) };
  } catch (error) {
    if (!(error instanceof PublishError) || variant !== '' || !/VARIANT/.test(template)) throw error;
    throw error.with({
      message: `${error.message}; VARIANT is empty for ${formatPlatform(platform)}`,
      hint: 'Write ARCHVARIANT with nothing between, or name the platforms in a list of sources.',
    });
  }
}
