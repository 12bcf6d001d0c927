import { PublishError } from '../errors.ts';
import { type Descriptor, ENTRIES_MAX, MANIFEST_SIZE_MAX } from '../model/descriptor.ts';
import { readDescriptor, readList, readPlatformFields, readStringMap } from '../model/descriptor-json.ts';
import { algorithmOf, type Digest, digestOf, isDigest } from '../model/digest.ts';
import { parseManifest } from '../model/manifest.ts';
import { formatReference, parseReference } from '../model/reference.ts';
import { exactJson, invalidDocument, isJsonObject, type JsonObject, readJsonObject } from '../model/strict-json.ts';
import type { Draft, DraftChild, DraftEntry, StoredDraft } from './draft.ts';

/** Largest file of a draft in bytes: a thousand images with their manifests are about 4 MiB. */
export const DRAFT_SIZE_MAX: number = 64 * 1024 * 1024;

const SCHEMA_VERSION = 1;

/**
 * The draft as it is kept: JSON, with the exact bytes of the manifests it names in Base64, others left out.
 *
 * @throws PublishError `INDEX_TOO_LARGE`
 */
export function encodeDraft({ draft, manifests }: StoredDraft): Uint8Array {
  const named = new Set(draft.entries.flatMap(digestsOf));
  const kept = [...named].map((digest): [Digest, string] => {
    const bytes = manifests.get(digest);
    if (bytes === undefined) throw new Error(`the bytes of ${digest} did not come with the draft`);
    return [digest, Buffer.from(bytes).toString('base64')];
  });
  const document = {
    schemaVersion: SCHEMA_VERSION,
    reference: draft.reference,
    ...(draft.docker === undefined ? {} : { docker: draft.docker }),
    entries: draft.entries.map(({ reference, root, children }) => ({
      reference,
      root: flat(root),
      children: children.map(({ descriptor, changes }) => ({
        descriptor: flat(descriptor),
        ...(changes === undefined ? {} : { changes }),
      })),
    })),
    manifests: Object.fromEntries(kept),
  };
  const bytes = new TextEncoder().encode(`${exactJson(document)}\n`);
  if (bytes.length > DRAFT_SIZE_MAX) {
    throw new PublishError(
      'INDEX_TOO_LARGE',
      `the draft of ${draft.reference} would have ${bytes.length} bytes, the limit is ${DRAFT_SIZE_MAX}`,
      'Create several smaller lists.',
    );
  }
  return bytes;
}

/**
 * Reads a draft and believes nothing: every digest is computed anew, every manifest parsed, every reference must be
 * one in full.
 *
 * @param file its path, for messages
 * @throws PublishError `DRAFT_INVALID` naming the file
 */
export function decodeDraft(bytes: Uint8Array, file: string): StoredDraft {
  try {
    return readDraft(readJsonObject(bytes, file), file);
  } catch (error) {
    if (!(error instanceof PublishError)) throw error;
    const message = error.message.startsWith(file) ? error.message : `${file}: ${error.message}`;
    throw new PublishError('DRAFT_INVALID', message, DROP_IT, { cause: error });
  }
}

/** What to do about a file that is no draft. */
export const DROP_IT = 'Drop it with manifest-publish rm LIST, or remove the file, and create the list again.';

/** A descriptor as a manifest has it: fields that we do not interpret stand beside the others. */
function flat({ extra, platformExtra, ...descriptor }: Descriptor): object {
  const platform = platformExtra === undefined ? {} : { platform: { ...platformExtra, ...descriptor.platform } };
  return { ...extra, ...descriptor, ...platform };
}

function digestsOf({ root, children }: DraftEntry): readonly Digest[] {
  return [root.digest, ...children.map(({ descriptor }) => descriptor.digest)];
}

function readDraft(document: JsonObject, file: string): StoredDraft {
  onlyKeys(document, ['schemaVersion', 'reference', 'docker', 'entries', 'manifests'], file);
  const { schemaVersion: version, docker } = document;
  if (version !== SCHEMA_VERSION) throw invalidDocument(file, `schemaVersion is not ${SCHEMA_VERSION}`);
  if (docker !== undefined && (typeof docker !== 'string' || !isDigest(docker))) {
    throw invalidDocument(`${file}: docker`, 'not a digest');
  }
  const manifests = readManifests(document['manifests'], `${file}: manifests`);
  const entries = limitedList(document['entries'], `${file}: entries`).map((entry, index) =>
    readEntry(entry, manifests, `${file}: entries[${index}]`),
  );
  const names = new Set(entries.map(({ reference }) => reference));
  if (names.size < entries.length) throw invalidDocument(file, 'two entries of one reference');
  const draft: Draft = {
    reference: readReference(document['reference'], `${file}: reference`),
    entries,
    ...(docker === undefined ? {} : { docker }),
  };
  return { draft, manifests };
}

function readManifests(value: unknown, where: string): ReadonlyMap<Digest, Uint8Array> {
  if (!isJsonObject(value)) throw invalidDocument(where, 'not an object');
  const manifests = new Map<Digest, Uint8Array>();
  for (const [digest, text] of Object.entries(value)) {
    if (!isDigest(digest)) throw invalidDocument(where, 'a key that is not a digest');
    manifests.set(digest, readBase64(text, digest, `${where}: ${digest}`));
  }
  return manifests;
}

/**
 * Bytes out of Base64 that have this digest. Node passes over what is not Base64, so the text is made anew to compare.
 *
 * @throws PublishError `MANIFEST_INVALID`
 */
export function readBase64(text: unknown, digest: Digest, where: string): Uint8Array {
  if (typeof text !== 'string') throw invalidDocument(where, 'not a text');
  if (text.length > 4 * Math.ceil(MANIFEST_SIZE_MAX / 3)) {
    throw invalidDocument(where, `a manifest of more than ${MANIFEST_SIZE_MAX} bytes`);
  }
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text) throw invalidDocument(where, 'not Base64');
  const actual = digestOf(bytes, algorithmOf(digest));
  if (actual !== digest) throw invalidDocument(where, `the bytes have the digest ${actual}`);
  return bytes;
}

function readEntry(value: unknown, manifests: ReadonlyMap<Digest, Uint8Array>, where: string): DraftEntry {
  if (!isJsonObject(value)) throw invalidDocument(where, 'not an object');
  onlyKeys(value, ['reference', 'root', 'children'], where);
  const reference = readReference(value['reference'], `${where}: reference`);
  const root = readDescriptor(value['root'], `${where}: root`);
  const children = limitedList(value['children'], `${where}: children`).map((child, index) =>
    readChild(child, `${where}: children[${index}]`),
  );
  const kind = checkManifest(root, manifests, `${where}: root`);
  for (const { descriptor } of children) {
    if (checkManifest(descriptor, manifests, `${where}: ${descriptor.digest}`) === 'index') {
      throw invalidDocument(where, `${descriptor.digest} is an index, not an image`);
    }
  }
  if (kind === 'image' && (children.length !== 1 || children[0]?.descriptor.digest !== root.digest)) {
    throw invalidDocument(where, 'the root is an image, but not the only child');
  }
  return { reference, root, children };
}

function readChild(value: unknown, where: string): DraftChild {
  if (!isJsonObject(value)) throw invalidDocument(where, 'not an object');
  onlyKeys(value, ['descriptor', 'changes'], where);
  const descriptor = readDescriptor(value['descriptor'], `${where}: descriptor`);
  const { changes } = value;
  if (changes === undefined) return { descriptor };
  if (!isJsonObject(changes)) throw invalidDocument(`${where}: changes`, 'not an object');
  onlyKeys(changes, ['platform', 'annotations'], `${where}: changes`);
  const { platform } = changes;
  const annotations = readStringMap(changes['annotations'], `${where}: changes.annotations`);
  if (platform !== undefined && !isJsonObject(platform)) throw invalidDocument(`${where}: changes`, 'not a platform');
  return {
    descriptor,
    changes: {
      ...(platform === undefined ? {} : { platform: readPlatformFields(platform, `${where}: changes.platform`) }),
      ...(annotations === undefined ? {} : { annotations }),
    },
  };
}

/** The descriptor must be that of the bytes that are kept. */
function checkManifest(
  { digest, size, mediaType }: Descriptor,
  manifests: ReadonlyMap<Digest, Uint8Array>,
  where: string,
): 'image' | 'index' {
  const bytes = manifests.get(digest);
  if (bytes === undefined) throw invalidDocument(where, `the bytes of ${digest} are missing`);
  const manifest = parseManifest(bytes, digest, mediaType, where);
  if (manifest.size !== size) throw invalidDocument(where, `${manifest.size} bytes, but called ${size}`);
  if (manifest.mediaType !== mediaType) throw invalidDocument(where, 'the bytes are of another type');
  return manifest.kind;
}

function readReference(value: unknown, where: string): string {
  if (typeof value !== 'string' || formatReference(parseReference(value)) !== value) {
    throw invalidDocument(where, 'not a reference in full');
  }
  return value;
}

function limitedList(value: unknown, where: string): readonly unknown[] {
  const list = readList(value, where);
  if (list.length > ENTRIES_MAX) throw invalidDocument(where, `more than ${ENTRIES_MAX}`);
  return list;
}

function onlyKeys(object: JsonObject, known: readonly string[], where: string): void {
  if (Object.keys(object).some((key) => !known.includes(key)))
    throw invalidDocument(where, 'a field of another program');
}
