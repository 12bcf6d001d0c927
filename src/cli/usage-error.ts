import { stripVTControlCharacters } from 'node:util';
import { nearest } from '../config/values.ts';
import type { PublishError } from '../errors.ts';
import { commandOfOthers, flagOfOthers } from './habits.ts';
import { nearestHint, usage } from './settings.ts';

/**
 * What the parser threw, as an error of ours; undefined when it did not come from the parser. Nothing of the command
 * line is repeated but the names of flags: a value may be a secret that was meant for another tool.
 *
 * Told apart by their fields, as oclif 4 gives no codes: `flags` (unknown ones), `args` (missing ones are
 * definitions, too many are texts), and `oclif` on everything.
 */
export function usageErrorOf(error: unknown, command: string): PublishError | undefined {
  if (!(error instanceof Error) || !('oclif' in error)) return undefined;
  const help = `Run manifest-publish ${command} --help.`;
  const { flags, args, parse } = error as ParserFields;
  if (flags !== undefined) {
    const written = flags.map((flag) => flag.replace(/=.*$/s, ''));
    const [first = ''] = written;
    const known = Object.keys(parse?.input?.flags ?? {}).map((name) => `--${name}`);
    const message = `unknown flag${written.length === 1 ? '' : 's'} ${written.join(', ')}`;
    const habit = flagOfOthers(first, command);
    return usage(message, habit === undefined ? nearestHint(first, known, help) : `${habit} ${help}`);
  }
  if (args?.some((arg) => typeof arg === 'string')) {
    const takes = Object.keys(parse?.input?.args ?? {}).map((name) => name.toUpperCase());
    return usage(
      `${args.length} argument${args.length === 1 ? '' : 's'} too many`,
      `Pass ${takes.join(' ') || 'none'}. ${help}`,
    );
  }
  if (args !== undefined) {
    const names = args.map((arg) => (typeof arg === 'string' ? arg : (arg.name ?? '').toUpperCase()));
    return usage(`missing argument ${names.join(', ')}`, help);
  }
  // "The following error occurred:" stands above the reason, which is coloured and shows `--flag=value`.
  const lines = stripVTControlCharacters(error.message).split('\n');
  const line = ((/^The following/.test(lines[0] ?? '') ? lines[1] : lines[0]) ?? '').trim().replace(/=\S+/g, '');
  return usage(line.charAt(0).toLowerCase() + line.slice(1), help);
}

type ParserFields = {
  readonly flags?: readonly string[];
  readonly args?: readonly (string | { readonly name?: string })[];
  readonly parse?: { readonly input?: { readonly flags?: object; readonly args?: object } };
};

const COMMAND = /^[a-z][a-z-]{0,30}$/;

/** What is wrong where no command begins. */
export function unknownCommand(words: readonly string[], commands: readonly string[]): PublishError {
  // `help nosuch` asks for the help of a command that is not there.
  const [first = '', second = ''] = words[0] === 'help' ? words.slice(1) : words;
  if (first.startsWith('-')) {
    const flag = first.replace(/=.*$/s, '');
    // A name has a letter first: what is not one may be anything.
    const name = /^--?[a-z][a-z-]{0,30}$/.test(flag) ? ` ${flag}` : '';
    return usage(`unknown flag${name}`, 'Write it behind a command that has it; run manifest-publish COMMAND --help.');
  }
  const within = commands.filter((command) => command.startsWith(`${first} `));
  const choices = within.length > 0 ? within : commands;
  const habit = within.length > 0 ? undefined : commandOfOthers(first);
  const guess = nearest(within.length > 0 ? `${first} ${second}` : first, choices);
  const advice = habit ?? (guess === undefined ? `Commands: ${choices.join(', ')}.` : `Did you mean "${guess}"?`);
  // Only what can be a command is shown back.
  const alone = within.length > 0 && !COMMAND.test(second);
  const name = within.length > 0 ? `${first} ${second}` : first;
  const shown = COMMAND.test(first) ? ` "${name}"` : '';
  const message = alone ? `"${first}" needs a command after it` : `unknown command${shown}`;
  return usage(message, `${advice} Run manifest-publish --help.`);
}
