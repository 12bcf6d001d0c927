import type { Random } from '../peers/random.ts';
import type { Target } from './target.ts';

/** Longest text that is made by chance; {@link hostileShapes} go to 64 KiB. */
const LONGEST = 4096;

/** Characters and words that parsers of any kind have stumbled over. */
const HOSTILE: readonly string[] = [
  ...' \t\r\n\0\x1b\x7f\x85"\'\\/:;,.@?#&=%+-_~*()[]{}<>|!$^`0123456789aAzZeE',
  '\u00a0\u00e9\u00ff\u017f\u212a\u0130\u200b\u200d\u202e\u2028\ufeff\uff0e\u3002\ud83d\ude00\ud800',
  '..',
  '//',
  '://',
  '::',
  '::error::',
  '##[',
  '##vso[',
  '\r\n',
  '\x1b[2J',
  '\x9b31m',
  '\\u0000',
  '\\ud800',
  '%00',
  '%2e%2e%2f',
  '%0d%0a',
  '../',
  '__proto__',
  'constructor',
  'null',
  'NaN',
  '-1',
  '0x7f',
  '1e400',
  '9007199254740993',
  '4294967296',
  '99999999999999999999',
  'a'.repeat(63),
  'a'.repeat(64),
  '0'.repeat(64),
  'a'.repeat(128),
  'a'.repeat(256),
  'sha256:',
  'localhost',
  '127.0.0.1',
  '[::1]',
  'http://',
  'https://',
  'file:///',
];

type Mutation = (text: string, random: Random, words: readonly string[], corpus: readonly string[]) => string;

const MUTATIONS: readonly Mutation[] = [
  insertHostile,
  insertHostile,
  insertWord,
  insertWord,
  (text, random) => withRange(text, random, () => ''),
  (text, random) => withRange(text, random, (part) => part + part),
  (text, random) => withRange(text, random, (part) => part.toUpperCase()),
  (text, random) => withRange(text, random, (part) => part.toLowerCase()),
  (text, random) => withRange(text, random, (part) => [...part].reverse().join('')),
  (text, random) => text.slice(0, random.below(text.length + 1)),
  (text, random) => {
    const at = random.below(text.length + 1);
    return (
      text.slice(0, at) +
      String.fromCharCode(random.below(random.below(8) === 0 ? 0x10000 : 0x100)) +
      text.slice(at + 1)
    );
  },
  (text, random) => {
    const at = random.below(text.length + 1);
    const unit = text.slice(at, at + 1 + random.below(4));
    return text.slice(0, at) + unit.repeat(random.below(64)) + text.slice(at);
  },
  (text, random, _words, corpus) => {
    const other = random.pick(corpus);
    return text.slice(0, random.below(text.length + 1)) + other.slice(random.below(other.length + 1));
  },
];

function insertHostile(text: string, random: Random): string {
  return inserted(text, random, random.pick(HOSTILE));
}

function insertWord(text: string, random: Random, words: readonly string[]): string {
  return inserted(text, random, random.pick(words.length === 0 ? HOSTILE : words));
}

/** In front of a place, or instead of what is there. */
function inserted(text: string, random: Random, word: string): string {
  const at = random.below(text.length + 1);
  return text.slice(0, at) + word + text.slice(at + (random.below(2) === 0 ? 0 : word.length));
}

function withRange(text: string, random: Random, change: (part: string) => string): string {
  const start = random.below(text.length + 1);
  const end = Math.min(text.length, start + 1 + random.below(random.below(4) === 0 ? text.length + 1 : 8));
  return text.slice(0, start) + change(text.slice(start, end)) + text.slice(end);
}

/** A new text: by the grammar, or a known one with one to eight changes. */
export function makeInput(
  { make, words = [], corpus }: Pick<Target, 'make' | 'words' | 'corpus'>,
  pool: readonly string[],
  random: Random,
): string {
  const kind = random.below(16);
  let text = make !== undefined && kind < 6 ? make(random) : random.pick(pool.length > 0 && kind < 11 ? pool : corpus);
  // Half of what the grammar makes stays as it is.
  if (make !== undefined && kind < 3) return text;
  for (let left = 1 + random.below(8); left > 0; left -= 1 + random.below(2)) {
    text = random.pick(MUTATIONS)(text, random, words, corpus).slice(0, LONGEST);
  }
  return text;
}

/** Texts of that length that repeat one thing, after a beginning that makes a parser go in. */
export function hostileShapes({ corpus, words = [], shapes }: Target, length: number): readonly string[] {
  const first = corpus[0] ?? '';
  const units = [
    ...HOSTILE,
    ...words,
    'a ',
    'a,',
    'a=',
    '="',
    '\\"',
    '{"a":',
    '[[',
    '<a',
    ' \t',
    '-a',
    '_a',
    '.a',
    ':a',
  ];
  const repeated = (unit: string, size: number) => unit.repeat(Math.ceil(size / unit.length)).slice(0, size);
  return [
    ...units.map((unit) => repeated(unit, length)),
    ...units.map((unit) => (first + repeated(unit, length)).slice(0, length)),
    ...corpus.map((text) => repeated(text === '' ? ' ' : text, length)),
    ...(shapes?.(length) ?? []),
  ];
}
