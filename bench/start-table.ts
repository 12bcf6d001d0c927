import type { Start } from './start-measure.ts';
import { median } from './table.ts';

/** What a start may cost in ms: of CPU and of wall time, by itself or beyond that of `node -e 0`. */
export type StartLimit = { readonly cpu?: number; readonly wall?: number; readonly beyondNode?: true };

/** The promises. Those of time are about Node 20, which starts slower than 22 and 24. */
export const START_LIMITS: Readonly<Record<string, StartLimit>> = {
  '--version': { cpu: 10, wall: 10, beyondNode: true },
  '--help': { cpu: 10, wall: 10, beyondNode: true },
  'completion bash': { cpu: 10, wall: 10, beyondNode: true },
  'docker-cli-plugin-metadata': { cpu: 10, wall: 10, beyondNode: true },
  'publish --help': { cpu: 80 },
  'publish, to its first request': { cpu: 160 },
  'npx --version, cold cache': { wall: 2000 },
};

/** The start that others are compared with. */
export const NODE = 'node -e 0';

export type StartFigures = {
  readonly id: string;
  readonly runs: number;
  readonly wall: number;
  readonly cpu: number;
  /** The quickest and the slowest run. */
  readonly spread: readonly [number, number];
  /** In words, where there is a promise. */
  readonly limit: string | undefined;
  readonly met: boolean;
};

/** Medians in ms, and what they say of the promises. */
export function startFigures(starts: ReadonlyMap<string, readonly Start[]>): readonly StartFigures[] {
  const node = medianOf(starts.get(NODE) ?? []);
  return [...starts].map(([id, runs]) => {
    const { wall, cpu } = medianOf(runs);
    const walls = runs.map((run) => run.wall);
    const limit = START_LIMITS[id];
    const base = limit?.beyondNode === true ? node : { wall: 0, cpu: 0 };
    const within = (value: number, most: number | undefined, from: number) =>
      most === undefined || value - from <= most;
    return {
      id,
      runs: runs.length,
      wall,
      cpu,
      spread: [Math.min(...walls), Math.max(...walls)],
      limit: limit === undefined ? undefined : limitText(limit),
      met: within(cpu, limit?.cpu, base.cpu) && within(wall, limit?.wall, base.wall),
    };
  });
}

function medianOf(runs: readonly Start[]): Start {
  return { wall: median(runs.map(({ wall }) => wall)), cpu: median(runs.map(({ cpu }) => cpu)) };
}

function limitText({ cpu, wall, beyondNode }: StartLimit): string {
  const parts = [...(cpu === undefined ? [] : [`CPU ${cpu}`]), ...(wall === undefined ? [] : [`wall ${wall}`])];
  return `${parts.join(', ')}${beyondNode === true ? ` beyond ${NODE}` : ''}`;
}

/** Markdown. */
export function renderStarts(figures: readonly StartFigures[]): string {
  const lines = figures.map(({ id, runs, wall, cpu, spread, limit, met }) => {
    const verdict = limit === undefined ? '' : `${limit}: ${met ? 'met' : '**missed**'}`;
    const [least, most] = spread;
    return `| ${id} | ${ms(cpu)} | ${ms(wall)} | ${ms(least)} to ${ms(most)} | ${runs} | ${verdict} |`;
  });
  return ['| start | CPU ms | wall ms | spread | runs | limit |', '|---|---:|---:|---|---:|---|', ...lines].join('\n');
}

const ms = (value: number) => value.toFixed(0);
