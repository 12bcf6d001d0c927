import { basename } from 'node:path';
import { isMap, isPair, isScalar, LineCounter, type Node, parseDocument } from 'yaml';
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
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [error] = document.errors;
  if (error !== undefined) throw syntaxError(path, lines.linePos(error.pos[0]), error.message, error);
  return document.toJS();
}

/** Where a key or its value stands, as `line:column` counted from 1; `1:1` when the path leads nowhere. */
export function positionOf(path: string, text: string, keys: readonly PropertyKey[], part: 'key' | 'value'): string {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
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
  const [firstLine = ''] = message.split('\n');
  return new PublishError(
    'CONFIG_INVALID',
    `${path}:${at.line}:${at.col}: ${firstLine}`,
    'Correct the file; it is YAML, or JSON where its name ends in .json.',
    { cause },
  );
}
