import { createHash } from 'node:crypto';
import { type Call, OTHER_UPLOADS } from './call.ts';
import { fileSink, memorySink, type Sink } from './content.ts';
import { type Answer, type ReplyHeaders, refuse } from './reply.ts';
import type { RegistryState } from './state.ts';

/** One upload session. It ends with the closing PUT, with DELETE, or never. */
export type Session = {
  readonly id: string;
  readonly repository: string;
  readonly sink: Sink;
  /** Sizes of the PATCHes so far. */
  readonly chunks: number[];
  /** How often its state has changed; every Location carries the state it was given in. */
  serial: number;
  /** One body at a time. */
  busy: boolean;
};

export async function openSession(state: RegistryState, repository: string): Promise<Session> {
  const sink = state.disk === undefined ? memorySink(state.keepUpTo) : await fileSink(state.disk);
  const session: Session = { id: state.newId(), repository, sink, chunks: [], serial: 0, busy: false };
  state.sessions.set(session.id, session);
  return session;
}

/** Forgets the session and what it held. */
export async function dropSession(state: RegistryState, session: Session): Promise<void> {
  state.sessions.delete(session.id);
  await session.sink.discard();
}

/** Location and Range of a session that goes on. */
export async function sessionHeaders(call: Call, state: RegistryState, session: Session): Promise<ReplyHeaders> {
  return { Location: await sessionLocation(call, state, session), Range: `0-${Math.max(0, session.sink.size - 1)}` };
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
    case 'httpScheme':
      return `${call.origin.replace(/^https:/, 'http:')}${path}${query}`;
  }
}

/** Where the committed blob is to be had. */
export function blobLocation(call: Call, state: RegistryState, repository: string, digest: string): string {
  const path = `/v2/${repository}/blobs/${digest}`;
  return state.profile.upload.location.startsWith('relative') ? path : `${call.origin}${path}`;
}

/** A value that only this registry can make for the text. */
export function sign(state: RegistryState, text: string): string {
  return createHash('sha256').update(`${state.secret}\n${text}`).digest('hex').slice(0, 40);
}

function stateQuery(state: RegistryState, session: Session): string {
  const name = state.profile.upload.state;
  return name === 'none' ? '' : `?${name}=${stateValue(state, session, session.serial)}`;
}

function stateValue(state: RegistryState, session: Session, serial: number): string {
  return sign(state, `${session.id} ${serial}`);
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
  return refuse(416, code, 'stale upload state', undefined, await sessionHeaders(call, state, session));
}
