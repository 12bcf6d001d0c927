import { getEventListeners } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import type { Digest } from '../../src/model/digest.ts';
import type { PublishEvent } from '../../src/publish/events.ts';
import { createFlights } from '../../src/publish/flights.ts';
import { planPublish } from '../../src/publish/plan.ts';
import type { PublishPorts } from '../../src/publish/ports.ts';
import { publishLists } from '../../src/publish/publish-lists.ts';
import type { PublishRequest } from '../../src/publish/request.ts';
import { createSharedReads } from '../../src/publish/shared-reads.ts';
import { createSiblings } from '../../src/publish/siblings.ts';
import { makeImage, type RunningRegistry, seedDebian } from '../../src/registry-server/index.ts';
import { seedImage } from '../helpers/images.ts';
import { publishAll, requestOf, sourcesOf, withPorts } from '../helpers/publishing.ts';
import { withRegistry } from '../helpers/registry.ts';
import { fakePorts } from './fakes.ts';

// What keeps a thousand lists cheap, as counts and as what can still be reached: seconds and bytes say little on a busy
// machine (npm run bench:scale has them).

const ARCHITECTURES = ['amd64', 'arm64'] as const;

/** Lists of two images of a layer and a config each, all in one target repository; nothing is shared. */
function seedLists(registry: RunningRegistry, count: number, target: string): readonly PublishRequest[] {
  return Array.from({ length: count }, (_, list) => {
    const sources = ARCHITECTURES.map((architecture) => {
      const repository = `${target}/${architecture}`;
      seedImage(registry, repository, `v${list}`, { platform: { os: 'linux', architecture }, layers: 1 });
      return `${registry.host}/${repository}:v${list}`;
    });
    return requestOf(`${registry.host}/${target}/all:v${list}`, sources);
  });
}

/** Requests and connections that publishing took. */
async function cost(registry: RunningRegistry, lists: readonly PublishRequest[]) {
  registry.clearJournal();
  await publishAll([registry], lists);
  const connections = new Set(registry.journal.map(({ connection }) => connection)).size;
  return { requests: registry.journal.length, connections };
}

function digestNumber(number: number): Digest {
  return `sha256:${String(number).padStart(64, '0')}` as Digest;
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}

/** How many of them can still be reached. */
function reachable(refs: readonly WeakRef<object>[]): number {
  collectGarbage();
  return refs.filter((ref) => ref.deref() !== undefined).length;
}

describe('requests a list', () => {
  it.each([
    // The tag, 2 sources, 2 configs, 4 mounts, 4 looks, 2 children, the index.
    { title: 'fresh', mount: 'exists', each: 16 },
    // 4 HEADs and 2 GETs (configs come from memory) and 4 PUTs instead of the looks.
    { title: 'refused', mount: 'ignore', each: 22 },
  ] as const)(
    'are the same for 1, 10 and 50: $title, and again',
    ({ mount, each }) =>
      withRegistry({ mount: { mode: mount } }, async (registry) => {
        for (const count of [1, 10, 50]) {
          const lists = seedLists(registry, count, `t${count}`);
          const first = await cost(registry, lists);
          expect(first.requests, `${count} lists`).toBe(count * each);
          expect(first.connections).toBeLessThanOrEqual(64);
          const again = await cost(registry, lists);
          // The tag, 2 sources, 2 configs, 2 HEADs of children.
          expect(again.requests, `${count} lists again`).toBe(count * 7);
        }
      }),
    60_000,
  );

  it('are a GET and a PUT for each further list of the same images', () =>
    withRegistry({}, async (registry) => {
      const sources = sourcesOf(seedDebian(registry, { layers: 1 })).map((source) => `${registry.host}/${source}`);
      const lists = (count: number) =>
        Array.from({ length: count }, (_, tag) => requestOf(`${registry.host}/debian/all${count}:${tag}`, sources));
      const one = await cost(registry, lists(1));
      expect((await cost(registry, lists(50))).requests).toBe(one.requests + 49 * 2);
    }));
});

describe('of lists that have ended', () => {
  it('nothing listens to the signal of the run any more', () =>
    withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
      const lists = seedLists(registry, 20, 't');
      await withPorts(
        {},
        async (ports, signal) => {
          await publishLists(lists, ports, signal);
          expect(getEventListeners(signal, 'abort')).toHaveLength(0);
        },
        [registry],
      );
    }));

  it('only the report is kept while others go on', () =>
    withRegistry({}, async (registry) => {
      const lists = seedLists(registry, 60, 't');
      const indexes: WeakRef<object>[] = [];
      const watched = ({ registry: clientOf, ...ports }: PublishPorts): PublishPorts => ({
        ...ports,
        registry: (host) => {
          const client = clientOf(host);
          const putManifest: typeof client.putManifest = (repository, reference, manifest, options) => {
            if (reference.startsWith('v')) indexes.push(new WeakRef(manifest.bytes));
            return client.putManifest(repository, reference, manifest, options);
          };
          return { ...client, putManifest };
        },
      });
      let left: number | undefined;
      let ended = 0;
      const onEvent = (event: PublishEvent): void => {
        if (event.kind !== 'list.done') return;
        ended += 1;
        // At once, while the run goes on: when it is over there is nothing that could be kept.
        if (ended === lists.length) left = reachable(indexes);
      };
      await withPorts({ onEvent }, (ports, signal) => publishLists(lists, watched(ports), signal), [registry]);
      expect(indexes).toHaveLength(lists.length);
      // Those of the lists that were under way a moment ago.
      expect(left).toBeLessThanOrEqual(20);
    }));
});

describe('a flight that has landed', () => {
  it('lets go of what it worked with, and still tells its outcome', async () => {
    const flights = createFlights<string, number>();
    const refs: WeakRef<object>[] = [];
    const fly = async (): Promise<void> => {
      const tool = { bytes: new Uint8Array(8) };
      const { signal } = new AbortController();
      refs.push(new WeakRef(tool));
      await flights.join('a', { signal }, async (flight) => {
        refs.push(new WeakRef(flight.signal));
        return tool.bytes.byteLength;
      });
    };
    await fly();
    // Promises let go in later turns of what they have waited for.
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(reachable(refs)).toBe(0);
    expect(flights.has('a')).toBe(true);
    const { signal } = new AbortController();
    expect(await flights.join('a', { signal }, () => Promise.reject(new Error('done anew')))).toBe(8);
  });
});

describe('what several repositories share', () => {
  it('is one entry a repository, however many blobs it holds', async () => {
    const siblings = createSiblings();
    const digests = Array.from({ length: 3 }, (_, at) => digestNumber(at));
    const place = (digest: Digest, repository: string) =>
      siblings.beside({ host: 'r', repository }, digest, async (earlier) => {
        seen.push(...earlier);
        return { digest, size: 1, how: 'mounted', bytesSent: 0 };
      });
    const seen: object[] = [];
    for (const digest of digests) await place(digest, 'a');
    for (const digest of digests) await place(digest, 'b');
    expect(seen).toHaveLength(3);
    expect(new Set(seen).size).toBe(1);
  });

  it('is expected anew after it was done with', async () => {
    const reads = createSharedReads(fakePorts([]));
    const digest = digestNumber(0);
    const { signal } = new AbortController();
    for (const member of ['a', 'b']) reads.expect(digest, member);
    for (const member of ['a', 'b']) reads.leave(digest, member);
    expect(reads.join({ digest, size: 1 }, 'a', signal)).toBeUndefined();
    for (const member of ['a', 'b']) reads.expect(digest, member);
    const seats = ['a', 'b'].map((member) => reads.join({ digest, size: 1 }, member, signal));
    expect((await Promise.all(seats)).every((seat) => seat !== undefined)).toBe(true);
  });
});

describe('a plan of 10,000 blobs', () => {
  it('takes no longer when all are of one image than when a thousand images have ten each', () => {
    const layer = (at: number) => ({
      mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip',
      digest: digestNumber(at),
      size: 1,
    });
    const built = makeImage('base', { layers: 1 });
    const [config = built.descriptor] = built.blobs.map(({ descriptor }) => descriptor);
    const planOf = (images: number, layers: number) =>
      planPublish(
        { verify: true, foreignLayers: false },
        { target: { host: 'r', repository: 'all' }, tags: [] },
        Array.from({ length: images }, (_, image) => ({
          from: { host: 'r', repository: `t/${image}` },
          name: `t/${image}`,
          kind: 'image' as const,
          subjects: [],
          manifest: {
            kind: 'image' as const,
            digest: digestNumber(1_000_000 + image),
            mediaType: built.descriptor.mediaType,
            size: 1,
            config,
            layers: Array.from({ length: layers }, (_, at) => layer(image * layers + at)),
          },
        })),
      );
    const milliseconds = (images: number, layers: number): number => {
      const started = performance.now();
      expect(planOf(images, layers).blobs).toHaveLength(images * layers + 1);
      return performance.now() - started;
    };
    milliseconds(10, 100);
    const spread = Math.min(milliseconds(1000, 10), milliseconds(1000, 10));
    const inOne = Math.min(milliseconds(1, 10_000), milliseconds(1, 10_000));
    expect(inOne).toBeLessThan(spread * 5 + 50);
  });
});
