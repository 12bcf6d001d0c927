import { setMaxListeners } from 'node:events';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { createLimiter, type HostLimiter, SMALL_COPY } from '../../src/http/limiter.ts';
import { digestOf } from '../../src/model/digest.ts';
import { createMountMemory } from '../../src/publish/mount-memory.ts';
import type { PlannedBlob } from '../../src/publish/plan.ts';
import type { PublishPorts } from '../../src/publish/ports.ts';
import { trackSessions } from '../../src/publish/sessions.ts';
import { createSharedReads } from '../../src/publish/shared-reads.ts';
import { placeBlob } from '../../src/publish/transfer.ts';
import type { RegistryClient } from '../../src/registry/client.ts';
import { fakeClient, fakePorts, session } from './fakes.ts';
import { type ManualClock, manualClock, settled } from './shared-world.ts';

const HOSTS = ['a.test', 'b.test'] as const;
const PIECE = 512 * 1024;
const LARGE = Buffer.alloc(SMALL_COPY + PIECE);
for (let at = 0; at < LARGE.byteLength; at += 4) LARGE.writeUInt32LE(at, at);

/** What one repository makes of one blob. */
type Deed = {
  readonly has: boolean;
  /** How long its registry takes to answer, in ms. */
  readonly answers: number;
  /** How long it takes to begin to read an upload. */
  readonly begins: number;
  /** After so many bytes its first upload resets, stalls for as long as no other thing happens, or the run stops. */
  readonly mishap: { readonly kind: 'reset' | 'stall' | 'stop' | 'deny'; readonly after: number } | null;
  /** The other host is where it reads. */
  readonly elsewhere: boolean;
};

type Story = {
  /** The target host of each repository. */
  readonly members: readonly (typeof HOSTS)[number][];
  readonly sizes: readonly number[];
  readonly deeds: readonly Deed[];
  readonly jobs: number;
  readonly requests: number;
  /** How often the source breaks, and behind how many bytes. */
  readonly breaks: readonly number[];
  /** When the hosts answer 429, in ms. */
  readonly refusals: readonly number[];
};

const bytesAt = fc.integer({ min: 0, max: LARGE.byteLength });
const often = <T>(value: T, ...others: readonly T[]) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(value) }, fc.constantFrom(...others));
const deed: fc.Arbitrary<Deed> = fc.record({
  has: fc.boolean(),
  answers: often(0, 10, 400, 3000),
  begins: often(0, 100, 3000),
  mishap: fc.option(fc.record({ kind: fc.constantFrom('reset', 'stall', 'stall', 'stop', 'deny'), after: bytesAt }), {
    freq: 2,
  }),
  elsewhere: fc.boolean(),
});
const story: fc.Arbitrary<Story> = fc
  .record({
    members: fc.array(fc.constantFrom(...HOSTS), { minLength: 2, maxLength: 4 }),
    sizes: fc.array(fc.constantFrom(0, 10, LARGE.byteLength, LARGE.byteLength - 1), { minLength: 1, maxLength: 6 }),
    jobs: fc.integer({ min: 1, max: 4 }),
    requests: fc.integer({ min: 2, max: 8 }),
    breaks: fc.array(bytesAt, { maxLength: 3 }),
    refusals: fc.array(fc.constantFrom(0, 1, 500, 4000), { maxLength: 3 }),
  })
  .chain((rest) => {
    const count = rest.members.length * rest.sizes.length;
    const deeds = fc.array(deed, { minLength: count, maxLength: count });
    return fc.record({ ...constants(rest), deeds });
  });

function constants<T extends object>(values: T): { readonly [K in keyof T]: fc.Arbitrary<T[K]> } {
  const entries = Object.entries(values).map(([key, value]) => [key, fc.constant(value)]);
  return Object.fromEntries(entries) as { readonly [K in keyof T]: fc.Arbitrary<T[K]> };
}

describe('for any repositories that share reads, few places, and whatever befalls them', () => {
  it('every run ends, gives back all places and jobs, and brings the right bytes', async () => {
    await fc.assert(
      fc.asyncProperty(story, async (told) => {
        const { jobs, requests } = told;
        const clock = manualClock();
        const limiter = createLimiter({ clock, jobs, requests });
        const open = new Set<Readable>();
        let over = false;
        const all = run(told, limiter, clock, open).finally(() => {
          over = true;
        });
        for (let passed = 0; !over && passed < 200; passed += 1) await Promise.race([clock.pass(1000), all]);
        expect(over, 'the run has ended').toBe(true);
        await all;
        await settled();
        expect(open.size).toBe(0);
        await checkAllBack(limiter, told);
      }),
      { numRuns: 80 },
    );
  });
});

async function run(
  { members, sizes, deeds, breaks, refusals }: Story,
  limiter: HostLimiter,
  clock: ManualClock,
  open: Set<Readable>,
): Promise<void> {
  const left = [...breaks];
  const blobs = sizes.map((size, index) => {
    const bytes = Buffer.from(LARGE.subarray(0, size));
    if (size > 0) bytes[0] = index;
    return { bytes, digest: digestOf(Buffer.from(`${index}`)), size };
  });
  const bytesOf = (digest: string): Buffer => blobs.find((blob) => blob.digest === digest)?.bytes ?? Buffer.alloc(0);
  const openBlob: RegistryClient['openBlob'] = async (_repository, { digest }, { from = 0, signal, reads }) => {
    await clock.sleep(5, signal);
    const broken = (): Error => {
      if (reads !== undefined) reads.fruitless += 1;
      return new PublishError('NETWORK_FAILED', 'the source broke', 'hint', { side: 'source' });
    };
    const limit = left.pop() ?? Number.POSITIVE_INFINITY;
    if (limit === 0) throw broken();
    const stream = Readable.from(pieces(bytesOf(digest), from, limit, broken), {
      objectMode: false,
      highWaterMark: PIECE,
    });
    open.add(stream);
    stream.once('close', () => open.delete(stream));
    return stream;
  };
  const sources = HOSTS.map((host) => fakeClient(host, { openBlob }));
  const ports: PublishPorts = { ...fakePorts(sources), clock, limiter };
  const reads = createSharedReads(ports);
  const names = members.map((host, index) => `${host}/t/${index}`);
  const expected = [...new Set(blobs.map(({ digest }) => digest))];
  for (const name of names) for (const digest of expected) reads.expect(digest, name);
  const over = new AbortController();
  setMaxListeners(0, over.signal);
  for (const at of refusals) {
    const sent = clock.now();
    clock.sleep(at, over.signal).then(
      () => {
        for (const host of HOSTS) limiter.overrun(host, 0, Math.max(sent, clock.now()));
      },
      () => undefined,
    );
  }
  const placing = members.map(async (host, member) => {
    const stopping = new AbortController();
    const { signal } = stopping;
    setMaxListeners(0, signal);
    const target = { host, repository: `t/${member}` };
    const sessions = trackSessions(target, { ...ports, registry: () => idle(host) }, signal);
    const settledOnes = await Promise.allSettled(
      blobs.map(async ({ digest, size, bytes }, index) => {
        const one = deeds[member * sizes.length + index];
        if (one === undefined) throw new Error('there is one for each');
        const { has, answers, begins, elsewhere } = one;
        let { mishap } = one;
        const registry = fakeClient(host, {
          hasBlob: async (_repository, _digest, { signal: by }) => {
            await clock.sleep(answers, by);
            return has ? { kind: 'present', size } : { kind: 'absent' };
          },
          mountBlob: async (_repository, _digest, _from, { signal: by }) => {
            await clock.sleep(answers, by);
            return { kind: 'session', session: session(`${index}`), why: 'no mounts here' };
          },
          openUpload: async (_repository, _digest, { signal: by }) => {
            await clock.sleep(answers, by);
            return session(`${index}`);
          },
          cancelUpload: async () => undefined,
          upload: async (_session, _blob, body, { signal: by }) => {
            const now = mishap;
            mishap = null;
            try {
              await clock.sleep(begins, by);
              if (now?.kind === 'deny') throw new PublishError('DENIED', 'denied', 'hint');
              const got: Buffer[] = [];
              let length = 0;
              let fine = true;
              for await (const piece of body as AsyncIterable<Buffer>) {
                got.push(piece);
                length += piece.byteLength;
                if (!fine || now === null || length < now.after) continue;
                fine = false;
                if (now.kind === 'reset') throw new PublishError('NETWORK_FAILED', 'reset', 'hint', { side: 'target' });
                if (now.kind === 'stall') await clock.sleep(20_000, by);
                if (now.kind === 'stop') stopping.abort(new Error('stopped'));
                by.throwIfAborted();
              }
              expect(Buffer.concat(got).equals(bytes), 'the right bytes').toBe(true);
              return { kind: 'stored', bytesSent: length };
            } catch (error) {
              (body as Readable).destroy();
              by.throwIfAborted();
              if (!(error instanceof PublishError) || error.code === 'DENIED') throw error;
              return { kind: 'broken', error };
            }
          },
        });
        const from = HOSTS.find((other) => (other === host) !== elsewhere) ?? host;
        const blob: PlannedBlob = {
          digest,
          size,
          sources: [{ host: from, repository: 's/one' }],
          mountFrom: from === host ? ['s/one'] : [],
          present: false,
          waitsFor: [],
        };
        const name = names[member] ?? '';
        await placeBlob(blob, {
          target,
          registry,
          ports,
          signal,
          mounts: createMountMemory(),
          sessions,
          inMemory: new Map(),
          gate: Promise.resolve(),
          stop: () => undefined,
          reads,
          member: name,
        }).finally(() => reads.leave(digest, name));
      }),
    );
    await sessions.close();
    const own = deeds.slice(member * sizes.length, (member + 1) * sizes.length);
    const may = own.some(({ mishap }) => mishap?.kind === 'stop');
    for (const [index, result] of settledOnes.entries()) {
      if (result.status === 'fulfilled') continue;
      // A source that cannot be opened has been asked often enough.
      const closed = result.reason instanceof PublishError && result.reason.side === 'source' && breaks.includes(0);
      const excused = may || closed || own[index]?.mishap?.kind === 'deny';
      if (!excused) throw result.reason;
    }
  });
  const done = await Promise.allSettled(placing);
  over.abort();
  for (const one of done) if (one.status === 'rejected') throw one.reason;
}

function idle(host: string): RegistryClient {
  return fakeClient(host, { cancelUpload: async () => undefined });
}

function* pieces(bytes: Buffer, from: number, limit: number, broken: () => Error): Generator<Buffer> {
  for (let at = from; at < bytes.byteLength; at += PIECE) {
    if (at >= limit) throw broken();
    yield bytes.subarray(at, at + PIECE);
  }
}

/** All that the limiter has can be had at once. */
async function checkAllBack(limiter: HostLimiter, { jobs, requests }: Story): Promise<void> {
  for (const host of HOSTS) {
    // The widths grow to what they were by good answers, as many as are needed for each step.
    for (let answers = 0; answers < 200; answers += 1) limiter.good(host);
    const { signal } = new AbortController();
    let got = 0;
    const count = (): void => {
      got += 1;
    };
    const places = Array.from({ length: requests }, () => limiter.take(host, signal));
    for (const place of places) void place.then(count);
    await settled();
    expect(got, 'places that came back').toBe(requests);
    for (const place of places) (await place).release();
    got = 0;
    const copies = Array.from({ length: Math.min(jobs, requests) }, () =>
      limiter.takeCopy({ target: host, size: LARGE.byteLength, signal }),
    );
    for (const copy of copies) void copy.then(count);
    await settled();
    expect(got, 'jobs that came back').toBe(copies.length);
    for (const copy of copies) (await copy).release();
  }
}
