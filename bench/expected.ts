import type { SituationId } from './situations.ts';
import type { Auth } from './token-gate.ts';

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

/** Half of the blobs are there: what the mount was refused for is found by HEAD, and its session cancelled. */
const HALF_REFUSED: Calls = {
  ...REFUSED,
  'blob HEAD': 20,
  'blob HEAD 404': 20,
  'upload DELETE': 20,
  'upload PUT': 20,
};

/** Platforms come from the sources' own indexes, so no config is read; 16 children, 56 blobs. */
const ATTESTED: Calls = {
  'manifest GET': 24, // the sources and their children
  'manifest GET 404': 1,
  'mount POST 201': 56,
  'manifest PUT': 17,
};

type BySituation = Readonly<Record<SituationId, Calls>>;

const PUBLISH: BySituation = {
  mounts: { ...MOUNTED, 'blob HEAD': 40 },
  refused: REFUSED,
  again: { ...AGAIN, 'manifest HEAD': 8 },
  // Nothing tells what is in a repository without a tag: mounted once more, which costs what it costs the first time.
  interrupted: { ...MOUNTED, 'blob HEAD': 40 },
  'interrupted-refused': HALF_REFUSED,
  attested: { ...ATTESTED, 'blob HEAD': 56 },
};

/**
 * What our own program asks of a registry in this job, anonymously: 106, 178 and 25 requests where a limit is set. A
 * change that costs a request is found here, not by a user with a rate limit.
 *
 * In two steps it is 16 for `create` (the sources and their configs) and 90 for `push`, together what `publish` asks: a
 * draft keeps the manifests, so `push` reads none. Refused it is 8 more: a draft keeps no configs, so `push` reads them
 * again to copy them.
 */
const EXPECTED: Readonly<Record<string, BySituation>> = {
  ours: PUBLISH,
  'ours-no-verify': {
    ...PUBLISH,
    mounts: MOUNTED,
    again: AGAIN,
    interrupted: MOUNTED,
    attested: ATTESTED,
  },
  'ours-drafts': {
    ...PUBLISH,
    refused: { ...REFUSED, 'blob GET': 48 },
    'interrupted-refused': { ...HALF_REFUSED, 'blob GET': 48 },
  },
};

/**
 * What tokens add. Without a login nobody knows that there is something to fetch: all nine first reads are refused. With
 * one the tag is read first, alone. A token each to read the sources and the target, and one each to mount from a source.
 */
const ONE_STEP: Readonly<Record<Auth, Calls>> = {
  none: {},
  token: { 'manifest GET 401': 9, 'token GET': 17 },
  login: { 'manifest GET 401': 1, 'token GET': 17 },
};

/** `push` is another process, which knows no token of `create`. */
const TWO_STEPS: Readonly<Record<Auth, Calls>> = {
  none: {},
  token: { 'manifest GET 401': 9, 'token GET': 25 },
  login: { 'manifest GET 401': 2, 'token GET': 25 },
};

/** @param peer one of ours */
export function expectedCalls(peer: string, situation: SituationId, auth: Auth = 'none'): Calls {
  const tokens = peer === 'ours-drafts' ? TWO_STEPS : ONE_STEP;
  return { ...EXPECTED[peer]?.[situation], ...tokens[auth] };
}

/** A GET that was given up because the blob had been found counts like one that was read to its end. */
function comparable(calls: Calls): Calls {
  const sums: Record<string, number> = {};
  for (const [name, count] of Object.entries(calls)) {
    const plain = name.replace(/^(blob GET) 0$/, '$1');
    sums[plain] = (sums[plain] ?? 0) + count;
  }
  return sums;
}

/** One line a class that differs, and the sum; empty when all is as expected. */
export function diffCalls(expected: Calls, answered: Calls): readonly string[] {
  const actual = comparable(answered);
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
