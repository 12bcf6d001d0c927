import { describe, expect, it } from 'vitest';
import { inspect, planPublish, publish, verify } from '../../src/index.ts';

// None of these calls reaches a registry: what is wrong is found before a connection is opened.

const good = { target: '127.0.0.1:9/a:1', sources: ['127.0.0.1:9/b:1'] };

/** Calls as a program makes them that no compiler has checked. */
const call = (work: unknown, ...args: readonly unknown[]) =>
  (work as (...all: readonly unknown[]) => Promise<unknown>)(...args);

const refused = (message: RegExp, hint: RegExp = /./) => ({
  name: 'PublishError',
  code: 'USAGE_INVALID',
  message: expect.stringMatching(message) as string,
  hint: expect.stringMatching(hint) as string,
});

describe('the library door', () => {
  it.each([
    ['expectPlatfroms', /Did you mean expectPlatforms\?/],
    ['noClober', /Did you mean noClobber\?/],
    ['guardsImage', /There are target, sources/],
    ['toString', /There are target, sources/],
  ])('refuses an option that it does not know: %s', async (name, hint) => {
    const options = { ...good, [name]: true };
    for (const work of [publish, planPublish]) {
      await expect(call(work, options)).rejects.toMatchObject(refused(new RegExp(`have no "${name}"`), hint));
    }
  });

  it.each([
    [{ ...good, tags: 'latest' }, /tags in .* must be a list of texts, not a string/],
    [{ ...good, target: 5 }, /target in .* must be a text, not a number/],
    [{ ...good, target: undefined }, /there is no target/],
    [{ ...good, sources: [1] }, /sources in .* must be a list of texts/],
    [{ ...good, noClobber: 'no' }, /noClobber in .* must be true or false, not a string/],
    [{ ...good, type: 'OCI' }, /type in .* must be one of auto, oci, docker/],
    [{ ...good, waitForSource: '10m' }, /waitForSource in .* must be a number that is not negative/],
    [{ ...good, annotations: { a: 1 } }, /annotations in .* values are texts/],
    [
      { ...good, entryAnnotations: [{ platfrom: 'linux/arm', annotations: {} }] },
      /entryAnnotations in .* must be a list/,
    ],
    [{ ...good, referrers: true }, /referrers in .* must be one of none, all/],
    [{ ...good, expectPlatforms: 'linux/amd64' }, /expectPlatforms in .* must be a list/],
    [[], /must be an object, not a list/],
    [null, /must be an object, not null/],
    [undefined, /must be an object, not undefined/],
  ])('refuses options of another kind: %j', async (options, message) => {
    await expect(call(publish, options)).rejects.toMatchObject(refused(message));
  });

  it('refuses a plan of nothing, and settings of a run that it does not know', async () => {
    await expect(call(planPublish)).rejects.toMatchObject(refused(/there is no target/));
    await expect(call(publish)).rejects.toMatchObject(refused(/must be an object/));
    for (const [run, message] of [
      [{ onevent: () => undefined }, /have no "onevent"/],
      [{ onEvent: 'x' }, /must be a function/],
      [{ signal: {} }, /must be an AbortSignal/],
      [{ network: { retrys: 2 } }, /have no "retrys"/],
      [{ network: { retries: '2' } }, /retries in .* must be a number/],
      [null, /must be an object, not null/],
    ] as const) {
      await expect(call(publish, good, run)).rejects.toMatchObject(refused(message));
      await expect(call(verify, '127.0.0.1:9/a:1', {}, run)).rejects.toMatchObject(refused(message));
    }
  });

  it.each([
    ['inspect', inspect, { tre: true }, 'tree'],
    ['verify', verify, { Deep: true }, 'deep'],
  ] as const)('refuses what %s is not made for', async (name, work, options, guess) => {
    for (const reference of [undefined, { reference: '127.0.0.1:9/a:1' }, 5, ['127.0.0.1:9/a:1']]) {
      await expect(call(work, reference)).rejects.toMatchObject(refused(new RegExp(`^${name} needs a reference`)));
    }
    await expect(call(work, '127.0.0.1:9/a:1', options)).rejects.toMatchObject(
      refused(/have no/, new RegExp(`Did you mean ${guess}\\?`)),
    );
    await expect(call(work, '127.0.0.1:9/a:1', { [guess]: 'yes' })).rejects.toMatchObject(
      refused(/must be true or false/),
    );
  });
});
