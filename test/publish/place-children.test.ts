import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import type { Digest } from '../../src/model/digest.ts';
import { createMountMemory } from '../../src/publish/mount-memory.ts';
import { createChildPlacement } from '../../src/publish/place-children.ts';
import { planPublish } from '../../src/publish/plan.ts';
import { putUntilTaken } from '../../src/publish/put.ts';
import { trackSessions } from '../../src/publish/sessions.ts';
import { stoppable } from '../../src/publish/stop.ts';
import type { Presence, PutAnswer, RegistryClient, VerbOptions } from '../../src/registry/client.ts';
import { body, fakeClient, fakePorts, session } from './fakes.ts';
import { blob, child, digest, image, request, resolution, source } from './values.ts';

const refused = new PublishError('MANIFEST_REFUSED', 'refused', 'hint');
const immutable: PutAnswer = { kind: 'immutable', error: refused.with({ code: 'TAG_IMMUTABLE' }) };
const incomplete: PutAnswer = { kind: 'incomplete', error: refused };
const doubtful: PutAnswer = { kind: 'stored', doubt: refused.with({ code: 'PROTOCOL_VIOLATED' }) };
const one = child('t/amd64', image('amd64', [blob('layer')]));
const { digest: DIGEST } = one.manifest;
const unknown: Presence = { kind: 'unknown', error: refused };

/** One child whose blobs the target mounts, and a registry that answers as told. */
function setUp(
  verbs: Partial<Omit<RegistryClient, 'host'>>,
  tagLists: readonly Digest[] = [],
  gate: Promise<void> = Promise.resolve(),
  subject?: Promise<void>,
) {
  const puts: string[] = [];
  const client = fakeClient('reg.test', {
    mountBlob: async () => ({ kind: 'mounted' }),
    hasBlob: async () => ({ kind: 'present', size: undefined }),
    ...verbs,
    putManifest: async (repository, reference, manifest, options) => {
      puts.push(reference);
      return (await verbs.putManifest?.(repository, reference, manifest, options)) ?? { kind: 'stored' };
    },
  });
  const ports = fakePorts([client]);
  const tag = tagLists.length === 0 ? {} : { kind: 'present' as const, digest: digest('old'), children: tagLists };
  const planned = planPublish(request({ verify: false }), resolution([source(one)], tag), [one]);
  // Of another list, as a referrer's is.
  const after = subject === undefined ? [] : [digest('subject')];
  const plan = { ...planned, children: planned.children.map((its) => ({ ...its, after: [...its.after, ...after] })) };
  const { signal, stop } = stoppable(new AbortController().signal);
  const run = {
    target: plan.target,
    registry: client,
    ports,
    signal,
    mounts: createMountMemory(),
    sessions: trackSessions(plan.target, ports, signal),
    inMemory: new Map(),
    gate,
    stop,
    ...(subject === undefined ? {} : { elsewhere: () => subject }),
  };
  const placement = createChildPlacement(plan, new Map([[DIGEST, Buffer.from('{}')]]), true, run);
  return { placement, puts, ports, signal };
}

describe('the index that is refused because children are not seen yet', () => {
  it('waits 1, 2 and 4 s for children that this run has put, and puts none of them again', async () => {
    const { placement, puts, ports, signal } = setUp({ hasManifest: async () => ({ kind: 'absent' }) });
    await placement.child(DIGEST);
    const put = async (): Promise<PutAnswer> => incomplete;
    const answer = await putUntilTaken<never>(put, (round) => placement.repair([DIGEST], round), ports.clock, signal);
    expect(answer.kind).toBe('refused');
    expect(ports.slept).toEqual([1000, 2000, 4000]);
    expect(puts).toEqual([DIGEST]);
  });

  it.each([['absent', { kind: 'absent' }] as const, ['unknown', unknown] as const])(
    'puts at once, and once, what it only trusted to be there: %s',
    async (_what, presence) => {
      const { placement, puts, ports } = setUp({ hasManifest: async () => presence }, [DIGEST]);
      expect(await placement.child(DIGEST)).toBe('present');
      expect(await placement.repair([DIGEST], 0)).toBe('repaired');
      expect(puts).toEqual([DIGEST]);
      expect(placement.manifests.get(DIGEST)).toBe('pushed');
      expect(ports.slept).toEqual([]);
    },
  );

  it('believes the registry when all children are there', async () => {
    const present: Presence = { kind: 'present', size: undefined };
    const { placement } = setUp({ hasManifest: async () => present });
    await placement.child(DIGEST);
    expect(await placement.repair([DIGEST], 0)).toBe('nothing missing');
  });
});

describe('blobs that the registry says it has mounted', () => {
  it('are looked at behind all others while the platforms are not known, and none is copied or put before', async () => {
    const looks: unknown[] = [];
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const copied: string[] = [];
    const hasBlob = async (_repository: string, blobDigest: Digest, { last }: VerbOptions): Promise<Presence> => {
      looks.push(last);
      return blobDigest === digest('layer') ? { kind: 'absent' } : { kind: 'present', size: undefined };
    };
    const verbs: Partial<Omit<RegistryClient, 'host'>> = {
      hasBlob,
      openUpload: async () => session('one'),
      openBlob: async () => body('layer'),
      upload: async (_session, { digest: sent }) => {
        copied.push(sent);
        return { kind: 'stored', bytesSent: 5 };
      },
    };
    const { placement, puts } = setUp(verbs, [], gate);
    const placed = placement.child(DIGEST);
    await setImmediate();
    expect([looks, puts, copied]).toEqual([[true, true], [], []]);
    open();
    expect(await placed).toBe('pushed');
    expect(copied).toEqual([digest('layer')]);
    // It went up beside the copy, and once more when the copy was there.
    expect(puts).toEqual([DIGEST, DIGEST]);
    expect(looks).toHaveLength(2);
  });

  it('are not being looked at any more when the list has failed, each in its own time', async () => {
    let fail: (error: unknown) => void = () => undefined;
    const subject = new Promise<void>((_, reject) => (fail = reject));
    let running = 0;
    const hasBlob = async (_: string, blobDigest: Digest, { signal: own }: VerbOptions): Promise<Presence> => {
      running += 1;
      await new Promise((resolve) => own.addEventListener('abort', resolve));
      for (let turns = blobDigest === digest('layer') ? 9 : 1; turns > 0; turns -= 1) await setImmediate();
      running -= 1;
      throw own.reason;
    };
    const { placement } = setUp({ hasBlob }, [], undefined, subject);
    const placed = placement.child(DIGEST);
    placed.catch(() => undefined);
    await setImmediate();
    expect(running).toBe(2);
    fail(refused);
    await expect(placed).rejects.toMatchObject({ code: 'MANIFEST_REFUSED' });
    expect(running).toBe(0);
  });
});

describe('a child that the registry does not write again', () => {
  const manifest = { bytes: Buffer.from('{}'), digest: DIGEST, contentType: undefined };
  it.each([
    ['HEAD finds it', { kind: 'present', size: undefined }, 'absent', 'pushed'],
    ['HEAD tells nothing and GET finds it', unknown, 'found', 'pushed'],
    ['HEAD finds nothing', { kind: 'absent' }, 'found', 'refused'],
    ['nobody can tell', unknown, 'unknown', 'refused'],
  ] as const)('counts as stored when it is there: %s', async (_what, presence, read, outcome) => {
    const { placement } = setUp({
      putManifest: async () => immutable,
      hasManifest: async () => presence,
      getManifest: async () => (read === 'found' ? { kind: read, manifest } : { kind: read, error: refused }),
    });
    const placed = placement.child(DIGEST);
    if (outcome === 'pushed') expect(await placed).toBe('pushed');
    else await expect(placed).rejects.toMatchObject({ code: 'TAG_IMMUTABLE', exitCode: 7 });
  });
});

describe('a child whose success proves little', () => {
  it.each([{ kind: 'present', size: undefined }, unknown] as const)('is looked for once: $kind', async (presence) => {
    let looks = 0;
    const hasManifest = async (): Promise<Presence> => {
      looks += 1;
      return presence;
    };
    const getManifest = async () => ({ kind: 'unknown', error: refused }) as const;
    const { placement, puts } = setUp({ putManifest: async () => doubtful, hasManifest, getManifest });
    expect(await placement.child(DIGEST)).toBe('pushed');
    expect([looks, puts.length]).toEqual([1, 1]);
  });

  it('is put once more when it is not there, and then refused', async () => {
    const { placement, puts } = setUp({
      putManifest: async () => doubtful,
      hasManifest: async () => ({ kind: 'absent' }),
    });
    await expect(placement.child(DIGEST)).rejects.toThrow(/but it is not there/);
    expect(puts).toHaveLength(2);
  });
});
