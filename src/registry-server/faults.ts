import type { Call, CallBody, Operation } from './call.ts';
import { type Answer, answer, type Reply, type ReplyHeaders } from './reply.ts';
import { pause } from './state.ts';

/** What happens to a request that a rule matches. */
export type FaultAction =
  /** Answered so; the request is not handled and its body is read away. */
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers?: ReplyHeaders;
      readonly body?: string | Uint8Array;
    }
  /** Handled after a wait. */
  | { readonly kind: 'delay'; readonly milliseconds: number }
  /** RST: before the request is handled, after it was, or when this many bytes of its body were read. */
  | { readonly kind: 'reset'; readonly when: 'before' | 'after' | { readonly bodyBytes: number } }
  /** Handled, then the connection is closed without an answer. */
  | { readonly kind: 'loseAnswer' }
  /** The head promises the whole body; the connection is closed after this many bytes of it. */
  | { readonly kind: 'truncate'; readonly bytes: number }
  /** One bit of the answer's body is wrong, at this offset (default: in the middle). */
  | { readonly kind: 'corrupt'; readonly at?: number }
  /** The answer stops after this many bytes of its body and the connection stays open; absent: no head either. */
  | { readonly kind: 'stall'; readonly bytes?: number }
  /** Handled; headers of the answer are replaced or, with undefined, removed. */
  | { readonly kind: 'headers'; readonly set: Readonly<Record<string, string | readonly string[] | undefined>> };

/** Which requests, how often, and what happens to them. Everything that is given must match. */
export type FaultRule = {
  readonly method?: string;
  readonly operation?: Operation | readonly Operation[];
  readonly repository?: string;
  /** Against the path without the query. */
  readonly path?: RegExp;
  /** Against the raw query. */
  readonly query?: RegExp;
  /** From the nth matching request on, counted from 1. */
  readonly nth?: number;
  /** For this many requests; default 1, `Infinity` for ever. */
  readonly times?: number;
  readonly action: FaultAction;
};

type Armed = { readonly rule: FaultRule; matched: number; left: number };

export type FaultTable = { rules: Armed[] };

export function createFaultTable(): FaultTable {
  return { rules: [] };
}

export function addFault(table: FaultTable, rule: FaultRule): void {
  table.rules.push({ rule, matched: 0, left: rule.times ?? 1 });
}

/** The action for this request, and counts it: the first rule that fits and is not used up. */
export function drawFault(table: FaultTable, call: Call, rawQuery: string): FaultAction | undefined {
  let drawn: FaultAction | undefined;
  for (const armed of table.rules) {
    if (armed.left <= 0 || !matches(armed.rule, call, rawQuery)) continue;
    armed.matched += 1;
    if (drawn !== undefined || armed.matched < (armed.rule.nth ?? 1)) continue;
    armed.left -= 1;
    drawn = armed.rule.action;
  }
  return drawn;
}

function matches(rule: FaultRule, call: Call, rawQuery: string): boolean {
  const operations = typeof rule.operation === 'string' ? [rule.operation] : rule.operation;
  return (
    (rule.method === undefined || rule.method === call.method) &&
    (operations === undefined || operations.includes(call.operation)) &&
    (rule.repository === undefined || rule.repository === call.repository) &&
    (rule.path === undefined || rule.path.test(call.path)) &&
    (rule.query === undefined || rule.query.test(rawQuery))
  );
}

/** Thrown inside the body of a request when the fault is due. */
export class CutHere extends Error {
  override readonly name = 'CutHere';
}

/** A never ending wait is left to the connection: the server closes it, or the client. */
const FOREVER = 2 ** 31 - 1;

/** Handles the call under a fault. */
export async function withFault(
  action: FaultAction | undefined,
  call: Call,
  handle: (call: Call) => Promise<Reply>,
): Promise<Reply> {
  switch (action?.kind) {
    case undefined:
      return handle(call);
    case 'answer':
      return scripted(action);
    case 'delay':
      await pause(action.milliseconds);
      return handle(call);
    case 'reset':
      return reset(action.when, call, handle);
    case 'loseAnswer':
      await handle(call);
      return { kind: 'cut', how: 'close' };
    case 'stall':
      if (action.bytes === undefined) await pause(FOREVER);
      return spoil(await handle(call), (pieces) => stallAfter(pieces, action.bytes ?? 0));
    case 'truncate':
      return spoil(await handle(call), (pieces) => cutAfter(pieces, action.bytes));
    case 'corrupt': {
      const reply = await handle(call);
      const length = reply.kind === 'answer' ? (reply.body?.length ?? 0) : 0;
      return spoil(reply, (pieces) => flipBit(pieces, action.at ?? Math.floor(length / 2)));
    }
    case 'headers':
      return rewrite(await handle(call), action.set);
    default:
      return action satisfies never;
  }
}

function scripted(action: Extract<FaultAction, { kind: 'answer' }>): Answer {
  const bytes = Buffer.from(action.body ?? '');
  return answer(action.status, action.headers ?? {}, { length: bytes.length, pieces: () => [bytes] });
}

async function reset(
  when: 'before' | 'after' | { readonly bodyBytes: number },
  call: Call,
  handle: (call: Call) => Promise<Reply>,
): Promise<Reply> {
  if (typeof when === 'object') return handle({ ...call, body: breakingBody(call.body, when.bodyBytes) });
  if (when === 'after') await handle(call);
  return { kind: 'cut', how: 'reset' };
}

function breakingBody(body: CallBody, limit: number): CallBody {
  const pieces = async function* () {
    let read = 0;
    for await (const piece of body.pieces()) {
      if (read + piece.length >= limit) {
        yield piece.subarray(0, limit - read);
        throw new CutHere('scripted reset');
      }
      read += piece.length;
      yield piece;
    }
  };
  return { length: body.length, pieces };
}

type Pieces = AsyncIterable<Buffer> | Iterable<Buffer>;

function spoil(reply: Reply, change: (pieces: Pieces) => AsyncIterable<Buffer>): Reply {
  if (reply.kind === 'cut' || reply.body === undefined) return reply;
  const { length, pieces } = reply.body;
  return { ...reply, body: { length, pieces: () => change(pieces()) } };
}

async function* cutAfter(pieces: Pieces, limit: number): AsyncGenerator<Buffer> {
  yield* upTo(pieces, limit);
  throw new CutHere('scripted truncation');
}

async function* stallAfter(pieces: Pieces, limit: number): AsyncGenerator<Buffer> {
  yield* upTo(pieces, limit);
  await pause(FOREVER);
}

async function* upTo(pieces: Pieces, limit: number): AsyncGenerator<Buffer> {
  let sent = 0;
  for await (const piece of pieces) {
    if (sent >= limit) return;
    yield piece.subarray(0, limit - sent);
    sent += piece.length;
  }
}

async function* flipBit(pieces: Pieces, at: number): AsyncGenerator<Buffer> {
  let sent = 0;
  for await (const piece of pieces) {
    const here = at - sent;
    sent += piece.length;
    if (here < 0 || here >= piece.length) yield piece;
    else {
      const changed = Buffer.from(piece);
      changed[here] = (changed[here] ?? 0) ^ 1;
      yield changed;
    }
  }
}

function rewrite(reply: Reply, set: Readonly<Record<string, string | readonly string[] | undefined>>): Reply {
  if (reply.kind === 'cut') return reply;
  const changed = new Set(Object.keys(set).map((name) => name.toLowerCase()));
  const kept = Object.entries(reply.headers).filter(([name]) => !changed.has(name.toLowerCase()));
  const added = Object.entries(set).filter(
    (pair): pair is [string, string | readonly string[]] => pair[1] !== undefined,
  );
  return { ...reply, headers: Object.fromEntries([...kept, ...added]) };
}
