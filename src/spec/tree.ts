import { isPrintable, quoted } from '../model/quoted.ts';
import { invalid } from './failure.ts';

/**
 * A document as it is written: scalars keep their text, so that the tag `3.10` does not become the number 3.1 and the
 * architecture `386` is no number at all. `at` is `file:line:column`, both counted from 1, in UTF-16 units.
 */
export type TreeNode =
  /** `bare`: a number or a word of JSON, as it was written. */
  | { readonly kind: 'text'; readonly text: string; readonly at: string; readonly bare?: true }
  /** A key without a value, or `null`. */
  | { readonly kind: 'nothing'; readonly at: string }
  | { readonly kind: 'list'; readonly items: readonly TreeNode[]; readonly at: string }
  | { readonly kind: 'map'; readonly entries: ReadonlyMap<string, TreeEntry>; readonly at: string };

/** `at` is where the key stands. */
export type TreeEntry = { readonly at: string; readonly value: TreeNode };

/** @see TreeNode */
export type TreeMap = Extract<TreeNode, { readonly kind: 'map' }>;

/** A text to read and what it is called in messages. */
export type SpecFile = { readonly name: string; readonly text: string };

/** Changes a value that was read, given its place: variables are put in there. */
export type ReadText = (text: string, at: string) => string;

/**
 * Longest text that is read, in UTF-16 units: 1,000 lists of eight sources are 0.7 MB. Both readers take time in
 * proportion.
 */
export const TEXT_MAX: number = 4 * 1024 * 1024;

/** Lists and maps within each other; what we read has seven. The readers call themselves, and a stack has an end. */
export const DEPTH_MAX = 64;

/** As the name may be shown; the names of files may hold anything. */
export function shownName(name: string): string {
  return isPrintable(name) ? name : quoted(name);
}

/**
 * The places of a text.
 *
 * @returns `file:line:column` of an offset
 */
export function placesOf(name: string, text: string): (offset: number) => string {
  const starts = [0];
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', end + 1)) starts.push(end + 1);
  const shown = shownName(name);
  return (offset) => {
    let [low, high] = [0, starts.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return `${shown}:${low + 1}:${offset - (starts[low] ?? 0) + 1}`;
  };
}

/**
 * The text without a byte order mark.
 *
 * @throws PublishError `SPEC_INVALID` for one that is too long, or that was no UTF-8
 */
export function checkedText({ name, text }: SpecFile): string {
  const plain = text.startsWith('\ufeff') ? text.slice(1) : text;
  if (plain.length > TEXT_MAX) {
    throw invalid(
      `${shownName(name)}:1:1`,
      `longer than ${TEXT_MAX / 1024 / 1024} MiB`,
      'Spread the lists over several files.',
    );
  }
  const bad = plain.search(/[\0\ufffd]/);
  if (bad >= 0) throw invalid(placesOf(name, plain)(bad), 'not a text in UTF-8', 'Save the file as UTF-8.');
  return plain;
}

/** Keys that plain objects cannot hold like others. */
const UNSAFE_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/**
 * The node as plain values, in which every scalar is a text.
 *
 * @param withoutNothing leaves out keys without a value, but those of annotations: Go's readers take them for absent
 * @throws PublishError `SPEC_INVALID` for keys that a validator would drop without a word
 */
export function plainValue(node: TreeNode, withoutNothing = false): unknown {
  if (node.kind === 'text') return node.text;
  if (node.kind === 'nothing') return null;
  if (node.kind === 'list') return node.items.map((item) => plainValue(item, withoutNothing));
  const entries = [...node.entries].filter(([, { value }]) => !withoutNothing || value.kind !== 'nothing');
  return Object.fromEntries(
    entries.map(([key, { at, value }]) => {
      if (UNSAFE_KEYS.has(key)) throw invalid(at, `"${key}" cannot be a key`, 'Remove it, or give it another name.');
      return [key, plainValue(value, withoutNothing && key !== 'annotations')];
    }),
  );
}

/** The node that a path of keys and indexes leads to, or the last one on the way. */
export function nodeAt(node: TreeNode, path: readonly PropertyKey[]): TreeNode {
  let found = node;
  for (const key of path) {
    const next =
      found.kind === 'map'
        ? found.entries.get(String(key))?.value
        : found.kind === 'list'
          ? found.items[Number(key)]
          : undefined;
    if (next === undefined) break;
    found = next;
  }
  return found;
}

/** Where the value stands that a path leads to; a key without a value has the place of the key. */
export function placeAt(node: TreeNode, path: readonly PropertyKey[]): string {
  return nodeAt(node, path).at;
}

/** Where the key stands that a path ends in. */
export function keyPlaceAt(node: TreeNode, path: readonly PropertyKey[]): string {
  const parent = nodeAt(node, path.slice(0, -1));
  const entry = parent.kind === 'map' ? parent.entries.get(String(path.at(-1))) : undefined;
  return entry?.at ?? parent.at;
}
