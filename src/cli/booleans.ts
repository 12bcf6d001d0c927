import { usage } from './settings.ts';

/** What is asked of a flag's definition. */
type FlagKind = {
  readonly type: 'boolean' | 'option';
  readonly char?: string | undefined;
  readonly aliases?: readonly string[] | undefined;
  /** `--no-NAME` is a word of its own, as being off is not the default. */
  readonly allowNo?: boolean | undefined;
};

/** Go's words, which docker's flags take: `--purge=false`. @see https://pkg.go.dev/strconv#ParseBool */
const TRUE: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const FALSE: ReadonlySet<string> = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False']);

/**
 * The command line with `--flag=true` as `--flag`, and without `--flag=false`, which is `--no-flag` where there is one. oclif would take the flag as given, and
 * the word behind it as an argument.
 *
 * @throws PublishError `USAGE_INVALID` for any other word
 */
export function plainBooleans(argv: readonly string[], flags: Readonly<Record<string, FlagKind>>): string[] {
  const kinds = new Map<string, FlagKind['type']>();
  const refusals = new Set<string>();
  for (const [name, { type, char, aliases = [], allowNo }] of Object.entries(flags)) {
    if (allowNo) refusals.add(`--${name}`);
    for (const one of [name, ...aliases]) kinds.set(`--${one}`, type);
    if (char !== undefined) kinds.set(`-${char}`, type);
  }
  const plain: string[] = [];
  for (const [at, word] of argv.entries()) {
    if (word === '--') return [...plain, ...argv.slice(at)];
    const equals = word.indexOf('=');
    const name = word.slice(0, Math.max(equals, 0));
    // What follows a flag that takes a value is that value, whatever it looks like.
    const isValue = kinds.get(argv[at - 1] ?? '') === 'option';
    if (isValue || kinds.get(name) !== 'boolean') plain.push(word);
    else if (TRUE.has(word.slice(equals + 1))) plain.push(name);
    else if (!FALSE.has(word.slice(equals + 1))) {
      throw usage(`${name} must be true or false`, `Write ${name}, or leave it out.`);
    } else if (refusals.has(name)) plain.push(name.replace('--', '--no-'));
  }
  return plain;
}
