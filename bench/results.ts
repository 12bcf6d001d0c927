import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BenchError } from './errors.ts';
import type { Limit } from './limits.ts';
import type { Machine } from './machine.ts';
import { isRight, type Measured, medians } from './table.ts';

/** What surrounds the figures in a result file. */
export type Surroundings = {
  readonly date: string;
  readonly machine: Machine;
  /** Before and after; above 1 before means that the machine was not quiet. */
  readonly load: readonly [number, number];
  readonly registry: string;
  /** @see RunningRegistry.separatesRepositories */
  readonly separates: boolean;
  /** Milliseconds more for a new connection. */
  readonly connectionCost: number;
  readonly absent: readonly string[];
};

/** Writes all runs to `bench/results/`, which git ignores. @returns the file's path below the root */
export async function writeResults(
  root: string,
  surroundings: Surroundings,
  sections: readonly Measured[],
  limits: readonly Limit[],
): Promise<string> {
  const measured = sections.map(({ situation, auth, delay, rows }) => ({
    situation: situation.id,
    auth,
    delay,
    peers: rows.map((row) => ({
      id: row.peer.id,
      kind: row.peer.kind,
      version: row.peer.tool.version,
      right: isRight(row),
      median: medians(row.runs),
      runs: row.runs,
    })),
  }));
  const document = { schemaVersion: 1, ...surroundings, limits, sections: measured };
  return await writeRuns(root, '', surroundings.date, document);
}

/** @param prefix of the file's name, for a bench with results of its own. @returns the file's path below the root */
export async function writeRuns(root: string, prefix: string, date: string, results: object): Promise<string> {
  const file = join('bench', 'results', `${prefix}${date.replaceAll(/[:.]/g, '-')}.json`);
  await mkdir(join(root, 'bench', 'results'), { recursive: true });
  await writeFile(join(root, file), `${JSON.stringify(results, undefined, 2)}\n`);
  return file;
}

/** Of the section that a bench writes. */
export type Marks = { readonly begin: string; readonly end: string };

const MAIN_MARKS: Marks = {
  begin: '<!-- made by npm run bench -- --write; do not edit to the end mark -->',
  end: '<!-- end -->',
};

/** Replaces what stands between the marks in docs/bench.md. @throws BenchError when the marks are not there */
export async function writeDocument(root: string, text: string, { begin, end }: Marks = MAIN_MARKS): Promise<void> {
  const file = join(root, 'docs', 'bench.md');
  const old = await readFile(file, 'utf8');
  const start = old.indexOf(begin);
  const stop = old.indexOf(end, start); // other benches have marks of their own
  if (start < 0 || stop < start) throw new BenchError(`docs/bench.md: no place between "${begin}" and "${end}"`);
  await writeFile(file, `${old.slice(0, start + begin.length)}\n\n${text}\n\n${old.slice(stop)}`);
}
