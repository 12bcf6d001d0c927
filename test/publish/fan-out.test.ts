import { describe, expect, it } from 'vitest';
import { parseReference } from '../../src/model/reference.ts';
import type { PublishPorts } from '../../src/publish/ports.ts';
import { publish } from '../../src/publish/publish.ts';
import type { FaultRule, RunningRegistry } from '../../src/registry-server/index.ts';
import { putBuilt, seedImage } from '../helpers/images.ts';
import { requestOf, withPorts } from '../helpers/publishing.ts';
import { requests, startRegistry } from '../helpers/registry.ts';
import { MIB, readsOf, type Settled, type Stage, withStage } from './fan-out-stage.ts';

/** Policy's clock runs so much faster than the world where a test hangs on it; its second, in ms of the world. */
const FASTER = 4;
const SECOND = 1000 / FASTER;

const THREE = [{}, {}, {}];

/** More than fits into the buffers between two processes that speak over loopback. */
const SIZE = 32 * MIB;

describe('a blob that is streamed to several registries', () => {
  it('is read once', async () => {
    await withStage(THREE, async (stage) => {
      const blob = stage.blob(SIZE);
      const done = await stage.copy([blob]);
      expect(hows(done)).toEqual(['copied', 'copied', 'copied']);
      expect(readsOf(stage.source, blob)).toHaveLength(1);
      for (const target of stage.targets) {
        expect(target.hasBlob('t/all', blob.digest)).toBe(true);
        const puts = requests(target, 'uploadPut').map(({ bytesIn, status }) => [bytesIn, status]);
        expect(puts).toEqual([[SIZE, 201]]);
      }
    });
  });

  it('is read once, also when there are more of them than may be copied at a time', async () => {
    await withStage(THREE, async (stage) => {
      const blobs = Array.from({ length: 12 }, (_, at) => stage.blob(6 * MIB - at, `${at}`));
      const done = await stage.copy(blobs, { network: { jobs: 2 } });
      expect(new Set(hows(done))).toEqual(new Set(['copied']));
      for (const blob of blobs) expect(readsOf(stage.source, blob)).toHaveLength(1);
      expect(mostAtOnce(stage.source, 'GET')).toBeLessThanOrEqual(2);
      for (const target of stage.targets) expect(mostAtOnce(target, 'PUT')).toBe(2);
    });
  });

  it('does not wait for one that stalls, which goes on by itself from where it was', async () => {
    await withStage(THREE, async (stage) => {
      const blob = stage.blob(SIZE);
      const delay = 5000;
      slowest(stage).addFault(put({ kind: 'delay', milliseconds: delay }));
      const done = await stage.copy([blob], { faster: FASTER });
      expect(hows(done)).toEqual(['copied', 'copied', 'copied']);
      const [first, second, ...more] = readsOf(stage.source, blob);
      expect(first?.headers['range']).toBeUndefined();
      expect(second?.headers['range']).toMatch(/^bytes=[1-9]\d*-/);
      expect(more).toEqual([]);
      for (const { target, milliseconds } of done) {
        if (target === slowest(stage)) expect(milliseconds).toBeGreaterThan(delay);
        else expect(milliseconds).toBeLessThan(delay);
        // It did not notice.
        expect(requests(target, 'uploadPut').map(({ bytesIn }) => bytesIn)).toEqual([SIZE]);
      }
    });
  });

  it('goes on when one resets its upload, who is tried again with a read of its own', async () => {
    await withStage(THREE, async (stage) => {
      const blob = stage.blob(SIZE);
      slowest(stage).addFault(put({ kind: 'reset', when: { bodyBytes: 8 * MIB } }));
      const done = await stage.copy([blob]);
      expect(hows(done)).toEqual(['copied', 'copied', 'copied']);
      expect(readsOf(stage.source, blob)).toHaveLength(2);
      for (const target of stage.targets.slice(0, 2)) expect(requests(target, 'uploadPut')).toHaveLength(1);
    });
  });

  it('goes on when the one resets whose places the read has', async () => {
    await withStage(THREE, async (stage) => {
      const blob = stage.blob(SIZE);
      const [first, ...others] = stage.targets;
      // The others answer later, so that they are not the first who want the bytes.
      for (const one of others) one.addFault(head({ kind: 'delay', milliseconds: 50 }));
      first?.addFault(put({ kind: 'reset', when: { bodyBytes: 2 * MIB } }));
      const done = await stage.copy([blob], { network: { jobs: 1 } });
      expect(hows(done)).toEqual(['copied', 'copied', 'copied']);
      expect(readsOf(stage.source, blob)).toHaveLength(2);
      for (const one of others) expect(requests(one, 'uploadPut')).toHaveLength(1);
    });
  });

  it('is read on together where the source breaks in the middle', async () => {
    await withStage(THREE, async (stage) => {
      const blob = stage.blob(SIZE);
      stage.source.addFault({ operation: 'blobGet', action: { kind: 'truncate', bytes: 10 * MIB } });
      const done = await stage.copy([blob]);
      expect(hows(done)).toEqual(['copied', 'copied', 'copied']);
      const [, again, ...more] = readsOf(stage.source, blob);
      expect(again?.headers['range']).toMatch(/^bytes=[1-9]\d*-/);
      expect(more).toEqual([]);
      for (const target of stage.targets) expect(requests(target, 'uploadPut')).toHaveLength(1);
    });
  });

  it('fails for all where the source breaks for good, after as many reads as one target alone would have made', async () => {
    await withStage([{}, {}], async (stage) => {
      const blob = stage.blob(SIZE);
      const action = { kind: 'truncate', bytes: 1000 } as const;
      stage.source.addFault({ operation: 'blobGet', times: Number.POSITIVE_INFINITY, action });
      const done = await stage.copy([blob], { network: { retries: 1 } });
      for (const one of done) {
        expect(one).toMatchObject({ status: 'rejected', reason: { code: 'NETWORK_FAILED', side: 'source' } });
      }
      expect(readsOf(stage.source, blob)).toHaveLength(2);
    });
  });

  it('does not wait for one that holds it already', async () => {
    await withStage(THREE, async (stage) => {
      const blob = stage.blob(SIZE);
      slowest(stage).putGeneratedBlob('t/all', SIZE, 'seed');
      const done = await stage.copy([blob]);
      expect(hows(done)).toEqual(['copied', 'copied', 'present']);
      expect(readsOf(stage.source, blob)).toHaveLength(1);
      const asked = requests(slowest(stage), 'blobHead')[0]?.endedAt ?? Number.NaN;
      expect((readsOf(stage.source, blob)[0]?.startedAt ?? Number.NaN) - asked).toBeLessThan(500);
    });
  });

  it('waits a second for one that is slow to say whether it holds it', async () => {
    await withStage(THREE, async (stage) => {
      const blobs = [stage.blob(MIB, 'one'), stage.blob(MIB, 'two')];
      slowest(stage).addFault({ ...head({ kind: 'delay', milliseconds: 10 * SECOND }), times: 2 });
      const done = await stage.copy(blobs, { faster: FASTER });
      expect(new Set(hows(done))).toEqual(new Set(['copied']));
      const [blob] = blobs;
      if (blob === undefined) throw new Error('there are two');
      const [first, second, ...more] = readsOf(stage.source, blob);
      const asked = Math.min(...requests(slowest(stage), 'blobHead').map(({ startedAt }) => startedAt));
      expect((first?.startedAt ?? 0) - asked).toBeGreaterThan(SECOND * 0.8);
      expect((first?.startedAt ?? 0) - asked).toBeLessThan(SECOND * 5);
      expect((second?.startedAt ?? 0) - asked).toBeGreaterThan(SECOND * 9);
      expect(more).toEqual([]);
    });
  });

  it('ends everywhere when the run is stopped in the middle', async () => {
    await withStage(THREE, async (stage) => {
      const blob = stage.blob(SIZE);
      for (const target of stage.targets) target.addFault(put({ kind: 'delay', milliseconds: 1000 }));
      const reason = new Error('stopped by the test');
      const done = await stage.copy([blob], {
        onStart: (controller) => void setTimeout(() => controller.abort(reason), 400),
      });
      for (const one of done) expect(one).toMatchObject({ status: 'rejected', reason });
      expect(readsOf(stage.source, blob)).toHaveLength(1);
      expect(Math.max(...done.map(({ milliseconds }) => milliseconds))).toBeLessThan(1000);
    });
  });
});

describe('a blob for two repositories of one registry, from elsewhere', () => {
  it('is streamed to the one and mounted into the other', async () => {
    await withStage([{}, {}], async (stage) => {
      const blob = stage.blob(SIZE);
      const done = await stage.copy([blob], { repositories: ['t/all', 't/too'] });
      expect(hows(done)).toEqual(['copied', 'mounted', 'copied', 'mounted']);
      expect(readsOf(stage.source, blob)).toHaveLength(1);
      for (const target of stage.targets) {
        expect(requests(target, 'uploadPut')).toHaveLength(1);
        expect(target.hasBlob('t/too', blob.digest)).toBe(true);
      }
    });
  });

  it('is streamed to both where mounts are refused', async () => {
    await withStage([{ changes: { mount: { mode: 'ignore' } } }], async (stage) => {
      const blob = stage.blob(MIB);
      const done = await stage.copy([blob], { repositories: ['t/all', 't/too'] });
      expect(hows(done)).toEqual(['copied', 'copied']);
    });
  });

  it('is streamed to the other when the first one fails', async () => {
    await withStage([{}], async (stage) => {
      const blob = stage.blob(MIB);
      const action = { kind: 'answer', status: 403 } as const;
      stage.targets[0]?.addFault({ operation: 'uploadPost', repository: 't/all', times: 9, action });
      const done = await stage.copy([blob], { repositories: ['t/all', 't/too'] });
      expect(done.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
      expect(stage.targets[0]?.hasBlob('t/too', blob.digest)).toBe(true);
    });
  });
});

describe('a list for three registries, on one of them for two repositories', () => {
  it('reads every blob once, whatever it is told of the platforms, and streams it once into each registry', async () => {
    await withStage(THREE, async ({ source, targets }) => {
      const images = ['amd64', 'arm64'].map((architecture) =>
        seedImage(source, `s/${architecture}`, '1', {
          platform: { os: 'linux', architecture },
          layers: 3,
          layerBytes: 5 * MIB,
        }),
      );
      const sources = ['amd64', 'arm64'].map((name) => `${source.host}/s/${name}:1`);
      const [first = '', second = '', third = ''] = targets.map(({ host }) => host);
      const names = [`${first}/t/all:1`, `${second}/t/all:1`, `${third}/t/all:1`, `${third}/t/too:1`];
      const request = { ...requestOf(names[0] ?? '', sources), targets: names.map((name) => parseReference(name)) };
      const report = await withPorts({}, (ports, signal) => publish(request, ports, signal), [source, ...targets]);
      expect(new Set(report.lists[0]?.targets.map(({ action }) => action))).toEqual(new Set(['created']));
      const layers = images.flatMap(({ blobs }) => blobs.slice(1));
      for (const { descriptor } of layers) {
        expect(readsOf(source, descriptor)).toHaveLength(1);
        for (const target of targets) {
          const sent = requests(target, 'uploadPut').filter(({ query }) => query.includes(descriptor.digest.slice(7)));
          expect(sent).toHaveLength(1);
        }
      }
      for (const target of targets) expect(target.missingFrom('t/all', '1')).toEqual([]);
      expect(targets[2]?.missingFrom('t/too', '1')).toEqual([]);
    });
  });
});

describe('an image of a registry that refuses mounts, for two repositories there', () => {
  const platform = { os: 'linux', architecture: 'amd64' };

  it.each([
    ['five large layers and', 5, 4 * MIB + 1, {}],
    ['five large layers and, one copied at a time,', 5, 4 * MIB + 1, { jobs: 1 }],
    ['150 tiny layers and', 150, 14, {}],
  ])(
    'with %s its layers in the first gets to both',
    { timeout: 20_000 },
    async (_what, layers, layerBytes, network) => {
      const registry = await startRegistry({ changes: { mount: { mode: 'ignore' } } });
      const image = seedImage(registry, 's/a', '1', { platform, layers, layerBytes });
      putBuilt(registry, 't/1', image, 'old');
      const [first = '', second = ''] = ['t/1', 't/2'].map((repository) => `${registry.host}/${repository}:1`);
      const request = requestOf(first, [`${registry.host}/s/a:1`], { also: [second] });
      const late = new AbortController();
      const timer = setTimeout(() => late.abort(new Error('it has not ended')), 10_000);
      const run = (ports: PublishPorts, signal: AbortSignal) =>
        publish(request, ports, AbortSignal.any([signal, late.signal]));
      const report = await withPorts({ network }, run, [registry]).finally(() => clearTimeout(timer));
      expect(report.lists[0]?.targets.map(({ action }) => action)).toEqual(['created', 'created']);
      expect(registry.missingFrom('t/2', '1')).toEqual([]);
      expect(requests(registry, 'uploadPut').filter(({ path }) => path.includes('/t/1/'))).toEqual([]);
    },
  );
});

function hows(done: readonly Settled[]): readonly string[] {
  return done.map((one) => (one.status === 'fulfilled' ? one.value.how : String(one.reason)));
}

function slowest({ targets }: Stage): RunningRegistry {
  const last = targets.at(-1);
  if (last === undefined) throw new Error('there is no target');
  return last;
}

function put(action: FaultRule['action']): FaultRule {
  return { operation: 'uploadPut', action };
}

function head(action: FaultRule['action']): FaultRule {
  return { operation: 'blobHead', action };
}

/** How many requests of this kind were under way at a time. */
function mostAtOnce({ journal }: RunningRegistry, method: string): number {
  const all = journal.filter((entry) => entry.method === method);
  const during = all.map(({ start }) => all.filter((one) => one.start <= start && (one.end ?? start) >= start).length);
  return Math.max(...during);
}
