import type { Row } from './measure.ts';
import { medians } from './table.ts';

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

/** What ours may take at most: as often as long as the fastest of the others, and at the peak, whatever the layer's size. */
export const MOST = { ratio: 1.2, rssBytes: 180_000_000 } as const;

/** The figures of one peer: medians of its runs. */
export type CopyFigures = {
  readonly id: string;
  readonly title: string;
  readonly right: boolean;
  readonly why: string | undefined;
  readonly seconds: number;
  readonly spread: readonly [least: number, most: number];
  readonly mibPerSecond: number;
  /**
   * How many times as long as the fastest of the others: the median over the rounds, each run divided by the fastest of
   * its own round, so that a noisy minute of the machine falls on both. Undefined without another that is right.
   */
  readonly toFastest: number | undefined;
  readonly rssMib: number | undefined;
  readonly cpuSeconds: number | undefined;
  readonly cpuPerGib: number | undefined;
  readonly requests: number;
};

/** Pure: rows in, figures out. @param size of the layer in bytes */
export function copyFigures(rows: readonly Row[], size: number): readonly CopyFigures[] {
  const others = rows.filter((row) => row.peer.kind !== 'ours' && isRight(row));
  return rows.map((row) => {
    const { peer, runs } = row;
    const { seconds, peakRssBytes, cpuSeconds, requests } = medians(runs);
    const walls = runs.map((run) => run.seconds);
    const ratios = runs.flatMap((run, round) => {
      const fastest = Math.min(...others.flatMap((other) => other.runs[round]?.seconds ?? []));
      return Number.isFinite(fastest) ? [run.seconds / fastest] : [];
    });
    const failed = runs.find(({ outcome }) => outcome.kind === 'fails')?.outcome;
    return {
      id: peer.id,
      title: [peer.title, peer.tool.version].filter((part) => part !== undefined).join(' '),
      right: failed === undefined,
      why: failed?.kind === 'fails' ? failed.why.replaceAll('`', "'") : undefined,
      seconds,
      spread: [Math.min(...walls), Math.max(...walls)],
      mibPerSecond: size / MIB / seconds,
      toFastest: ratios.length === 0 ? undefined : middle(ratios),
      rssMib: peakRssBytes === undefined ? undefined : peakRssBytes / MIB,
      cpuSeconds,
      cpuPerGib: cpuSeconds === undefined ? undefined : (cpuSeconds * GIB) / size,
      requests,
    };
  });
}

function isRight({ runs }: Row): boolean {
  return runs.every(({ outcome }) => outcome.kind === 'right');
}

function middle(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(at)] ?? Number.NaN) + (sorted[Math.ceil(at)] ?? Number.NaN)) / 2;
}

/** What ours does worse than it should, one line each. */
export function copyComplaints(figures: readonly CopyFigures[]): readonly string[] {
  return figures
    .filter(({ id }) => id === 'ours')
    .flatMap(({ why, toFastest = 0, rssMib = 0 }) => {
      if (why !== undefined) return [`ours fails: ${why}`];
      return [
        ...(toFastest > MOST.ratio ? [`${toFastest.toFixed(2)} times the fastest peer, more than ${MOST.ratio}`] : []),
        ...(rssMib * MIB > MOST.rssBytes ? [`${rssMib.toFixed(0)} MiB, more than ${MOST.rssBytes / 1e6} MB`] : []),
      ];
    });
}

const HEADINGS = [
  'peer',
  'result',
  'seconds',
  'spread',
  'MiB/s',
  '÷ fastest peer',
  'RSS MiB',
  'CPU s',
  'CPU s per GiB',
  'requests',
];

/** A Markdown table; peers that fail have no figures to be compared with. */
export function renderCopies(figures: readonly CopyFigures[]): string {
  const shown = (value: number | undefined, digits: number) => value?.toFixed(digits) ?? '?';
  const lines = figures.map((one) => [
    one.title,
    one.right ? 'right' : 'fails',
    shown(one.seconds, 1),
    `${shown(one.spread[0], 1)}–${shown(one.spread[1], 1)}`,
    one.right ? shown(one.mibPerSecond, 0) : '',
    one.right ? shown(one.toFastest, 2) : '',
    shown(one.rssMib, 0),
    shown(one.cpuSeconds, 1),
    one.right ? shown(one.cpuPerGib, 2) : '',
    shown(one.requests, 0),
  ]);
  const table = [HEADINGS, HEADINGS.map((_, index) => (index < 2 ? '---' : '---:')), ...lines];
  const failures = figures.flatMap(({ title, why }) => (why === undefined ? [] : [`- ${title} fails: \`${why}\``]));
  return [
    ...table.map((cells) => `| ${cells.join(' | ')} |`),
    ...(failures.length === 0 ? [] : ['', ...failures]),
  ].join('\n');
}
