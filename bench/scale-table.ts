import type { Publisher, ScaleRun, ScaleSituation } from './scale-measure.ts';
import type { WideRun } from './scale-wide.ts';
import type { Wide } from './scale-world.ts';

const MIB = 1024 * 1024;

/** CPU a list may be this much more in a large run than in a smaller one. */
const FLAT = 1.25;

/** Smaller runs tell little of a list: most of them is start-up. */
const TELLING = 10;

/** All runs of one publisher, of which each figure is the median. */
export type ScaleRow = { readonly publisher: Publisher; readonly runs: readonly ScaleRun[] };

/** Everything measured in one situation; rows of ours from the smallest. */
export type ScaleResult = { readonly situation: ScaleSituation; readonly rows: readonly ScaleRow[] };

const HEADINGS = ['publisher', 'lists', 'result', 'seconds', 'ms a list', 'requests', 'a further list'];
const MORE = ['connections', 'CPU s', 'CPU ms a further list', 'RSS MiB'];

/** One situation as a Markdown table. */
export function renderScale({ situation, rows }: ScaleResult): string {
  const lines = rows.map((row) => {
    const { publisher, runs } = row;
    const least = smallest(rows, row);
    const [run] = runs;
    const seconds = median(runs.map((one) => one.seconds));
    const cpu = cpuSeconds(row);
    const each = least === undefined ? undefined : further(row, least, cpuSeconds);
    const more = least === undefined ? undefined : further(row, least, requestsOf);
    return [
      publisher.title,
      String(publisher.lists),
      runs.every(({ outcome }) => outcome.kind === 'right') ? 'right' : 'fails',
      seconds.toFixed(2),
      ((seconds * 1000) / publisher.lists).toFixed(0),
      String(requestsOf(row)),
      more === undefined ? '' : String(Math.round(more * 100) / 100),
      String(run?.traffic.connections ?? 0),
      Number.isNaN(cpu) ? '?' : cpu.toFixed(2),
      each === undefined || Number.isNaN(each) ? '' : (each * 1000).toFixed(1),
      rss(runs),
    ];
  });
  const headings = [...HEADINGS, ...MORE];
  const table = [headings, headings.map((_, index) => ([0, 2].includes(index) ? '---' : '---:')), ...lines];
  const failures = rows.flatMap(({ publisher, runs }) =>
    runs.flatMap(({ outcome }) => (outcome.kind === 'fails' ? [`- ${publisher.id}: ${outcome.why}`] : [])),
  );
  return [
    `#### ${situation.title}`,
    '',
    ...table.map((cells) => `| ${cells.join(' | ')} |`),
    ...(failures.length === 0 ? [] : ['', ...failures]),
  ].join('\n');
}

/** What is wrong with our figures: lists that were not published, requests or CPU a list that grow. */
export function faults({ situation, rows }: ScaleResult): readonly string[] {
  const own = rows.filter(({ publisher }) => publisher.id.startsWith('ours'));
  const wrong = own.flatMap(({ publisher, runs }) =>
    runs.flatMap(({ outcome }) => (outcome.kind === 'fails' ? [`${publisher.id}: ${outcome.why}`] : [])),
  );
  const [least, ...others] = own;
  if (least === undefined || wrong.length > 0) return wrong.map((text) => `${situation.id} ${text}`);
  const each = others.map((row) => further(row, least, requestsOf));
  const uneven = new Set(each).size > 1 ? [`requests a further list are ${each.join(', ')}`] : [];
  const telling = others.filter(({ publisher }) => publisher.lists >= TELLING);
  const most = telling.at(-1);
  const grown = telling.slice(0, -1).flatMap((row) => {
    if (most === undefined) return [];
    const ratio = further(most, least, cpuSeconds) / further(row, least, cpuSeconds);
    const [much, little] = [most.publisher.lists, row.publisher.lists];
    return ratio > FLAT ? [`CPU a further list is ${ratio.toFixed(2)} times as much for ${much} as for ${little}`] : [];
  });
  return [...uneven, ...grown].map((text) => `${situation.id}: ${text}`);
}

/** One index of many children, as a Markdown table. */
export function renderWide(wide: Wide, runs: readonly WideRun[]): string {
  const lines = runs.map(({ title, outcome, seconds, traffic, cpuSeconds: cpu, peakRssBytes }) => [
    title,
    outcome.kind === 'right' ? 'right' : `fails: ${outcome.why}`,
    seconds.toFixed(2),
    String(traffic.requests),
    cpu?.toFixed(2) ?? '?',
    peakRssBytes === undefined ? '?' : (peakRssBytes / MIB).toFixed(0),
  ]);
  const headings = ['situation', 'result', 'seconds', 'requests', 'CPU s', 'RSS MiB'];
  const table = [headings, headings.map((_, index) => (index < 2 ? '---' : '---:')), ...lines];
  const title = `#### One index of ${wide.children} children with ${wide.children * wide.blobs} blobs`;
  return [title, '', ...table.map((cells) => `| ${cells.join(' | ')} |`)].join('\n');
}

/** The least run of the same program, which tells what start-up and first lists cost. */
function smallest(rows: readonly ScaleRow[], row: ScaleRow): ScaleRow | undefined {
  const [least] = rows;
  const isOurs = row.publisher.id.startsWith('ours');
  return !isOurs || least === row ? undefined : least;
}

/** What each list beyond those of the least run costs. */
function further(row: ScaleRow, least: ScaleRow, figure: (row: ScaleRow) => number): number {
  return (figure(row) - figure(least)) / (row.publisher.lists - least.publisher.lists);
}

function requestsOf({ runs: [run] }: ScaleRow): number {
  return run?.traffic.requests ?? 0;
}

function cpuSeconds({ runs }: ScaleRow): number {
  return median(runs.map((run) => run.cpuSeconds ?? Number.NaN));
}

function rss(runs: readonly ScaleRun[]): string {
  const most = Math.max(...runs.map(({ peakRssBytes }) => peakRssBytes ?? Number.NaN));
  return Number.isNaN(most) ? '?' : (most / MIB).toFixed(0);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
