import { floorDepth } from './floor-depth.ts';
import type { Row, Run } from './measure.ts';
import type { Section } from './sections.ts';

/** Median figures of a row; undefined where nothing was measured. */
export type Medians = {
  readonly seconds: number;
  readonly cpuSeconds: number | undefined;
  readonly peakRssBytes: number | undefined;
  readonly requests: number;
  readonly longestChain: number;
  readonly mostInFlight: number;
  readonly connections: number;
  readonly bytesUp: number;
};

const MIB = 1024 * 1024;

/** Each figure by itself. */
export function medians(runs: readonly Run[]): Medians {
  const of = (pick: (run: Run) => number) => median(runs.map(pick));
  const known = (pick: (run: Run) => number | undefined) => {
    const values = runs.map(pick).filter((value) => value !== undefined);
    return values.length === 0 ? undefined : median(values);
  };
  return {
    seconds: of((run) => run.seconds),
    cpuSeconds: known((run) => run.cpuSeconds),
    peakRssBytes: known((run) => run.peakRssBytes),
    requests: of((run) => run.traffic.requests),
    longestChain: of((run) => run.traffic.longestChain),
    mostInFlight: of((run) => run.traffic.mostInFlight),
    connections: of((run) => run.traffic.connections),
    bytesUp: of((run) => run.traffic.bytesUp),
  };
}

/** The middle value, or the mean of the two in the middle. @param values at least one */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN;
  return (lower + upper) / 2;
}

const HEADINGS = [
  'peer',
  'result',
  'seconds',
  'spread',
  '÷ best peer',
  '÷ floor',
  'requests',
  'depth',
  'most in flight',
  'connections',
  'MiB up',
  'RSS MiB',
  'CPU s',
];

/** A section and what was measured in it. */
export type Measured = Section & { readonly rows: readonly Row[] };

/** The row of the fastest peer that does all of it by one command. */
export function bestPeer(rows: readonly Row[]): Row | undefined {
  return fastest(rows.filter((row) => row.peer.kind === 'single' && isRight(row)));
}

/** One section as a Markdown table. A peer that fails has no ratio. */
export function renderTable(section: Measured): string {
  const { rows } = section;
  const best = bestPeer(rows);
  const floor = rows.find((row) => row.peer.kind === 'floor' && isRight(row));
  const lines = rows.map((row) => {
    const figures = medians(row.runs);
    const ratio = (other: Row | undefined) =>
      other === undefined || !isRight(row) ? '' : times(figures.seconds / medians(other.runs).seconds);
    return [
      [row.peer.title, row.peer.tool.version].filter((part) => part !== undefined).join(' '),
      resultOf(row),
      figures.seconds.toFixed(2),
      spread(row.runs),
      ratio(best),
      ratio(floor),
      whole(figures.requests),
      whole(figures.longestChain),
      whole(figures.mostInFlight),
      whole(figures.connections),
      (figures.bytesUp / MIB).toFixed(1),
      figures.peakRssBytes === undefined ? '?' : (figures.peakRssBytes / MIB).toFixed(0),
      figures.cpuSeconds === undefined ? '?' : figures.cpuSeconds.toFixed(2),
    ];
  });
  const table = [HEADINGS, HEADINGS.map((_, index) => (index < 2 ? '---' : '---:')), ...lines];
  const failures = rows.flatMap((row) => reasons(row).map((why) => `- ${row.peer.title} fails: \`${why}\``));
  return [
    `### ${titleOf(section)}`,
    '',
    describeBest(section, best),
    '',
    ...table.map((cells) => `| ${cells.join(' | ')} |`),
    ...separated(failures),
  ].join('\n');
}

const AUTH_WORDS = {
  none: '',
  token: ', a token for each repository',
  login: ', a token for each repository, logged in',
};

/** `Mounts work (201), fresh target, 100 ms` */
export function titleOf({ situation, auth, delay }: Section): string {
  return `${situation.title}, ${delay} ms${AUTH_WORDS[auth]}`;
}

function describeBest({ situation, auth, delay, rows }: Measured, best: Row | undefined): string {
  const depth = floorDepth(situation.id, auth);
  const floor = `The floor: ${depth} round trip${depth === 1 ? '' : 's'}, ${((depth * delay) / 1000).toFixed(2)} s, and start-up.`;
  const ours = rows.find((row) => row.peer.id === 'ours' && isRight(row));
  if (best === undefined) return `${floor} No peer does this by one command.`;
  const named = `Best peer of one command: ${best.peer.title}`;
  if (ours === undefined) return `${floor} ${named}.`;
  return `${floor} ${named}; we are ${times(medians(best.runs).seconds / medians(ours.runs).seconds)} times as fast.`;
}

/** Calls by class of the last run of each row. */
export function renderCalls({ situation, auth, rows }: Measured): string {
  const lines = rows.map((row) => {
    const calls = Object.entries(row.runs.at(-1)?.traffic.calls ?? {});
    const words = calls.map(([name, count]) => `${name} ×${count}`).join(', ');
    return `| ${row.peer.id} | ${situation.id} | ${auth} | ${words} |`;
  });
  return lines.join('\n');
}

function fastest(rows: readonly Row[]): Row | undefined {
  return [...rows].sort((a, b) => medians(a.runs).seconds - medians(b.runs).seconds)[0];
}

function resultOf(row: Row): string {
  if (!isRight(row)) return 'fails';
  return row.peer.kind === 'copies' ? 'copies only' : 'right';
}

/** Whether every run ended well and left the right things in the registry. */
export function isRight(row: Row): boolean {
  return row.runs.every((run) => run.outcome.kind === 'right');
}

function reasons(row: Row): readonly string[] {
  const whys = row.runs.flatMap((run) => (run.outcome.kind === 'fails' ? [run.outcome.why.replaceAll('`', "'")] : []));
  return whys.slice(0, 1);
}

function separated(lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : ['', ...lines];
}

function spread(runs: readonly Run[]): string {
  const seconds = runs.map((run) => run.seconds);
  return `${Math.min(...seconds).toFixed(2)}–${Math.max(...seconds).toFixed(2)}`;
}

function times(ratio: number): string {
  if (ratio >= 9.95) return ratio.toFixed(0);
  return ratio.toFixed(ratio < 0.995 ? 2 : 1);
}

/** Counts; a median of two runs may fall between two. */
function whole(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(1);
}
