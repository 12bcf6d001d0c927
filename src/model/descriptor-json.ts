import type { Descriptor, Platform } from './descriptor.ts';
import { isDigest } from './digest.ts';
import { orderedPlatform, type PartialPlatform } from './platform.ts';
import { isPrintable, quoted } from './quoted.ts';
import {
  exactJson,
  foldedKeys,
  invalidDocument,
  isJsonObject,
  type JsonObject,
  refuseCaseVariants,
} from './strict-json.ts';

const READ: readonly string[] = ['mediaType', 'digest', 'size', 'urls', 'annotations', 'platform', 'artifactType'];
const DESCRIPTOR_KEYS = foldedKeys(READ);
const PLATFORM_READ: readonly string[] = ['architecture', 'os', 'os.version', 'os.features', 'variant'];
const PLATFORM_KEYS = foldedKeys(PLATFORM_READ);

/**
 * Reads a descriptor out of a manifest. `null`, empty lists and empty maps count as absent, as Go writes them for
 * fields that were not set.
 *
 * @param where what is read, for messages: `ghcr.io/acme/app:1: layers[2]`
 * @throws PublishError `MANIFEST_INVALID`
 * @see image-spec v1.1.1 descriptor.md, section "Properties"
 */
export function readDescriptor(value: unknown, where: string): Descriptor {
  if (!isJsonObject(value)) throw invalidDocument(where, 'not a descriptor');
  refuseCaseVariants(value, DESCRIPTOR_KEYS, where);
  const { digest, size } = value;
  const mediaType = readText(value['mediaType'], `${where}.mediaType`);
  const artifactType = readText(value['artifactType'], `${where}.artifactType`);
  const urls = readTexts(value['urls'], `${where}.urls`);
  const annotations = readStringMap(value['annotations'], `${where}.annotations`);
  const platform = readPlatform(value['platform'], `${where}.platform`);
  const extra = unread(value, READ);
  const platformExtra =
    platform !== undefined && isJsonObject(value['platform']) ? unread(value['platform'], PLATFORM_READ) : undefined;
  if (mediaType === undefined) throw invalidDocument(where, 'no mediaType');
  if (typeof digest !== 'string' || !isDigest(digest)) {
    throw invalidDocument(where, `not a sha256 or sha512 digest: ${shown(digest)}`);
  }
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) {
    throw invalidDocument(where, `not a size in bytes: ${shown(size)}`);
  }
  return {
    mediaType,
    digest,
    size,
    ...(urls === undefined ? {} : { urls }),
    ...(annotations === undefined ? {} : { annotations }),
    ...(platform === undefined ? {} : { platform }),
    ...(artifactType === undefined ? {} : { artifactType }),
    ...(extra === undefined ? {} : { extra }),
    ...(platformExtra === undefined ? {} : { platformExtra }),
  };
}

/** The fields that are not interpreted; undefined when there are none. */
function unread(object: JsonObject, read: readonly string[]): JsonObject | undefined {
  const fields = Object.entries(object).filter(([key]) => !read.includes(key));
  return fields.length === 0 ? undefined : Object.fromEntries(fields);
}

/** The platform fields of an object that has them: a descriptor's `platform`, or an image config. */
export function readPlatformFields(object: JsonObject, where: string): PartialPlatform {
  refuseCaseVariants(object, PLATFORM_KEYS, where);
  const text = (key: string): string | undefined => readText(object[key], `${where}.${key}`);
  const architecture = text('architecture');
  const os = text('os');
  const version = text('os.version');
  const features = readTexts(object['os.features'], `${where}.os.features`);
  const variant = text('variant');
  return {
    ...(architecture === undefined ? {} : { architecture }),
    ...(os === undefined ? {} : { os }),
    ...(version === undefined ? {} : { 'os.version': version }),
    ...(features === undefined ? {} : { 'os.features': features }),
    ...(variant === undefined ? {} : { variant }),
  };
}

/** A value for messages. Never `String(value)`: an object may bring a `toString` of its own that is no function. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return quoted(value);
  if (typeof value === 'number') return String(value);
  return value === undefined ? 'nothing' : quoted(exactJson(value));
}

/** A text that is not empty and that messages can show, such as a media type; `null` and '' are none. */
export function readText(value: unknown, where: string): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string' || !isPrintable(value)) throw invalidDocument(where, 'not a printable text');
  return value;
}

/** A list that may be `null`, as Go writes one without entries. */
export function readList(value: unknown, where: string): readonly unknown[] {
  if (value === null) return [];
  if (!Array.isArray(value)) throw invalidDocument(where, 'not a list');
  return value;
}

/** A map of texts with at least one key, as annotations are. */
export function readStringMap(value: unknown, where: string): Readonly<Record<string, string>> | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isJsonObject(value)) throw invalidDocument(where, 'not an object');
  const entries = Object.entries(value).map(([key, text]): readonly [string, string] => {
    if (typeof text !== 'string') throw invalidDocument(where, `the value of ${quoted(key)} is not a text`);
    return [key, text];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function readTexts(value: unknown, where: string): readonly string[] | undefined {
  if (value === undefined) return undefined;
  const texts = readList(value, where).map((text) => {
    if (typeof text !== 'string') throw invalidDocument(where, 'not a list of texts');
    return text;
  });
  return texts.length === 0 ? undefined : texts;
}

/** A platform without os or architecture tells nothing that a client could match; the image's config decides then. */
function readPlatform(value: unknown, where: string): Platform | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isJsonObject(value)) throw invalidDocument(where, 'not a platform');
  const { architecture, os, ...more } = readPlatformFields(value, where);
  return architecture === undefined || os === undefined ? undefined : orderedPlatform({ architecture, os, ...more });
}
