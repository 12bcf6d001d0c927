import { basename } from 'node:path';
import {
  type Document,
  isMap,
  isPair,
  isScalar,
  Lexer,
  LineCounter,
  type Node,
  Parser,
  parseDocument,
  visit,
} from 'yaml';
import { PublishError } from '../errors.ts';

/** The key of `package.json` that holds a configuration. */
export const PACKAGE_KEY = 'manifest-publish';

/**
 * Reads YAML or, for `.json`, strict JSON.
 *
 * @throws PublishError `CONFIG_INVALID` with file, line and column
 */
export function parseConfigText(path: string, text: string): unknown {
  if (path.endsWith('.json')) return parseJson(path, text);
  const lines = new LineCounter();
  // The library looks for a key among all before it: a megabyte of keys takes it minutes.
  if (text.length > LONGEST_YAML) {
    throw syntaxError(path, { line: 1, col: 1 }, `longer than ${LONGEST_YAML / 1024} KiB`, undefined);
  }
  const deep = deepPlace(text);
  if (deep !== undefined) throw syntaxError(path, deep, 'nested too deeply', undefined);
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: 'error' });
  const [error] = document.errors;
  if (error !== undefined) throw syntaxError(path, lines.linePos(error.pos[0]), plain(error), error);
  try {
    return document.toJS({ maxAliasCount: ALIASES_MAX });
  } catch (unresolved) {
    if (!(unresolved instanceof Error)) throw unresolved;
    const { line, col } = lines.linePos(firstAlias(document) ?? 0);
    throw syntaxError(path, { line: Math.max(line, 1), col: Math.max(col, 1) }, plain(unresolved), unresolved);
  }
}

/** In UTF-16 units. */
const LONGEST_YAML = 64 * 1024;

/** Collections within each other; a configuration has three. */
const DEEPEST = 100;

/**
 * Where it becomes too deep. The library goes down by calling itself, and node does not survive it: an expression that
 * is compiled on a full stack ends the process ("RegExpCompiler Allocation failed"), with no error to catch.
 */
function deepPlace(text: string): { line: number; col: number } | undefined {
  const lines = new LineCounter();
  lines.addNewLine(0);
  const parser = new Parser(lines.addNewLine);
  for (const lexeme of new Lexer().lex(text)) {
    // What it gives out is of no use here, but it goes on only as far as that is taken.
    Array.from(parser.next(lexeme));
    if (parser.stack.length > DEEPEST) return lines.linePos(parser.offset);
  }
  return undefined;
}

/** Values that aliases stand for, those within them counted again. */
const ALIASES_MAX = 100;

function firstAlias(document: Document): number | undefined {
  let offset: number | undefined;
  visit(document, {
    Alias(_, { range }) {
      offset = range?.[0];
      return visit.BREAK;
    },
  });
  return offset;
}

/** What the parser says; of its own limits in words that help. */
function plain({ message }: Error): string {
  if (message.startsWith('Excessive alias count')) return 'aliases stand for too much';
  if (message.includes('parseAllDocuments')) return 'more than one document, where a configuration is one';
  return message.startsWith('Maximum call stack') ? 'nested too deeply' : message;
}

/** Where a key or its value stands, as `line:column` counted from 1; `1:1` when the path leads nowhere. */
export function positionOf(path: string, text: string, keys: readonly PropertyKey[], part: 'key' | 'value'): string {
  if (deepPlace(text) !== undefined) return '1:1';
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: false,
    logLevel: 'error',
  });
  const inner = basename(path) === 'package.json' ? [PACKAGE_KEY, ...keys] : keys;
  let node: unknown = document.contents;
  let offset = isMap(node) ? rangeStart(node) : 0;
  for (const key of inner) {
    const pair = isMap(node)
      ? node.items.find((item) => isPair(item) && isScalar(item.key) && item.key.value === key)
      : undefined;
    if (pair === undefined) break;
    node = pair.value;
    offset = rangeStart((part === 'value' ? pair.value : pair.key) ?? pair.key) ?? offset;
  }
  const { line, col } = lines.linePos(offset ?? 0);
  return `${Math.max(line, 1)}:${Math.max(col, 1)}`;
}

function rangeStart(node: unknown): number | undefined {
  return (node as Partial<Node> | null)?.range?.[0];
}

function parseJson(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    // V8 counts characters ("at position 17"), or says nothing when the text ends too early.
    const offset = Number(/at position (\d+)/.exec(message)?.[1] ?? text.length);
    const before = text.slice(0, offset).split('\n');
    const position = { line: before.length, col: (before.at(-1) ?? '').length + 1 };
    throw syntaxError(path, position, message.replace(/ in JSON at position.*$/s, ''), error);
  }
}

function syntaxError(path: string, at: { line: number; col: number }, message: string, cause: unknown): PublishError {
  // Parsers repeat the text around the fault as it is.
  const firstLine = (message.split('\n')[0] ?? '').replace(/\p{Cc}/gu, ' ');
  return new PublishError(
    'CONFIG_INVALID',
    `${path}:${at.line}:${at.col}: ${firstLine}`,
    'Correct the file; it is YAML, or JSON where its name ends in .json.',
    { cause },
  );
}
