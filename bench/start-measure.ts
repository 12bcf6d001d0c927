import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { BenchError } from './errors.ts';

/** One start, in ms; `cpu` is user and system time of all its processes. */
export type Start = { readonly wall: number; readonly cpu: number };

/** A command whose start is measured. */
export type Starter = {
  readonly id: string;
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Runs of this one; the rest of the time it would tell nothing new. */
  readonly runs?: number;
  /** It ends itself, by SIGKILL, when what is measured is over. */
  readonly killed?: true;
  /** What must be done before each run. */
  readonly prepare?: () => Promise<void>;
};

/** The shell's own clock has milliseconds; GNU time, which the other benches use, has hundredths of a second. */
const SCRIPT = `TIMEFORMAT='%3R %3U %3S'; time "$@" > /dev/null 2>&1 < /dev/null; code=$?; echo "$code" >&2`;

/** A command of the file that was killed by a signal ends a shell's wait with 128 and the signal. */
const KILLED = 137;

/**
 * Runs every command once, in turn, and again, so that a machine that slows down slows all of them.
 *
 * @param env all that the commands get besides their own
 * @throws BenchError when a command fails
 */
export async function measureStarts(
  starters: readonly Starter[],
  runs: number,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, readonly Start[]>> {
  const all = new Map<string, Start[]>(starters.map(({ id }) => [id, []]));
  for (let round = 0; round < runs; round += 1) {
    for (const starter of starters) {
      signal.throwIfAborted();
      if (round >= (starter.runs ?? runs)) continue;
      await starter.prepare?.();
      all.get(starter.id)?.push(await measureStart(starter, { ...env, ...starter.env }));
    }
  }
  return all;
}

async function measureStart({ id, argv, killed }: Starter, env: Readonly<Record<string, string>>): Promise<Start> {
  const { HOME: cwd } = env;
  const child = spawn('bash', ['-c', SCRIPT, 'bash', ...argv], {
    ...(cwd === undefined ? {} : { cwd }),
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let text = '';
  child.stderr.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  await once(child, 'close');
  const [, wall, user, system, code] = /^([\d.]+) ([\d.]+) ([\d.]+)\n(\d+)$/m.exec(text) ?? [];
  if (code !== String(killed === true ? KILLED : 0)) {
    throw new BenchError(`${id} ended with ${code ?? 'no exit code'}: ${argv.join(' ')}\n${text}`);
  }
  return { wall: Number(wall) * 1000, cpu: (Number(user) + Number(system)) * 1000 };
}
