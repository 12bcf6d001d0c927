import { describe, expect, it, vi } from 'vitest';
import { createFlights, type Flight } from '../../src/publish/flights.ts';

/** A participant that a test can stop, and whose gate it can open or break. */
function participant() {
  const controller = new AbortController();
  let open: () => void = () => undefined;
  let close: (reason: unknown) => void = () => undefined;
  const gate = new Promise<void>((resolve, reject) => {
    open = resolve;
    close = reject;
  });
  gate.catch(() => undefined);
  return { signal: controller.signal, gate, open, close, stop: (reason: unknown) => controller.abort(reason) };
}

/** Work that ends when it is told, or after it was aborted and has cleaned up. */
function work() {
  let land: (value: string) => void = () => undefined;
  let fail: (reason: unknown) => void = () => undefined;
  let cleanUp: () => void = () => undefined;
  const cleaned = new Promise<void>((resolve) => {
    cleanUp = resolve;
  });
  const seen: Flight[] = [];
  const run = vi.fn((flight: Flight): Promise<string> => {
    seen.push(flight);
    return new Promise((resolve, reject) => {
      land = resolve;
      fail = reject;
      flight.signal.addEventListener('abort', () => void cleaned.then(() => reject(flight.signal.reason)));
    });
  });
  const flight = (): Flight => {
    const [first] = seen;
    if (first === undefined) throw new Error('the work has not begun');
    return first;
  };
  return { run, flight, land: (value: string) => land(value), fail: (reason: unknown) => fail(reason), cleanUp };
}

/** Whether it has settled by now. */
async function isOpen(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const note = () => {
    settled = true;
  };
  promise.then(note, note);
  await new Promise(setImmediate);
  return !settled;
}

const again = () => Promise.reject(new Error('must not be done again'));

describe('a flight', () => {
  it('is flown once, and all who join get what it brings, later ones too', async () => {
    const flights = createFlights<string, string>();
    const { run, land } = work();
    const both = [flights.join('a', participant(), run), flights.join('a', participant(), again)];
    land('there');
    expect(await Promise.all(both)).toEqual(['there', 'there']);
    expect(await flights.join('a', participant(), again)).toBe('there');
    expect(run).toHaveBeenCalledTimes(1);
  });

  it('that fails by itself has failed for all, now and later', async () => {
    const flights = createFlights<string, string>();
    const { run, fail } = work();
    const both = [flights.join('a', participant(), run), flights.join('a', participant(), again)];
    fail('broken');
    expect(await Promise.allSettled(both)).toEqual([
      { status: 'rejected', reason: 'broken' },
      { status: 'rejected', reason: 'broken' },
    ]);
    await expect(flights.join('a', participant(), again)).rejects.toBe('broken');
    expect(flights.has('a')).toBe(true);
  });

  it('goes on for those who are left; who is stopped is let go at once', async () => {
    const flights = createFlights<string, string>();
    const { run, flight, land } = work();
    const [first, second] = [participant(), participant()];
    const left = flights.join('a', first, run);
    const stays = flights.join('a', second, again);
    first.stop('enough');
    await expect(left).rejects.toBe('enough');
    expect(flight().signal.aborted).toBe(false);
    land('there');
    expect(await stays).toBe('there');
  });

  it('is aborted with the last, who waits until it has cleaned up, and is forgotten', async () => {
    const flights = createFlights<string, string>();
    const { run, flight, cleanUp } = work();
    const [first, second] = [participant(), participant()];
    const both = [flights.join('a', first, run), flights.join('a', second, again)] as const;
    first.stop('one');
    second.stop('two');
    await expect(both[0]).rejects.toBe('one');
    expect(flight().signal.reason).toBe('two');
    expect(await isOpen(both[1])).toBe(true);
    expect(flights.has('a')).toBe(false);
    cleanUp();
    await expect(both[1]).rejects.toBe('two');
    expect(await flights.join('a', participant(), async () => 'anew')).toBe('anew');
  });

  it('that was aborted does not take its successor with it', async () => {
    const flights = createFlights<string, string>();
    const { run, cleanUp } = work();
    const first = participant();
    const gone = flights.join('a', first, run);
    first.stop('enough');
    const next = flights.join('a', participant(), async () => 'anew');
    cleanUp();
    await expect(gone).rejects.toBe('enough');
    expect(await next).toBe('anew');
    expect(flights.has('a')).toBe(true);
  });

  it('is not begun by who is stopped already, nor joined', async () => {
    const flights = createFlights<string, string>();
    const { run, land } = work();
    const late = participant();
    late.stop('enough');
    await expect(flights.join('a', late, run)).rejects.toBe('enough');
    expect(run).not.toHaveBeenCalled();
    expect(flights.has('a')).toBe(false);
    const flown = flights.join('a', participant(), run);
    await expect(flights.join('a', late, again)).rejects.toBe('enough');
    land('there');
    expect(await flown).toBe('there');
  });

  it('stopped from within fails for all, and is not tried again', async () => {
    const flights = createFlights<string, string>();
    const { run, flight, cleanUp } = work();
    const flown = flights.join('a', participant(), run);
    flight().stop('a step failed');
    cleanUp();
    await expect(flown).rejects.toBe('a step failed');
    await expect(flights.join('a', participant(), again)).rejects.toBe('a step failed');
  });

  it('listens to nobody any more when it has landed', async () => {
    const flights = createFlights<string, string>();
    const one = participant();
    const removed = vi.spyOn(one.signal, 'removeEventListener');
    await flights.join('a', one, async () => 'there');
    expect(removed).toHaveBeenCalledTimes(1);
    one.stop('late');
    expect(await flights.join('a', one, again)).toBe('there');
  });
});

describe("a flight's gate", () => {
  it('opens with the first gate that opens', async () => {
    const flights = createFlights<string, string>();
    const { run, flight, land } = work();
    const [first, second] = [participant(), participant()];
    const both = [flights.join('a', first, run), flights.join('a', second, again)];
    expect(await isOpen(flight().gate)).toBe(true);
    second.open();
    await flight().gate;
    land('there');
    await Promise.all(both);
  });

  it('is not closed by one that rejects: that one leaves', async () => {
    const flights = createFlights<string, string>();
    const { run, flight, land } = work();
    const [first, second] = [participant(), participant()];
    const left = flights.join('a', first, run);
    const stays = flights.join('a', second, again);
    first.close('contradicting platforms');
    await expect(left).rejects.toBe('contradicting platforms');
    expect(await isOpen(flight().gate)).toBe(true);
    second.open();
    await flight().gate;
    land('there');
    expect(await stays).toBe('there');
  });

  it('that nobody can open any more ends the flight', async () => {
    const flights = createFlights<string, string>();
    const { run, flight, cleanUp } = work();
    const one = participant();
    const flown = flights.join('a', one, run);
    one.close('contradicting platforms');
    await expect(flight().gate).rejects.toBe('contradicting platforms');
    cleanUp();
    await expect(flown).rejects.toBe('contradicting platforms');
    expect(flights.has('a')).toBe(false);
  });

  it('is not opened by one that has left before', async () => {
    const flights = createFlights<string, string>();
    const { run, flight, land } = work();
    const [first, second] = [participant(), participant()];
    const left = flights.join('a', first, run);
    const stays = flights.join('a', second, again);
    first.stop('enough');
    first.open();
    await expect(left).rejects.toBe('enough');
    expect(await isOpen(flight().gate)).toBe(true);
    land('there');
    await stays;
  });

  it('is open for work that nobody gates', async () => {
    const flights = createFlights<string, string>();
    const { signal } = new AbortController();
    const opened = await flights.join('a', { signal }, async ({ gate }) => {
      await gate;
      return 'open';
    });
    expect(opened).toBe('open');
  });
});
