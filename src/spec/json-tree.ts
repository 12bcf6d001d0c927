import { quoted } from '../model/quoted.ts';
import { invalid } from './failure.ts';
import {
  checkedText,
  DEPTH_MAX,
  placesOf,
  type ReadText,
  type SpecFile,
  type TreeEntry,
  type TreeNode,
} from './tree.ts';

const SPACE = /[ \t\r\n]*/y;
const WORD = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/**
 * Reads a JSON text with the places of everything in it, which `JSON.parse` does not tell. Numbers keep their text.
 *
 * @throws PublishError `SPEC_INVALID`
 */
export function readJson(file: SpecFile, readText: ReadText = (text) => text): TreeNode {
  const text = checkedText(file);
  const place = placesOf(file.name, text);
  let offset = 0;

  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = offset;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) offset += found.length;
    return found;
  };
  const fail = (wanted: string) =>
    invalid(
      place(Math.min(offset, text.length)),
      offset >= text.length ? `the text ends where ${wanted} should be` : `not JSON: ${wanted} should be here`,
      'Correct the JSON; keys and texts are in double quotes, and no comma stands before a closing bracket.',
    );
  /** A text in double quotes; undefined, and nothing taken, where none begins. */
  const string = (): string | undefined => {
    if (text[offset] !== '"') return undefined;
    let end = offset + 1;
    while (end < text.length && text[end] !== '"') end += text[end] === '\\' ? 2 : 1;
    try {
      const literal = String(JSON.parse(text.slice(offset, end + 1)));
      offset = end + 1;
      return literal;
    } catch (error) {
      throw invalid(
        place(offset),
        end < text.length ? 'not a text of JSON' : 'a text without its closing quote',
        'Write \\" for a quote, \\\\ for a backslash and \\n for the end of a line.',
        error,
      );
    }
  };
  const expect = (character: string): void => {
    if (text[offset] !== character) throw fail(quoted(character));
    offset += 1;
  };
  /** After an item: whether there is another one. */
  const more = (close: string): boolean => {
    take(SPACE);
    if (text[offset] === ',') {
      offset += 1;
      take(SPACE);
      return true;
    }
    expect(close);
    return false;
  };
  const opened = (close: string): boolean => {
    offset += 1;
    take(SPACE);
    if (text[offset] !== close) return true;
    offset += 1;
    return false;
  };

  const value = (depth: number): TreeNode => {
    const at = place(offset);
    if (depth > DEPTH_MAX) throw invalid(at, 'nested too deeply', `Nest at most ${DEPTH_MAX} lists and maps.`);
    if (text[offset] === '{') {
      const entries = new Map<string, TreeEntry>();
      for (let another = opened('}'); another; another = more('}')) {
        const keyAt = place(offset);
        const key = string();
        if (key === undefined) throw fail('a key in double quotes');
        if (entries.has(key)) throw invalid(keyAt, `${quoted(key)} stands twice`, 'Leave one of them.');
        take(SPACE);
        expect(':');
        take(SPACE);
        entries.set(key, { at: keyAt, value: value(depth + 1) });
      }
      return { kind: 'map', entries, at };
    }
    if (text[offset] === '[') {
      const items: TreeNode[] = [];
      for (let another = opened(']'); another; another = more(']')) items.push(value(depth + 1));
      return { kind: 'list', items, at };
    }
    const literal = string();
    if (literal !== undefined) return { kind: 'text', text: readText(literal, at), at };
    const word = take(WORD);
    if (word === undefined) throw fail('a value');
    return word === 'null' ? { kind: 'nothing', at } : { kind: 'text', text: word, at, bare: true };
  };

  take(SPACE);
  const root = value(0);
  take(SPACE);
  if (offset < text.length) throw invalid(place(offset), 'not JSON: something follows its end', 'Leave one document.');
  return root;
}
