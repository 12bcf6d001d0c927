import { describe, expect, it } from 'vitest';
import { makeImage, type ProfileChanges, putBuilt, type RunningRegistry } from '../../src/registry-server/index.ts';
import { publishTo } from '../helpers/publishing.ts';
import { blobBytesReceived, requests, withRegistry } from '../helpers/registry.ts';
import { fastClock, runPublish } from '../publish/registry-world.ts';

const MIB = 1024 ** 2;
/** Bytes of the layer that breaks: in the long lane what the figure is promised for. */
const WHOLE = process.env['MP_COPY_GIB'] === '10';
const SIZE = WHOLE ? 1024 * MIB : 64 * MIB;
const TIMEOUT = WHOLE ? 300_000 : 60_000;
/** What a broken connection may cost, in bytes: what the buffers on the way hold, and a piece between two marks. */
const LOSS = 16 * MIB;

const REFUSED: ProfileChanges = { mount: { mode: 'ignore' } };

/** One image with a layer of this size in `big/one`; the layer's digest. */
function seed(registry: RunningRegistry, size: number): string {
  const image = makeImage('big', { platform: { architecture: 'amd64', os: 'linux' }, layers: 1, layerBytes: size });
  putBuilt(registry, 'big/one', image, 'one');
  return image.blobs[1]?.descriptor.digest ?? '';
}

const withLayer = <T>(
  size: number,
  changes: ProfileChanges,
  use: (registry: RunningRegistry, layer: string) => Promise<T>,
) => withRegistry({ options: { profile: changes, keepUpTo: MIB } }, (registry) => use(registry, seed(registry, size)));

describe('an upload that is reset at seven eighths', () => {
  it(`sends at most 16 MiB of ${SIZE / MIB} MiB again where the registry keeps what it got`, { timeout: TIMEOUT }, () =>
    withLayer(SIZE, REFUSED, async (registry, layer) => {
      const at = (SIZE / 8) * 7;
      registry.addFault({
        operation: 'uploadPut',
        query: new RegExp(layer.slice('sha256:'.length)),
        action: { kind: 'reset', when: { bodyBytes: at } },
      });
      const { totals } = await publishTo(registry, 'big/all:one', ['big/one:one'], { patient: true });
      expect(requests(registry, 'uploadPut').some(({ status }) => status === undefined)).toBe(true);
      expect(registry.hasBlob('big/all', layer)).toBe(true);
      expect(blobBytesReceived(registry)).toBeLessThan(SIZE + LOSS);
      expect(totals.bytesSent).toBeLessThan(SIZE + LOSS);
      // The source too is read on from near there, not anew.
      const read = requests(registry, 'blobGet').reduce((sum, { bytesOut }) => sum + bytesOut, 0);
      expect(read).toBeLessThan(SIZE + 2 * LOSS);
    }),
  );

  it('is sent anew where the registry has lost it, and arrives', { timeout: TIMEOUT }, () =>
    withLayer(32 * MIB, { ...REFUSED, upload: { status: '405' } }, async (registry, layer) => {
      const action = { kind: 'reset', when: { bodyBytes: 28 * MIB } } as const;
      registry.addFault({ operation: 'uploadPut', query: new RegExp(layer.slice('sha256:'.length)), action });
      await publishTo(registry, 'big/all:one', ['big/one:one'], { patient: true });
      expect(registry.hasBlob('big/all', layer)).toBe(true);
    }),
  );
});

describe('a read of the source that is cut off', () => {
  it('goes on by Range, and the upload does not notice', { timeout: TIMEOUT }, () =>
    withLayer(32 * MIB, REFUSED, async (registry, layer) => {
      const at = 20 * MIB + 7;
      const path = new RegExp(layer);
      registry.addFault({ operation: 'blobGet', path, action: { kind: 'truncate', bytes: at } });
      registry.addFault({ operation: 'blobGet', path, nth: 1, action: { kind: 'reset', when: 'before' } });
      const { totals } = await publishTo(registry, 'big/all:one', ['big/one:one'], { patient: true });
      const reads = requests(registry, 'blobGet').filter((entry) => entry.path.includes(layer));
      expect(reads[0]?.headers['range']).toBeUndefined();
      expect(reads.at(-1)).toMatchObject({ status: 206, headers: { range: `bytes=${at}-` } });
      const puts = requests(registry, 'uploadPut').filter(({ query }) => query.includes(layer.slice(7)));
      expect(puts.map(({ bytesIn }) => bytesIn)).toEqual([32 * MIB]);
      expect(totals.bytesSent).toBeLessThan(33 * MIB);
    }),
  );

  it('starts from the beginning where the source knows no Range, and sends no byte twice', { timeout: TIMEOUT }, () =>
    withLayer(32 * MIB, REFUSED, async (registry, layer) => {
      const path = new RegExp(layer);
      registry.addFault({ operation: 'blobGet', path, action: { kind: 'truncate', bytes: 20 * MIB } });
      const set = { 'Content-Range': undefined };
      registry.addFault({ operation: 'blobGet', path, action: { kind: 'headers', set } });
      await publishTo(registry, 'big/all:one', ['big/one:one'], { patient: true });
      const puts = requests(registry, 'uploadPut').filter(({ query }) => query.includes(layer.slice(7)));
      expect(puts.map(({ bytesIn }) => bytesIn)).toEqual([32 * MIB]);
    }),
  );
});

describe('a token that lapses', () => {
  const bearer = (ttl: number): ProfileChanges => ({
    ...REFUSED,
    auth: { scheme: 'bearer', anonymousPull: false, token: { ttl } },
  });
  const logins = [{ path: '', name: 'robot' }];

  it('in the middle of a body is renewed, and the blob arrives', { timeout: TIMEOUT }, async () => {
    const clock = fastClock(1, 0);
    const options = { profile: bearer(300), keepUpTo: MIB, now: clock.registry };
    await withRegistry({ options }, async (registry) => {
      const layer = seed(registry, 32 * MIB);
      // As a proxy that looks at the token when the whole body has come: a fault is drawn when the request begins.
      const challenge = `Bearer realm="${registry.url}/token",service="${registry.host}",scope="repository:big/all:pull,push"`;
      registry.addFault({
        operation: 'uploadPut',
        query: new RegExp(layer.slice('sha256:'.length)),
        action: { kind: 'answer', status: 401, headers: { 'WWW-Authenticate': challenge } },
      });
      const outcome = await runPublish(registry, 'big/all:one', ['big/one:one'], { logins, scale: 1, clock });
      expect(outcome).toMatchObject({ kind: 'done' });
      expect(registry.missingFrom('big/all', 'one')).toEqual([]);
    });
  });

  it('between two chunks costs no more than the chunk', { timeout: TIMEOUT }, async () => {
    const clock = fastClock(1, 0);
    let jumped = 0;
    const options = {
      profile: { ...bearer(300), upload: { put: '413over(12582912)' } } as ProfileChanges,
      keepUpTo: MIB,
      now: clock.registry,
      onEntry: ({ operation }: { readonly operation: string }) => {
        if (operation !== 'uploadPatch' || jumped > 0) return;
        jumped += 1;
        clock.jump(1_000_000);
      },
    };
    await withRegistry({ options }, async (registry) => {
      seed(registry, 32 * MIB);
      const outcome = await runPublish(registry, 'big/all:one', ['big/one:one'], { logins, scale: 1, clock });
      expect(outcome).toMatchObject({ kind: 'done' });
      expect(jumped).toBe(1);
      expect(requests(registry, 'uploadPatch').some(({ status }) => status === 401)).toBe(true);
      const patched = requests(registry, 'uploadPatch').reduce(
        (sum, { status, bytesIn }) => sum + (status === 202 ? bytesIn : 0),
        0,
      );
      expect(patched).toBeLessThanOrEqual(32 * MIB + 12 * MIB);
      expect(registry.missingFrom('big/all', 'one')).toEqual([]);
    });
  });

  it('after a second, over and over, ends no run', { timeout: TIMEOUT }, async () => {
    const clock = fastClock(1, 0);
    const options = { profile: { ...bearer(1), answer: { latencyMs: 150 } }, now: clock.registry };
    await withRegistry({ options }, async (registry) => {
      seed(registry, 4096);
      const outcome = await runPublish(registry, 'big/all:one', ['big/one:one'], { logins, scale: 1, clock });
      expect(outcome).toMatchObject({ kind: 'done' });
      expect(requests(registry, 'token').length).toBeGreaterThan(1);
      expect(registry.missingFrom('big/all', 'one')).toEqual([]);
    });
  });
});
