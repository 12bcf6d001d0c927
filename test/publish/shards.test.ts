import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatReference } from '../../src/model/reference.ts';
import { checkLists } from '../../src/publish/publish-lists.ts';
import type { PublishRequest } from '../../src/publish/request.ts';
import { shareOf, workOfShard } from '../../src/publish/shards.ts';
import { requestOf } from '../helpers/publishing.ts';

const HOSTS = ['a.test', 'b.test:5000'];

/** A list with its targets, of which the first is its own, and as many sources. */
const anyList = fc.record({
  home: fc.nat(12),
  host: fc.constantFrom(...HOSTS),
  also: fc.array(fc.record({ host: fc.constantFrom(...HOSTS), repository: fc.nat(12) }), { maxLength: 2 }),
  sources: fc.integer({ min: 1, max: 9 }),
});

const anyRun = fc.array(anyList, { minLength: 1, maxLength: 40 }).map((lists) =>
  lists.map(({ home, host, also, sources }, at) =>
    requestOf(
      `${host}/r${home}:t${at}`,
      Array.from({ length: sources }, (_, source) => `${host}/s/${at}-${source}:1`),
      { also: also.map((one) => `${one.host}/r${one.repository}:t${at}`) },
    ),
  ),
);

const anyTotal = fc.integer({ min: 1, max: 12 });

function repositoriesOf({ targets }: PublishRequest): readonly string[] {
  return targets.map(({ host, repository }) => `${host}/${repository}`);
}

function shares(requests: readonly PublishRequest[], total: number, bySource = false) {
  return Array.from({ length: total }, (_, at) => workOfShard(requests, { index: at + 1, total }, bySource));
}

describe('lists that are divided among shards', () => {
  it('are each in one shard, in the order of the run', () => {
    fc.assert(
      fc.property(anyRun, anyTotal, (requests, total) => {
        const parts = shares(requests, total).map((work) => work.requests);
        expect(parts.flat()).toHaveLength(requests.length);
        expect(new Set(parts.flat())).toEqual(new Set(requests));
        for (const part of parts) expect(part).toEqual(requests.filter((request) => part.includes(request)));
      }),
    );
  });

  it.each([
    ['r.test/a:1', 'r.test:443/a:2'],
    ['localhost:5000/a:1', 'localhost:05000/a:2'],
    ['[::1]:5000/a:1', '[0:0::1]:5000/a:2'],
    ['index.docker.io/acme/a:1', 'acme/a:2'],
    ['oci:./out:1', 'oci:out:2'],
  ])('go together when %s and %s are one place', (one, other) => {
    const requests = [one, other].map((target) => requestOf(target, ['s.test/s:1']));
    for (const { requests: own } of shares(requests, 2)) expect([0, 2]).toContain(own.length);
    const same = [one, other.replace(/2$/, '1')].map((target) => requestOf(target, ['s.test/s:1']));
    expect(() => checkLists(same)).toThrow('two lists are to be published as');
  });

  it('are told apart from other lists, and not by their order', () => {
    fc.assert(
      fc.property(anyRun, anyTotal, fc.boolean(), (requests, total, bySource) => {
        const told = new Set(shares(requests, total, bySource).map(({ lists }) => lists));
        expect(told.size).toBe(1);
        for (const { lists } of shares([...requests].reverse(), total, bySource)) expect(told).toContain(lists);
        const more = [...requests, requestOf('a.test/new:1', ['a.test/s/new:1'])];
        for (const { lists } of shares(more, total, bySource)) expect(told).not.toContain(lists);
      }),
    );
  });

  it('share no repository with another shard, which would send what they have in common twice', () => {
    fc.assert(
      fc.property(anyRun, anyTotal, (requests, total) => {
        const owners = new Map<string, number>();
        for (const [shard, { requests: own, names }] of shares(requests, total).entries()) {
          expect([...names].sort()).toEqual([...new Set(own.flatMap(repositoriesOf))].sort());
          for (const repository of own.flatMap(repositoriesOf)) {
            expect(owners.get(repository) ?? shard).toBe(shard);
            owners.set(repository, shard);
          }
        }
      }),
    );
  });

  it('are divided alike whatever their order, so that workers need not agree on one', () => {
    fc.assert(
      fc.property(
        anyRun,
        anyTotal,
        fc.infiniteStream(fc.double({ noNaN: true, min: 0, max: 1 })),
        (requests, total, chance) => {
          const keys = new Map(requests.map((request) => [request, chance.next().value ?? 0]));
          const shuffled = [...requests].sort((one, other) => (keys.get(one) ?? 0) - (keys.get(other) ?? 0));
          const names = (all: readonly PublishRequest[]) =>
            shares(all, total).map(({ requests: own }) =>
              own.map(({ targets }) => targets.map(formatReference)).sort(),
            );
          expect(names(shuffled)).toEqual(names(requests));
        },
      ),
    );
  });

  it('weigh in the fullest shard at most one unit more than in the emptiest', () => {
    const anyUnits = fc.uniqueArray(fc.record({ name: fc.string(), weight: fc.integer({ min: 1, max: 50 }) }), {
      selector: ({ name }) => name,
      maxLength: 40,
    });
    fc.assert(
      fc.property(anyUnits, anyTotal, (units, total) => {
        const loads = Array.from({ length: total }, (_, at) =>
          shareOf(units, { index: at + 1, total }).reduce((sum, { weight }) => sum + weight, 0),
        );
        const largest = Math.max(0, ...units.map(({ weight }) => weight));
        expect(Math.max(...loads) - Math.min(...loads)).toBeLessThanOrEqual(largest);
      }),
    );
  });

  it('go to the least loaded, the largest first, ties by name', () => {
    const list = (name: string, sources: number) =>
      requestOf(
        `r.test/${name}:1`,
        Array.from({ length: sources }, (_, at) => `r.test/s/${at}:1`),
      );
    const work = shares([list('a', 1), list('b', 1), list('d', 2), list('c', 4)], 2);
    expect(work.map(({ names }) => names)).toEqual([['r.test/c'], ['r.test/a', 'r.test/b', 'r.test/d']]);
  });

  it('take two spellings of one layout for one place', () => {
    const lists = [requestOf('oci:out/app:1', ['r.test/s:1']), requestOf('oci:./out//app:2', ['r.test/s:1'])];
    expect(shares(lists, 8).filter(({ requests }) => requests.length > 0)).toHaveLength(1);
  });

  it('leave a shard empty when there are fewer repositories than shards', () => {
    const work = workOfShard([requestOf('r.test/a:1', ['r.test/s:1'])], { index: 8, total: 8 }, false);
    expect(work).toMatchObject({ requests: [], names: [], of: 1 });
  });
});

describe('the content stage of one repository', () => {
  const sources = Array.from({ length: 9 }, (_, at) => `r.test/s/${at}:1`);

  it('is divided by source, each in one shard', () => {
    fc.assert(
      fc.property(anyTotal, (total) => {
        const lists = [requestOf('r.test/a:1', sources), requestOf('r.test/a:2', sources.slice(3))];
        const work = shares(lists, total, true);
        const names = work.flatMap((part) => part.names);
        expect(names.sort()).toEqual(sources);
        for (const { requests, names: own } of work) {
          for (const request of requests) {
            for (const { reference } of request.sources) expect(own).toContain(formatReference(reference));
          }
        }
        const placed = work.flatMap(({ requests }) => requests.flatMap((request) => request.sources));
        expect(placed).toHaveLength(sources.length + sources.length - 3);
      }),
    );
  });

  it('tells apart the images that are picked from one index', () => {
    const list = requestOf('r.test/a:1', ['linux/amd64=r.test/s:1', 'linux/arm64=r.test/s:1']);
    expect(shares([list], 2, true).map(({ names }) => names)).toEqual([
      ['linux/amd64=r.test/s:1'],
      ['linux/arm64=r.test/s:1'],
    ]);
  });

  it('asks a part of a list nothing that only the whole can be asked', () => {
    const list = requestOf('r.test/a:1', sources, {
      expectPlatforms: [{ os: 'linux', architecture: 'amd64' }],
      annotations: { a: '1' },
      noClobber: true,
      amend: true,
      type: 'docker',
      guardsImage: true,
    });
    const [part] = workOfShard([list], { index: 1, total: 9 }, true).requests;
    expect(part).toMatchObject({ part: true, type: 'auto', annotations: {}, sources: [list.sources[0]] });
    for (const key of ['expectPlatforms', 'noClobber', 'amend', 'guardsImage']) expect(part).not.toHaveProperty(key);
  });

  it('is divided by repository as soon as there are two', () => {
    const lists = [requestOf('r.test/a:1', sources), requestOf('r.test/b:1', sources)];
    expect(shares(lists, 2, true).map(({ names }) => names)).toEqual([['r.test/a'], ['r.test/b']]);
  });

  it('is not what a whole run is divided by', () => {
    const list = requestOf('r.test/a:1', sources);
    expect(shares([list], 2).map(({ requests }) => requests.length)).toEqual([1, 0]);
  });
});
