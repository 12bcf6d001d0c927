import { PublishError } from '../errors.ts';
import { nearest } from '../model/nearest.ts';
import { quoted } from '../model/quoted.ts';

// What programs hand in, no compiler may have checked: a slip must not be passed over, since what it leaves out may be
// the check that was to hold a publish back.

/** Whether a value fits, and how to say what would. */
export type Kind = { readonly is: (value: unknown) => boolean; readonly name: string };

const isText = (value: unknown): value is string => typeof value === 'string';
const isList = (value: unknown, item: (value: unknown) => boolean) => Array.isArray(value) && value.every(item);

/** A text; a list of texts; true or false; a function. */
export const TEXT: Kind = { is: isText, name: 'a text' };
export const TEXTS: Kind = { is: (value) => isList(value, isText), name: 'a list of texts' };
export const BOOLEAN: Kind = { is: (value) => typeof value === 'boolean', name: 'true or false' };
export const FUNCTION: Kind = { is: (value) => typeof value === 'function', name: 'a function' };

/** An object whose keys are somebody else's. */
export const OBJECT: Kind = { is: isObject, name: 'an object' };

/** A number of milliseconds or of anything else that cannot be negative. */
export const AMOUNT: Kind = {
  is: (value) => typeof value === 'number' && Number.isFinite(value) && value >= 0,
  name: 'a number that is not negative',
};

/** Values are texts. */
export const PAIRS: Kind = {
  is: (value) => isObject(value) && Object.values(value).every(isText),
  name: 'an object whose values are texts',
};

/** `{platform?, annotations}` for each of them. */
export const PLACED_PAIRS: Kind = {
  is: (value) =>
    isList(
      value,
      (item) =>
        isObject(item) &&
        Object.keys(item).every((key) => key === 'platform' || key === 'annotations') &&
        (item['platform'] === undefined || isText(item['platform'])) &&
        PAIRS.is(item['annotations']),
    ),
  name: 'a list of { platform, annotations }',
};

/** Ends a call. */
export const SIGNAL: Kind = { is: (value) => value instanceof AbortSignal, name: 'an AbortSignal' };

/** One of these words. */
export function oneOf(...words: readonly string[]): Kind {
  return { is: (value) => isText(value) && words.includes(value), name: `one of ${words.join(', ')}` };
}

/**
 * Refuses what is not an object with these fields. One that is undefined was not said.
 *
 * @param what for messages, as in `the options of publish`
 * @throws PublishError `USAGE_INVALID`
 */
export function checkOptions(what: string, options: unknown, kinds: Readonly<Record<string, Kind>>): void {
  if (!isObject(options)) {
    throw wrong(`${what} must be an object, not ${told(options)}`, `It may have ${Object.keys(kinds).join(', ')}.`);
  }
  for (const [name, value] of Object.entries(options)) {
    const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
    if (kind === undefined) {
      const guess = nearest(name, Object.keys(kinds));
      const known = `There are ${Object.keys(kinds).join(', ')}.`;
      const hint = guess === undefined ? known : `Did you mean ${guess}? ${known}`;
      throw wrong(`${what} have no ${quoted(name)}`, hint);
    }
    checkValue(`${name} in ${what}`, value, kind);
  }
}

/**
 * Refuses a value of another kind; undefined was not said.
 *
 * @throws PublishError `USAGE_INVALID`
 */
export function checkValue(what: string, value: unknown, kind: Kind): void {
  if (value === undefined || kind.is(value)) return;
  throw wrong(`${what} must be ${kind.name}, not ${told(value)}`, `Hand in ${kind.name}.`);
}

/**
 * Refuses what is no text to read a reference from.
 *
 * @param call the name of the function, for messages
 * @throws PublishError `USAGE_INVALID`
 */
export function checkReference(call: string, value: unknown): void {
  if (isText(value)) return;
  throw wrong(
    `${call} needs a reference, a text, not ${told(value)}`,
    `Write ${call}('HOST/REPOSITORY:TAG'); options come second.`,
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** The kind of it alone: what stands in it may be anything. */
function told(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function wrong(message: string, hint: string): PublishError {
  return new PublishError('USAGE_INVALID', message, hint);
}
