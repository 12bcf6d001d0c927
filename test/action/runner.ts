import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import type { Finished, Variables } from '../helpers/processes.ts';
import { run } from '../helpers/processes.ts';
import { BIN, judged, withStranger } from '../helpers/program.ts';

/** What GitHub runs, as it is committed. */
const ACTION = fileURLToPath(new URL('../../dist/index.cjs', import.meta.url));

type Field = { readonly description: string; readonly required?: boolean; readonly default?: string };

/** action.yml, as far as it is looked at. */
export type ActionFile = {
  readonly name: string;
  readonly description: string;
  readonly branding: { readonly icon: string; readonly color: string };
  readonly inputs: Readonly<Record<string, Field>>;
  readonly outputs: Readonly<Record<string, Field>>;
  readonly runs: { readonly using: string; readonly main: string };
};

/** As the runner reads it. */
export function actionFile(): ActionFile {
  return parse(readFileSync(new URL('../../action.yml', import.meta.url), 'utf8')) as ActionFile;
}

/** What a step left behind. */
export type Step = Finished & {
  readonly outputs: Readonly<Record<string, string>>;
  readonly summary: string;
  /** What the runner was told to blot out; it shows none of it. */
  readonly masks: readonly string[];
};

/** The variables of a step, files included. */
export function stepVariables(folder: string, more: Variables = {}): Variables {
  return {
    HOME: folder,
    CI: 'true',
    GITHUB_ACTIONS: 'true',
    GITHUB_OUTPUT: join(folder, 'set_output'),
    GITHUB_STEP_SUMMARY: join(folder, 'step_summary'),
    ...more,
  };
}

/** An input as it arrives: upper case, spaces as underscores, hyphens kept. Those that were not written are there, too. */
function inputVariables(inputs: Readonly<Record<string, string>>): Variables {
  const declared = Object.entries(actionFile().inputs).map(([name, field]) => [name, field.default ?? '']);
  const all: Readonly<Record<string, string>> = { ...Object.fromEntries(declared), ...inputs };
  return Object.fromEntries(
    Object.entries(all).map(([name, value]) => [`INPUT_${name.replaceAll(' ', '_').toUpperCase()}`, value]),
  );
}

/** Runs the action as a step with these inputs. */
export async function runStep(
  folder: string,
  inputs: Readonly<Record<string, string>>,
  env: Variables = {},
): Promise<Step> {
  return stepOf(folder, [ACTION], stepVariables(folder, { ...inputVariables(inputs), ...env }));
}

/** Runs `run: manifest-publish WORDS...` as a step. */
export async function runCommand(folder: string, words: readonly string[], env: Variables = {}): Promise<Step> {
  return stepOf(folder, [BIN, ...words], stepVariables(folder, env));
}

async function stepOf(folder: string, words: readonly string[], env: Variables): Promise<Step> {
  const masks: string[] = [];
  const work = async () => {
    const finished = await run(process.execPath, words, { cwd: folder, env: withStranger(env) });
    const lines = finished.stderr.split('\n');
    masks.push(...lines.filter((line) => line.startsWith('::add-mask::')).map((line) => unescaped(line.slice(12))));
    return { ...finished, stderr: lines.filter((line) => !line.startsWith('::add-mask::')).join('\n') };
  };
  const finished = await judged(work, { words: words.slice(1), folder });
  const read = (name: string) => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8') : '');
  return { ...finished, masks, outputs: readOutputs(read('set_output')), summary: read('step_summary') };
}

function unescaped(data: string): string {
  return data.replaceAll('%0D', '\r').replaceAll('%0A', '\n').replaceAll('%25', '%');
}

/**
 * The file of outputs as the runner reads it: `NAME=VALUE`, or `NAME<<DELIMITER`, the value, and the delimiter on a line of
 * its own. Of an output that is set twice the last value counts.
 *
 * @see actions/runner, src/Runner.Worker/FileCommandManager.cs
 */
export function readOutputs(text: string): Readonly<Record<string, string>> {
  const found: [string, string][] = [];
  const lines = text.split('\n');
  if (lines.pop() !== '') throw new Error('the file does not end with a line');
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    const equals = line.indexOf('=');
    const heredoc = line.indexOf('<<');
    if (equals >= 0 && (heredoc < 0 || equals < heredoc)) {
      found.push([line.slice(0, equals), line.slice(equals + 1)]);
      continue;
    }
    if (heredoc < 1) throw new Error(`invalid format: ${line}`);
    const delimiter = line.slice(heredoc + 2);
    const end = lines.indexOf(delimiter, at + 1);
    if (delimiter === '' || end < 0) throw new Error(`matching delimiter not found: ${delimiter}`);
    found.push([line.slice(0, heredoc), lines.slice(at + 1, end).join('\n')]);
    at = end;
  }
  return Object.fromEntries(found);
}

/** Commands that the runner would carry out, by name, in the order of the lines. */
export function commandsIn(output: string): readonly string[] {
  return output.split('\n').flatMap((line) => {
    const current = /^\s*::([a-z-]+)(?: [^:]*)?::/.exec(line)?.[1];
    const old = /##\[([a-z-]+)\]/.exec(line)?.[1];
    return [current, old].filter((name) => name !== undefined);
  });
}
