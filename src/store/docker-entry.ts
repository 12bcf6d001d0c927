import { PublishError } from '../errors.ts';
import { MEDIA_TYPES } from '../model/descriptor.ts';
import { readDescriptor, readPlatformFields, readText } from '../model/descriptor-json.ts';
import { algorithmOf, type Digest, digestOf, isDigest } from '../model/digest.ts';
import { parseManifest } from '../model/manifest.ts';
import { normalizePlatform, type PartialPlatform } from '../model/platform.ts';
import { quoted } from '../model/quoted.ts';
import { formatReference, parseReference } from '../model/reference.ts';
import {
  foldedKeys,
  invalidDocument,
  isJsonObject,
  type JsonObject,
  readJsonObject,
  refuseCaseVariants,
} from '../model/strict-json.ts';
import { readBase64 } from './codec.ts';
import { dockerFileName } from './docker-name.ts';
import type { DraftEntry } from './draft.ts';

/** An entry of docker's, the exact bytes of its manifest, and what is odd about it. */
export type DockerEntry = {
  readonly entry: DraftEntry;
  readonly bytes: Uint8Array;
  readonly warnings: readonly string[];
};

/** What docker writes, and what it wrote until 2018: the digest and the platform without a descriptor. */
const KEYS = foldedKeys(['Ref', 'Descriptor', 'Raw', 'SchemaV2Manifest', 'OCIManifest', 'Digest', 'Platform']);

/**
 * Reads one file of docker's own store. The bytes of the manifest must have the digest that the file names.
 *
 * @param file its path, for messages
 * @throws PublishError `DRAFT_INVALID` naming the file
 * @see https://github.com/docker/cli/blob/v28.2.2/cli/manifest/types/types.go
 */
export function readDockerEntry(content: Uint8Array, name: string, file: string): DockerEntry {
  try {
    const document = readJsonObject(content, file);
    refuseCaseVariants(document, KEYS, file);
    const reference = readReference(document['Ref'], file);
    if (dockerFileName(reference) !== name) {
      throw invalidDocument(file, `the entry of ${reference}, which docker keeps in ${dockerFileName(reference)}`);
    }
    return readEntry(document, reference, file);
  } catch (error) {
    if (!(error instanceof PublishError)) throw error;
    const message = error.message.startsWith(file) ? error.message : `${file}: ${error.message}`;
    throw new PublishError('DRAFT_INVALID', message, 'Create the list again: manifest-publish create LIST SOURCE...', {
      cause: error,
    });
  }
}

function readReference(value: unknown, file: string): string {
  if (typeof value !== 'string' || formatReference(parseReference(value)) !== value) {
    throw invalidDocument(file, 'Ref is not a reference in full');
  }
  return value;
}

function readEntry(document: JsonObject, reference: string, file: string): DockerEntry {
  const { digest, size, mediaType: said, platform } = readHead(document, file);
  const bytes = readBytes(document, digest, file);
  if (size !== undefined && size !== bytes.length) {
    throw invalidDocument(file, `the manifest has ${bytes.length} bytes, but is said to have ${size}`);
  }
  const manifest = parseManifest(bytes, digest, said, file);
  if (manifest.kind !== 'image') throw invalidDocument(file, 'an index, not an image');
  const { mediaType } = manifest;
  if (said !== undefined && said !== mediaType) throw invalidDocument(file, `${quoted(said)} is really ${mediaType}`);

  const root = { mediaType, digest, size: bytes.length };
  const { os, architecture } = platform;
  const child =
    os === undefined || architecture === undefined
      ? { descriptor: root, ...(Object.keys(platform).length === 0 ? {} : { changes: { platform } }) }
      : { descriptor: { ...root, platform: { ...platform, architecture, os } } };
  return { entry: { reference, root, children: [child] }, bytes, warnings: oddPlatform(reference, platform) };
}

type Head = {
  readonly digest: Digest;
  readonly size?: number;
  readonly mediaType?: string;
  readonly platform: PartialPlatform;
};

/** Docker keeps a platform also when os or architecture is empty, so that annotate can fill it in. */
function readHead(document: JsonObject, file: string): Head {
  const { Descriptor: descriptor, Digest: old, Platform: oldPlatform } = document;
  if (typeof old === 'string' && old !== '') {
    if (!isDigest(old)) throw invalidDocument(file, `Digest is not a sha256 or sha512 digest: ${quoted(old)}`);
    return { digest: old, platform: readPlatform(oldPlatform, `${file}: Platform`) };
  }
  const { digest, size, mediaType } = readDescriptor(descriptor, `${file}: Descriptor`);
  const platform = isJsonObject(descriptor) ? descriptor['platform'] : undefined;
  return { digest, size, mediaType, platform: readPlatform(platform, `${file}: Descriptor.platform`) };
}

function readPlatform(value: unknown, where: string): PartialPlatform {
  if (value === undefined || value === null) return {};
  if (!isJsonObject(value)) throw invalidDocument(where, 'not a platform');
  return readPlatformFields(value, where);
}

function readBytes(document: JsonObject, digest: Digest, file: string): Uint8Array {
  const { Raw: raw, SchemaV2Manifest: docker, OCIManifest: oci } = document;
  if (raw !== undefined && raw !== null && raw !== '') return readBase64(raw, digest, `${file}: Raw`);
  const value = docker ?? oci;
  if (!isJsonObject(value)) throw invalidDocument(file, 'no manifest in it');
  const bytes = reindented(value, docker === undefined || docker === null ? 2 : 3).find(
    (candidate) => digestOf(candidate, algorithmOf(digest)) === digest,
  );
  if (bytes !== undefined) return bytes;
  const type = readText(value['mediaType'], `${file}: mediaType`) ?? MEDIA_TYPES.ociManifest;
  throw invalidDocument(file, `written by an old docker without the exact bytes of ${digest} (${type})`);
}

/**
 * What the bytes may have been. Old versions of docker kept the manifest without its white space; most were written
 * with three spaces by docker, and two by other tools. Only the digest tells.
 *
 * @see https://github.com/docker/cli/pull/3990
 */
function reindented(manifest: JsonObject, spaces: number): readonly Uint8Array[] {
  return [spaces, 0].map((indent) => new TextEncoder().encode(JSON.stringify(manifest, undefined, indent)));
}

/** Docker lets annotate write what no client looks for, such as the variant armv7. */
function oddPlatform(reference: string, platform: PartialPlatform): readonly string[] {
  const { os, architecture, variant } = platform;
  if (os === undefined || architecture === undefined || variant === undefined) return [];
  const odd = `${reference} has the variant ${quoted(variant)} in docker's draft, which no client looks for`;
  const say = 'say the right one with annotate --variant';
  try {
    const meant = normalizePlatform({ os, architecture, variant }).variant;
    return meant === variant ? [] : [`${odd}: ${say}${meant === undefined ? '' : ` ${meant}`}`];
  } catch (error) {
    if (error instanceof PublishError) return [`${odd}: ${say}`];
    throw error;
  }
}
