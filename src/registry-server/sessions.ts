import { createHash } from 'node:crypto';
import { type Call, OTHER_UPLOADS } from './call.ts';
import { fileSink, memorySink, type Sink } from './content.ts';
import { type Answer, type ReplyHeaders, refuse } from './reply.ts';
import type { RegistryState } from './state.ts';

/** One upload session. It ends with the closing PUT, with DELETE, or never. */
export type Session = {
  readonly id: string;
  readonly repository: string;
  sink: Sink;
  /** Sizes of the PATCHes so far. */
  readonly chunks: number[];
  /** How often its state has changed; every Location carries the state it was given in. */
  serial: number;
  /** One body at a time. */
  busy: boolean;
};

export async function openSession(state: RegistryState, repository: string, id = state.newId()): Promise<Session> {
  const session: Session = { id, repository, sink: await newSink(state), chunks: [], serial: 0, busy: false };
  state.sessions.set(session.id, session);
  return session;
}

function newSink(state: RegistryState): Sink | Promise<Sink> {
  return state.disk === undefined ? memorySink(state.keepUpTo) : fileSink(state.disk);
}

/** What becomes of a session whose bytes did not hash to the digest; a PUT after chunks ends it in any case. */
export async function afterBadDigest(state: RegistryState, session: Session): Promise<void> {
  const { afterBadDigest: then } = state.profile.upload;
  if (then === 'keeps') return;
  if (then === 'gone' || session.chunks.length > 0) return dropSession(state, session);
  await session.sink.discard();
  session.sink = await newSink(state);
  session.serial = 0;
}

/** Forgets the session and what it held. */
export async function dropSession(state: RegistryState, session: Session): Promise<void> {
  state.sessions.delete(session.id);
  await session.sink.discard();
}

/** Location and Range of a session that goes on. */
export async function sessionHeaders(call: Call, state: RegistryState, session: Session): Promise<ReplyHeaders> {
  const { size } = session.sink;
  const range = size === 0 ? state.profile.upload.emptyRange : `0-${size - 1}`;
  return { Location: await sessionLocation(call, state, session), Range: range };
}

/** With a 416: where to go on, from the registries that say so. */
export async function rangeHelp(call: Call, state: RegistryState, session: Session): Promise<ReplyHeaders> {
  return state.profile.upload.rangeHelp ? sessionHeaders(call, state, session) : {};
}

/** Where the session goes on, in the form that the profile gives it. */
export async function sessionLocation(call: Call, state: RegistryState, session: Session): Promise<string> {
  const path = `/v2/${session.repository}/blobs/uploads/${session.id}`;
  const query = stateQuery(state, session);
  switch (state.profile.upload.location) {
    case 'absolute':
      return `${call.origin}${path}${query}`;
    case 'relative':
      return `${path}${query}`;
    case 'relativeNoQuery':
      return path;
    case 'otherPath':
      return `${call.origin}${OTHER_UPLOADS}${session.repository}/uploads/${session.id}${query}`;
    case 'otherHost': {
      const signed = `X-Signature=${sign(state, session.id)}`;
      return `${await state.storageOrigin()}${path}${query === '' ? '?' : `${query}&`}${signed}`;
    }
    case 'dropPort443':
      return `${call.origin.replace(/:443$/, '')}${path}${query}`;
    case 'httpScheme':
      return `${call.origin.replace(/^https:/, 'http:')}${path}${query}`;
  }
}

/** Where the committed blob is to be had. */
export function blobLocation(call: Call, state: RegistryState, repository: string, digest: string): ReplyHeaders {
  return storedLocation(call, state, `/v2/${repository}/blobs/${digest}`);
}

/** Where something that was stored is to be had. */
export function storedLocation(call: Call, state: RegistryState, path: string): ReplyHeaders {
  const { storedLocation: told, location } = state.profile.upload;
  if (!told) return {};
  return { Location: location.startsWith('relative') ? path : `${call.origin}${path}` };
}

/** A value that only this registry can make for the text. */
export function sign(state: RegistryState, text: string): string {
  return createHash('sha256').update(`${state.secret}\n${text}`).digest('hex').slice(0, 40);
}

function stateQuery(state: RegistryState, session: Session): string {
  const name = state.profile.upload.state;
  return name === 'none' ? '' : `?${name}=${stateValue(state, session, session.serial)}`;
}

function stateValue(state: RegistryState, session: { readonly id: string }, serial: number): string {
  return sign(state, `${session.id} ${serial}`);
}

/** Whether the state in the query was ever made for this session id; only so many states are tried. */
export function isStateOf(call: Call, state: RegistryState, id: string): boolean {
  const given = call.query.get(state.profile.upload.state);
  return Array.from({ length: 64 }, (_, serial) => stateValue(state, { id }, serial)).some((value) => value === given);
}

/**
 * Refuses a Location that is not the newest one, as distribution (`_state`) and serverless-registry (`_stateHash`) do.
 *
 * @see facts of 2026-11-30: distribution 3.1.2 answers 416, 2.8.2 answers 404, serverless-registry 416 or 500
 */
export async function checkState(call: Call, state: RegistryState, session: Session): Promise<Answer | undefined> {
  const { state: name, stale } = state.profile.upload;
  if (name === 'none' || state.profile.upload.location === 'relativeNoQuery') return undefined;
  // distribution 3 answers GET and DELETE on any Location that it signed; 2.8.2 only on the newest one.
  if ((call.method === 'GET' || call.method === 'DELETE') && stale !== '404') return undefined;
  const given = call.query.get(name);
  if (given === stateValue(state, session, session.serial)) return undefined;
  const known = Array.from({ length: session.serial }, (_, serial) => stateValue(state, session, serial));
  if (given === null || !known.includes(given)) {
    return name === '_stateHash'
      ? refuse(500, 'INTERNAL_ERROR', 'no state hash')
      : refuse(404, 'BLOB_UPLOAD_INVALID', 'blob upload invalid');
  }
  if (stale === '500') return refuse(500, 'INTERNAL_ERROR', 'stale upload state');
  if (stale === '404') return refuse(404, 'BLOB_UPLOAD_INVALID', 'blob upload invalid');
  const code = name === '_stateHash' ? 'RANGE_ERROR' : 'RANGE_INVALID';
  return refuse(416, code, 'stale upload state', undefined, await rangeHelp(call, state, session));
}
