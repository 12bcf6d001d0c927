import { describe, expect, it, vi } from 'vitest';
import { createMountMemory } from '../../src/publish/mount-memory.ts';
import type { PlannedBlob } from '../../src/publish/plan.ts';
import { trackSessions } from '../../src/publish/sessions.ts';
import { placeBlob, replaceBlob, type TransferRun } from '../../src/publish/transfer.ts';
import type { RegistryClient } from '../../src/registry/client.ts';
import { body, type FakePorts, failure, fakeClient, fakePorts, session } from './fakes.ts';
import { digest } from './values.ts';

const target = { host: 'reg.test', repository: 't/all' };

function planned(more: Partial<PlannedBlob> = {}): PlannedBlob {
  return {
    digest: digest('layer'),
    size: 5,
    sources: [{ host: 'reg.test', repository: 't/a' }],
    mountFrom: ['t/a'],
    present: false,
    waitsFor: [],
    ...more,
  };
}

function setUp(
  verbs: Parameters<typeof fakeClient>[1],
  more: Partial<TransferRun> = {},
  others: readonly RegistryClient[] = [],
): { run: TransferRun; ports: FakePorts; registry: RegistryClient } {
  const registry = fakeClient('reg.test', verbs);
  const ports = fakePorts([registry, ...others]);
  const { signal } = new AbortController();
  const run: TransferRun = {
    target,
    registry,
    ports,
    signal,
    mounts: createMountMemory(),
    sessions: trackSessions(target, ports, signal),
    inMemory: new Map(),
    gate: Promise.resolve(),
    stop: () => undefined,
    ...more,
  };
  return { run, ports, registry };
}

const stored = async () => ({ kind: 'stored' as const, bytesSent: 5 });
const absent = async () => ({ kind: 'absent' as const });
const declined = async () => ({ kind: 'session' as const, session: session('of-the-202'), why: 'mount answered 202' });

describe('placeBlob', () => {
  it('is done with one request when the mount is taken', async () => {
    const { run } = setUp({ mountBlob: async () => ({ kind: 'mounted' }) });
    expect(await placeBlob(planned(), run)).toMatchObject({ how: 'mounted', bytesSent: 0 });
  });

  it('streams into the very session that the 202 opened', async () => {
    const upload = vi.fn(async () => ({ kind: 'stored' as const, bytesSent: 5 }));
    const { run, ports } = setUp({ mountBlob: declined, hasBlob: absent, openBlob: async () => body('hello'), upload });
    const outcome = await placeBlob(planned(), run);
    expect(outcome).toMatchObject({ how: 'copied', bytesSent: 5, why: 'mount answered 202' });
    expect(upload).toHaveBeenCalledTimes(1);
    expect(upload.mock.calls[0]?.[0 as never]).toEqual(session('of-the-202'));
    expect(ports.held()).toBe(0);
  });

  it('sends nothing and cancels the session when the target turns out to hold the blob', async () => {
    const cancelUpload = vi.fn(async () => undefined);
    const stream = body('hello');
    const { run } = setUp({
      mountBlob: declined,
      hasBlob: async () => ({ kind: 'present', size: 5 }),
      openBlob: async () => stream,
      cancelUpload,
    });
    expect(await placeBlob(planned(), run)).toMatchObject({ how: 'present' });
    expect(cancelUpload).toHaveBeenCalledWith(session('of-the-202'));
    expect(stream.destroyed).toBe(true);
  });

  it('opens a plain upload after a refusal, and does not offer a barred source again', async () => {
    const mountBlob = vi.fn(async () => ({ kind: 'refused' as const, sourceBarred: true, why: 'mount answered 403' }));
    const openUpload = vi.fn(async () => session('plain'));
    const { run } = setUp({
      mountBlob,
      openUpload,
      hasBlob: absent,
      openBlob: async () => body('hello'),
      upload: stored,
    });
    await placeBlob(planned(), run);
    await placeBlob(planned({ digest: digest('other') }), run);
    expect(mountBlob).toHaveBeenCalledTimes(1);
    expect(openUpload).toHaveBeenCalledTimes(2);
  });

  it('offers the same source again after a 202: it says nothing about the next blob', async () => {
    const mountBlob = vi.fn(declined);
    const { run } = setUp({ mountBlob, hasBlob: absent, openBlob: async () => body('hello'), upload: stored });
    await placeBlob(planned(), run);
    await placeBlob(planned({ digest: digest('other') }), run);
    expect(mountBlob).toHaveBeenCalledTimes(2);
  });

  it('reads the source while it asks, once a pair has refused twice and never mounted', async () => {
    const order: string[] = [];
    const mounts = createMountMemory();
    mounts.refused('t/a', false);
    mounts.refused('t/a', false);
    let answer: () => void = () => undefined;
    const asked = new Promise<void>((done) => {
      answer = done;
    });
    const { run } = setUp(
      {
        mountBlob: async () => {
          order.push('mount');
          await asked;
          return { kind: 'mounted' };
        },
        openBlob: async () => {
          order.push('source');
          answer();
          return body('hello');
        },
      },
      { mounts },
    );
    expect(await placeBlob(planned(), run)).toMatchObject({ how: 'mounted' });
    expect(order).toContain('source');
  });

  it('sends no byte before the platforms are known to be good', async () => {
    let open: () => void = () => undefined;
    const gate = new Promise<void>((done) => {
      open = done;
    });
    const upload = vi.fn(async () => ({ kind: 'stored' as const, bytesSent: 5 }));
    const { run } = setUp(
      { mountBlob: declined, hasBlob: absent, openBlob: async () => body('hello'), upload },
      { gate },
    );
    const placing = placeBlob(planned(), run);
    await new Promise((done) => setImmediate(done));
    expect(upload).not.toHaveBeenCalled();
    open();
    await placing;
    expect(upload).toHaveBeenCalledTimes(1);
  });

  it('never mounts across registries: it asks the target, then streams', async () => {
    const other = fakeClient('other.test', { openBlob: async () => body('hello') });
    const { run } = setUp({ hasBlob: absent, openUpload: async () => session('plain'), upload: stored }, {}, [other]);
    const blob = planned({ mountFrom: [], sources: [{ host: 'other.test', repository: 't/a' }] });
    expect(await placeBlob(blob, run)).toMatchObject({ how: 'copied', why: 'source on another registry' });
  });

  it('sends a config from memory when its mount is refused', async () => {
    const bytes = Buffer.from('hello');
    const upload = vi.fn(async () => ({ kind: 'stored' as const, bytesSent: 5 }));
    const { run } = setUp(
      { mountBlob: declined, hasBlob: absent, upload },
      { inMemory: new Map([[digest('layer'), bytes]]) },
    );
    await placeBlob(planned(), run);
    expect(upload.mock.calls[0]?.[2 as never]).toBe(bytes);
  });
});

describe('a copy that goes wrong', () => {
  it('looks before it starts anew: the commit may have happened', async () => {
    let looks = 0;
    const hasBlob = async () => {
      looks += 1;
      return looks === 1 ? { kind: 'absent' as const } : { kind: 'present' as const, size: 5 };
    };
    const upload = vi.fn(async () => ({ kind: 'broken' as const, error: failure('NETWORK_FAILED') }));
    const { run } = setUp({ mountBlob: declined, hasBlob, openBlob: async () => body('hello'), upload });
    expect(await placeBlob(planned(), run)).toMatchObject({ how: 'copied' });
    expect(upload).toHaveBeenCalledTimes(1);
  });

  it('starts a new session for every new try and gives up after the retries', async () => {
    const openUpload = vi.fn(async () => session('again'));
    const upload = vi.fn(async () => ({ kind: 'broken' as const, error: failure('NETWORK_FAILED') }));
    const { run, ports } = setUp({
      mountBlob: declined,
      hasBlob: absent,
      openBlob: async () => body('hello'),
      openUpload,
      upload,
    });
    await expect(placeBlob(planned(), run)).rejects.toMatchObject({ code: 'NETWORK_FAILED' });
    expect(upload).toHaveBeenCalledTimes(6);
    expect(openUpload).toHaveBeenCalledTimes(5);
    expect(ports.slept).toHaveLength(5);
    expect(ports.held()).toBe(0);
  });

  it('tries corrupt bytes once more, then stops', async () => {
    const upload = vi.fn(async () => ({ kind: 'corrupt' as const, error: failure('DIGEST_MISMATCH') }));
    const { run } = setUp({
      mountBlob: declined,
      hasBlob: absent,
      openBlob: async () => body('wrong'),
      openUpload: async () => session('again'),
      upload,
    });
    await expect(placeBlob(planned(), run)).rejects.toMatchObject({ code: 'DIGEST_MISMATCH', exitCode: 6 });
    expect(upload).toHaveBeenCalledTimes(2);
  });

  it('reads from the next repository that has the blob when the first has lost it', async () => {
    const openBlob = vi.fn(async (repository: string) => {
      if (repository === 't/a') throw failure('BLOB_NOT_FOUND');
      return body('hello');
    });
    const cancelUpload = vi.fn(async () => undefined);
    const { run } = setUp({
      mountBlob: declined,
      hasBlob: absent,
      openBlob,
      openUpload: async () => session('again'),
      upload: stored,
      cancelUpload,
    });
    const sources = ['t/a', 't/b'].map((repository) => ({ host: 'reg.test', repository }));
    expect(await placeBlob(planned({ sources }), run)).toMatchObject({ how: 'copied' });
    expect(cancelUpload).toHaveBeenCalledTimes(1);
  });

  it('names the source when no repository has the blob', async () => {
    const openBlob = async (): Promise<never> => {
      throw failure('BLOB_NOT_FOUND');
    };
    const { run } = setUp({ mountBlob: declined, hasBlob: absent, openBlob, cancelUpload: async () => undefined });
    await expect(placeBlob(planned(), run)).rejects.toMatchObject({ code: 'BLOB_NOT_FOUND', side: 'source' });
  });

  it('leaves no session behind when the target cannot be asked', async () => {
    const cancelUpload = vi.fn(async () => undefined);
    const stream = body('hello');
    const hasBlob = async (): Promise<never> => {
      throw failure('UNAUTHORIZED');
    };
    const { run, ports } = setUp({ mountBlob: declined, hasBlob, openBlob: async () => stream, cancelUpload });
    await expect(placeBlob(planned(), run)).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    await run.sessions.close();
    expect(cancelUpload).toHaveBeenCalledWith(session('of-the-202'));
    expect(stream.destroyed).toBe(true);
    expect(ports.held()).toBe(0);
  });
});

describe('replaceBlob', () => {
  it('streams without asking: the target is known to lack the blob', async () => {
    const { run } = setUp({
      openBlob: async () => body('hello'),
      openUpload: async () => session('new'),
      upload: stored,
    });
    expect(await replaceBlob(planned(), 'lacks it', run)).toMatchObject({ how: 'copied', why: 'lacks it' });
  });
});
