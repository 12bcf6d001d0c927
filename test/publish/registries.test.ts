import { describe, expect, it } from 'vitest';
import type { Platform } from '../../src/model/descriptor.ts';
import type { FaultAction, RunningRegistry } from '../../src/registry-server/index.ts';
import { seedDebian } from '../../src/registry-server/index.ts';
import { makeImage, makeIndex, putBuilt } from '../helpers/images.ts';
import { sourcesOf } from '../helpers/publishing.ts';
import { blobBytesReceived, requests, withRegistry } from '../helpers/registry.ts';
import { logProblems } from './registry-log.ts';
import { fastClock, runPublish } from './registry-world.ts';

// What a registry says of haste is no reason to send bytes: only a mount that is refused for good is.

/** Waits of up to a minute pass at ten times their speed. */
const hurried = () => fastClock(10, 60_000);

const around = (clock: ReturnType<typeof fastClock>) => ({ logins: [], scale: 1, clock });

describe('a registry that takes ten manifests a second', () => {
  it('IDX-02: gets 150 children and their index, and no blob is sent because of a 429', () => {
    const clock = hurried();
    const options = { profile: { limit: { commitPerSec: 10 } }, now: clock.registry };
    return withRegistry({ options }, async (registry) => {
      const children = Array.from({ length: 150 }, (_, at) => {
        const platform: Platform = { os: 'windows', architecture: 'amd64', 'os.version': `10.0.${at}` };
        return { manifest: makeImage(`image ${at}`, { layers: 1, platform }), platform };
      });
      putBuilt(registry, 'many/source', makeIndex(children), '1');
      const outcome = await runPublish(registry, 'many/target:1', ['many/source:1'], around(clock));
      expect(outcome).toMatchObject({ kind: 'done' });
      expect(registry.missingFrom('many/target', '1')).toEqual([]);
      expect(blobBytesReceived(registry)).toBe(0);
      const puts = requests(registry, 'manifestPut');
      expect(puts.filter(({ status }) => status === 201)).toHaveLength(151);
      expect(
        puts.some(({ status }) => status === 429),
        'the limit was never met',
      ).toBe(true);
      expect(logProblems(registry)).toEqual([]);
    });
  });
});

describe('a mount that fails', () => {
  /** Lets every mount of a blob fail so many times. */
  function spoil(registry: RunningRegistry, digests: readonly string[], action: FaultAction, times: number): void {
    for (const digest of digests) {
      const query = new RegExp(digest.slice('sha256:'.length));
      registry.addFault({ operation: 'mount', query, times, action });
    }
  }

  async function run(action: FaultAction, times: number) {
    const clock = hurried();
    return withRegistry({ options: { now: clock.registry } }, async (registry) => {
      const images = seedDebian(registry, { layers: 2 });
      const digests = images.flatMap(({ config, layers }) => [config, ...layers]);
      spoil(registry, digests, action, times);
      const outcome = await runPublish(registry, 'debian/debian:bullseye', sourcesOf(images), around(clock));
      expect(outcome).toMatchObject({ kind: 'done' });
      expect(logProblems(registry)).toEqual([]);
      const spoilt = requests(registry, 'mount').filter(({ status }) => status !== 201).length;
      expect(spoilt).toBeGreaterThanOrEqual(digests.length);
      return {
        bytes: blobBytesReceived(registry),
        stored: requests(registry, 'uploadPut').length,
        blobs: digests.length,
      };
    });
  }

  const once: readonly (readonly [string, FaultAction])[] = [
    ['is answered 429', { kind: 'answer', status: 429, headers: { 'Retry-After': '1' } }],
    ['is answered 429 without Retry-After', { kind: 'answer', status: 429 }],
    ['is answered 500', { kind: 'answer', status: 500 }],
    ['is cut off', { kind: 'reset', when: 'before' }],
  ];

  it.each(once)('once, since it %s: no byte is streamed', async (_how, action) => {
    expect((await run(action, 1)).bytes).toBe(0);
  });

  it('for ever, since it is answered 500: every blob is streamed', async () => {
    const { stored, blobs } = await run({ kind: 'answer', status: 500 }, Number.POSITIVE_INFINITY);
    expect(stored).toBe(blobs);
  });
});

describe('a proxy that ends TLS and sends what comes in clear to where nobody listens', () => {
  it('is blamed, and the tag is not moved', () => {
    const clock = hurried();
    const changes = { mount: { mode: 'ignore' } } as const;
    return withRegistry(
      { options: { profile: 'distribution-badproxy', changes, now: clock.registry } },
      async (registry) => {
        const images = seedDebian(registry, { layers: 1 });
        const outcome = await runPublish(registry, 'debian/debian:bullseye', sourcesOf(images), around(clock));
        expect(outcome).toMatchObject({ kind: 'failed', exitCode: 7 });
        expect(outcome.kind === 'failed' && outcome.message).toContain('proxy in front');
        expect(logProblems(registry)).toEqual([]);
        expect(registry.tagOf('debian/debian', 'bullseye')).toBeUndefined();
      },
    );
  });
});
