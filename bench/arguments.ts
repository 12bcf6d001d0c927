import { parseArgs } from 'node:util';
import { BenchError } from './errors.ts';
import { SITUATIONS, type Situation } from './measure.ts';

/** What the bench was asked for. */
export type Arguments = {
  readonly mode: 'table' | 'memory';
  /** Milliseconds a request. */
  readonly delay: number;
  readonly runs: number;
  readonly timeoutSeconds: number;
  /** Ids of peers; undefined: all that are found. */
  readonly only: readonly string[] | undefined;
  readonly situations: readonly Situation[];
  /** Put the table into docs/bench.md. */
  readonly write: boolean;
};

export const USAGE = `npm run bench -- [options]
  --delay MS            wait once a request (default 100)
  --runs N              runs of each; medians are shown (default 3)
  --only A,B            peers: ours, ours-no-verify, ours-drafts, docker, manifest-tool, crane, regctl, oras,
                        oras-at-once, buildx
  --situations A,B      mounts, refused, again
  --timeout SECONDS     of one run of one peer (default 120)
  --memory              instead: one layer of 1 GiB, mounts refused, no delay; peak memory
  --write               put the table into docs/bench.md`;

const OPTIONS = {
  delay: { type: 'string' },
  runs: { type: 'string' },
  only: { type: 'string' },
  situations: { type: 'string' },
  timeout: { type: 'string', default: '120' },
  memory: { type: 'boolean', default: false },
  write: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** @throws BenchError that says which option is wrong */
export function parseArguments(argv: readonly string[], peers: readonly string[]): Arguments | 'help' {
  const values = parseOptions(argv);
  if (values.help) return 'help';
  const names = SITUATIONS.map((situation) => situation.id);
  const situations = list('--situations', values.situations, names) ?? names;
  return {
    mode: values.memory ? 'memory' : 'table',
    delay: count('--delay', values.delay ?? (values.memory ? '0' : '100'), 0),
    runs: count('--runs', values.runs ?? (values.memory ? '1' : '3'), 1),
    timeoutSeconds: count('--timeout', values.timeout, 1),
    only: list('--only', values.only, peers) ?? (values.memory ? ['ours'] : undefined),
    situations: SITUATIONS.filter((situation) => situations.includes(situation.id)),
    write: values.write,
  };
}

function parseOptions(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS }).values;
  } catch (error) {
    if (error instanceof TypeError) throw new BenchError(`${error.message}\n\n${USAGE}`);
    throw error;
  }
}

function count(option: string, text: string, least: number): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < least)
    throw new BenchError(`${option}: not a number from ${least}: ${text}`);
  return value;
}

function list(option: string, text: string | undefined, known: readonly string[]): readonly string[] | undefined {
  const names = text?.split(',');
  const stranger = names?.find((name) => !known.includes(name));
  if (stranger !== undefined) throw new BenchError(`${option}: no "${stranger}"; there are ${known.join(', ')}`);
  return names;
}
