import { describe, expect, it } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import type { Digest } from '../../src/model/digest.ts';
import { parseReference } from '../../src/model/reference.ts';
import { type GuardedTag, type PassingFailure, putGuarded } from '../../src/publish/put-guarded.ts';
import type { PutAnswer } from '../../src/registry/client.ts';
import { fakePorts } from './fakes.ts';
import { digest } from './values.ts';

const OURS = digest('ours');
const OLD = digest('old');
const THEIRS = digest('theirs');

function failing(status: number | undefined, wait?: number): PassingFailure {
  const code = status === undefined ? 'NETWORK_FAILED' : 'REGISTRY_FAILED';
  const error = new PublishError(code, `it came to ${status}`, 'hint', status === undefined ? {} : { status });
  return { kind: 'passing', error, ...(wait === undefined ? {} : { wait }) };
}

/** `looks` are what the tag holds in turn, `puts` what becomes of each PUT; the last one is repeated. */
async function tell(
  looks: readonly (Digest | undefined)[],
  puts: readonly (PutAnswer | PassingFailure)[],
  more: Partial<GuardedTag> & { readonly retries?: number; readonly clock?: () => number } = {},
) {
  const log: string[] = [];
  const at = <T>(list: readonly T[], index: number) => list[Math.min(index, list.length - 1)] as T;
  const counted = (word: string) => log.filter((one) => one === word).length;
  const tag: GuardedTag = {
    reference: parseReference('reg.test/t/all:1'),
    guard: { expectDigest: OLD },
    ours: OURS,
    look: async () => {
      log.push('look');
      return at(looks, counted('look') - 1);
    },
    put: async () => {
      log.push('put');
      return at(puts, counted('put') - 1);
    },
    settle: async (error) => {
      throw error;
    },
    check: async (before) => void log.push(`check ${before}`),
    ...more,
  };
  const ports = fakePorts([], more.retries ?? 2);
  const clock = { ...ports.clock, now: more.clock ?? ports.clock.now };
  const answer = await putGuarded(tag, { ...ports, clock }, new AbortController().signal).catch(
    (error: unknown) => error,
  );
  return { answer, log, slept: ports.slept };
}

const STORED: PutAnswer = { kind: 'stored' };

describe('a PUT under a guard', () => {
  it.each([503, 429, undefined])('is looked before each time it goes out, after %s too', async (status) => {
    const { answer, log } = await tell([OLD], [failing(status), STORED]);
    expect(answer).toEqual(STORED);
    expect(log).toEqual(['look', 'put', 'look', 'put', `check ${OLD}`]);
  });

  it.each([
    [503, ['reg.test/t/all:1 (perhaps)']],
    [undefined, ['reg.test/t/all:1 (perhaps)']],
    [429, []],
  ])('does not go out again over what somebody else put there meanwhile, after %s', async (status, moved) => {
    const { answer, log } = await tell([OLD, THEIRS], [failing(status), STORED]);
    expect(answer).toMatchObject({ code: 'TAG_CHANGED', exitCode: 7, moved });
    expect(answer).toMatchObject({ message: expect.stringContaining(`holds ${THEIRS}`) });
    expect(answer).toMatchObject({ message: expect.stringContaining('our own PUT before this look') });
    expect(log).toEqual(['look', 'put', 'look']);
  });

  it('finds a tag that appeared where none may be overwritten', async () => {
    const guard = { noClobber: true };
    const { answer, log } = await tell([undefined, THEIRS], [failing(503), STORED], { guard });
    expect(answer).toMatchObject({ code: 'TAG_EXISTS', exitCode: 7 });
    expect(log).toEqual(['look', 'put', 'look']);
  });

  it('is a success when it was carried out although no answer came', async () => {
    const { answer, log } = await tell([OLD, OURS], [failing(undefined)]);
    expect(answer).toEqual(STORED);
    expect(log).toEqual(['look', 'put', 'look']);
  });

  it('waits as long as the registry asks, and gives up after the retries', async () => {
    const { answer, log, slept } = await tell([OLD], [failing(503, 4000)]);
    expect(answer).toMatchObject({ status: 503 });
    expect(log.filter((one) => one === 'put')).toHaveLength(3);
    expect(slept).toEqual([4000, 4000]);
  });

  it('is given five minutes of 429, which cost no retry; none where the run has no retries', async () => {
    let minute = 0;
    const clock = () => {
      minute += 1;
      return minute * 60_000;
    };
    const { answer, log } = await tell([OLD], [failing(429)], { clock });
    expect(answer).toMatchObject({ status: 429 });
    expect(log.filter((one) => one === 'put').length).toBeGreaterThan(3);
    expect((await tell([OLD], [failing(429)], { retries: 0 })).log).toEqual(['look', 'put']);
  });

  it('may have its login renewed once', async () => {
    expect((await tell([OLD], [failing(401), STORED], { retries: 0 })).answer).toEqual(STORED);
    const refused = await tell([OLD], [failing(401)]);
    expect(refused.answer).toMatchObject({ status: 401 });
    expect(refused.log).toEqual(['look', 'put', 'look', 'put']);
    expect(refused.slept).toEqual([]);
  });
});
