import type { Row, Run, Situation } from './measure.ts';

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
  '÷ ours',
  'requests',
  '÷ ours',
  'depth',
  'most in flight',
  'connections',
  'MiB up',
  'RSS MiB',
  'CPU s',
];

/** One situation as a Markdown table. Ratios are to the row `ours`; a peer that fails has none. */
export function renderTable(situation: Situation, rows: readonly Row[]): string {
  const ours = rows.find((row) => row.peer.id === 'ours');
  const base = ours === undefined || !isRight(ours) ? undefined : medians(ours.runs);
  const lines = rows.map((row) => {
    const figures = medians(row.runs);
    const ratio = (pick: (figures: Medians) => number) =>
      base === undefined || !isRight(row) ? '' : times(pick(figures) / pick(base));
    return [
      [row.peer.title, row.peer.tool.version].filter((part) => part !== undefined).join(' '),
      isRight(row) ? 'right' : 'fails',
      figures.seconds.toFixed(2),
      spread(row.runs),
      ratio((one) => one.seconds),
      whole(figures.requests),
      ratio((one) => one.requests),
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
    `### ${situation.title}`,
    '',
    ...table.map((cells) => `| ${cells.join(' | ')} |`),
    ...separated(failures),
  ].join('\n');
}

/** Calls by class of the last run of each row. */
export function renderCalls(situation: Situation, rows: readonly Row[]): string {
  const lines = rows.map((row) => {
    const calls = Object.entries(row.runs.at(-1)?.traffic.calls ?? {});
    return `| ${row.peer.id} | ${situation.id} | ${calls.map(([name, count]) => `${name} ×${count}`).join(', ')} |`;
  });
  return lines.join('\n');
}

function isRight(row: Row): boolean {
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
  return ratio >= 9.95 ? ratio.toFixed(0) : ratio.toFixed(1);
}

/** Counts; a median of two runs may fall between two. */
function whole(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(1);
}
