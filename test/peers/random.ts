/** Choices that are the same on every machine. */
export type Random = {
  /** A whole number from 0, less than `limit`. */
  below(limit: number): number;
  pick<Value>(values: readonly Value[]): Value;
  shuffled<Value>(values: readonly Value[]): readonly Value[];
};

/** mulberry32: small, and the same everywhere. */
export function makeRandom(seed: number): Random {
  let state = seed | 0;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    below,
    pick: (values) => {
      const value = values[below(values.length)];
      if (value === undefined) throw new Error('nothing to pick from');
      return value;
    },
    shuffled: (values) => {
      const keyed = values.map((value) => ({ value, key: next() }));
      return keyed.sort((one, other) => one.key - other.key).map(({ value }) => value);
    },
  };
}
