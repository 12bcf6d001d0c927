import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { PublishError } from '../errors.ts';
import type { WireHeaders } from './exchange.ts';
import type { HttpHeaders, HttpResponse } from './message.ts';

/** More than this is not read away: closing the connection is cheaper. In bytes. */
const DISCARD_LIMIT = 64 * 1024;

/** Headers on which decisions rest; to pick one of two would be to let the sender choose what we believe. */
const ONCE: readonly string[] = ['location', 'docker-content-digest', 'content-range', 'content-type'];

/** @see createResponse */
export type ResponseParts = {
  readonly status: number;
  readonly headers: HttpHeaders;
  readonly url: URL;
  readonly sends: number;
  readonly body: Readable;
  /** How many bytes the body is said to have; 0 when it does not say. */
  readonly expected: number;
  /** For messages. */
  readonly host: string;
};

/** An answer whose body has not been read. */
export function createResponse({ status, headers, url, sends, body, expected, host }: ResponseParts): HttpResponse {
  return {
    status,
    headers,
    url,
    sends,
    async bytes(limit) {
      if (expected > limit) {
        body.destroy();
        throw tooLarge(host, limit, status);
      }
      const chunks: Buffer[] = [];
      let length = 0;
      for await (const chunk of body as AsyncIterable<Buffer>) {
        length += chunk.byteLength;
        // Leaving the loop destroys the stream.
        if (length > limit) throw tooLarge(host, limit, status);
        chunks.push(chunk);
      }
      return Buffer.concat(chunks, length);
    },
    stream: () => body,
    discard: () => discardBody(body, expected),
  };
}

/** Reads the rest away, so that the connection can be used again, or closes it when there is much of it. */
export async function discardBody(body: Readable, expected: number): Promise<void> {
  if (body.destroyed) return;
  if (expected > DISCARD_LIMIT) {
    body.destroy();
    return;
  }
  let length = 0;
  body.on('data', (chunk: Buffer) => {
    length += chunk.byteLength;
    if (length > DISCARD_LIMIT) body.destroy();
  });
  // Nobody wants this body: that it broke off is no news.
  await finished(body).catch(() => undefined);
}

function tooLarge(host: string, limit: number, status: number): PublishError {
  return new PublishError(
    'PROTOCOL_VIOLATED',
    `${host} answered with more than ${limit} bytes where at most that many belong`,
    'Check that the address is a registry; a proxy or a login page may be answering for it.',
    { registry: host, status },
  );
}

/**
 * One text for each name, in lower case.
 *
 * @throws PublishError `PROTOCOL_VIOLATED` when a header that decides something came twice
 */
export function joinHeaders(headers: WireHeaders, host: string, status: number): HttpHeaders {
  const joined: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue;
    const key = name.toLowerCase();
    if (typeof value === 'string') {
      joined[key] = value;
    } else if (ONCE.includes(key)) {
      throw violated(host, status, `answered with the header ${key} ${value.length} times`);
    } else {
      joined[key] = value.join(', ');
    }
  }
  return joined;
}

/**
 * A body that was compressed for the way hashes to something else than its digest, and expands without limit. Error
 * pages are let through: nothing is ever expanded, and their status matters more than their words.
 *
 * @throws PublishError `PROTOCOL_VIOLATED`
 * @see CVE-2026-22036
 */
export function checkEncoding(headers: HttpHeaders, host: string, status: number): void {
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? '';
  if (encoding === '' || encoding === 'identity' || status >= 300) return;
  throw violated(
    host,
    status,
    `answered with content-encoding ${JSON.stringify(encoding.slice(0, 60))}, which was not asked for`,
  );
}

function violated(host: string, status: number, what: string): PublishError {
  return new PublishError(
    'PROTOCOL_VIOLATED',
    `${host} ${what}`,
    'Check what stands between you and the registry; a proxy may be changing its answers.',
    { registry: host, status },
  );
}
