import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type JournalEntry, type Operation, seedDebian } from '../../src/registry-server/index.ts';
import { seedImage } from '../helpers/images.ts';
import { publishAll, publishTo, requestOf } from '../helpers/publishing.ts';
import { blobBytesReceived, requests, withRegistry } from '../helpers/registry.ts';
import { depthOf, frozenClock } from '../helpers/rounds.ts';
import { ACCESS, measure, SITUATIONS, type Situation } from './depth-situations.ts';

const DOCUMENT = readFileSync(new URL('../../docs/performance.md', import.meta.url), 'utf8');

/** Rows of the tables of the document, by their first cell and the number of cells. */
function rowOf(name: string, cells: number): readonly string[] {
  const rows = DOCUMENT.split('\n').map((line) => line.split('|').slice(1, -1));
  const row = rows.find(([first = '', ...others]) => first.trim() === name && others.length + 1 === cells);
  if (row === undefined) throw new Error(`docs/performance.md has no row "${name}" of ${cells} cells`);
  return row.map((cell) => cell.trim());
}

/** As the document writes them, in the order in which a run sends them. */
const CLASSES: Readonly<Partial<Record<Operation, string>>> = {
  manifestGet: 'manifest GET',
  token: 'token',
  blobGet: 'blob GET',
  manifestHead: 'manifest HEAD',
  mount: 'mount POST',
  blobHead: 'blob HEAD',
  uploadPost: 'upload POST',
  uploadPut: 'upload PUT',
  storage: 'storage',
  manifestPut: 'manifest PUT',
};

function byClass(journal: readonly JournalEntry[]): string {
  const counted = Object.entries(CLASSES).map(([operation, word]) => {
    const count = journal.filter((entry) => entry.operation === operation).length;
    return count === 0 ? [] : [`${word} ×${count}`];
  });
  return counted.flat().join(', ');
}

function accessesOf({ only }: Situation): typeof ACCESS | readonly [(typeof ACCESS)[number]] {
  return only === undefined ? ACCESS : [only];
}

describe.each(SITUATIONS)('$name: depth and requests are those of docs/performance.md', (situation) => {
  it.each(accessesOf(situation))('%s', async (access) => {
    const { rounds, widest, journals } = await measure(situation, access);
    const journal = journals.flat();
    const row = rowOf(situation.name, ACCESS.length + 3);
    expect(`${rounds} (${journal.length})`).toBe(row[2 + ACCESS.indexOf(access)]);
    // Rounds are what the journal has in a row, where one journal has seen all.
    const seen = journals.filter((entries) => entries.length > 0);
    if (seen.length === 1) expect(depthOf(journal)).toBe(rounds);
    expect(widest).toBeLessThanOrEqual(64 * seen.length);
    if (access === accessesOf(situation)[0]) expect(byClass(journal)).toBe(rowOf(situation.name, 2)[1]);
    const unproven = journal.filter(({ status }) => status === 401).length;
    expect(unproven).toBe(access === 'open' ? 0 : situation.loggedIn === false ? 8 : seen.length);
  });
});

describe('two repositories of a registry that refuses mounts', () => {
  it('get a large layer of one read at the same time, and nobody waits for a while', async () => {
    await withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
      const layerBytes = 2 * 1024 * 1024;
      seedImage(registry, 's/a', '1', { layers: 2, layerBytes });
      await publishTo(registry, 't/1:1', ['s/a:1'], { also: [`${registry.host}/t/2:1`], clock: frozenClock() });
      expect(requests(registry, 'blobGet')).toHaveLength(3);
      expect(blobBytesReceived(registry)).toBeGreaterThan(4 * layerBytes);
    });
  });
});

describe('a second list of a run', () => {
  it('is asked for no login that the first one was asked for, and fetches no token twice', async () => {
    const users = [{ name: 'robot', password: 'pass-home' }];
    await withRegistry({ options: { profile: { auth: { scheme: 'bearer' } }, users } }, async (registry) => {
      const sources = seedDebian(registry).map(({ repository, tag }) => `${registry.host}/${repository}:${tag}`);
      const lists = ['1', '2'].map((tag) => requestOf(`${registry.host}/debian/all:${tag}`, sources));
      await publishAll([registry], lists, { logins: { [registry.host]: 'pass-home' }, clock: frozenClock() });
      expect(registry.journal.filter(({ status }) => status === 401)).toHaveLength(1);
      const asked = requests(registry, 'token').map(({ query }) => query);
      expect(asked).toHaveLength(17);
      expect(new Set(asked).size).toBe(17);
    });
  });
});

describe('the table of docs/performance.md', () => {
  const costs = SITUATIONS.filter(({ only }) => only === undefined).map(({ name }) =>
    rowOf(name, ACCESS.length + 3).map((cell) => Number.parseInt(cell, 10)),
  );

  it('says why wherever a run is deeper than the floor', () => {
    for (const { name } of SITUATIONS) {
      const [, floor = '', open = '', basic = '', bearer = '', why = ''] = rowOf(name, ACCESS.length + 3);
      const ours = [open, basic, bearer].map((cell) => Number.parseInt(cell, 10)).find(Number.isFinite) ?? 0;
      expect(ours >= Number(floor) && ours > Number(floor) === (why !== ''), name).toBe(true);
    }
  });

  it('has one link more with Basic and two with tokens, in every line', () => {
    for (const [, , open = 0, basic, bearer] of costs) expect([basic, bearer]).toEqual([open + 1, open + 2]);
  });
});
