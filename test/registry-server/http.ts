import { request } from 'node:http';
import { digestOf } from '../../src/model/digest.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';

export type HttpAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly bytes: Buffer;
  /** `errors[].code` of an error answer. */
  readonly codes: readonly string[];
};

type Options = {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Sent with `Transfer-Encoding: chunked`. */
  readonly chunked?: boolean;
};

/** One request, exactly as written: nothing is followed, retried or added. @throws Error when the connection breaks */
export function send(
  registry: { readonly url: string },
  method: string,
  path: string,
  options: Options = {},
): Promise<HttpAnswer> {
  const body = options.body === undefined ? undefined : Buffer.from(options.body);
  const length: Readonly<Record<string, string>> =
    options.chunked === true ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(body?.length ?? 0) };
  return new Promise((resolve, reject) => {
    const sent = request(
      new URL(path, registry.url),
      {
        method,
        headers: {
          ...(body === undefined && (method === 'GET' || method === 'HEAD') ? {} : length),
          ...options.headers,
        },
      },
      (answer) => {
        const pieces: Buffer[] = [];
        answer.on('data', (piece: Buffer) => pieces.push(piece));
        answer.on('error', reject);
        answer.on('end', () => {
          const bytes = Buffer.concat(pieces);
          const headers = Object.fromEntries(
            Object.entries(answer.headers).map(([name, value]) => [name, String(value)]),
          );
          resolve({ status: answer.statusCode ?? 0, headers, bytes, codes: codesOf(bytes) });
        });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

function codesOf(bytes: Buffer): readonly string[] {
  if (!bytes.toString('utf8').startsWith('{"errors":')) return [];
  const document = JSON.parse(bytes.toString('utf8')) as { readonly errors: readonly { readonly code: string }[] };
  return document.errors.map((error) => error.code);
}

/** Opens a session and gives its Location. */
export async function openUpload(
  registry: RunningRegistry,
  repository: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<string> {
  const answer = await send(registry, 'POST', `/v2/${repository}/blobs/uploads/`, { headers });
  if (answer.status !== 202) throw new Error(`POST was answered ${answer.status}`);
  return answer.headers['location'] ?? '';
}

/** Adds a query parameter to a Location. */
export function withQuery(location: string, parameter: string): string {
  return `${location}${location.includes('?') ? '&' : '?'}${parameter}`;
}

/** POST and one PUT. */
export async function upload(registry: RunningRegistry, repository: string, bytes: Uint8Array): Promise<HttpAnswer> {
  const location = await openUpload(registry, repository);
  return send(registry, 'PUT', withQuery(location, `digest=${digestOf(bytes)}`), { body: bytes });
}

export const octets = { 'content-type': 'application/octet-stream' };
