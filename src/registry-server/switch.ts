/** The kinds of switches: which values each takes, and how they are written in lists. */

/** One decision of the registry that profiles may turn. */
export type Switch<T> = {
  readonly initial: T;
  /** For messages and lists, in the words of the profiles. */
  readonly values: string;
  readonly accepts: (value: unknown) => boolean;
  /** Completes a value that may be given in part. */
  readonly complete?: (value: unknown) => T;
};

/** `'off(n)'` in the table stands for `'off(404)'` and the like. */
export type Expanded<V extends string> = V extends `${infer Head}(n)` ? `${Head}(${number})` : V;

/** @returns a switch over words; the first is the default */
export function oneOf<const V extends readonly [string, ...string[]]>(...values: V): Switch<Expanded<V[number]>> {
  const accepts = (value: unknown): boolean => {
    if (typeof value !== 'string') return false;
    const call = /^([\w+]+)\(\d+(?:\.\d+)?\)$/.exec(value);
    return call === null ? values.includes(value) && !value.endsWith('(n)') : values.includes(`${call[1]}(n)`);
  };
  return { initial: values[0] as Expanded<V[number]>, values: values.join(', '), accepts };
}

export function flag(initial: boolean): Switch<boolean> {
  return { initial, values: initial ? 'true, false' : 'false, true', accepts: (value) => typeof value === 'boolean' };
}

const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0;

export function count(initial: number): Switch<number> {
  return { initial, values: `${initial}, any number from 0`, accepts: isCount };
}

/** `'none'` or an object; absent fields take the given defaults. */
export function noneOr<T extends object>(defaults: T): Switch<'none' | T> {
  const fields = Object.entries(defaults);
  const accepts = (value: unknown): boolean =>
    value === 'none' ||
    (isObject(value) &&
      Object.entries(value).every(([key, field]) => fields.some(([name, like]) => name === key && alike(field, like))));
  const complete = (value: unknown): 'none' | T => (isObject(value) ? { ...defaults, ...value } : 'none');
  return { initial: 'none', values: `none, {${fields.map(([name]) => name).join(', ')}}`, accepts, complete };
}

/** An object that is always there; absent fields take the given defaults. */
export function record<T extends object>(defaults: T): Switch<T> {
  const inner = noneOr(defaults);
  return {
    initial: defaults,
    values: inner.values.slice('none, '.length),
    accepts: (value) => value !== 'none' && inner.accepts(value),
    complete: (value) => ({ ...defaults, ...(isObject(value) ? value : {}) }),
  };
}

export function texts(): Switch<readonly string[]> {
  const accepts = (value: unknown): boolean => Array.isArray(value) && value.every((text) => typeof text === 'string');
  return { initial: [], values: '[], list of texts', accepts };
}

export const text: Switch<string> = {
  initial: 'none',
  values: 'none, text',
  accepts: (value) => typeof value === 'string',
};

export function isSwitch(entry: object): entry is Switch<unknown> {
  return 'accepts' in entry && 'initial' in entry;
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function alike(field: unknown, like: unknown): boolean {
  return typeof like === 'number' ? isCount(field) : typeof field === typeof like;
}
