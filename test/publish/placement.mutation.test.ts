import { describe, expect, it } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import type { Digest } from '../../src/model/digest.ts';
import { createMountMemory } from '../../src/publish/mount-memory.ts';
import { createChildPlacement } from '../../src/publish/place-children.ts';
import { planPublish } from '../../src/publish/plan.ts';
import type { ResolvedChild } from '../../src/publish/resolved.ts';
import { stoppable } from '../../src/publish/stop.ts';
import type { ManifestAnswer, MountAnswer, Presence, PutAnswer } from '../../src/registry/client.ts';
import { body, fakeClient, fakePorts, session } from './fakes.ts';
import { attestation, blob, child, digest, image, request, resolution } from './values.ts';

const shared = blob('shared');
const amd64 = child('t/amd64', image('amd64', [shared]));
const arm64 = child('t/arm64', image('arm64', [shared]));
const attested = attestation('t/amd64', 'att', amd64);
const refused = new PublishError('MANIFEST_REFUSED', 'refused', 'hint');
const unknown: Presence = { kind: 'unknown', error: refused };
const incomplete: PutAnswer = { kind: 'incomplete', error: refused };

type World = {
  readonly children?: readonly ResolvedChild[];
  /** Digests that a target tag lists. */
  readonly listed?: readonly Digest[];
  readonly verify?: boolean;
  readonly looksAtMounts?: boolean;
  readonly gate?: Promise<unknown>;
  readonly mount?: (digest: Digest) => Promise<MountAnswer>;
  readonly hasBlob?: (digest: Digest) => Promise<Presence>;
  readonly hasManifest?: (digest: Digest) => Promise<Presence>;
  readonly getManifest?: (digest: Digest) => Promise<ManifestAnswer>;
  /** `count` PUTs of this child went before. */
  readonly put?: (digest: Digest, count: number) => Promise<PutAnswer>;
};

/** Names of what the tests are about, for the log. */
const NAMES = new Map<Digest, string>(
  [amd64, arm64, attested].flatMap(({ manifest }) => [
    [
      manifest.digest,
      manifest.digest === attested.manifest.digest ? 'att' : manifest === amd64.manifest ? 'amd64' : 'arm64',
    ],
    [manifest.config.digest, 'config'],
    ...manifest.layers.map((layer) => [layer.digest, layer.digest === shared.digest ? 'shared' : 'layer'] as const),
  ]),
);
const nameOf = (one: Digest | string) => NAMES.get(one as Digest) ?? one;

function setUp(world: World) {
  const log: string[] = [];
  const puts = new Map<Digest, number>();
  const children = world.children ?? [amd64];
  const client = fakeClient('reg.test', {
    mountBlob: async (_repository, one) => {
      log.push(`mount ${nameOf(one)}`);
      return world.mount?.(one) ?? { kind: 'mounted' };
    },
    hasBlob: async (repository, one, { signal: given }) => {
      log.push(`look ${nameOf(one)}`);
      expect([repository, given.aborted]).toEqual(['t/all', signal.aborted]);
      return world.hasBlob?.(one) ?? { kind: 'present', size: undefined };
    },
    hasManifest: async (repository, one, { signal: given }) => {
      log.push(`head ${nameOf(one)}`);
      expect([repository, given.aborted]).toEqual(['t/all', signal.aborted]);
      return world.hasManifest?.(one) ?? { kind: 'absent' };
    },
    getManifest: async (repository, one, { signal: given }) => {
      log.push(`get ${nameOf(one)}`);
      expect([repository, given.aborted]).toEqual(['t/all', signal.aborted]);
      return world.getManifest?.(one as Digest) ?? { kind: 'unknown', error: refused };
    },
    putManifest: async (_repository, reference, manifest) => {
      log.push(`put ${nameOf(reference)}`);
      expect(manifest.bytes.toString()).toBe(nameOf(reference));
      const count = puts.get(manifest.digest) ?? 0;
      puts.set(manifest.digest, count + 1);
      return world.put?.(manifest.digest, count) ?? { kind: 'stored' };
    },
    openUpload: async (_repository, one) => session(nameOf(one)),
    openBlob: async () => body('hello'),
    upload: async (_session, { digest: one }) => {
      log.push(`copy ${nameOf(one)}`);
      return { kind: 'stored', bytesSent: 5 };
    },
  });
  const ports = fakePorts([client]);
  const tag =
    world.listed === undefined ? {} : { kind: 'present' as const, digest: digest('old'), children: world.listed };
  const plan = planPublish(request({ verify: world.verify ?? true }), resolution([], tag), children);
  const { signal, stop } = stoppable(new AbortController().signal);
  const placement = createChildPlacement(
    plan,
    new Map(children.map(({ manifest }) => [manifest.digest, Buffer.from(nameOf(manifest.digest))])),
    world.looksAtMounts ?? true,
    {
      target: plan.target,
      registry: client,
      ports,
      signal,
      mounts: createMountMemory(),
      inMemory: new Map(),
      gate: world.gate ?? Promise.resolve(),
      stop,
    },
  );
  return { placement, log, ports, signal, stop, count: (entry: string) => log.filter((one) => one === entry).length };
}

/** Without the grace that a stopped run gives its sessions. */
const waits = ({ slept }: { readonly slept: readonly number[] }) =>
  slept.filter((milliseconds) => milliseconds !== 5000);

describe('a child', () => {
  it('goes up after its blobs and its subjects, each of which is placed once', async () => {
    const { placement, log, count } = setUp({ children: [attested, amd64, arm64], looksAtMounts: false });
    const done = await Promise.all([attested, amd64, arm64].map(({ manifest }) => placement.child(manifest.digest)));
    expect(done).toEqual(['pushed', 'pushed', 'pushed']);
    expect(log.indexOf('put amd64')).toBeGreaterThan(log.indexOf('mount shared'));
    expect(log.indexOf('put att')).toBeGreaterThan(log.indexOf('put amd64'));
    expect(log.indexOf('put att')).toBeGreaterThan(log.indexOf('mount layer'));
    expect(['mount shared', 'put amd64', 'put arm64', 'put att'].map(count)).toEqual([1, 1, 1, 1]);
    expect(count('look shared')).toBe(0);
  });

  it('mounts before the gate opens, and goes up after', async () => {
    let open: (value: unknown) => void = () => undefined;
    const gate = new Promise((resolve) => {
      open = resolve;
    });
    const { placement, log } = setUp({ gate, looksAtMounts: false });
    const placed = placement.child(amd64.manifest.digest);
    await new Promise(setImmediate);
    expect(log.toSorted()).toEqual(['mount config', 'mount shared']);
    open(undefined);
    await placed;
    expect(log.at(-1)).toBe('put amd64');
  });

  it('does not go up when the gate stays shut', async () => {
    const { placement, log, signal } = setUp({ gate: Promise.reject(refused) });
    await expect(placement.child(amd64.manifest.digest)).rejects.toBe(refused);
    expect(log).not.toContain('put amd64');
    expect(signal.aborted).toBe(true);
  });

  it('that is present is told so after the gate, and no sooner', async () => {
    const gate = Promise.reject(refused);
    const { placement, ports } = setUp({ gate, listed: [amd64.manifest.digest], verify: false });
    await expect(placement.child(amd64.manifest.digest)).rejects.toBe(refused);
    expect(ports.events).toEqual([]);
    expect(placement.manifests.size).toBe(0);
  });

  it('is told when it is done, with what became of it and of its blobs', async () => {
    const { placement, ports } = setUp({ looksAtMounts: false });
    expect(placement.outcome(shared.digest)).toBeUndefined();
    await placement.child(amd64.manifest.digest);
    expect(ports.events.at(-1)).toEqual({ kind: 'manifest.done', digest: amd64.manifest.digest, manifest: 'pushed' });
    expect([...placement.manifests]).toEqual([[amd64.manifest.digest, 'pushed']]);
    expect(placement.outcome(shared.digest)).toMatchObject({ how: 'mounted', size: shared.size });
  });

  it('that a tag lists is asked for once, and nothing is written when it is there', async () => {
    const listed = [amd64.manifest.digest, arm64.manifest.digest];
    const { placement, log, ports } = setUp({
      children: [amd64, arm64],
      listed,
      hasManifest: async () => ({ kind: 'present', size: undefined }),
    });
    const done = await Promise.all(listed.map((one) => placement.child(one)));
    expect(done).toEqual(['present', 'present']);
    expect(log.toSorted()).toEqual(['head amd64', 'head arm64']);
    expect(ports.events.map(({ kind }) => kind)).toEqual(['manifest.done', 'manifest.done']);
  });

  it('that a tag lists but the registry lacks, or does not tell of, is put with its blobs', async () => {
    for (const presence of [{ kind: 'absent' }, unknown] as const) {
      const { placement, count } = setUp({ listed: [amd64.manifest.digest], hasManifest: async () => presence });
      expect(await placement.child(amd64.manifest.digest)).toBe('pushed');
      expect(['head amd64', 'mount shared', 'put amd64'].map(count)).toEqual([1, 1, 1]);
    }
  });

  it('vouches for its blobs where it is there, so that they are not moved for another', async () => {
    const { placement, log } = setUp({
      children: [amd64, arm64],
      listed: [amd64.manifest.digest, arm64.manifest.digest],
      hasManifest: async (one) => (one === amd64.manifest.digest ? { kind: 'present', size: 1 } : { kind: 'absent' }),
    });
    await Promise.all([amd64, arm64].map(({ manifest }) => placement.child(manifest.digest)));
    expect(log.filter((one) => one.startsWith('mount'))).toEqual(['mount config']);
    expect(placement.outcome(shared.digest)).toEqual({
      digest: shared.digest,
      size: shared.size,
      how: 'present',
      bytesSent: 0,
    });
  });

  it('that stands in the target already is neither asked for nor put', async () => {
    const here = { ...amd64, from: { host: 'reg.test', repository: 't/all' } };
    const { placement, log } = setUp({ children: [here] });
    expect(await placement.child(amd64.manifest.digest)).toBe('present');
    expect(log).toEqual([]);
  });

  it('that is not of the plan is a bug', async () => {
    await expect(setUp({}).placement.child(digest('stranger'))).rejects.toThrow(/is not part of the plan/);
  });

  it('that is refused is named with its type, and stops the run', async () => {
    const { placement, signal } = setUp({ put: async () => ({ kind: 'refused', error: refused }) });
    await expect(placement.child(amd64.manifest.digest)).rejects.toMatchObject({
      code: 'MANIFEST_REFUSED',
      side: 'target',
      message: `refused (${amd64.manifest.mediaType} of ${amd64.name})`,
    });
    expect(signal.aborted).toBe(true);
  });
});

describe('a mount that was confirmed', () => {
  it('is looked at once, however many children share the blob', async () => {
    const { placement, count } = setUp({ children: [amd64, arm64] });
    await Promise.all([amd64, arm64].map(({ manifest }) => placement.child(manifest.digest)));
    expect([count('look shared'), count('look config')]).toEqual([1, 2]);
    expect([count('put amd64'), count('put arm64')]).toEqual([1, 1]);
  });

  it('but brought no blob is copied, and each child that names it is put again', async () => {
    const { placement, log, ports, count } = setUp({
      children: [amd64, arm64],
      hasBlob: async (one) => (one === shared.digest ? { kind: 'absent' } : { kind: 'present', size: undefined }),
    });
    await Promise.all([amd64, arm64].map(({ manifest }) => placement.child(manifest.digest)));
    expect([count('copy shared'), count('copy config')]).toEqual([1, 0]);
    expect([count('put amd64'), count('put arm64')]).toEqual([2, 2]);
    expect(log.lastIndexOf('put amd64')).toBeGreaterThan(log.indexOf('copy shared'));
    expect(placement.outcome(shared.digest)).toMatchObject({ how: 'copied', bytesSent: 5 });
    expect(ports.events).toContainEqual({
      kind: 'blob.refused',
      digest: shared.digest,
      why: 'the registry said it was mounted, but lacks it',
    });
  });

  it('stands when the look fails or tells nothing', async () => {
    const answers = [async () => unknown, async () => Promise.reject(refused)];
    for (const hasBlob of answers) {
      const { placement, count } = setUp({ hasBlob });
      expect(await placement.child(amd64.manifest.digest)).toBe('pushed');
      expect([count('put amd64'), count('copy shared')]).toEqual([1, 0]);
    }
  });

  it('hides no bug of the look, and not that the run was stopped', async () => {
    const bug = new TypeError('a bug');
    await expect(setUp({ hasBlob: () => Promise.reject(bug) }).placement.child(amd64.manifest.digest)).rejects.toBe(
      bug,
    );
    const stopped = setUp({
      hasBlob: async () => {
        stopped.stop(refused);
        throw refused;
      },
    });
    await expect(stopped.placement.child(amd64.manifest.digest)).rejects.toBe(refused);
  });
});

describe('a child that is refused because of what it names', () => {
  it('has the blobs replaced that a manifest there named, each once', async () => {
    const { placement, ports, count } = setUp({
      children: [amd64, arm64],
      listed: [amd64.manifest.digest],
      verify: false,
      hasBlob: async (one) => (one === shared.digest ? { kind: 'absent' } : { kind: 'present', size: undefined }),
      put: async (_one, before) => (before === 0 ? incomplete : { kind: 'stored' }),
    });
    expect(await placement.child(arm64.manifest.digest)).toBe('pushed');
    expect([count('put arm64'), count('copy shared'), count('copy config')]).toEqual([2, 1, 0]);
    expect(ports.slept).toEqual([]);
    expect(ports.events).toContainEqual({
      kind: 'blob.refused',
      digest: shared.digest,
      why: 'the registry holds a manifest that names it, but lacks it',
    });
  });

  it('waits 1, 2 and 4 s for blobs that this run has written, and writes none again', async () => {
    const { placement, ports, count } = setUp({
      mount: async () => ({ kind: 'refused', sourceBarred: false, why: 'mount answered 405' }),
      hasBlob: async () => ({ kind: 'absent' }),
      put: async () => incomplete,
    });
    await expect(placement.child(amd64.manifest.digest)).rejects.toMatchObject({ code: 'MANIFEST_REFUSED' });
    expect(waits(ports)).toEqual([1000, 2000, 4000]);
    expect([count('copy shared'), count('put amd64')]).toEqual([1, 4]);
  });

  it('is believed to be wrong when nothing is missing, after a second', async () => {
    const { placement, ports, count } = setUp({ put: async () => incomplete });
    await expect(placement.child(amd64.manifest.digest)).rejects.toMatchObject({ code: 'MANIFEST_REFUSED' });
    expect(waits(ports)).toEqual([1000]);
    expect(count('put amd64')).toBe(2);
  });

  it('does not count a blob as missing that the registry tells nothing of', async () => {
    const { placement, count } = setUp({
      looksAtMounts: false,
      hasBlob: async () => unknown,
      put: async () => incomplete,
    });
    await expect(placement.child(amd64.manifest.digest)).rejects.toMatchObject({ code: 'MANIFEST_REFUSED' });
    expect(count('copy shared')).toBe(0);
  });

  it('has its subjects put where they are missing', async () => {
    const { placement, ports, count } = setUp({
      children: [attested, amd64],
      listed: [amd64.manifest.digest],
      verify: false,
      hasManifest: async () => ({ kind: 'absent' }),
      put: async (one, before) => (one === attested.manifest.digest && before === 0 ? incomplete : { kind: 'stored' }),
    });
    expect(await placement.child(attested.manifest.digest)).toBe('pushed');
    expect([count('put amd64'), count('put att')]).toEqual([1, 2]);
    expect(placement.manifests.get(amd64.manifest.digest)).toBe('pushed');
    // What was missing was put just now; the registry may show it at once.
    expect(ports.slept).toEqual([]);
  });
});

describe('a child that was there, but turns out to be broken', () => {
  it('is put, and so are the blobs of which nothing was known', async () => {
    const { placement, ports, count } = setUp({
      listed: [amd64.manifest.digest],
      verify: false,
      hasManifest: async () => ({ kind: 'absent' }),
      hasBlob: async () => ({ kind: 'absent' }),
      put: async (_one, before) => (before === 0 ? incomplete : { kind: 'stored' }),
    });
    expect(await placement.child(amd64.manifest.digest)).toBe('present');
    expect(placement.outcome(shared.digest)).toBeUndefined();
    expect(await placement.repair([amd64.manifest.digest], 0)).toBe('repaired');
    expect([count('put amd64'), count('copy shared'), count('copy config')]).toEqual([2, 1, 1]);
    expect(ports.events.filter(({ kind }) => kind === 'blob.refused')).toEqual(
      amd64.manifest.kind === 'image'
        ? [amd64.manifest.config, shared].map((each) => ({
            kind: 'blob.refused',
            digest: each.digest,
            why: 'the registry holds a manifest that names it, but lacks it',
          }))
        : [],
    );
  });

  it('is left alone when it is there after all', async () => {
    const { placement, log } = setUp({
      listed: [amd64.manifest.digest],
      verify: false,
      hasManifest: async () => ({ kind: 'present', size: undefined }),
    });
    await placement.child(amd64.manifest.digest);
    expect(await placement.repair([amd64.manifest.digest], 0)).toBe('nothing missing');
    expect(log).toEqual(['head amd64']);
  });
});

describe('a child whose PUT left a doubt', () => {
  const doubtful: PutAnswer = { kind: 'stored', doubt: refused };
  const immutable: PutAnswer = { kind: 'immutable', error: refused };
  const absent: ManifestAnswer = { kind: 'absent', error: refused };

  it('is looked for by HEAD, and by GET where HEAD tells nothing', async () => {
    const seen = setUp({ put: async () => doubtful, hasManifest: async () => ({ kind: 'present', size: 1 }) });
    expect(await seen.placement.child(amd64.manifest.digest)).toBe('pushed');
    expect([seen.count('head amd64'), seen.count('get amd64')]).toEqual([1, 0]);
    const unseen = setUp({ put: async () => doubtful, hasManifest: async () => unknown });
    expect(await unseen.placement.child(amd64.manifest.digest)).toBe('pushed');
    expect([unseen.count('head amd64'), unseen.count('get amd64')]).toEqual([1, 1]);
  });

  it.each([
    ['was not to be written again', immutable],
    ['was written, as it said', doubtful],
  ])('is refused when GET does not find what %s', async (_what, answer) => {
    const { placement } = setUp({
      put: async () => answer,
      hasManifest: async () => unknown,
      getManifest: async () => absent,
    });
    await expect(placement.child(amd64.manifest.digest)).rejects.toMatchObject({ code: 'MANIFEST_REFUSED' });
  });
});

describe('children that the index is refused for', () => {
  it('are put when missing, and the wait is for those alone that this run had put', async () => {
    const { placement, ports, count } = setUp({
      children: [amd64, arm64],
      listed: [arm64.manifest.digest],
      verify: false,
      hasManifest: async () => ({ kind: 'absent' }),
    });
    await Promise.all([amd64, arm64].map(({ manifest }) => placement.child(manifest.digest)));
    const both = [amd64.manifest.digest, arm64.manifest.digest];
    expect(await placement.repair(both, 2)).toBe('repaired');
    expect([count('put amd64'), count('put arm64')]).toEqual([1, 1]);
    expect(ports.slept).toEqual([4000]);
    expect(placement.manifests.get(arm64.manifest.digest)).toBe('pushed');
  });

  it('are not missing where the registry tells nothing of what this run has put', async () => {
    const { placement, ports } = setUp({ hasManifest: async () => unknown });
    await placement.child(amd64.manifest.digest);
    expect(await placement.repair([amd64.manifest.digest], 0)).toBe('nothing missing');
    expect(ports.slept).toEqual([]);
  });

  it('are none where it lists none', async () => {
    expect(await setUp({}).placement.repair([], 0)).toBe('nothing missing');
  });
});
