import type { ListsRun, ListsSituation } from './lists-measure.ts';

const MIB = 1024 * 1024;

const HEADINGS = [
  'publisher',
  'lists',
  'result',
  'seconds',
  'ms a list',
  '÷ ours',
  'requests',
  'a list',
  '÷ ours',
  'depth',
  'most in flight',
  'connections',
  'RSS MiB',
  'CPU s',
];

/** All publishers in one situation. */
export type ListsResult = {
  readonly situation: ListsSituation;
  readonly delay: number;
  readonly runs: readonly ListsRun[];
};

/** One situation as a Markdown table; what is divided by ours is the figure a list, and the first row is ours. */
export function renderLists({ situation, delay, runs }: ListsResult): string {
  const [base] = runs;
  const lines = runs.map((run) => {
    const ratio = (pick: (one: ListsRun) => number) =>
      base === undefined || [base, run].some(({ outcome }) => outcome.kind === 'fails')
        ? ''
        : times(pick(run) / run.lists / (pick(base) / base.lists));
    return [
      run.title,
      String(run.lists),
      run.outcome.kind,
      run.seconds.toFixed(2),
      ((run.seconds * 1000) / run.lists).toFixed(0),
      ratio(({ seconds }) => seconds),
      String(run.traffic.requests),
      (run.traffic.requests / run.lists).toFixed(1),
      ratio(({ traffic }) => traffic.requests),
      String(run.traffic.longestChain),
      String(run.traffic.mostInFlight),
      String(run.traffic.connections),
      run.peakRssBytes === undefined ? '?' : (run.peakRssBytes / MIB).toFixed(0),
      run.cpuSeconds === undefined ? '?' : run.cpuSeconds.toFixed(1),
    ];
  });
  const table = [HEADINGS, HEADINGS.map((_, index) => ([0, 2].includes(index) ? '---' : '---:')), ...lines];
  const failures = runs.flatMap(({ title, outcome }) =>
    outcome.kind === 'fails' ? [`- ${title} fails: \`${outcome.why.replaceAll('`', "'")}\``] : [],
  );
  return [
    `### ${situation.title}, ${delay} ms a request`,
    '',
    ...table.map((cells) => `| ${cells.join(' | ')} |`),
    ...(failures.length === 0 ? [] : ['', ...failures]),
  ].join('\n');
}

/** Requests by class, a line for each publisher. */
export function renderListsCalls({ situation, delay, runs }: ListsResult): readonly string[] {
  return runs.map(({ publisher, traffic }) => {
    const calls = Object.entries(traffic.calls).map(([name, count]) => `${name} ×${count}`);
    return `| ${publisher} | ${situation.id}, ${delay} ms | ${calls.join(', ')} |`;
  });
}

function times(ratio: number): string {
  return ratio >= 9.95 ? ratio.toFixed(0) : ratio.toFixed(ratio >= 0.095 ? 1 : 2);
}
