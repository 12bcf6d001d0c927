import type { FaultAction, FaultRule } from '../../src/registry-server/index.ts';
import { type Outcome, type Setting, SOURCES, type Stage, TAG, TARGET } from './matrix-stage.ts';

/** One arrangement of a row: what is done to which request, and how the run must end. */
export type Case = Setting & {
  /** The verb, and what of the row's fault it gets. */
  readonly name: string;
  readonly exit: number;
  /** Of the message, the hint and, in a good run, the warnings. */
  readonly says?: readonly (string | RegExp)[];
  /** Upload sessions whose address was lost with an answer, so that nobody can cancel them. Default 0. */
  readonly leaves?: number;
  /** Somebody else moves the tag, too. */
  readonly foreign?: true;
  /** False where a run afterwards cannot succeed, or proves nothing. */
  readonly again?: false;
};

/** One row of the fault matrix; `promise` is what stands in docs/reliability.md. */
export type Row = {
  readonly number: number;
  readonly fault: string;
  readonly promise: string;
  readonly cases: readonly Case[];
  /** Another file with tests of it. */
  readonly also?: string;
};

/** Requests of a publish of two images, by what they are for. */
export const VERBS = {
  source: { operation: 'manifestGet', repository: SOURCES[0] },
  tag: { operation: 'manifestGet', repository: TARGET, path: new RegExp(`/manifests/${TAG}$`) },
  config: { operation: 'blobGet', nth: 1 },
  head: { operation: 'blobHead', repository: TARGET },
  mount: { operation: 'mount' },
  open: { operation: 'uploadPost' },
  layer: { operation: 'blobGet', nth: 3 },
  put: { operation: 'uploadPut' },
  child: { operation: 'manifestPut', path: /\/manifests\/sha256:/ },
  move: { operation: 'manifestPut', path: new RegExp(`/manifests/${TAG}$`) },
} as const satisfies Readonly<Record<string, Omit<FaultRule, 'action'>>>;

export type Verb = keyof typeof VERBS;

export const WORDS: Readonly<Record<Verb, string>> = {
  source: 'GET of a source',
  tag: 'GET of the target tag',
  config: 'GET of a config',
  head: 'HEAD of a blob',
  mount: 'mount',
  open: 'POST of an upload',
  layer: 'GET of a layer',
  put: 'PUT of a blob',
  child: 'PUT of a child',
  move: 'PUT of the tag',
};

/** For ever. */
export const ALWAYS = Number.POSITIVE_INFINITY;

/** Mounts are not taken, so that blobs travel. */
export const COPIED = { mount: { mode: 'ignore' } } as const;

/** Where each verb is to be met: mounts at a registry that takes them, uploads at one that does not. */
export function settingOf(verb: Verb): Pick<Setting, 'profile' | 'apart'> {
  if (verb === 'open') return { apart: true };
  return ['layer', 'put'].includes(verb) ? { profile: COPIED } : {};
}

/** The fault at the verb, at the registry that is asked for it. */
export function fault(verb: Verb, action: FaultAction, times = ALWAYS): (stage: Stage) => void {
  return ({ registry, source }) => {
    const reads = verb === 'source' || verb === 'config' || verb === 'layer';
    (reads ? source : registry).addFault({ ...VERBS[verb], times, action });
  };
}

/** One case for each verb. */
export function each(
  verbs: Readonly<Partial<Record<Verb, number>>>,
  what: string,
  action: FaultAction,
  more: Omit<Partial<Case>, 'arrange'> & { readonly times?: number } = {},
): readonly Case[] {
  const { times, ...rest } = more;
  return (Object.entries(verbs) as [Verb, number][]).map(([verb, exit]) => ({
    name: `${WORDS[verb]}: ${what}`,
    exit,
    ...settingOf(verb),
    ...rest,
    arrange: fault(verb, action, times),
  }));
}

/** An answer in a registry's words. */
export function answer(
  status: number,
  code = '',
  message = 'scripted',
  headers: Record<string, string> = {},
): FaultAction {
  const body = code === '' ? '' : JSON.stringify({ errors: [{ code, message }] });
  return { kind: 'answer', status, body, headers: { 'Content-Type': 'application/json', ...headers } };
}

/** Several arrangements one after the other. */
export function all(...some: readonly ((stage: Stage) => void | Promise<void>)[]): (stage: Stage) => Promise<void> {
  return async (stage) => {
    for (const one of some) await one(stage);
  };
}

/** `text` unless it is so. */
export function unless(so: boolean, text: string): readonly string[] {
  return so ? [] : [text];
}

/** How many requests of the verb came. */
export function timesAsked({ journal }: Outcome, verb: Verb): number {
  const rule: Omit<FaultRule, 'action'> = VERBS[verb];
  return journal.filter(
    ({ operation, repository, path }) =>
      operation === rule.operation &&
      (rule.repository === undefined || rule.repository === repository) &&
      (rule.path === undefined || rule.path.test(path)),
  ).length;
}

/** The first layer breaks off once, and this is the answer when its rest is asked for. */
export function brokenThen(action: FaultAction): (stage: Stage) => void {
  return ({ source, images }) => {
    const path = new RegExp(images[0]?.blobs[1]?.descriptor.digest ?? 'none');
    const rule = { operation: 'blobGet', repository: SOURCES[0], path } as const;
    source.addFault({ ...rule, action: { kind: 'truncate', bytes: 1000 } });
    source.addFault({ ...rule, nth: 2, action });
  };
}
