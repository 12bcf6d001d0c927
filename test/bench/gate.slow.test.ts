import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { diffCalls, expectedCalls } from '../../bench/expected.ts';
import { connectionsAtMost, expectedBytes } from '../../bench/expected-bytes.ts';
import { buildFloor } from '../../bench/floor-build.ts';
import { DEBIAN_JOB, type Job } from '../../bench/job.ts';
import { measureOnce, SITUATIONS, type Situation, type Stage } from '../../bench/measure.ts';
import { allPeers, type FoundPeer } from '../../bench/peers.ts';
import { createProxy } from '../../bench/proxy.ts';
import { AUTHS } from '../../bench/sections.ts';
import { seed } from '../../bench/seed.ts';
import { seedAttested } from '../../bench/seed-attested.ts';
import type { Auth } from '../../bench/token-gate.ts';
import { classify, type Traffic } from '../../bench/traffic.ts';
import { startRegistry } from '../../src/registry-server/index.ts';

// The bench's counts without its peers and its seconds: the built program in every situation, one run each. A change
// that costs one request, one byte or one connection more fails here.

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Milliseconds a request: requests of one step are in flight together, as they are far from a registry. */
const DELAY = 25;
/** Counts do not depend on the size of a layer. */
const JOB: Job = {
  ...DEBIAN_JOB,
  images: DEBIAN_JOB.images.map((image) => ({ ...image, layers: image.layers.map(() => 16 * 1024) })),
};

const closers: (() => Promise<unknown>)[] = [];
let stage: Stage;
let last: Traffic;

beforeAll(async () => {
  await buildFloor(ROOT);
  const folder = await mkdtemp(join(tmpdir(), 'manifest-publish-gate-'));
  closers.push(() => rm(folder, { recursive: true, force: true }));
  const registry = await startRegistry();
  closers.push(() => registry.close());
  const port = Number(registry.host.split(':')[1]);
  const proxy = await createProxy(port);
  closers.push(() => proxy.close());
  const images = await seed(registry.url, JOB);
  stage = {
    registry: {
      title: 'embedded',
      port,
      origin: registry.url,
      separatesRepositories: true,
      close: () => registry.close(),
    },
    proxy: {
      port: proxy.port,
      begin: async (settings, onHalt) => {
        await proxy.idle();
        proxy.begin(settings, onHalt);
      },
      end: async () => {
        last = proxy.end();
        return last;
      },
      close: () => proxy.close(),
    },
    images,
    attested: await seedAttested(registry.url, images, JOB.tag),
    tag: JOB.tag,
    delay: DELAY,
    path: '/usr/bin:/bin',
    folder,
    timeoutSeconds: 60,
    signal: new AbortController().signal,
    gnuTime: undefined,
  };
});

afterAll(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function peerOf(id: string): FoundPeer {
  const peer = allPeers(ROOT).find((one) => one.id === id);
  if (peer === undefined) throw new Error(`no peer ${id}`);
  return { ...peer, tool: { path: process.execPath, version: undefined } };
}

async function check(id: string, situation: Situation, auth: Auth): Promise<void> {
  const run = await measureOnce({ ...stage, auth }, peerOf(id), situation, 1);
  expect(run.outcome).toEqual({ kind: 'right' });
  expect(diffCalls(expectedCalls(id, situation.id, auth), run.traffic.calls)).toEqual([]);
  if (id !== 'ours') return;
  expect(run.traffic.connections).toBeLessThanOrEqual(connectionsAtMost(situation.id, auth));
  const images = (situation.sources === 'attested' ? stage.attested : stage.images) ?? [];
  const list = last.exchanges.find(({ target, status }) => isGood(status) && isList(target));
  const expected = expectedBytes(situation.id, images, (list?.up ?? 0) + (list?.down ?? 0));
  if (expected !== undefined) expect(bytesOf(last)).toEqual(expected);
}

const isGood = (status: number) => status >= 200 && status < 300;
const isList = (target: string) => target.startsWith('/v2/debian/debian-') && target.endsWith(`/${JOB.tag}`);

function bytesOf({ exchanges }: Traffic): { readonly up: number; readonly down: number } {
  const content = exchanges.filter((one) => isGood(one.status) && !classify(one).startsWith('token'));
  return {
    up: content.reduce((sum, { up }) => sum + up, 0),
    down: content.reduce((sum, { down }) => sum + down, 0),
  };
}

describe('publish asks exactly for what it should', () => {
  const cases = AUTHS.flatMap((auth) => SITUATIONS.map((situation) => [situation.id, auth, situation] as const));
  it.each(cases)('%s, auth %s', async (_, auth, situation) => {
    await check('ours', situation, auth);
  });
});

describe('so does', () => {
  const cases = ['ours-no-verify', 'ours-drafts'].flatMap((id) =>
    SITUATIONS.slice(0, 3).map((situation) => [id, situation.id, situation] as const),
  );
  it.each(cases)('%s, %s', async (id, _, situation) => {
    await check(id, situation, 'none');
  });
});

describe('the floor does the job too', () => {
  const rows: readonly [string, Auth, number][] = [
    ['mounts', 'none', 66],
    ['refused', 'none', 146],
    ['again', 'none', 9],
    ['attested', 'none', 98],
    ['mounts', 'token', 66 + 18], // nine 401s, nine tokens
    ['again', 'login', 9 + 18],
  ];
  it.each(rows)('%s, auth %s: %i requests', async (id, auth, requests) => {
    const situation = SITUATIONS.find((one) => one.id === id);
    if (situation === undefined) throw new Error(`no situation ${id}`);
    const run = await measureOnce({ ...stage, auth }, peerOf('floor'), situation, 1);
    expect(run.outcome).toEqual({ kind: 'right' });
    expect(run.traffic.requests).toBe(requests);
  });
});
