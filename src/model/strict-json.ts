import { PublishError } from '../errors.ts';
import { quoted } from './quoted.ts';

/** A JSON object as `JSON.parse` makes it: `__proto__` in the text is a key like any other. */
export type JsonObject = { readonly [key: string]: unknown };

/**
 * A number that JavaScript would write in another way: `1e400`, `12345678901234567890`, `1.0`. Kept as its text, so that
 * a field that nobody here interprets is written again as it was; see {@link exactJson}.
 */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** For reports: the nearest that JavaScript has. */
  toJSON(): number {
    return Number(this.text);
  }
}

/** Deepest nesting of objects and arrays. Manifests need 5; recursive readers elsewhere fail on deep ones. */
const DEPTH_MAX = 64;

const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const OPEN_OBJECT = 0x7b;
const OPEN_ARRAY = 0x5b;
const CLOSE_OBJECT = 0x7d;
const CLOSE_ARRAY = 0x5d;

/**
 * Reads a JSON object that every client reads the same way. `JSON.parse` alone lets bad UTF-8 and doubled keys pass,
 * so a registry written in Go could see another document than we do. Linear in the length. Numbers that would not
 * survive are {@link ExactNumber}s; so `"size": 1.0` is no number to us, as it is none to Go's int64.
 *
 * @param name what the bytes are, for messages
 * @throws PublishError `MANIFEST_INVALID`
 */
export function readJsonObject(bytes: Uint8Array, name: string): JsonObject {
  const text = decode(bytes, name);
  const isExact = scan(text, name);
  const parsed = parse(text, name);
  const value = isExact ? parsed : parseExact(text, name);
  if (!isJsonObject(value)) throw invalidDocument(name, 'not a JSON object');
  return value;
}

/** Whether a value out of {@link readJsonObject} is an object. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);
}

/** What `JSON.stringify` writes, but numbers as they were read. */
export function exactJson(value: unknown): string {
  if (value instanceof ExactNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(exactJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null);
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${exactJson(field)}`).join(',')}}`;
}

/**
 * Refuses a key that differs from one of `keys` only in case: Go reads `MEDIATYPE` as `mediaType`, JavaScript does not.
 *
 * @throws PublishError `MANIFEST_INVALID`
 */
export function refuseCaseVariants(object: JsonObject, keys: ReadonlyMap<string, string>, name: string): void {
  for (const key of Object.keys(object)) {
    const meant = keys.get(foldCase(key));
    if (meant !== undefined && meant !== key) {
      throw invalidDocument(name, `key ${quoted(key)} differs from ${meant} only in case`);
    }
  }
}

/** Keys by their folded form, for {@link refuseCaseVariants}. */
export function foldedKeys(keys: readonly string[]): ReadonlyMap<string, string> {
  return new Map(keys.map((key) => [foldCase(key), key]));
}

/** A document that no two clients need read alike, or that is none at all. */
export function invalidDocument(name: string, what: string, cause?: unknown): PublishError {
  return new PublishError(
    'MANIFEST_INVALID',
    `${name}: ${what}`,
    'Push that image again with a current tool, or leave it out.',
    cause === undefined ? {} : { cause },
  );
}

/** Go's encoding/json folds the long s and the Kelvin sign onto s and k as well; lower-casing does only the latter. */
function foldCase(key: string): string {
  return key.toLowerCase().replaceAll('\u017f', 's');
}

function decode(bytes: Uint8Array, name: string): string {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw invalidDocument(name, 'not UTF-8', cause);
  }
  if (text.startsWith('\ufeff')) throw invalidDocument(name, 'a byte order mark in front of the JSON');
  return text;
}

function parse(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw invalidDocument(name, 'not JSON', cause);
  }
}

/** The value of a text that `JSON.parse` and {@link scan} have passed, so that its depth has a limit. */
function parseExact(text: string, name: string): unknown {
  let at = 0;
  const take = (end: number): string => {
    const token = text.slice(at, end);
    at = end;
    return token;
  };
  /** Whether there is another item; steps over the comma in front of it, or over the closing bracket. */
  const more = (close: string): boolean => {
    at = skipSpace(text, at);
    if (text[at] === ',') at = skipSpace(text, at + 1);
    const ended = text[at] === close;
    if (ended) at += 1;
    return !ended;
  };
  const value = (): unknown => {
    at = skipSpace(text, at);
    switch (text[at]) {
      case '{': {
        const fields: [string, unknown][] = [];
        for (at += 1; more('}'); ) {
          const key = readKey(take(endOfString(text, at) + 1), name);
          at = skipSpace(text, at) + 1;
          fields.push([key, value()]);
        }
        return Object.fromEntries(fields);
      }
      case '[': {
        const items: unknown[] = [];
        for (at += 1; more(']'); ) items.push(value());
        return items;
      }
      case '"':
        return parse(take(endOfString(text, at) + 1), name);
      default: {
        const token = take(endOfToken(text, at));
        return isCanonical(token) ? parse(token, name) : new ExactNumber(token);
      }
    }
  };
  return value();
}

/** Whether JavaScript writes the number as it stands; words are no numbers and pass. */
function isCanonical(token: string): boolean {
  return /^[a-z]/.test(token) || String(Number(token)) === token;
}

/**
 * Looks for too deep nesting and for doubled keys, ahead of `JSON.parse`, which does not tell of either. Text that is
 * not JSON may pass: the parser refuses it afterwards.
 *
 * @returns whether `JSON.parse` gives every number as it is written
 */
function scan(text: string, name: string): boolean {
  let isExact = true;
  // One set per level, emptied when an object opens there: documents may have a million small objects.
  const seen: Set<string>[] = [];
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = endOfString(text, at);
      if (text.charCodeAt(skipSpace(text, end + 1)) === COLON) {
        const key = readKey(text.slice(at, end + 1), name);
        const keys = seen[depth];
        if (keys?.has(key)) throw invalidDocument(name, `key ${quoted(key)} twice in one object`);
        keys?.add(key);
      }
      at = end;
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      depth += 1;
      if (depth > DEPTH_MAX) throw invalidDocument(name, `JSON nested deeper than ${DEPTH_MAX} levels`);
      if (code === OPEN_OBJECT) seen[depth] = emptied(seen[depth]);
    } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
      depth -= 1;
    } else if (code === MINUS || (code >= ZERO && code <= NINE)) {
      const end = endOfToken(text, at);
      isExact &&= isCanonical(text.slice(at, end));
      at = end - 1;
    }
  }
  return isExact;
}

function emptied(keys: Set<string> | undefined): Set<string> {
  if (keys === undefined) return new Set();
  if (keys.size > 0) keys.clear();
  return keys;
}

/** Position of the closing quote, or the end of the text when there is none. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  for (let code = text.charCodeAt(at); at < text.length && code !== QUOTE; code = text.charCodeAt(at)) {
    at += code === BACKSLASH ? 2 : 1;
  }
  return at;
}

/** Position behind a number or a word. */
function endOfToken(text: string, start: number): number {
  let at = start;
  while (at < text.length && !' \t\r\n,]}'.includes(text.charAt(at))) at += 1;
  return Math.max(at, start + 1);
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (at < text.length && ' \t\r\n'.includes(text.charAt(at))) at += 1;
  return at;
}

/** The key behind its escapes: "size" and "\u0073ize" are one key. */
function readKey(literal: string, name: string): string {
  return literal.includes('\\') ? String(parse(literal, name)) : literal.slice(1, -1);
}
