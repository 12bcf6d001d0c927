import type { SituationId } from './measure.ts';

/** Requests by class, as {@link classify} names them. */
export type Calls = Readonly<Record<string, number>>;

const COLD: Calls = {
  'manifest GET': 8, // the sources, by tag
  'manifest GET 404': 1, // the target tag
  'blob GET': 8, // the configs, for the platforms
  'manifest PUT': 9, // the children and the index
};

const MOUNTED: Calls = { ...COLD, 'mount POST 201': 40 };

const REFUSED: Calls = {
  ...COLD,
  'mount POST 202': 40,
  'blob HEAD 404': 40, // a blob may be there although its mount was refused
  'blob GET': 40, // the configs once, for the platforms too: they are PUT from memory
  'upload PUT': 40, // into the session that the 202 has opened
};

const AGAIN: Calls = { 'manifest GET': 9, 'blob GET': 8 };

/**
 * What our own program asks of a registry in this job, anonymously: 106, 178 and 25 requests. A change that costs a
 * request is found here, not by a user with a rate limit.
 *
 * In two steps it is 16 for `create` (the sources and their configs) and 90 for `push`, together what `publish` asks: a
 * draft keeps the manifests, so `push` reads none. Refused it is 8 more: a draft keeps no configs, so `push` reads them
 * again to copy them.
 */
const EXPECTED: Readonly<Record<string, Readonly<Record<SituationId, Calls>>>> = {
  ours: {
    mounts: { ...MOUNTED, 'blob HEAD': 40 },
    refused: REFUSED,
    again: { ...AGAIN, 'manifest HEAD': 8 },
  },
  'ours-no-verify': { mounts: MOUNTED, refused: REFUSED, again: AGAIN },
  'ours-drafts': {
    mounts: { ...MOUNTED, 'blob HEAD': 40 },
    refused: { ...REFUSED, 'blob GET': 48 },
    again: { ...AGAIN, 'manifest HEAD': 8 },
  },
};

const SECONDS_AT_MOST: Readonly<Record<SituationId, number>> = { mounts: 0.8, refused: 1.3, again: 0.5 };

/**
 * Seconds that `publish` may take at a delay of 100 ms; shown, not enforced, since a busy machine is no fault of ours.
 * Undefined for peers of which nothing is promised, and for two commands in a row.
 */
export function secondsAtMost(peer: string, situation: SituationId): number | undefined {
  return peer === 'ours' || peer === 'ours-no-verify' ? SECONDS_AT_MOST[situation] : undefined;
}

/** Undefined for peers of which nothing is promised. */
export function expectedCalls(peer: string, situation: SituationId): Calls | undefined {
  return EXPECTED[peer]?.[situation];
}

/** One line a class that differs, and the sum; empty when all is as expected. */
export function diffCalls(expected: Calls, actual: Calls): readonly string[] {
  const classes = [...new Set([...Object.keys(expected), ...Object.keys(actual)])].sort();
  const lines = classes.flatMap((name) => {
    const [want, got] = [expected[name] ?? 0, actual[name] ?? 0];
    return want === got ? [] : [`${name}: ${got} instead of ${want} (${got > want ? '+' : ''}${got - want})`];
  });
  return lines.length === 0 ? [] : [`${total(actual)} requests instead of ${total(expected)}`, ...lines];
}

function total(calls: Calls): number {
  return Object.values(calls).reduce((sum, count) => sum + count, 0);
}
