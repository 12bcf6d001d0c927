import { PublishError } from '../errors.ts';
import { type Descriptor, ENTRIES_MAX, MANIFEST_SIZE_MAX, MEDIA_TYPES } from './descriptor.ts';
import { type Digest, digestOf } from './digest.ts';
import { isDockerType } from './manifest.ts';
import { orderedPlatform } from './platform.ts';
import { ExactNumber, exactJson } from './strict-json.ts';

/** Children that a message names one by one. */
const NAMED_MAX = 8;

/** An index as it will be put: these bytes and no others have the digest. */
export type BuiltIndex = {
  readonly bytes: Uint8Array;
  readonly digest: Digest;
  readonly mediaType: string;
  readonly manifests: readonly Descriptor[];
};

/**
 * How the bytes are laid out. `plain`: two spaces, nothing escaped that need not be. `docker`: what `docker manifest
 * push` writes, Go's `MarshalIndent` with three spaces, which escapes `<`, `>`, `&`, U+2028 and U+2029, so that the
 * same children in the same order have the same digest.
 *
 * @see docker/distribution manifest/manifestlist/manifestlist.go
 */
export type IndexLayout = 'plain' | 'docker';

const INDENTS: Readonly<Record<IndexLayout, string>> = { plain: '  ', docker: '   ' };

/**
 * Writes an index: JSON in one of two layouts, no final newline. Keys in the order of buildx; the
 * fields of a flattened entry or of its platform that we do not interpret come last, by name, their numbers as they were
 * written; what is empty is left out. The same input
 * gives the same bytes on every machine, so that a re-run finds its own digest.
 *
 * @throws PublishError `INDEX_TOO_LARGE`
 */
export function buildIndex(input: {
  readonly mediaType: string;
  readonly manifests: readonly Descriptor[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly layout?: IndexLayout;
}): BuiltIndex {
  const { mediaType, manifests, layout = 'plain' } = input;
  if (manifests.length > ENTRIES_MAX) throw tooLarge(`${manifests.length} entries, the limit is ${ENTRIES_MAX}`);
  const document: Fields = [
    ['schemaVersion', 2],
    ['mediaType', mediaType],
    ['manifests', manifests.map((entry) => new Map(entryFields(entry)))],
    ['annotations', sorted(input.annotations)],
  ];
  const text = pretty(new Map(document), '\n', INDENTS[layout]);
  const bytes = new TextEncoder().encode(layout === 'docker' ? escapedAsGo(text) : text);
  if (bytes.length > MANIFEST_SIZE_MAX) {
    throw tooLarge(`${bytes.length} bytes, registries take ${MANIFEST_SIZE_MAX}`);
  }
  return { bytes, digest: digestOf(bytes), mediaType, manifests };
}

/**
 * The type of the list for these children. `auto`: Docker's when every child is Docker's, else OCI's.
 *
 * @throws PublishError `INDEX_TYPE_CONFLICT` when Docker's type is wanted for a child that is not Docker's
 */
export function indexTypeFor(children: readonly Descriptor[], wanted: 'auto' | 'oci' | 'docker'): string {
  const others = children.filter((child) => !isDockerType(child.mediaType));
  if (wanted === 'oci' || (wanted === 'auto' && (others.length > 0 || children.length === 0)))
    return MEDIA_TYPES.ociIndex;
  if (others.length === 0) return MEDIA_TYPES.dockerList;
  const named = others.slice(0, NAMED_MAX).map((child) => `${child.digest} (${child.mediaType})`);
  const more = others.length > NAMED_MAX ? ` and ${others.length - NAMED_MAX} more` : '';
  throw new PublishError(
    'INDEX_TYPE_CONFLICT',
    `a Docker manifest list cannot list OCI manifests: ${named.join(', ')}${more}`,
    'Leave out --type docker to get an OCI index, or push these images with Docker media types.',
  );
}

/** Ordered fields. An object would put keys that look like numbers first, whatever order they were written in. */
type Fields = readonly (readonly [string, unknown])[];

function entryFields(entry: Descriptor): Fields {
  const last: Fields = [
    ['artifactType', entry.artifactType],
    ['urls', entry.urls?.length ? entry.urls : undefined],
    ...Object.entries(entry.extra ?? {}),
  ];
  return [
    ['mediaType', entry.mediaType],
    ['size', entry.size],
    ['digest', entry.digest],
    ['annotations', sorted(entry.annotations)],
    ['platform', platformFields(entry)],
    ...byKey(last),
  ];
}

function platformFields({ platform, platformExtra = {} }: Descriptor): ReadonlyMap<string, unknown> | undefined {
  if (platform === undefined) return undefined;
  return new Map([...Object.entries<unknown>(orderedPlatform(platform)), ...byKey(Object.entries(platformExtra))]);
}

function sorted(map: Readonly<Record<string, string>> | undefined): ReadonlyMap<string, string> | undefined {
  const entries = Object.entries(map ?? {});
  return entries.length === 0 ? undefined : new Map(byKey(entries));
}

function byKey<Value>(entries: readonly (readonly [string, Value])[]): readonly (readonly [string, Value])[] {
  return [...entries].sort(([one], [other]) => (one < other ? -1 : 1));
}

/** `indent` is the newline and the spaces in front of the value's closing bracket. Undefined fields are left out. */
function pretty(value: unknown, indent: string, step: string): string {
  if (typeof value !== 'object' || value === null || value instanceof ExactNumber) return exactJson(value);
  const deeper = `${indent}${step}`;
  if (Array.isArray(value)) {
    const items = value.map((item) => pretty(item, deeper, step));
    return bracketed('[', items, ']', indent, deeper);
  }
  const entries: Fields = value instanceof Map ? [...value] : Object.entries(value);
  const fields = entries
    .filter(([, field]) => field !== undefined)
    .map(([key, field]) => `${JSON.stringify(key)}: ${pretty(field, deeper, step)}`);
  return bracketed('{', fields, '}', indent, deeper);
}

function bracketed(open: string, parts: readonly string[], close: string, indent: string, deeper: string): string {
  return parts.length === 0 ? open + close : `${open}${deeper}${parts.join(`,${deeper}`)}${indent}${close}`;
}

/** All of these stand inside strings only: JSON's own syntax has none of them. */
function escapedAsGo(text: string): string {
  return text.replace(/[<>&\u2028\u2029]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function tooLarge(what: string): PublishError {
  return new PublishError('INDEX_TOO_LARGE', `the index would have ${what}`, 'Publish several smaller lists.');
}
