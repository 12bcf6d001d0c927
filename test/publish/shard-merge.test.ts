import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { parseDigest } from '../../src/model/digest.ts';
import { failedLists, mergeReports, type NamedReport } from '../../src/publish/merge-reports.ts';
import type { ListReport, PublishReport, TargetOutcome } from '../../src/publish/report.ts';

const DIGEST = parseDigest(`sha256:${'a'.repeat(64)}`);
const created = (reference: string): TargetOutcome => ({ reference, action: 'created', digest: DIGEST });
const failed = (reference: string, code: 'DENIED' | 'NOT_RUN' = 'DENIED'): TargetOutcome => ({
  reference,
  action: 'failed',
  error: { code, message: 'no' },
});
const list = (...targets: TargetOutcome[]): ListReport => ({ targets, images: [] });

function report(lists: readonly ListReport[], more: Partial<PublishReport> = {}): PublishReport {
  return {
    schemaVersion: 1,
    lists,
    totals: {
      blobs: { present: 1, mounted: 2, copied: 3, skipped: 4 },
      bytesSent: 10,
      bytesSaved: 20,
      requests: 30,
      retries: 1,
      seconds: lists.length,
    },
    warnings: [],
    ...more,
  };
}

function shard(index: number, total: number, lists: readonly ListReport[], name = `${index}.json`): NamedReport {
  return { name, report: report(lists, { shard: { index, total }, warnings: ['the same', `of ${index}`] }) };
}

function refusal(files: readonly NamedReport[]): PublishError {
  try {
    mergeReports(files);
  } catch (error) {
    if (error instanceof PublishError) return error;
    throw error;
  }
  throw new Error('it was not refused');
}

describe('reports of shards', () => {
  it('are joined: lists by reference, totals added, the time of the slowest, each warning once', () => {
    const merged = mergeReports([
      shard(2, 2, [list(created('r.test/b:1')), list(created('r.test/d:1'))]),
      shard(1, 2, [list(created('r.test/c:1')), list(created('r.test/a:1')), list(created('r.test/e:1'))]),
    ]);
    expect(merged.lists.map(({ targets }) => targets[0]?.reference)).toEqual(
      ['a', 'b', 'c', 'd', 'e'].map((name) => `r.test/${name}:1`),
    );
    expect(merged.totals).toEqual({
      blobs: { present: 2, mounted: 4, copied: 6, skipped: 8 },
      bytesSent: 20,
      bytesSaved: 40,
      requests: 60,
      retries: 2,
      seconds: 3,
    });
    expect(merged.warnings).toEqual(['the same', 'of 1', 'of 2']);
    expect(merged.merged).toEqual({ reports: 2, shards: 2, missing: [] });
    expect(merged).not.toHaveProperty('shard');
  });

  it('give the same whatever order the files are read in', () => {
    const files = [1, 2, 3, 4].flatMap((index) => [
      shard(index, 5, [list(created(`r.test/${index}:1`))], `${index}-1.json`),
      shard(index, 5, [list(failed(`r.test/${index}:1`))], `${index}-2.json`),
    ]);
    const expected = mergeReports(files);
    fc.assert(
      fc.property(fc.shuffledSubarray(files, { minLength: files.length }), (shuffled) => {
        expect(mergeReports(shuffled)).toEqual(expected);
      }),
    );
  });

  it('name the shards that are missing', () => {
    expect(mergeReports([shard(2, 4, []), shard(4, 4, [])]).merged?.missing).toEqual([1, 3]);
  });

  it('of one shard: without failures before with failures, then the last name, numbers read as numbers', () => {
    const lists = (name: string) => [list(created(`r.test/${name}:1`))];
    const bad = [list(failed('r.test/bad:1'))];
    const takes = (...files: NamedReport[]) => mergeReports(files).lists[0]?.targets[0]?.reference;
    expect(takes(shard(1, 1, lists('a'), 'try-9.json'), shard(1, 1, lists('b'), 'try-10.json'))).toBe('r.test/b:1');
    expect(takes(shard(1, 1, lists('a'), 'try-1.json'), shard(1, 1, bad, 'try-2.json'))).toBe('r.test/a:1');
    const { warnings, totals } = mergeReports([shard(1, 1, bad, 'x.json'), shard(1, 1, lists('a'), 'a.json')]);
    expect(warnings).toContain('shard 1 has 2 reports: a.json is taken, without failures, and not x.json');
    expect(totals.requests).toBe(30);
  });

  it('that are the same twice are no news', () => {
    const lists = [list(created('r.test/a:1'))];
    const { warnings, lists: joined } = mergeReports([shard(1, 1, lists, 'a/1.json'), shard(1, 1, lists, 'b/1.json')]);
    expect(joined).toHaveLength(1);
    expect(warnings).toEqual(['the same', 'of 1']);
  });

  it('that have one reference were given different lists', () => {
    const lists = [list(created('r.test/a:1'))];
    const { warnings } = mergeReports([shard(1, 2, lists), shard(2, 2, lists)]);
    expect(warnings).toContain('r.test/a:1 is in 1.json and in 2.json: these runs were given different lists');
  });

  it.each<readonly [string, NamedReport]>([
    ['of another number of shards', shard(1, 3, [])],
    ['of no shard', { name: '1.json', report: report([]) }],
    ['of another stage', { name: '1.json', report: report([], { shard: { index: 1, total: 2 }, stage: 'content' }) }],
    ['of a dry run', { name: '1.json', report: report([], { shard: { index: 1, total: 2 }, dryRun: true }) }],
    ['that is itself made of reports', { name: '1.json', report: report([], { merged: { reports: 2 } }) }],
  ])('are refused with one %s, by name', (_, other) => {
    const error = refusal([other, shard(2, 2, [])]);
    expect(error).toMatchObject({ code: 'REPORT_INVALID', exitCode: 2 });
    expect(error.message).toContain('1.json');
  });

  it('of shards that were given different lists are refused: one may have left a list to the other', () => {
    const given = (index: number, letter: string): NamedReport => {
      const lists = parseDigest(`sha256:${letter.repeat(64)}`);
      return { name: `${index}.json`, report: report([], { shard: { index, total: 2, lists } }) };
    };
    expect(refusal([given(1, 'a'), given(2, 'b')])).toMatchObject({
      code: 'REPORT_INVALID',
      message: '2.json and 1.json are of shards that were given different lists',
    });
    expect(mergeReports([given(1, 'a'), given(2, 'a')]).merged).toEqual({ reports: 2, shards: 2, missing: [] });
  });

  it('of runs that were not divided are joined too, and none is missing', () => {
    const files = ['b', 'a'].map((name) => ({ name, report: report([list(created(`r.test/${name}:1`))]) }));
    expect(mergeReports(files)).toMatchObject({ merged: { reports: 2 }, lists: [{}, {}] });
  });

  it('tell the lists that failed or were not run', () => {
    const merged = mergeReports([
      shard(1, 1, [list(created('r/a:1'), failed('r/b:1')), list(failed('r/c:1', 'NOT_RUN')), list(created('r/d:1'))]),
    ]);
    expect(failedLists(merged)).toHaveLength(2);
  });
});

describe('reports of the content stage', () => {
  const image = (name: string) => ({ source: name, digest: DIGEST, size: 1, kind: 'image' as const, placed: [] });
  const part = (index: number, content: ListReport): NamedReport => ({
    name: `${index}.json`,
    report: report([content], { shard: { index, total: 2 }, stage: 'content' }),
  });

  it('are joined list by list, with the images of all parts', () => {
    const { lists, warnings } = mergeReports([
      part(1, { targets: [], content: ['r/a:1', 'r/a:2'], images: [image('x'), image('z')] }),
      part(2, { targets: [], content: ['r/a:1', 'r/a:2'], images: [image('y'), image('z')] }),
    ]);
    expect(lists).toEqual([{ targets: [], content: ['r/a:1', 'r/a:2'], images: [image('x'), image('z'), image('y')] }]);
    expect(warnings).toEqual([]);
  });

  it('say of a list that it failed when one part has', () => {
    const merged = mergeReports([
      part(1, { targets: [failed('r/a:1', 'NOT_RUN')], content: [], images: [] }),
      part(2, { targets: [failed('r/a:1')], content: [], images: [image('y')] }),
    ]);
    expect(merged.lists).toEqual([{ targets: [failed('r/a:1')], content: [], images: [image('y')] }]);
    const half = mergeReports([
      part(1, { targets: [], content: ['r/a:1'], images: [] }),
      part(2, { targets: [failed('r/a:1')], content: [], images: [] }),
    ]);
    expect(half.lists).toEqual([{ targets: [failed('r/a:1')], content: [], images: [] }]);
  });
});
