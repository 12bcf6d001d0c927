import type { Readable } from 'node:stream';
import type { HttpRequest } from './message.ts';

/**
 * What is handed to the connection.
 *
 * @throws whatever the stream of an empty body fails with
 */
export async function wireBody(body: HttpRequest['body']): Promise<Uint8Array | Readable | undefined> {
  if (body === undefined || body instanceof Uint8Array) return body;
  if (body.length > 0) return body.stream;
  // Nothing is left to be sent, but the stream may still have something to say against it.
  for await (const chunk of body.stream) {
    if ((chunk as Uint8Array).byteLength > 0) throw new Error('a body that was announced as empty is not');
  }
  return new Uint8Array(0);
}

export function isStream(body: HttpRequest['body']): body is Exclude<HttpRequest['body'], Uint8Array | undefined> {
  return body !== undefined && 'stream' in body;
}

/** For another origin than the one that it is meant for. */
export function withoutAuthorization(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'authorization'));
}
