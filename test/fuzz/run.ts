import { Script } from 'node:vm';
import { makeRandom } from '../peers/random.ts';
import { hostileShapes, makeInput } from './mutate.ts';
import type { Target } from './target.ts';

/** A text that broke a rule. */
export type Finding = { readonly input: string; readonly error: unknown };

/** What a parser was put through. */
export type Outcome = {
  readonly inputs: number;
  /** How many of them the parser took. */
  readonly taken: number;
  readonly finding: Finding | undefined;
};

/** Lengths of hostile texts, in UTF-16 units. */
const SHORT = 8 * 1024;
const LONG = 64 * 1024;

/** Texts that were taken and are changed further. */
const POOL = 256;

/** Inputs between two looks at the time limit. */
const ROUND = 500;

/**
 * Longest time for a round in ms. The mean input takes 10 µs and a hostile one of 64 KiB a few ms, so that only what
 * would never end comes near.
 */
const ROUND_LIMIT = 30_000;

/**
 * Puts a parser through that many texts. The same seed brings the same texts. Stops at the first finding, which includes
 * one that does not come back: node breaks off what runs too long.
 */
export async function fuzz(target: Target, inputs: number, seed: number): Promise<Outcome> {
  const random = makeRandom(seed ^ hashOf(target.name));
  const wanted = Math.ceil(inputs / (target.share ?? 1));
  const known = [...target.corpus, ...hostileShapes(target, SHORT)];
  const pool: string[] = [];
  let [taken, done] = [0, 0];
  let input = '';

  const keep = (wasTaken: boolean) => {
    if (!wasTaken) return;
    taken += 1;
    if (pool.length < POOL) pool.push(input);
    else pool[random.below(POOL)] = input;
  };
  const next = (): boolean | Promise<boolean> => {
    input = known[done] ?? makeInput(target, pool, random);
    done += 1;
    return target.check(input);
  };
  /** Ends early with what has to be waited for. */
  const round = (): Promise<boolean> | undefined => {
    for (const end = Math.min(done + ROUND, wanted); done < end; ) {
      const result = next();
      if (typeof result !== 'boolean') return result;
      keep(result);
    }
    return undefined;
  };

  try {
    while (done < wanted) {
      const later = guarded(round, ROUND_LIMIT);
      if (later !== undefined) keep(await later);
    }
  } catch (error) {
    return { inputs: done, taken, finding: { input, error } };
  }
  return { inputs: done, taken, finding: undefined };
}

/** Calls it, and breaks it off with an error when it has not returned after so many ms. */
function guarded<Value>(call: () => Value, limit: number): Value {
  const world = globalThis as { fuzzed?: () => Value };
  world.fuzzed = call;
  return CALL.runInThisContext({ timeout: limit }) as Value;
}

const CALL = new Script('globalThis.fuzzed()');

/** FNV-1a, so that each parser has texts of its own under one seed. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  return hash;
}

/** Whatever ends in this time, in ms, is quick enough: what grows with the square takes 50 and more. */
const QUICK = 40;

/** Eight times the text may take so many times as long; with the square it would be 64. */
const GROWTH = 28;

/** A noisy machine slows some measurements down, hardly all of so many. */
const MEASUREMENTS = 7;

/** A shape that takes out of proportion longer when it is longer. */
export type Slowness = { readonly shape: string; readonly short: number; readonly long: number };

/** Texts of 64 KiB must take in proportion as long as texts of 8 KiB. Times in ms, of which the shortest counts. */
export async function measureGrowth(target: Target): Promise<readonly Slowness[]> {
  const long = hostileShapes(target, LONG);
  const found: Slowness[] = [];
  const step = Math.ceil((target.share ?? 1) / 4);
  for (const [index, shape] of hostileShapes(target, SHORT).entries()) {
    if (index % step !== 0) continue;
    const other = long[index] ?? '';
    let [short, least] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (
      let left = MEASUREMENTS;
      left > 0 && least > QUICK && !(least < short * GROWTH && left < MEASUREMENTS - 1);
      left -= 1
    ) {
      least = Math.min(least, await timeOf(target, other));
      if (least > QUICK) short = Math.min(short, await timeOf(target, shape), await timeOf(target, shape));
    }
    if (least > QUICK && least >= short * GROWTH) found.push({ shape: other.slice(0, 80), short, long: least });
  }
  return found;
}

/** In ms; of the processor, since a busy machine makes everything else wait too. */
async function timeOf({ check }: Target, text: string): Promise<number> {
  const [start, before] = [performance.now(), process.cpuUsage()];
  const later = guarded(() => check(text), ROUND_LIMIT);
  if (typeof later !== 'boolean') await later;
  const { user, system } = process.cpuUsage(before);
  return Math.min(performance.now() - start, (user + system) / 1000);
}
