import { createHash } from 'node:crypto';
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

  it('sends the bytes in another form into a new session, without a wait, a look or a try', async () => {
    const answers = [
      { kind: 'otherwise' as const, error: failure('NETWORK_FAILED') },
      { kind: 'otherwise' as const, error: failure('NETWORK_FAILED') },
      { kind: 'stored' as const, bytesSent: 5 },
    ];
    const hasBlob = vi.fn(absent);
    const openUpload = vi.fn(async () => session('again'));
    const upload = async () => answers.shift() ?? { kind: 'refused' as const, error: failure('NETWORK_FAILED') };
    const { run, ports } = setUp({
      mountBlob: declined,
      hasBlob,
      openBlob: async () => body('hello'),
      openUpload,
      upload,
    });
    expect(await placeBlob(planned(), { ...run, ports: { ...ports, retries: 0 } })).toMatchObject({ how: 'copied' });
    expect(openUpload).toHaveBeenCalledTimes(2);
    expect(hasBlob).toHaveBeenCalledTimes(1);
    expect(ports.slept).toHaveLength(0);
  });

  it('learns from a cut without a try, asks for that lesson when the tries are used up, and not for ever', async () => {
    const interrupted = { session: session('cut'), sent: 3, marks: [], cut: 5 };
    const error = failure('NETWORK_FAILED');
    const copy = async (lessons: number, ends: 'stored' | 'broken') => {
      const resumeUpload = vi.fn(async () => (resumeUpload.mock.calls.length <= lessons ? 'smaller' : undefined));
      const answers = Array.from({ length: lessons }, () => ({ kind: 'broken' as const, error, interrupted }));
      const last = {
        stored: { kind: 'stored' as const, bytesSent: 5 },
        broken: { kind: 'broken' as const, error, interrupted },
      };
      const upload = vi.fn(async () => answers.shift() ?? last[ends]);
      const { run, ports } = setUp({
        mountBlob: declined,
        hasBlob: absent,
        openBlob: async () => body('hello'),
        openUpload: async () => session('again'),
        resumeUpload,
        cancelUpload: async () => undefined,
        upload,
      });
      const result = await placeBlob(planned(), { ...run, ports: { ...ports, retries: 0 } }).catch((cause) => cause);
      return { result, uploads: upload.mock.calls.length };
    };
    expect(await copy(3, 'stored')).toMatchObject({ result: { how: 'copied' }, uploads: 4 });
    expect(await copy(0, 'broken')).toMatchObject({ result: error, uploads: 1 });
    expect(await copy(3, 'broken')).toMatchObject({ result: error, uploads: 4 });
    const { result, uploads } = await copy(1000, 'broken');
    expect(result).toBe(error);
    expect(uploads).toBeLessThanOrEqual(34);
  });

  it('waits five minutes for a registry that says 429, and anew whenever the upload got further', async () => {
    const limited = { kind: 'limited' as const, alive: true as const, error: failure('NETWORK_FAILED') };
    const verbs = { mountBlob: declined, hasBlob: absent, openUpload: async () => session('again') };
    const upload = vi.fn(async () => limited);
    const { run, ports } = setUp({ ...verbs, openBlob: async () => body('hello'), upload });
    await expect(placeBlob(planned(), run)).rejects.toBe(limited.error);
    const waited = ports.slept.reduce((sum, wait) => sum + wait, 0);
    expect(waited).toBeGreaterThan(300_000);
    expect(waited).toBeLessThan(340_000);
    // The time is what counts, not how often: but a slow upload is tried more than twice.
    let now = 0;
    const slow = setUp({ ...verbs, openBlob: async () => body('hello'), upload });
    upload.mockClear();
    const clock = { ...slow.ports.clock, now: () => (now += 400_000) };
    await expect(placeBlob(planned(), { ...slow.run, ports: { ...slow.ports, clock } })).rejects.toBe(limited.error);
    expect(upload).toHaveBeenCalledTimes(6);
    let at = 0;
    const interrupted = { session: session('cut'), sent: 100, marks: [] };
    const hash = createHash('sha256');
    const further = setUp({
      ...verbs,
      openBlob: async () => body('hello'),
      resumeUpload: async () => {
        at += 1;
        return { session: session('cut'), offset: at, mark: { offset: 0, hash } };
      },
      upload: async () => (at < 60 ? { ...limited, interrupted } : { kind: 'stored', bytesSent: 5 }),
    });
    const steps = { ...further.ports, random: () => 0.5, clock: { ...clock, sleep: further.ports.clock.sleep } };
    expect(await placeBlob(planned({ size: 100 }), { ...further.run, ports: steps })).toMatchObject({ how: 'copied' });
  });

  it('believes no HEAD of another length where the source has lost the blob', async () => {
    const linked = async () => ({ kind: 'present' as const, size: 71 });
    const lost = async (): Promise<never> => {
      throw failure('BLOB_NOT_FOUND');
    };
    const cancelUpload = async (): Promise<void> => undefined;
    const verbs = { mountBlob: declined, hasBlob: linked, cancelUpload };
    const gone = setUp({ ...verbs, openBlob: lost });
    await expect(placeBlob(planned(), gone.run)).rejects.toMatchObject({ code: 'BLOB_NOT_FOUND', exitCode: 4 });
    const good = setUp({ ...verbs, openBlob: async () => body('hello') });
    expect(await placeBlob(planned(), good.run)).toMatchObject({ how: 'present' });
    const right = setUp({ ...verbs, hasBlob: async () => ({ kind: 'present', size: 5 }), openBlob: lost });
    expect(await placeBlob(planned(), right.run)).toMatchObject({ how: 'present' });
    const silent = setUp({ ...verbs, hasBlob: async () => ({ kind: 'present', size: undefined }), openBlob: lost });
    expect(await placeBlob(planned(), silent.run)).toMatchObject({ how: 'present' });
    // Another repository has it: the link is put right.
    const elsewhere = setUp({
      ...verbs,
      openBlob: async (repository) => (repository === 't/a' ? lost() : body('hello')),
      openUpload: async () => session('again'),
      upload: stored,
    });
    const sources = ['t/a', 't/b'].map((repository) => ({ host: 'reg.test', repository }));
    expect(await placeBlob(planned({ sources }), elsewhere.run)).toMatchObject({ how: 'copied' });
  });

  it('does not change form for ever', async () => {
    const { run } = setUp({
      mountBlob: declined,
      hasBlob: absent,
      openBlob: async () => body('hello'),
      openUpload: async () => session('again'),
      upload: async () => ({ kind: 'otherwise', error: failure('NETWORK_FAILED') }),
    });
    await expect(placeBlob(planned(), run)).rejects.toMatchObject({ code: 'NETWORK_FAILED' });
  });

  it('cancels the session of a cut upload once it is known that it cannot be gone on with', async () => {
    const order: string[] = [];
    const interrupted = { session: session('moved'), sent: 3, marks: [] };
    const answers = [
      { kind: 'broken' as const, error: failure('NETWORK_FAILED'), interrupted, chunked: true as const },
      { kind: 'stored' as const, bytesSent: 5 },
    ];
    const upload = vi.fn(async () => answers.shift() ?? { kind: 'stored' as const, bytesSent: 5 });
    const { run } = setUp({
      mountBlob: declined,
      hasBlob: async () => {
        order.push('look');
        return { kind: 'absent' };
      },
      openBlob: async () => body('hello'),
      openUpload: async () => session('again'),
      resumeUpload: async () => {
        order.push('ask');
        return undefined;
      },
      cancelUpload: async ({ url }) => void order.push(`cancel ${url.split('/').at(-1)}`),
      upload,
    });
    await placeBlob(planned(), run);
    expect(order).toEqual(['look', 'look', 'ask', 'cancel moved']);
    expect(upload.mock.calls[1]?.[3 as never]).toMatchObject({ chunked: true });
    await run.sessions.close();
    expect(order).toHaveLength(4);
  });

  it('takes its turn before its places, and gives it back', async () => {
    const order: string[] = [];
    const uploadTurn = async () => {
      order.push('turn');
      return { release: () => void order.push('back') };
    };
    const { run, ports } = setUp({
      mountBlob: declined,
      hasBlob: absent,
      openBlob: async () => body('hello'),
      upload: stored,
      uploadTurn,
    });
    const takeCopy: typeof ports.limiter.takeCopy = (copy) => {
      order.push('places');
      return ports.limiter.takeCopy(copy);
    };
    await placeBlob(planned(), { ...run, ports: { ...ports, limiter: { ...ports.limiter, takeCopy } } });
    expect(order).toEqual(['turn', 'places', 'back']);
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
