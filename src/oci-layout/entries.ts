import { PublishError } from '../errors.ts';
import type { Descriptor } from '../model/descriptor.ts';
import { readDescriptor } from '../model/descriptor-json.ts';
import type { Digest } from '../model/digest.ts';
import { exactJson, invalidDocument, isJsonObject, type JsonObject, readJsonObject } from '../model/strict-json.ts';

/** The tag of an entry of index.json. @see image-spec v1.1.1 annotations.md, "Pre-Defined Annotation Keys" */
const REF_NAME = 'org.opencontainers.image.ref.name';

/** The whole name, which docker and containerd write beside it or instead. @see containerd core/images/annotations.go */
const IMAGE_NAME = 'io.containerd.image.name';

/** What is there before the first manifest is. */
export const EMPTY_INDEX = '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}';

/** At most as many entries are named in a message. */
const SHOWN = 10;

/** The index.json of a layout. Its entries are read one by one: others may hold what we do not know. */
export type LayoutIndex = {
  readonly name: string;
  readonly document: JsonObject;
  readonly entries: readonly JsonObject[];
};

/**
 * @param name the path, for messages
 * @throws PublishError `MANIFEST_INVALID`
 * @see image-spec v1.1.1 image-layout.md, section "index.json file"
 */
export function readIndex(bytes: Uint8Array, name: string): LayoutIndex {
  const document = readJsonObject(bytes, name);
  const list = document['manifests'];
  if (document['schemaVersion'] !== 2) throw invalidDocument(name, 'its schemaVersion is not 2');
  if (list !== null && !Array.isArray(list)) throw invalidDocument(name, 'not an image index: it has no manifests');
  const entries = (list ?? []).map((entry: unknown): JsonObject => {
    if (!isJsonObject(entry)) throw invalidDocument(name, 'an entry that is not a descriptor');
    return entry;
  });
  return { name, document, entries };
}

/**
 * The entry of a tag: of those that have it for a name, else of those whose whole name ends in it. Without a tag
 * `latest`, else the only one, as crane and skopeo read a layout.
 *
 * @param reference for messages
 * @returns undefined when there is none
 * @throws PublishError `USAGE_INVALID` when it could be several
 */
export function findEntry(index: LayoutIndex, tag: string, reference: string): Descriptor | undefined {
  const { entries, name } = index;
  const wanted = tag === '' ? 'latest' : tag;
  const exact = entries.filter((entry) => annotation(entry, REF_NAME) === wanted);
  const byName = entries.filter((entry) =>
    [REF_NAME, IMAGE_NAME].some((key) => tagOf(annotation(entry, key)) === wanted),
  );
  const named = exact.length > 0 ? exact : byName;
  const found = named.length > 0 || tag !== '' ? named : entries;
  const [first, ...others] = [...new Map(found.map((entry) => [entry['digest'], entry])).values()];
  if (others.length > 0) throw ambiguous(found, reference);
  return first === undefined ? undefined : readDescriptor(first, `${name}: ${reference}`);
}

/** The document with that tag on that manifest and on no other; everything else stays as it is. */
export function withEntry(
  index: LayoutIndex,
  tag: string,
  descriptor: Pick<Descriptor, 'mediaType' | 'digest' | 'size'>,
): string {
  const { mediaType, digest, size } = descriptor;
  const entry: JsonObject = { mediaType, digest, size, annotations: { [REF_NAME]: tag } };
  const isOld = (one: JsonObject): boolean => annotation(one, REF_NAME) === tag;
  const place = index.entries.findIndex(isOld);
  const before = index.entries.slice(0, Math.max(0, place));
  const after = index.entries.slice(place < 0 ? 0 : place + 1).filter((one) => !isOld(one));
  const manifests = place < 0 ? [...after, entry] : [...before, entry, ...after];
  return exactJson({ ...index.document, manifests });
}

/** What the layout holds, in words: its tags, or digests where there are none. */
export function contents({ entries }: Pick<LayoutIndex, 'entries'>): string {
  if (entries.length === 0) return 'it is empty';
  return `it holds ${listed(entries)}`;
}

/** Digests of the entries that can be read, each once. */
export function digestsOf({ entries, name }: LayoutIndex): readonly Digest[] {
  const digests = entries.flatMap((entry) => {
    try {
      return [readDescriptor(entry, name).digest];
    } catch (error) {
      // Not one that we could read: nobody asks for it.
      if (error instanceof PublishError) return [];
      throw error;
    }
  });
  return [...new Set(digests)];
}

function ambiguous(entries: readonly JsonObject[], reference: string): PublishError {
  const digest = text(entries[0]?.['digest']);
  return new PublishError(
    'USAGE_INVALID',
    `${reference} could be several manifests: ${listed(entries)}`,
    `Name the tag, or the digest: ${reference.replace(/@.*$/, '')}@${digest}`,
  );
}

function listed(entries: readonly JsonObject[]): string {
  const names = entries.slice(0, SHOWN).map((entry) => {
    const name = annotation(entry, REF_NAME) ?? annotation(entry, IMAGE_NAME);
    const digest = text(entry['digest']);
    return name === undefined ? digest : `${text(name)} (${digest})`;
  });
  return [...names, ...(entries.length > SHOWN ? [`${entries.length - SHOWN} more`] : [])].join(', ');
}

/** Something of the file as a message may show it. */
function text(value: unknown): string {
  return typeof value === 'string' && /^[\x21-\x7e]{1,160}$/.test(value)
    ? value
    : JSON.stringify(value ?? null).slice(0, 160);
}

/** `latest` of `docker.io/library/app:latest`. */
function tagOf(name: string | undefined): string | undefined {
  const colon = name?.lastIndexOf(':') ?? -1;
  return name !== undefined && colon > name.lastIndexOf('/') && colon > 0 ? name.slice(colon + 1) : undefined;
}

function annotation(entry: JsonObject, key: string): string | undefined {
  const annotations = entry['annotations'];
  const value = isJsonObject(annotations) ? annotations[key] : undefined;
  return typeof value === 'string' ? value : undefined;
}
