import { describe, expect, it } from 'vitest';
import { onAbort } from '../../src/http/promises.ts';

describe('what is to be done when a signal is aborted', () => {
  it('is done in the order in which it was said, but for what was taken back', () => {
    const controller = new AbortController();
    const done: number[] = [];
    const [, second] = [1, 2, 3].map((number) => onAbort(controller.signal, () => done.push(number)));
    second?.();
    controller.abort();
    expect(done).toEqual([1, 3]);
  });

  it('is not done when it is taken back by what is done before it', () => {
    const controller = new AbortController();
    const done: string[] = [];
    let takeBack = (): void => undefined;
    onAbort(controller.signal, () => takeBack());
    takeBack = onAbort(controller.signal, () => done.push('second'));
    controller.abort();
    expect(done).toEqual([]);
  });

  it('is never done when it is said too late, not even by what is done', () => {
    const controller = new AbortController();
    const done: string[] = [];
    const late = () => onAbort(controller.signal, () => done.push('late'));
    onAbort(controller.signal, () => void late());
    controller.abort();
    late();
    expect(done).toEqual([]);
  });

  it('is done twice when it is said twice', () => {
    const controller = new AbortController();
    let times = 0;
    const action = () => {
      times += 1;
    };
    onAbort(controller.signal, action);
    const takeBack = onAbort(controller.signal, action);
    takeBack();
    onAbort(controller.signal, action);
    controller.abort();
    expect(times).toBe(2);
  });

  it('costs no more for the ten thousandth than for the first', () => {
    const { signal } = new AbortController();
    const listening = signal.addEventListener.bind(signal);
    let listeners = 0;
    signal.addEventListener = (...all: Parameters<typeof listening>) => {
      listeners += 1;
      listening(...all);
    };
    const all = Array.from({ length: 10_000 }, () => onAbort(signal, () => undefined));
    expect(listeners).toBe(1);
    for (const takeBack of all) takeBack();
  });
});
