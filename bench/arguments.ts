import { parseArgs } from 'node:util';
import { BenchError } from './errors.ts';
import { AUTHS, type Wanted } from './sections.ts';
import { MAIN_SITUATIONS, SITUATIONS } from './situations.ts';

/** What the bench was asked for. */
export type Arguments = Wanted & {
  readonly mode: 'table' | 'memory';
  /** Milliseconds more for a new connection. */
  readonly connectionCost: number;
  readonly timeoutSeconds: number;
  /** Put the table into docs/bench.md. */
  readonly write: boolean;
};

export const USAGE = `npm run bench -- [options]
  --quick               100 ms, one run, ours, the floor, crane and buildx, the main situations
  --delay MS,MS         wait once a request (default 0,20,100)
  --auth A,B            none, token (a bearer token for each repository, anybody gets one), login (a token for a user);
                        default: all, the last two at the longest delay
  --situations A,B      mounts, refused, again, interrupted, interrupted-refused, attested;
                        default: all, the last three at the longest delay
  --only A,B            peers: ours, ours-no-verify, ours-drafts, floor, crane, buildx, manifest-tool, regctl, docker,
                        oras, oras-at-once, skopeo, buildah
  --runs N              runs of each (default 5 to 1: more of those that are fast); medians are shown
  --connection-cost MS  what a new connection costs, as with TLS (default 0)
  --timeout SECONDS     of one run of one peer (default 120)
  --memory              instead: one layer of 1 GiB, mounts refused, no delay; peak memory
  --write               put the table into docs/bench.md`;

const OPTIONS = {
  quick: { type: 'boolean', default: false },
  delay: { type: 'string' },
  auth: { type: 'string' },
  situations: { type: 'string' },
  only: { type: 'string' },
  runs: { type: 'string' },
  'connection-cost': { type: 'string', default: '0' },
  timeout: { type: 'string', default: '120' },
  memory: { type: 'boolean', default: false },
  write: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** @throws BenchError that says which option is wrong */
export function parseArguments(argv: readonly string[], peers: readonly string[]): Arguments | 'help' {
  const values = parseOptions(argv);
  if (values.help) return 'help';
  const { quick, memory } = values;
  const known = SITUATIONS.map((situation) => situation.id);
  const delays = values.delay ?? (memory ? '0' : quick ? '100' : '0,20,100');
  return {
    mode: memory ? 'memory' : 'table',
    quick,
    delays: delays.split(',').map((text) => count('--delay', text, 0)),
    auths: list('--auth', values.auth, AUTHS) ?? (quick ? ['none'] : undefined),
    situations: list('--situations', values.situations, known) ?? (quick ? MAIN_SITUATIONS : undefined),
    only: list('--only', values.only, peers) ?? (memory ? ['ours'] : undefined),
    runs: values.runs === undefined ? undefined : count('--runs', values.runs, 1),
    connectionCost: count('--connection-cost', values['connection-cost'], 0),
    timeoutSeconds: count('--timeout', values.timeout, 1),
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

function list<T extends string>(
  option: string,
  text: string | undefined,
  known: readonly T[],
): readonly T[] | undefined {
  return text?.split(',').map((name) => {
    const found = known.find((one) => one === name);
    if (found === undefined) throw new BenchError(`${option}: no "${name}"; there are ${known.join(', ')}`);
    return found;
  });
}
