import { describe, expect, it } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { putUntilTaken } from '../../src/publish/put.ts';
import type { PutAnswer } from '../../src/registry/client.ts';

const error = new PublishError('MANIFEST_REFUSED', 'refused', 'hint');
const incomplete: PutAnswer = { kind: 'incomplete', error };
const signal = new AbortController().signal;

function clock(): { slept: number[]; now(): number; epoch(): number; sleep(ms: number): Promise<void> } {
  const slept: number[] = [];
  return { slept, now: () => 0, epoch: () => 0, sleep: async (ms) => void slept.push(ms) };
}

function answers(...list: PutAnswer[]): { puts: () => number; put: () => Promise<PutAnswer> } {
  let puts = 0;
  return { puts: () => puts, put: async () => list[Math.min(puts++, list.length - 1)] ?? incomplete };
}

describe('putUntilTaken', () => {
  it('repairs and puts again, three rounds at most', async () => {
    const asked = answers(incomplete);
    const rounds: number[] = [];
    const answer = await putUntilTaken(
      asked.put,
      async (round) => {
        rounds.push(round);
        return 'repaired';
      },
      clock(),
      signal,
    );
    expect(answer.kind).toBe('refused');
    expect(rounds).toEqual([0, 1, 2]);
    expect(asked.puts()).toBe(4);
  });

  it('with nothing missing asks once more after a second, then believes the registry', async () => {
    const asked = answers(incomplete);
    const time = clock();
    const answer = await putUntilTaken(asked.put, async () => 'nothing missing', time, signal);
    expect(answer.kind).toBe('refused');
    expect(asked.puts()).toBe(2);
    expect(time.slept).toEqual([1000]);
  });

  it('stops as soon as the manifest is stored', async () => {
    const asked = answers(incomplete, { kind: 'stored' });
    expect(await putUntilTaken(asked.put, async () => 'repaired', clock(), signal)).toEqual({ kind: 'stored' });
    expect(asked.puts()).toBe(2);
  });

  it('repairs nothing for an answer that is final', async () => {
    const asked = answers({ kind: 'immutable', error });
    const never = async (): Promise<never> => {
      throw new Error('must not be called');
    };
    expect((await putUntilTaken(asked.put, never, clock(), signal)).kind).toBe('immutable');
  });
});
