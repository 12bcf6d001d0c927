import { describe, expect, it } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import type { PublishEvent } from '../../src/publish/events.ts';
import type { PublishReport } from '../../src/publish/report.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { type BuiltManifest, seedImage } from '../helpers/images.ts';
import { counts, type PublishOptions, publishAll, requestOf } from '../helpers/publishing.ts';
import { requests, withRegistries, withRegistry, writes } from '../helpers/registry.ts';

const ARCHITECTURES = ['amd64', 'arm64'];

function seed(registry: RunningRegistry, namespace = 't'): readonly BuiltManifest[] {
  return ARCHITECTURES.map((architecture) =>
    seedImage(registry, `${namespace}/${architecture}`, '1', { platform: { os: 'linux', architecture } }),
  );
}

/** One list to several targets, all in full. */
function publishTo(
  registries: readonly RunningRegistry[],
  [target = '', ...also]: readonly string[],
  sources: readonly string[],
  options: PublishOptions = {},
): Promise<PublishReport> {
  return publishAll(registries, [requestOf(target, sources, { ...options, also })], options);
}

/** What a run that has to fail says. */
async function failureOf(run: Promise<PublishReport>): Promise<PublishError & { readonly report: PublishReport }> {
  const error = await run.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof PublishError)) throw new Error(`should have failed: ${String(error)}`);
  return error as PublishError & { readonly report: PublishReport };
}

const onRegistry = (registry: RunningRegistry, ...names: readonly string[]) =>
  names.map((name) => `${registry.host}/${name}`);

describe('one list in several repositories', () => {
  it('is placed in each, with one index, and reported for each', () =>
    withRegistries('spec', 'spec', async (near, far) => {
      seed(near);
      const targets = [...onRegistry(near, 't/all:1'), ...onRegistry(far, 'mirror/all:1', 'mirror/all:latest')];
      const report = await publishTo([near, far], targets, onRegistry(near, 't/amd64:1', 't/arm64:1'));
      const [list] = report.lists;
      const digest = list?.index?.digest;
      expect(list?.targets).toEqual(targets.map((reference) => ({ reference, digest, action: 'created' })));
      expect(near.tagOf('t/all', '1')).toBe(digest);
      expect(['1', 'latest'].map((tag) => far.tagOf('mirror/all', tag))).toEqual([digest, digest]);
      for (const { placed } of list?.images ?? []) {
        expect(placed.map(({ repository, manifest, blobs }) => [repository, manifest, blobs[0]?.how])).toEqual([
          [`${near.host}/t/all`, 'pushed', 'mounted'],
          [`${far.host}/mirror/all`, 'pushed', 'copied'],
        ]);
      }
      const blobs = (list?.images ?? []).flatMap(({ placed }) => placed[0]?.blobs ?? []);
      expect(report.totals.blobs).toEqual({ present: 0, mounted: blobs.length, copied: blobs.length, skipped: 0 });
      expect(report.totals.bytesSent).toBe(blobs.reduce((sum, { size }) => sum + size, 0));
      expect(writes(near).every(({ repository }) => repository === 't/all')).toBe(true);
    }));

  it('takes a source that lies in one of them as it is there, and mounts it into the other', () =>
    withRegistry({}, async (registry) => {
      const [image] = seed(registry);
      const targets = onRegistry(registry, 't/amd64:list', 't/other:1');
      const report = await publishTo([registry], targets, onRegistry(registry, 't/amd64:1'));
      const placed = report.lists[0]?.images[0]?.placed.map(({ manifest, blobs }) => [manifest, blobs[0]?.how]);
      expect(placed).toEqual([
        ['present', 'present'],
        ['pushed', 'mounted'],
      ]);
      const put = requests(registry, 'manifestPut').map(({ repository, reference }) => `${repository}:${reference}`);
      expect(put.toSorted()).toEqual(['t/amd64:list', 't/other:1', `t/other:${image?.descriptor.digest}`].toSorted());
      expect(requests(registry, 'mount').every(({ repository }) => repository === 't/other')).toBe(true);
    }));

  it('reads sources and configs once, however many repositories', () =>
    withRegistry({}, async (registry) => {
      seed(registry);
      const targets = onRegistry(registry, 'x/one:1', 'x/two:1', 'x/three:1');
      await publishTo([registry], targets, onRegistry(registry, 't/amd64:1', 't/arm64:1'));
      // 2 sources, 3 tags; 2 configs; then for each repository its blobs, its children and its index.
      const blobs = requests(registry, 'mount').length / 3;
      expect(counts(registry)).toEqual({
        manifestGet: 5,
        blobGet: 2,
        mount: 3 * blobs,
        blobHead: 3 * blobs,
        manifestPut: 9,
      });
    }));

  it('names the repository in its events, which a run with one does not', () =>
    withRegistry({}, async (registry) => {
      seed(registry);
      const told = async (...names: readonly string[]) => {
        const events: PublishEvent[] = [];
        const onEvent = (event: PublishEvent): void => void events.push(event);
        await publishTo([registry], onRegistry(registry, ...names), onRegistry(registry, 't/amd64:1'), { onEvent });
        const named = events.filter(({ kind }) => kind.startsWith('blob.') || kind === 'manifest.done');
        return [...new Set(named.map((event) => ('repository' in event ? event.repository : undefined)))];
      };
      expect((await told('x/one:1', 'x/two:1')).toSorted()).toEqual(onRegistry(registry, 'x/one', 'x/two'));
      expect(await told('x/three:1', 'x/three:2')).toEqual([undefined]);
    }));

  it('tells in a dry run what would become of every tag, and writes nothing', () =>
    withRegistries('spec', 'spec', async (near, far) => {
      seed(near);
      const [a = '', b = ''] = [...onRegistry(near, 't/all:1'), ...onRegistry(far, 'm/all:1')];
      const sources = onRegistry(near, 't/amd64:1');
      await publishTo([near, far], [b], sources);
      near.clearJournal();
      far.clearJournal();
      const report = await publishTo([near, far], [a, b], sources, { dryRun: true });
      expect(report.dryRun).toBe(true);
      expect(report.lists[0]?.targets.map(({ action }) => action)).toEqual(['created', 'unchanged']);
      expect(report.lists[0]?.images[0]?.placed).toEqual([]);
      expect([...writes(near), ...writes(far)]).toEqual([]);
    }));
});

describe('a repository that fails', () => {
  const refusal = { kind: 'answer', status: 403, body: '{"errors":[{"code":"DENIED","message":"no"}]}' } as const;

  it.each([0, 1])('does not stop the other, and a second run writes only what is missing: target %i', (bad) =>
    withRegistries('spec', 'spec', async (near, far) => {
      seed(near);
      const targets = [...onRegistry(near, 't/all:1'), ...onRegistry(far, 'm/all:1')];
      const sources = onRegistry(near, 't/amd64:1', 't/arm64:1');
      const [failing, good] = bad === 0 ? [near, far] : [far, near];
      failing.addFault({ operation: 'manifestPut', times: Number.POSITIVE_INFINITY, action: refusal });
      const error = await failureOf(publishTo([near, far], targets, sources));
      expect([error.code, error.exitCode, error.registry]).toEqual(['DENIED', 3, failing.host]);
      expect(error.moved).toEqual([targets[1 - bad]]);
      const [list] = error.report.lists;
      expect(list?.targets[1 - bad]).toMatchObject({ action: 'created', digest: list?.index?.digest });
      expect(list?.targets[bad]).toMatchObject({
        action: 'failed',
        digest: list?.index?.digest,
        error: { code: 'DENIED', exitCode: 3, message: error.message },
      });
      const repositories = list?.images.flatMap(({ placed }) => placed.map(({ repository }) => repository));
      expect([...new Set(repositories)]).toEqual([targets[1 - bad]?.replace(/:1$/, '')]);
      // What was brought to the failing one counts as well: it is there.
      const { mounted, copied } = error.report.totals.blobs;
      expect(mounted).toBe(copied);

      failing.clearFaults();
      near.clearJournal();
      far.clearJournal();
      const again = await publishTo([near, far], targets, sources);
      const actions = again.lists[0]?.targets.map(({ action }) => action);
      expect(actions).toEqual(bad === 0 ? ['created', 'unchanged'] : ['unchanged', 'created']);
      expect(writes(good)).toEqual([]);
      expect(again.totals.bytesSent).toBe(0);
    }),
  );

  it('throws the first by the order of targets, whichever failed first', () =>
    withRegistries('spec', 'spec', async (near, far) => {
      seed(near);
      const targets = [...onRegistry(near, 't/all:1'), ...onRegistry(far, 'm/all:1')];
      near.addFault({ operation: 'manifestPut', nth: 2, times: Number.POSITIVE_INFINITY, action: refusal });
      far.addFault({ operation: 'uploadPost', times: Number.POSITIVE_INFINITY, action: refusal });
      const error = await failureOf(publishTo([near, far], targets, onRegistry(near, 't/amd64:1', 't/arm64:1')));
      expect(error.registry).toBe(near.host);
      expect(error.moved).toEqual([]);
      expect(error.report.lists[0]?.targets.map(({ action }) => action)).toEqual(['failed', 'failed']);
    }));

  it('for its tags, which cannot be read, is left alone', () =>
    withRegistries('spec', 'spec', async (near, far) => {
      seed(near);
      const action = { kind: 'answer', status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } } as const;
      far.addFault({ operation: 'manifestGet', times: Number.POSITIVE_INFINITY, action });
      const targets = [...onRegistry(far, 'm/all:1'), ...onRegistry(near, 't/all:1')];
      const error = await failureOf(publishTo([near, far], targets, onRegistry(near, 't/amd64:1')));
      expect([error.code, error.registry, error.side]).toEqual(['UNAUTHORIZED', far.host, 'target']);
      expect(error.report.lists[0]?.targets.map(({ action }) => action)).toEqual(['failed', 'created']);
      expect(writes(far)).toEqual([]);
    }));

  it('for its guard is left alone; the other is published to', () =>
    withRegistries('spec', 'spec', async (near, far) => {
      seed(near);
      const targets = [...onRegistry(near, 't/all:1'), ...onRegistry(far, 'm/all:1')];
      await publishTo([near, far], targets.slice(1), onRegistry(near, 't/amd64:1'));
      far.clearJournal();
      const sources = onRegistry(near, 't/amd64:1', 't/arm64:1');
      const error = await failureOf(publishTo([near, far], targets, sources, { noClobber: true }));
      expect([error.code, error.exitCode]).toEqual(['TAG_EXISTS', 7]);
      expect(error.moved).toEqual(targets.slice(0, 1));
      expect(error.report.lists[0]?.targets.map(({ action }) => action)).toEqual(['created', 'failed']);
      expect(writes(far)).toEqual([]);
    }));

  it('tells of each of its tags: what moved, what did not', () =>
    withRegistry({}, async (registry) => {
      seed(registry);
      const path = /\/manifests\/two$/;
      registry.addFault({ method: 'PUT', path, times: Number.POSITIVE_INFINITY, action: refusal });
      const targets = onRegistry(registry, 't/all:one', 't/all:two', 'x/all:1');
      const error = await failureOf(publishTo([registry], targets, onRegistry(registry, 't/amd64:1')));
      expect(error.moved?.toSorted()).toEqual(onRegistry(registry, 't/all:one', 'x/all:1'));
      expect(error.report.lists[0]?.targets.map(({ action }) => action)).toEqual(['created', 'failed', 'created']);
    }));
});

describe('what is wrong with the index', () => {
  it('ends all repositories before any manifest is put, and leaves no session open', () =>
    withRegistries({ mount: { mode: 'ignore' } }, 'spec', async (near, far) => {
      const platform = { os: 'linux', architecture: 'amd64' };
      for (const name of ['t/a', 't/b']) seedImage(near, name, '1', { platform });
      const targets = [...onRegistry(near, 't/all:1'), ...onRegistry(far, 'm/all:1')];
      const error = await failureOf(publishTo([near, far], targets, onRegistry(near, 't/a:1', 't/b:1')));
      expect(error.code).toBe('PLATFORM_DUPLICATE');
      expect([...requests(near, 'manifestPut'), ...requests(far, 'manifestPut')]).toEqual([]);
      expect([near.openSessions(), far.openSessions()]).toEqual([0, 0]);
      const [list] = error.report.lists;
      expect(list).not.toHaveProperty('index');
      expect(list?.targets.map((target) => (target.action === 'failed' ? target.error.code : target.action))).toEqual([
        'PLATFORM_DUPLICATE',
        'PLATFORM_DUPLICATE',
      ]);
    }));

  it('and a missing source fail every target; nothing is written anywhere', () =>
    withRegistries('spec', 'spec', async (near, far) => {
      const targets = [...onRegistry(near, 't/all:1'), ...onRegistry(far, 'm/all:1')];
      const error = await failureOf(publishTo([near, far], targets, onRegistry(near, 't/nothing:1')));
      expect([error.code, error.moved]).toEqual(['SOURCE_NOT_FOUND', []]);
      expect(error.report.lists[0]?.images).toEqual([]);
      expect([...writes(near), ...writes(far)]).toEqual([]);
    }));
});
