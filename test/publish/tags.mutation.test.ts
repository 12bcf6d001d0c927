import { describe, expect, it } from 'vitest';
import { type ErrorCode, PublishError } from '../../src/errors.ts';
import { MEDIA_TYPES } from '../../src/model/descriptor.ts';
import type { Digest } from '../../src/model/digest.ts';
import { parseReference } from '../../src/model/reference.ts';
import { compose } from '../../src/publish/compose.ts';
import { moveTags, type TagMove } from '../../src/publish/move-tags.ts';
import type { ChildPlacement } from '../../src/publish/place-children.ts';
import type { TagState } from '../../src/publish/resolved.ts';
import type { TagGuard } from '../../src/publish/tag-guard.ts';
import type { ManifestAnswer, PutAnswer } from '../../src/registry/client.ts';
import { fakeClient, fakePorts } from './fakes.ts';
import { blob, child, digest, image, request, resolution, source, withPlatform } from './values.ts';

const platform = (architecture: string) => ({ os: 'linux', architecture });
const amd64 = withPlatform(child('t/amd64', image('amd64', [blob('layer')])), platform('amd64'));
const arm64 = withPlatform(
  child('t/arm64', image('arm64', [blob('other')], { mediaType: MEDIA_TYPES.dockerManifest })),
  platform('arm64'),
);
const composition = compose(request(), resolution([source(amd64), source(arm64)]), new Map(), new Map());
const OURS = composition.index.digest;
const OLD = digest('old');

function failed(
  code: ErrorCode,
  more: { readonly moved?: readonly string[]; readonly status?: number } = {},
): PublishError {
  return new PublishError(code, code.toLowerCase(), 'hint', { registry: 'reg.test', ...more });
}

function stateOf(tag: string, held: Digest | 'nothing' | 'unknown' = 'nothing'): TagState {
  const state = { reference: parseReference(`reg.test/t/all:${tag}`), tag };
  if (held === 'nothing') return { ...state, kind: 'absent' };
  if (held === 'unknown') return { ...state, kind: 'unknown', error: failed('DENIED') };
  return { ...state, kind: 'present', digest: held, isImage: false, children: [] };
}

const found = (held: Digest): ManifestAnswer => ({
  kind: 'found',
  manifest: { bytes: Buffer.alloc(0), digest: held, contentType: MEDIA_TYPES.ociIndex },
});

type Story = {
  readonly tags?: readonly TagState[];
  readonly put?: (tag: string) => Promise<PutAnswer>;
  readonly read?: (tag: string, signal: AbortSignal) => Promise<ManifestAnswer>;
  readonly guard?: TagGuard;
  readonly composition?: TagMove['composition'];
  readonly signal?: AbortSignal;
  readonly sleep?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly repair?: ChildPlacement['repair'];
  /** Retries of the whole process so far, each time somebody asks. */
  readonly retries?: () => number;
};

async function tell(story: Story) {
  const log: string[] = [];
  const stored = async (): Promise<PutAnswer> => ({ kind: 'stored' });
  const client = fakeClient('reg.test', {
    putManifest: async (repository, tag, manifest, { signal }) => {
      log.push(`put ${repository}:${tag}`);
      expect(manifest).toBe((story.composition ?? composition).index);
      expect(signal).toBeDefined();
      return (story.put ?? stored)(tag);
    },
    ...(story.read === undefined
      ? {}
      : {
          getManifest: async (repository: string, tag: string, options: { readonly signal: AbortSignal }) => {
            log.push(`get ${repository}:${tag}`);
            return story.read?.(tag, options.signal) ?? { kind: 'unknown', error: failed('DENIED') };
          },
        }),
  });
  const ports = fakePorts([client]);
  const never = (_ms: number, signal: AbortSignal) =>
    new Promise<void>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const outcome = await moveTags(story.tags ?? [stateOf('1')], {
    target: { host: 'reg.test', repository: 't/all' },
    registry: client,
    composition: story.composition ?? composition,
    placement: { repair: story.repair ?? (async () => 'nothing missing') } as unknown as ChildPlacement,
    guard: story.guard,
    ports: {
      ...ports,
      clock: { ...ports.clock, sleep: story.sleep ?? never },
      traffic: () => ({ requests: 0, retries: story.retries?.() ?? 0 }),
    },
    signal: story.signal ?? new AbortController().signal,
  }).then(
    (targets) => ({ targets, error: undefined }),
    (error: unknown) => ({ targets: undefined, error }),
  );
  return { ...outcome, log, events: ports.events };
}

describe('tags', () => {
  it('that are none move nothing', async () => {
    expect(await tell({ tags: [] })).toMatchObject({ targets: [], log: [], events: [] });
  });

  it('are told one by one, with what they were', async () => {
    const told = await tell({ tags: [stateOf('1'), stateOf('2', OLD), stateOf('3', OURS), stateOf('4', 'unknown')] });
    const of = (tag: string, action: string) => ({ reference: `reg.test/t/all:${tag}`, digest: OURS, action });
    expect(told.targets).toEqual([
      of('1', 'created'),
      { ...of('2', 'updated'), previous: OLD },
      of('3', 'unchanged'),
      of('4', 'updated'),
    ]);
    expect(told.log).toEqual(['put t/all:1', 'put t/all:2', 'put t/all:4']);
    expect(told.events).toHaveLength(4);
    expect(told.events).toEqual(
      expect.arrayContaining(
        [of('1', 'created'), of('2', 'updated'), of('3', 'unchanged'), of('4', 'updated')].map((each) => ({
          kind: 'tag.done',
          ...each,
        })),
      ),
    );
  });

  it('wait for the first, and none moves when it is refused', async () => {
    const told = await tell({
      tags: [stateOf('1'), stateOf('2')],
      put: async () => ({ kind: 'refused', error: failed('MANIFEST_REFUSED') }),
    });
    expect(told.log).toEqual(['put t/all:1']);
    expect(told.error).toMatchObject({ code: 'MANIFEST_REFUSED', moved: [] });
  });

  it('after the first are all tried, and the failure names those that moved, not those that held it already', async () => {
    const told = await tell({
      tags: [stateOf('1'), stateOf('2'), stateOf('3', OURS), stateOf('4')],
      put: async (tag) => (tag === '2' ? { kind: 'refused', error: failed('MANIFEST_REFUSED') } : { kind: 'stored' }),
    });
    expect(told.log).toEqual(['put t/all:1', 'put t/all:2', 'put t/all:4']);
    expect(told.error).toMatchObject({ moved: ['reg.test/t/all:1', 'reg.test/t/all:4'] });
  });

  it('that may have moved are named after those that have', async () => {
    const told = await tell({
      tags: [stateOf('1'), stateOf('2')],
      put: async (tag) => {
        if (tag === '1') return { kind: 'stored' };
        throw failed('TIMED_OUT', { moved: ['reg.test/t/all:2 (perhaps)'] });
      },
    });
    expect(told.error).toMatchObject({ moved: ['reg.test/t/all:1', 'reg.test/t/all:2 (perhaps)'] });
    expect(told.log).toEqual(['put t/all:1', 'put t/all:2']);
  });

  it('end with a bug as it is', async () => {
    const bug = new TypeError('a bug');
    const told = await tell({
      put: async () => {
        throw bug;
      },
    });
    expect(told.error).toBe(bug);
  });
});

describe('a tag that may not be moved', () => {
  const put = async (): Promise<PutAnswer> => ({ kind: 'immutable', error: failed('TAG_IMMUTABLE') });

  it('is unchanged when it holds the index', async () => {
    const told = await tell({ tags: [stateOf('1', 'unknown')], put, read: async () => found(OURS) });
    expect(told.targets).toEqual([{ reference: 'reg.test/t/all:1', digest: OURS, action: 'unchanged' }]);
  });

  it.each<[string, ManifestAnswer]>([
    ['holds another', found(OLD)],
    ['is not there', { kind: 'absent', error: failed('MANIFEST_NOT_FOUND') }],
    ['cannot be read', { kind: 'unknown', error: failed('DENIED') }],
  ])('ends the run when it %s', async (_what, answer) => {
    const told = await tell({ tags: [stateOf('1', OLD)], put, read: async () => answer });
    expect(told.error).toMatchObject({ code: 'TAG_IMMUTABLE', side: 'target', moved: [] });
  });
});

describe('an index that the registry refuses', () => {
  const refuse = async (): Promise<PutAnswer> => ({ kind: 'refused', error: failed('MANIFEST_REFUSED') });

  it('is told with every child and its type, and that both kinds are in it', async () => {
    const { error } = await tell({ put: refuse });
    expect(error).toMatchObject({
      side: 'target',
      message: `manifest_refused; the index is ${MEDIA_TYPES.ociIndex} and lists ${amd64.name} (${MEDIA_TYPES.ociManifest}), ${arm64.name} (${MEDIA_TYPES.dockerManifest})`,
      hint: expect.stringMatching(/all are Docker or all are OCI/),
    });
  });

  it('of one kind keeps the registry’s own hint', async () => {
    const alike = compose(request(), resolution([source(amd64)]), new Map(), new Map());
    expect((await tell({ put: refuse, composition: alike })).error).toMatchObject({ hint: 'hint' });
  });

  it('for missing parts has each child looked for once a round', async () => {
    const twice = { ...composition, listed: [...composition.listed, ...composition.listed] };
    const asked: unknown[] = [];
    const told = await tell({
      composition: twice,
      put: async () => ({ kind: 'incomplete', error: failed('MANIFEST_REFUSED') }),
      repair: async (children, round) => {
        asked.push([round, children]);
        return 'repaired';
      },
    });
    const children = [amd64.manifest.digest, arm64.manifest.digest];
    expect(asked).toEqual([0, 1, 2].map((round) => [round, children]));
    expect(told.error).toMatchObject({ code: 'MANIFEST_REFUSED' });
  });
});

describe('a PUT whose outcome is open', () => {
  const thrown = (error: unknown) => async () => {
    throw error;
  };

  it.each([
    'NETWORK_FAILED',
    'TIMED_OUT',
    'INTERRUPTED',
    'TERMINATED',
    'DIGEST_MISMATCH',
    'PROTOCOL_VIOLATED',
  ] as const)('is looked into after %s, and stands when the tag holds the index', async (code) => {
    const told = await tell({ put: thrown(failed(code)), read: async () => found(OURS) });
    expect(told.targets).toMatchObject([{ action: 'created' }]);
    expect(told.log).toEqual(['put t/all:1', 'get t/all:1']);
    const warnings = told.events.filter(({ kind }) => kind === 'warning');
    expect(warnings).toEqual(
      code === 'DIGEST_MISMATCH'
        ? [{ kind: 'warning', text: 'digest_mismatch; but reg.test/t/all:1 holds the right one' }]
        : [],
    );
  });

  it('is looked into after a failure of the registry, and after no other refusal', async () => {
    const refuse = (code: ErrorCode) => async (): Promise<PutAnswer> => ({ kind: 'refused', error: failed(code) });
    const stood = await tell({ put: refuse('REGISTRY_FAILED'), read: async () => found(OURS) });
    expect(stood.targets).toMatchObject([{ action: 'created' }]);
    for (const code of ['DENIED', 'MANIFEST_REFUSED'] as const) {
      expect((await tell({ put: refuse(code) })).log).toEqual(['put t/all:1']);
    }
  });

  it.each(['UNAUTHORIZED', 'RATE_LIMITED', 'TLS_FAILED'] as const)('is not what %s leaves', async (code) => {
    const told = await tell({ put: thrown(failed(code)) });
    expect(told).toMatchObject({ error: { code, moved: [] }, log: ['put t/all:1'] });
  });

  it('is not looked into twice', async () => {
    const told = await tell({ put: thrown(failed('TIMED_OUT', { moved: ['x'] })) });
    expect(told).toMatchObject({ error: { code: 'TIMED_OUT', moved: ['x'] }, log: ['put t/all:1'] });
  });

  it.each<[TagState, ManifestAnswer, readonly string[], RegExp]>([
    [stateOf('1', OLD), found(OLD), [], /; reg\.test\/t\/all:1 holds \S+ now$/],
    [stateOf('1', OLD), found(digest('x')), ['reg.test/t/all:1 (perhaps)'], /holds/],
    [stateOf('1'), found(OLD), ['reg.test/t/all:1 (perhaps)'], /holds/],
    [stateOf('1'), { kind: 'absent', error: failed('MANIFEST_NOT_FOUND') }, [], /is not there now$/],
    [
      stateOf('1', OLD),
      { kind: 'absent', error: failed('MANIFEST_NOT_FOUND') },
      ['reg.test/t/all:1 (perhaps)'],
      /not there/,
    ],
    [stateOf('1', 'unknown'), { kind: 'absent', error: failed('MANIFEST_NOT_FOUND') }, [], /is not there now$/],
    [stateOf('1', 'unknown'), found(OLD), ['reg.test/t/all:1 (perhaps)'], /holds/],
    [
      stateOf('1', OLD),
      { kind: 'unknown', error: failed('DENIED') },
      ['reg.test/t/all:1 (perhaps)'],
      /; whether reg\.test\/t\/all:1 has moved could not be seen$/,
    ],
  ])('is told by what the tag holds now (%#)', async (tag, answer, moved, words) => {
    const told = await tell({ tags: [tag], put: thrown(failed('NETWORK_FAILED')), read: async () => answer });
    expect(told.error).toMatchObject({ code: 'NETWORK_FAILED', moved, message: expect.stringMatching(words) });
  });

  it('in a run that was stopped ends it, and names the tag that has moved', async () => {
    const stop = new AbortController();
    const told = await tell({
      put: async () => {
        stop.abort(failed('INTERRUPTED'));
        throw failed('INTERRUPTED');
      },
      read: async (_tag, signal) => {
        // The look has a time of its own: the run's end does not end it.
        expect(signal.aborted).toBe(false);
        return found(OURS);
      },
      signal: stop.signal,
    });
    expect(told.error).toMatchObject({ code: 'INTERRUPTED', moved: ['reg.test/t/all:1'] });
  });

  it('is looked into for five seconds at most', async () => {
    const slept: number[] = [];
    const told = await tell({
      put: thrown(failed('TIMED_OUT')),
      read: (_tag, signal) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      sleep: async (milliseconds) => void slept.push(milliseconds),
    });
    expect(slept).toEqual([5000]);
    expect(told.error).toMatchObject({ message: expect.stringMatching(/could not be seen$/) });
  });

  it('leaves no timer behind', async () => {
    let ended = false;
    await tell({
      put: thrown(failed('TIMED_OUT')),
      read: async () => found(OURS),
      sleep: (_milliseconds, signal) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => {
            ended = true;
            reject(signal.reason);
          }),
        ),
    });
    expect(ended).toBe(true);
  });

  it('is open still when the look fails, but a bug in it is a bug', async () => {
    const put = thrown(failed('TIMED_OUT'));
    const failing = await tell({ put, read: thrown(failed('NETWORK_FAILED')) });
    expect(failing.error).toMatchObject({ code: 'TIMED_OUT', moved: ['reg.test/t/all:1 (perhaps)'] });
    const bug = new TypeError('a bug');
    expect((await tell({ put, read: thrown(bug) })).error).toBe(bug);
  });
});

describe('a guard', () => {
  it('lets a bug in its second look be a bug, and names the tag in any other failure', async () => {
    const guard = { noClobber: true };
    const second = (error: unknown) => {
      let reads = 0;
      return async (): Promise<ManifestAnswer> => {
        reads += 1;
        if (reads > 1) throw error;
        return { kind: 'absent', error: failed('MANIFEST_NOT_FOUND') };
      };
    };
    const bug = new TypeError('a bug');
    expect((await tell({ guard, read: second(bug) })).error).toBe(bug);
    expect((await tell({ guard, read: second(failed('NETWORK_FAILED')) })).error).toMatchObject({
      code: 'NETWORK_FAILED',
      moved: ['reg.test/t/all:1'],
    });
  });

  it('looks again at a tag whose PUT was found to have been carried out', async () => {
    const story = async (...held: readonly (Digest | 'nothing')[]) => {
      const left = [...held];
      return tell({
        guard: { noClobber: true },
        put: async () => {
          throw failed('TIMED_OUT');
        },
        read: async () => {
          const now = left.shift() ?? 'nothing';
          return now === 'nothing' ? { kind: 'absent', error: failed('MANIFEST_NOT_FOUND') } : found(now);
        },
      });
    };
    const kept = await story('nothing', OURS, OURS);
    expect(kept).toMatchObject({ targets: [{ action: 'created' }] });
    expect(kept.log.map((entry) => entry.slice(0, 3))).toEqual(['get', 'put', 'get', 'get']);
    expect((await story('nothing', OURS, OLD)).error).toMatchObject({ code: 'TAG_CHANGED' });
  });

  it('does not look again at a tag that was not stored', async () => {
    const told = await tell({
      guard: { noClobber: true },
      put: async () => ({ kind: 'refused', error: failed('MANIFEST_REFUSED') }),
      read: async () => ({ kind: 'absent', error: failed('MANIFEST_NOT_FOUND') }),
    });
    expect(told.log).toEqual(['get t/all:1', 'put t/all:1']);
  });
});

describe('a guarded PUT that broke', () => {
  const guard = { noClobber: true };
  const absent: ManifestAnswer = { kind: 'absent', error: failed('MANIFEST_NOT_FOUND') };
  const broken = async (): Promise<PutAnswer> => {
    throw failed('NETWORK_FAILED');
  };
  /** Waits between tries are over at once; a look has its five seconds. */
  const patient = (slept: number[]) => (milliseconds: number, signal: AbortSignal) =>
    milliseconds === 5000
      ? new Promise<void>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      : Promise.resolve(void slept.push(milliseconds));

  it('goes out again after a look, with ever longer waits, until it is told what the tag holds', async () => {
    const slept: number[] = [];
    const told = await tell({ guard, put: broken, read: async () => absent, sleep: patient(slept) });
    expect(told.log.filter((entry) => entry.startsWith('put'))).toHaveLength(6);
    expect(slept).toHaveLength(5);
    expect(slept).toEqual(slept.toSorted((one, other) => one - other));
    expect(new Set(slept).size).toBeGreaterThan(2);
    expect(told.error).toMatchObject({
      code: 'NETWORK_FAILED',
      moved: [],
      message: expect.stringMatching(/is not there now$/),
    });
  });

  it('may have moved the tag when the next look fails, and says so once', async () => {
    const looks = (error: unknown) => {
      let count = 0;
      return async (): Promise<ManifestAnswer> => {
        count += 1;
        if (count === 1) return absent;
        throw error;
      };
    };
    const story = (error: unknown) => tell({ guard, put: broken, read: looks(error), sleep: patient([]) });
    expect((await story(failed('TIMED_OUT'))).error).toMatchObject({
      code: 'TIMED_OUT',
      moved: ['reg.test/t/all:1 (perhaps)'],
    });
    expect((await story(failed('TIMED_OUT', { moved: ['x'] }))).error).toMatchObject({ moved: ['x'] });
    const bug = new TypeError('a bug');
    expect((await story(bug)).error).toBe(bug);
  });

  it('is not sent again when it is known already what it moved', async () => {
    const told = await tell({
      guard,
      put: async () => {
        throw failed('NETWORK_FAILED', { moved: ['x'] });
      },
      read: async () => absent,
    });
    expect(told).toMatchObject({ error: { code: 'NETWORK_FAILED', moved: ['x'] } });
    expect(told.log).toEqual(['get t/all:1', 'put t/all:1']);
  });

  it.each<[string, PutAnswer | undefined, readonly string[], number]>([
    ['after no answer the tag is read', undefined, ['reg.test/t/all:1'], 2],
    [
      'after a 429 nothing has moved',
      { kind: 'refused', error: failed('RATE_LIMITED', { status: 429 }), passing: {} },
      [],
      1,
    ],
  ])('is no longer waited for when the run is stopped: %s', async (_what, answer, moved, reads) => {
    const stop = new AbortController();
    let looks = 0;
    const told = await tell({
      guard,
      put: answer === undefined ? broken : async () => answer,
      read: async () => {
        looks += 1;
        return looks === 1 ? absent : found(OURS);
      },
      sleep: (milliseconds, signal) => {
        if (milliseconds === 5000) return patient([])(milliseconds, signal);
        stop.abort(failed('INTERRUPTED'));
        return Promise.reject(failed('INTERRUPTED'));
      },
      signal: stop.signal,
    });
    expect(told.error).toMatchObject({ code: 'INTERRUPTED', moved });
    expect(looks).toBe(reads);
  });

  it('hides no bug of the clock', async () => {
    const bug = new TypeError('a bug');
    const told = await tell({ guard, put: broken, read: async () => absent, sleep: () => Promise.reject(bug) });
    expect(told.error).toBe(bug);
  });
});

describe('a PUT that was sent more than once', () => {
  const denied = async (): Promise<PutAnswer> => ({ kind: 'refused', error: failed('DENIED') });
  const counting = (...counts: readonly number[]) => {
    const left = [...counts];
    return () => left.shift() ?? counts.at(-1) ?? 0;
  };

  it('may have been carried out whatever the last answer is, so that the tag is read', async () => {
    const again = await tell({ put: denied, retries: counting(3, 3, 4), read: async () => found(OURS) });
    expect(again).toMatchObject({ targets: [{ action: 'created' }], log: ['put t/all:1', 'get t/all:1'] });
    const thrown = async (): Promise<PutAnswer> => {
      throw failed('UNAUTHORIZED');
    };
    const lost = await tell({ put: thrown, retries: counting(3, 3, 4), read: async () => found(OURS) });
    expect(lost).toMatchObject({ targets: [{ action: 'created' }], log: ['put t/all:1', 'get t/all:1'] });
  });

  it('is another matter than retries that went before', async () => {
    const refused = await tell({ put: denied, retries: counting(3, 3) });
    expect(refused).toMatchObject({ error: { code: 'DENIED' }, log: ['put t/all:1'] });
    const thrown = async (): Promise<PutAnswer> => {
      throw failed('UNAUTHORIZED');
    };
    const ended = await tell({ put: thrown, retries: counting(3, 3) });
    expect(ended).toMatchObject({ error: { code: 'UNAUTHORIZED' }, log: ['put t/all:1'] });
  });
});
