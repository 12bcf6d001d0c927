import { describe, expect, it } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { allOrNone, oncePerKey } from '../../src/publish/once.ts';
import { planPublish } from '../../src/publish/plan.ts';
import { putUntilTaken } from '../../src/publish/put.ts';
import type { PutAnswer } from '../../src/registry/client.ts';
import { blob, child, digest, image, request, resolution, source } from './values.ts';

/** A promise that a test settles. */
function pending<T>() {
  let resolve: (value: T) => void = () => undefined;
  let reject: (reason: unknown) => void = () => undefined;
  const promise = new Promise<T>((one, other) => {
    resolve = one;
    reject = other;
  });
  return { promise, resolve, reject };
}

describe('work that is done once per key', () => {
  it('is begun once, and all who ask get its one promise', async () => {
    const asked: string[] = [];
    const work = oncePerKey(async (key: string) => asked.push(key));
    expect(work('a')).toBe(work('a'));
    expect(await work('b')).toBe(2);
    expect(await work('a')).toBe(1);
    expect(asked).toEqual(['a', 'b']);
  });

  it('is not begun again when it has failed', async () => {
    let begun = 0;
    const work = oncePerKey(async (_key: string) => {
      begun += 1;
      throw new Error('no');
    });
    await expect(work('a')).rejects.toThrow('no');
    await expect(work('a')).rejects.toThrow('no');
    expect(begun).toBe(1);
  });
});

describe('all or none', () => {
  it('gives the values in the order of the promises, however they settle', async () => {
    const first = pending<string>();
    const stops: unknown[] = [];
    const all = allOrNone([first.promise, Promise.resolve('b')], (reason) => stops.push(reason));
    await Promise.resolve();
    first.resolve('a');
    expect(await all).toEqual(['a', 'b']);
    expect(stops).toEqual([]);
  });

  it('throws the failure that came first, stops the others with it once, and waits for them', async () => {
    const [one, two, three] = [pending<string>(), pending<string>(), pending<string>()];
    const stops: unknown[] = [];
    let settled = false;
    const all = allOrNone([one.promise, two.promise, three.promise], (reason) => stops.push(reason)).finally(() => {
      settled = true;
    });
    const outcome = all.catch((error: unknown) => error);
    two.reject('second');
    await new Promise(setImmediate);
    expect([stops, settled]).toEqual([['second'], false]);
    one.reject('first');
    await new Promise(setImmediate);
    expect([stops, settled]).toEqual([['second'], false]);
    three.resolve('value');
    expect(await outcome).toBe('second');
    expect(stops).toEqual(['second']);
  });

  it('counts a failure without a reason as one', async () => {
    const stops: unknown[] = [];
    const all = allOrNone([Promise.reject(undefined), Promise.reject(new Error('later'))], (why) => stops.push(why));
    await expect(all).rejects.toBeUndefined();
    expect(stops).toEqual([undefined]);
  });
});

describe('a manifest that is put until it is taken', () => {
  const error = new PublishError('MANIFEST_REFUSED', 'refused', 'hint');
  const incomplete: PutAnswer = { kind: 'incomplete', error };

  async function put(
    answers: readonly (PutAnswer | { readonly kind: 'held' })[],
    repairs: readonly ('repaired' | 'nothing missing')[],
  ) {
    const said = [...answers];
    const rounds: number[] = [];
    const slept: unknown[] = [];
    const { signal } = new AbortController();
    const answer = await putUntilTaken<{ readonly kind: 'held' }>(
      async () => said.shift() ?? incomplete,
      async (round) => {
        rounds.push(round);
        return repairs[round] ?? 'repaired';
      },
      { now: () => 0, epoch: () => 0, sleep: async (ms, told) => void slept.push([ms, told === signal]) },
      signal,
    );
    return { answer, rounds, slept };
  }

  it('hands on at once what is no question of missing parts', async () => {
    for (const answer of [{ kind: 'held' }, { kind: 'stored' }, { kind: 'refused', error }] as const) {
      expect(await put([answer], [])).toEqual({ answer, rounds: [], slept: [] });
    }
  });

  it('is refused with the registry’s own error in the end', async () => {
    expect((await put([], [])).answer).toEqual({ kind: 'refused', error });
    expect((await put([], ['nothing missing', 'nothing missing'])).answer).toEqual({ kind: 'refused', error });
  });

  it('is waited for once in all when nothing is missing, by the clock that stops with the run', async () => {
    const twice = await put([], ['nothing missing', 'repaired', 'nothing missing']);
    expect(twice).toMatchObject({ answer: { kind: 'refused' }, rounds: [0, 1, 2], slept: [[1000, true]] });
    const late = await put([incomplete, { kind: 'stored' }], ['nothing missing']);
    expect(late).toEqual({ answer: { kind: 'stored' }, rounds: [0], slept: [[1000, true]] });
  });
});

describe('a plan', () => {
  const shared = blob('shared');
  const one = child('t/one', image('one', [shared]));
  const two = child('t/two', image('two', [shared]));
  const here = (name: string) => child('t/all', image(name, [shared]));
  const listing = (...children: readonly (typeof one)[]) =>
    resolution([], {
      kind: 'present',
      digest: digest('old'),
      children: children.map(({ manifest }) => manifest.digest),
    });
  const sharedOf = (plan: ReturnType<typeof planPublish>) => plan.blobs.find((each) => each.digest === shared.digest);

  it('says of each child what it is, in the order of the list', () => {
    const plan = planPublish(request(), resolution([]), [two, one]);
    expect(plan.target).toEqual({ host: 'reg.test', repository: 't/all' });
    expect(plan.children).toEqual(
      [two, one].map(({ manifest, name }) => ({
        digest: manifest.digest,
        mediaType: manifest.mediaType,
        size: 500,
        name,
        kind: 'image',
        standing: 'away',
        blobs: [manifest.config.digest, shared.digest],
        skipped: [],
        after: [],
      })),
    );
  });

  it('takes a child for present only in the target repository of the target host', () => {
    const others = [
      { host: 'other.test', repository: 't/all' },
      { host: 'reg.test', repository: 't/alle' },
    ];
    for (const from of others) {
      const plan = planPublish(request(), resolution([]), [{ ...here('x'), from }]);
      expect(plan.children[0]?.standing).toBe('away');
      expect(sharedOf(plan)).toMatchObject({ present: false, waitsFor: [] });
    }
  });

  it.each([
    ['the target repository first', [here('x'), child('t/one', image('x', [shared]))]],
    ['the other repository first', [child('t/one', image('x', [shared])), here('x')]],
  ])('of a child that stands in two sources believes the target repository: %s', (_what, children) => {
    const plan = planPublish(request(), resolution([]), children);
    expect(plan.children.map(({ standing }) => standing)).toEqual(['here']);
    expect(sharedOf(plan)).toMatchObject({ present: true, mountFrom: ['t/one'] });
  });

  it('counts a blob as present where one child is surely there, be it by trust', () => {
    const trusting = planPublish(request({ verify: false }), listing(one), [one, two]);
    expect(trusting.children.map(({ standing }) => standing)).toEqual(['trusted', 'away']);
    expect(sharedOf(trusting)).toMatchObject({ present: true, waitsFor: [] });
  });

  it('lets a blob wait for all its children where a tag lists every one of them', () => {
    const plan = planPublish(request(), listing(one, two), [one, two]);
    expect(sharedOf(plan)).toMatchObject({
      present: false,
      waitsFor: [one.manifest.digest, two.manifest.digest],
    });
  });

  it('believes nothing of a tag that could not be read or is not there', () => {
    for (const kind of ['absent', 'unknown'] as const) {
      const tag = { kind, children: [one.manifest.digest] };
      expect(planPublish(request(), resolution([], tag), [one]).children[0]?.standing).toBe('away');
    }
  });

  it('names each place of a blob once, those on the target’s host first', () => {
    const elsewhere = { ...child('t/one', image('far', [shared])), from: { host: 'other.test', repository: 't/one' } };
    const again = child('t/one', image('again', [shared]));
    const plan = planPublish(request(), resolution([]), [elsewhere, one, again, two, here('x')]);
    expect(sharedOf(plan)?.sources).toEqual([
      { host: 'reg.test', repository: 't/one' },
      { host: 'reg.test', repository: 't/two' },
      { host: 'reg.test', repository: 't/all' },
      { host: 'other.test', repository: 't/one' },
    ]);
    expect(sharedOf(plan)?.mountFrom).toEqual(['t/one', 't/two']);
  });

  it('lets a child wait for the subjects that are planned too, and never for itself', () => {
    const about = { ...two, subjects: [one.manifest.digest, digest('elsewhere'), two.manifest.digest] };
    const plan = planPublish(request(), resolution([]), [about, one]);
    expect(plan.children.map(({ after }) => after)).toEqual([[one.manifest.digest], []]);
  });

  it('cuts a circle at one edge, and no edge where there is no circle', () => {
    const names = ['a', 'b', 'c', 'd'] as const;
    const of = (name: string) => image(name, []).digest;
    const graph = (edges: Readonly<Record<string, readonly string[]>>) =>
      planPublish(
        request(),
        resolution([]),
        names.map((name) => ({
          ...child(`t/${name}`, image(name, [])),
          subjects: (edges[name] ?? []).map(of),
        })),
      ).children.map(({ after }) => after.map((subject) => names.find((name) => of(name) === subject)).join(''));
    expect(graph({ a: ['b'], b: ['c'], c: ['a'] })).toEqual(['b', 'c', '', '']);
    expect(graph({ a: ['b', 'c'], b: ['d'], c: ['d'] })).toEqual(['bc', 'd', 'd', '']);
    expect(graph({ d: ['a', 'b'], b: ['a'] })).toEqual(['', 'a', '', 'ab']);
  });

  it('is made in time however the subjects are knotted', () => {
    // Each rung names both of the next one: to walk every way would take two to the power of their number.
    const rungs = Array.from({ length: 60 }, (_, rung) => ['left', 'right'].map((side) => image(`${side}${rung}`, [])));
    const children = rungs.flatMap((rung, index) =>
      rung.map((manifest) => ({
        ...child('t/ladder', manifest),
        subjects: (rungs[index + 1] ?? []).map(({ digest: subject }) => subject),
      })),
    );
    const plan = planPublish(request(), resolution([]), children);
    expect(plan.children.map(({ after }) => after.length)).toEqual([...Array(118).fill(2), 0, 0]);
  });

  it('blames the source for a blob of two sizes', () => {
    const other = child('t/other', image('other', [{ ...shared, size: 99 }]));
    try {
      planPublish(request(), resolution([source(one)]), [one, other]);
      expect.unreachable();
    } catch (error) {
      expect(error).toMatchObject({
        code: 'SIZE_MISMATCH',
        side: 'source',
        hint: expect.stringMatching(/push it again/),
      });
      expect((error as PublishError).message).toBe(
        `${other.name} gives blob ${shared.digest} 99 bytes, another source gives it ${shared.size}`,
      );
    }
  });
});
