import {
  Composer,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  type Node,
  type Pair,
  Parser,
  Scalar,
  type YAMLMap,
} from 'yaml';
import { quoted } from '../model/quoted.ts';
import { invalid } from './failure.ts';
import {
  checkedText,
  DEPTH_MAX,
  placesOf,
  type ReadText,
  type SpecFile,
  type TreeEntry,
  type TreeMap,
  type TreeNode,
} from './tree.ts';

/** Pieces of syntax in one text: 4 MiB of lists are a million, of brackets alone four, which would take 20 s. */
const LEXEMES_MAX = 1_500_000;

/** Nodes of a text, those that aliases stand for counted again; 1,000 lists are 60,000. */
const NODES_MAX = 500_000;

/** Tags that say what is so anyway. */
const PLAIN_TAGS: ReadonlySet<string> = new Set([
  '!',
  ...['str', 'map', 'seq'].map((tag) => `tag:yaml.org,2002:${tag}`),
]);

/** The ways in which YAML 1.2 writes that there is no value. */
const NOTHING: ReadonlySet<string> = new Set(['', '~', 'null', 'Null', 'NULL']);

/**
 * Reads the documents of a YAML text, those without content left out. Time in proportion to the length: the library's
 * own check for doubled keys compares each with all before it, so it is done here.
 *
 * @throws PublishError `SPEC_INVALID`
 */
export function readYaml(file: SpecFile, readText: ReadText = (text) => text): readonly TreeNode[] {
  const text = checkedText(file);
  const place = placesOf(file.name, text);
  const documents = compose(text, place);
  for (const { errors } of documents) {
    const [error] = errors;
    if (error === undefined) continue;
    // Parsers repeat the text around the fault as it is.
    const message = (error.message.split('\n')[0] ?? '').replace(/\p{Cc}/gu, ' ');
    throw invalid(place(error.pos[0]), message, HINTS[error.code] ?? 'Correct the YAML there.', error);
  }
  const budget = { left: NODES_MAX };
  return documents.flatMap(({ contents }) => {
    const node = contents === null ? undefined : convert(contents, { place, readText, budget, anchors: new Map() });
    return node === undefined || node.kind === 'nothing' ? [] : [node];
  });
}

const QUOTE_IT = 'Put the value in quotes.';
const HINTS: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: 'Indent with blanks instead of tabs.',
  BLOCK_AS_IMPLICIT_KEY: 'Indent all keys of a map alike, and put a value that holds ": " in quotes.',
  MULTILINE_IMPLICIT_KEY: 'Write KEY: VALUE on one line, and indent all keys of a map alike.',
  BAD_SCALAR_START: QUOTE_IT,
  BAD_INDENT: 'Close the bracket, and indent what is within it.',
  MISSING_CHAR: 'Add what is missing.',
};

function compose(text: string, place: (offset: number) => string): readonly Document.Parsed[] {
  const parser = new Parser();
  // With "failsafe" every scalar is a text. Aliases and merge keys are followed here, within limits.
  const composer = new Composer({ schema: 'failsafe', uniqueKeys: false, prettyErrors: false, logLevel: 'error' });
  const documents: Document.Parsed[] = [];
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    lexemes += 1;
    const tokens = Array.from(parser.next(lexeme));
    if (parser.stack.length > 2 * DEPTH_MAX) {
      throw invalid(place(parser.offset), 'nested too deeply', `Nest at most ${DEPTH_MAX} lists and maps.`);
    }
    if (lexemes > LEXEMES_MAX) throw invalid(place(parser.offset), 'too much in one file', SPREAD);
    for (const token of tokens) documents.push(...composer.next(token));
  }
  for (const token of parser.end()) documents.push(...composer.next(token));
  documents.push(...composer.end());
  return documents;
}

const SPREAD = 'Spread the lists over several files.';

type Reading = {
  readonly place: (offset: number) => string;
  readonly readText: ReadText;
  readonly budget: { left: number };
  readonly anchors: Map<string, { readonly node: TreeNode; readonly size: number }>;
};

function convert(node: Node, reading: Reading, emptyAt?: string): TreeNode {
  const { place, readText, budget, anchors } = reading;
  const at = place(node.range?.[0] ?? 0);
  if (isAlias(node)) return aliased(node.source, at, reading);
  spend(1, at, reading);
  const before = budget.left;
  const { tag, anchor } = node as { readonly tag?: string; readonly anchor?: string };
  if (tag !== undefined && !PLAIN_TAGS.has(tag)) {
    throw invalid(at, `the YAML tag ${quoted(tag)} is not supported`, 'Remove it; a text is written in quotes.');
  }
  let converted: TreeNode;
  if (isMap(node)) converted = convertMap(node, at, reading);
  else if (isSeq(node)) {
    converted = { kind: 'list', items: node.items.map((item) => convert(item as Node, reading)), at };
  } else {
    const { type, source = '' } = node as Scalar & { readonly source?: string };
    const nothing = type === Scalar.PLAIN && tag === undefined && NOTHING.has(source);
    converted = nothing
      ? { kind: 'nothing', at: source === '' ? (emptyAt ?? at) : at }
      : { kind: 'text', text: readText(source, at), at };
  }
  if (anchor !== undefined) anchors.set(anchor, { node: converted, size: before - budget.left + 1 });
  return converted;
}

function spend(size: number, at: string, { budget }: Reading): void {
  budget.left -= size;
  if (budget.left < 0) throw invalid(at, 'too much in one file, with what aliases stand for', SPREAD);
}

function aliased(name: string, at: string, reading: Reading): TreeNode {
  const found = reading.anchors.get(name);
  if (found === undefined) {
    throw invalid(
      at,
      `no anchor ${quoted(`&${name}`)} before this alias`,
      'Define the anchor further up in the document.',
    );
  }
  spend(found.size, at, reading);
  return found.node;
}

function convertMap(map: YAMLMap, at: string, reading: Reading): TreeMap {
  const entries = new Map<string, TreeEntry>();
  const merged: TreeEntry[] = [];
  for (const { key, value } of map.items as readonly Pair<unknown, Node | null>[]) {
    const keyAt = isNode(key) ? reading.place(key.range?.[0] ?? 0) : at;
    if (!isScalar(key) || (key as { source?: string }).source === undefined) {
      throw invalid(
        keyAt,
        'a key that is not a text',
        'Write KEY: VALUE; put a value that begins with { or [ in quotes.',
      );
    }
    const name = (key as { source?: string }).source ?? '';
    spend(1, keyAt, reading);
    const first = entries.get(name);
    if (first !== undefined) {
      throw invalid(keyAt, `${quoted(name)} stands twice, first at ${lineOf(first.at)}`, 'Leave one of them.');
    }
    const entry: TreeEntry = {
      at: keyAt,
      value: value === null ? { kind: 'nothing', at: keyAt } : convert(value, reading, keyAt),
    };
    if (name === '<<' && key.type === Scalar.PLAIN) merged.push(entry);
    else entries.set(name, entry);
  }
  for (const entry of merged) merge(entry, entries);
  return { kind: 'map', entries, at };
}

/** What a map says itself counts over what it takes in by `<<`. */
function merge({ at, value }: TreeEntry, entries: Map<string, TreeEntry>): void {
  const maps = value.kind === 'list' ? value.items : [value];
  for (const map of maps) {
    if (map.kind !== 'map') throw invalid(at, '"<<" takes in something that is not a map', 'Write <<: *NAME_OF_A_MAP.');
    for (const [key, entry] of map.entries) if (!entries.has(key)) entries.set(key, entry);
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'range' in value;
}

/** `line:column` of a place. */
function lineOf(at: string): string {
  return at.split(':').slice(-2).join(':');
}
