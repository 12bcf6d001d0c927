import { readFileSync } from 'node:fs';
import { PublishError } from '../../src/errors.ts';
import { formatPlatform } from '../../src/model/platform.ts';
import { formatReference } from '../../src/model/reference.ts';
import type { PublishRequest, SourceRequest } from '../../src/publish/request.ts';
import { readSpecs, type SpecBase } from '../../src/spec/index.ts';

/** Reads a text as a spec file. */
export function read(
  text: string,
  options: { readonly name?: string; readonly base?: SpecBase; readonly variables?: Record<string, string> } = {},
): readonly PublishRequest[] {
  return readSpecs([{ name: options.name ?? 'app.yaml', text }], options.base ?? { flags: {} }, options.variables);
}

/** The only list of a text. */
export function readOne(text: string, options: Parameters<typeof read>[1] = {}): PublishRequest {
  const [request, ...more] = read(text, options);
  if (request === undefined || more.length > 0) throw new Error(`${more.length + 1} lists, where one is wanted`);
  return request;
}

/** `PLATFORM=REF` of a source, in full. */
export function shown({ platform, reference }: SourceRequest): string {
  return `${platform === undefined ? '' : `${formatPlatform(platform)}=`}${formatReference(reference)}`;
}

/** Targets and sources as texts. */
export function outline({ targets, sources }: PublishRequest) {
  return { targets: targets.map(formatReference), sources: sources.map(shown) };
}

/** The failure that a call declares. */
export function failureOf(call: () => unknown): PublishError {
  try {
    call();
  } catch (error) {
    if (error instanceof PublishError) return error;
    throw error;
  }
  throw new Error('not refused');
}

/** A file beside the tests. */
export function input(name: string): string {
  return readFileSync(new URL(`inputs/${name}`, import.meta.url), 'utf8');
}
