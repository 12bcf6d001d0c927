import { describe, expect, it } from 'vitest';
import { publishRequest } from '../../src/cli/request.ts';
import { digestOf } from '../../src/model/digest.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { seedImage } from '../helpers/images.ts';
import { counts, publishTo } from '../helpers/publishing.ts';
import { withRegistry, writes } from '../helpers/registry.ts';

const amd64 = { os: 'linux', architecture: 'amd64' };
const arm64 = { os: 'linux', architecture: 'arm64' };
const TARGET = 't/all:1';
const NOWHERE = digestOf(Buffer.from('nowhere'));

/** A registry where `t/all:1` lists `t/a:1`; `t/b:1` is another image. */
function withTag<T>(use: (registry: RunningRegistry, tag: ReturnType<typeof digestOf>) => Promise<T>): Promise<T> {
  return withRegistry({}, async (registry) => {
    seedImage(registry, 't/a', '1', { platform: amd64 });
    seedImage(registry, 't/b', '1', { platform: arm64 });
    const report = await publishTo(registry, TARGET, ['t/a:1']);
    const digest = report.lists[0]?.index?.digest;
    if (digest === undefined) throw new Error('nothing was published');
    registry.clearJournal();
    return use(registry, digest);
  });
}

describe('--no-clobber', () => {
  it('publishes a tag that is not there, for two reads of it more and no round trip before the writes', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64 });
      registry.addFault({ operation: 'blobGet', action: { kind: 'delay', milliseconds: 60 } });
      const report = await publishTo(registry, TARGET, ['t/a:1'], { noClobber: true });
      expect(report.lists[0]?.targets[0]?.action).toBe('created');
      expect(counts(registry).manifestGet).toBe(4);
      const mount = registry.journal.find(({ operation }) => operation === 'mount');
      const config = registry.journal.find(({ operation }) => operation === 'blobGet');
      expect(mount?.start).toBeLessThan(config?.end ?? 0);
    }));

  it.each([false, true])('leaves another tag alone before any write, dry run: %s', (dryRun) =>
    withTag(async (registry, tag) => {
      const run = publishTo(registry, TARGET, ['t/a:1', 't/b:1'], { noClobber: true, dryRun });
      await expect(run).rejects.toMatchObject({ code: 'TAG_EXISTS', exitCode: 7, side: 'target', moved: [] });
      expect(writes(registry)).toEqual([]);
      expect(registry.tagOf('t/all', '1')).toBe(tag);
    }),
  );

  it('is content with a tag that holds the index already', () =>
    withTag(async (registry, tag) => {
      const report = await publishTo(registry, TARGET, ['t/a:1'], { noClobber: true });
      expect(report.lists[0]?.targets[0]).toMatchObject({ action: 'unchanged', digest: tag });
      expect(writes(registry)).toEqual([]);
    }));

  it('speaks of every tag', () =>
    withTag(async (registry) => {
      const run = publishTo(registry, 't/all:new', ['t/b:1'], { noClobber: true, tags: ['1'] });
      await expect(run).rejects.toMatchObject({
        code: 'TAG_EXISTS',
        message: expect.stringContaining('t/all:1 exists'),
      });
      expect(writes(registry)).toEqual([]);
    }));
});

describe('--expect-digest', () => {
  it('moves a tag that holds it', () =>
    withTag(async (registry, tag) => {
      const report = await publishTo(registry, TARGET, ['t/a:1', 't/b:1'], { expectDigest: tag });
      expect(report.lists[0]?.targets[0]).toMatchObject({ action: 'updated', previous: tag });
    }));

  it('does not move a tag that holds another one, nor one that is not there, before any write', () =>
    withTag(async (registry, tag) => {
      const refused = { code: 'TAG_CHANGED', exitCode: 7, side: 'target', moved: [] };
      const other = publishTo(registry, TARGET, ['t/a:1', 't/b:1'], { expectDigest: NOWHERE });
      await expect(other).rejects.toMatchObject({ ...refused, message: expect.stringContaining(`holds ${tag}, not`) });
      const absent = publishTo(registry, 't/all:new', ['t/b:1'], { expectDigest: tag });
      await expect(absent).rejects.toMatchObject({ ...refused, message: expect.stringContaining('is not there, not') });
      expect(writes(registry)).toEqual([]);
    }));

  it('is content with a tag that holds the new index already, so that a second run succeeds', () =>
    withTag(async (registry, tag) => {
      await publishTo(registry, TARGET, ['t/a:1', 't/b:1'], { expectDigest: tag });
      const again = await publishTo(registry, TARGET, ['t/a:1', 't/b:1'], { expectDigest: tag });
      expect(again.lists[0]?.targets[0]?.action).toBe('unchanged');
    }));

  it('finds a tag that somebody moved while the run was placing blobs', () =>
    withTag(async (registry, tag) => {
      seedImage(registry, 't/all', 'theirs', { platform: arm64 });
      const theirs = registry.tagOf('t/all', 'theirs') ?? NOWHERE;
      registry.addFault({ operation: 'manifestPut', action: { kind: 'delay', milliseconds: 150 } });
      const run = publishTo(registry, TARGET, ['t/a:1', 't/b:1'], {
        expectDigest: tag,
        onEvent: (event) => {
          if (event.kind === 'plan') registry.setTag('t/all', '1', theirs);
        },
      });
      await expect(run).rejects.toMatchObject({ code: 'TAG_CHANGED', exitCode: 7, moved: [] });
      expect(registry.tagOf('t/all', '1')).toBe(theirs);
    }));
});

describe('a tag that somebody moves while its PUT is refused for the moment', () => {
  const refused = (registry: RunningRegistry, status: number) =>
    registry.addFault({
      operation: 'manifestPut',
      path: /\/manifests\/1$/,
      action: { kind: 'answer', status, headers: { 'retry-after': '1' } },
    });
  const tagPuts = ({ journal }: RunningRegistry) =>
    journal.filter(({ operation, reference }) => operation === 'manifestPut' && reference === '1');
  /** Moves the tag as soon as the registry has refused our PUT of it. */
  const meanwhile = async (registry: RunningRegistry, run: Promise<unknown>) => {
    const theirs = registry.tagOf('t/all', 'theirs') ?? NOWHERE;
    const looking = setInterval(() => {
      if (tagPuts(registry).length === 1) registry.setTag('t/all', '1', theirs);
    }, 10);
    await run.finally(() => clearInterval(looking));
    return theirs;
  };

  it.each([503, 429])('keeps theirs, and ends in 7: %i', (status) =>
    withTag(async (registry, tag) => {
      seedImage(registry, 't/all', 'theirs', { platform: arm64 });
      refused(registry, status);
      const run = publishTo(registry, TARGET, ['t/a:1', 't/b:1'], { expectDigest: tag });
      const ended = expect(run).rejects.toMatchObject({ code: 'TAG_CHANGED', exitCode: 7 });
      const theirs = await meanwhile(registry, ended);
      expect(registry.tagOf('t/all', '1')).toBe(theirs);
      expect(tagPuts(registry)).toHaveLength(1);
    }),
  );

  it('moves it all the same without a guard', () =>
    withTag(async (registry) => {
      seedImage(registry, 't/all', 'theirs', { platform: arm64 });
      refused(registry, 503);
      await meanwhile(registry, publishTo(registry, TARGET, ['t/a:1', 't/b:1']));
      expect(tagPuts(registry)).toHaveLength(2);
    }));

  it('is asked for again where nobody moved it, with a look before', () =>
    withTag(async (registry, tag) => {
      refused(registry, 503);
      const report = await publishTo(registry, TARGET, ['t/a:1', 't/b:1'], { expectDigest: tag, patient: true });
      expect(report.lists[0]?.targets[0]).toMatchObject({ action: 'updated', previous: tag });
      const steps = registry.journal.filter(({ reference }) => reference === '1').map(({ method }) => method);
      expect(steps.slice(-5)).toEqual(['GET', 'PUT', 'GET', 'PUT', 'GET']);
    }));
});

describe('a tag that cannot be read first', () => {
  it.each([
    [403, { noClobber: true }, 3],
    [500, { noClobber: true }, 5],
    [403, { expectDigest: NOWHERE }, 3],
    [500, { expectDigest: NOWHERE }, 5],
  ] as const)('%i ends a run with %j', (status, guard, exitCode) =>
    withTag(async (registry) => {
      registry.addFault({
        operation: 'manifestGet',
        repository: 't/all',
        times: 9,
        action: { kind: 'answer', status },
      });
      const run = publishTo(registry, TARGET, ['t/b:1'], { ...guard, patient: true, network: { retries: 1 } });
      await expect(run).rejects.toMatchObject({
        exitCode,
        side: 'target',
        message: expect.stringContaining('must be read'),
      });
      expect(writes(registry)).toEqual([]);
    }),
  );
});

describe('the words of the command line', () => {
  const words = { target: 'acme/app:1', sources: ['acme/a:1'] };

  it('become a guard only when they are said', () => {
    expect(publishRequest({ ...words, noClobber: true, expectDigest: NOWHERE })).toMatchObject({
      noClobber: true,
      expectDigest: NOWHERE,
    });
    const silent = publishRequest({ ...words, noClobber: false });
    expect(silent).not.toHaveProperty('noClobber');
    expect(silent).not.toHaveProperty('expectDigest');
  });

  it.each(['', 'latest', NOWHERE.slice(0, -1), NOWHERE.toUpperCase()])('refuse %j as a digest', (expectDigest) => {
    expect(() => publishRequest({ ...words, expectDigest })).toThrow(/not a sha256 or sha512 digest/);
  });
});
