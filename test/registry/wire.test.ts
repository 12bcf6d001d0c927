import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { createLimiter } from '../../src/http/limiter.ts';
import type { RegistryClient } from '../../src/registry/client.ts';
import { startRegistry } from '../../src/registry-server/index.ts';
import { selfSigned } from '../http/certificate.ts';
import { blobOf, clientOf, failure, type Handler, onClose, realClock, reply, serve, verb } from './fixture.ts';

const BLOB = blobOf(10);
const MANIFEST = { bytes: BLOB.bytes, digest: BLOB.digest, mediaType: 'application/vnd.oci.image.index.v1+json' };

type Verb = (client: RegistryClient, host: string) => Promise<unknown>;

const verbs: readonly [string, string, 'source' | 'target', Verb][] = [
  ['a tag', 'reading HOST/acme/app:v1', 'source', (client) => client.getManifest('acme/app', 'v1', verb())],
  [
    'a look',
    `looking for HOST/acme/app@${BLOB.digest}`,
    'target',
    (client) => client.hasBlob('acme/app', BLOB.digest, verb()),
  ],
  [
    'a small blob',
    `reading HOST/acme/app@${BLOB.digest}`,
    'source',
    (client) => client.readBlob('acme/app', BLOB, verb()),
  ],
  ['a blob', `reading HOST/acme/app@${BLOB.digest}`, 'source', (client) => client.openBlob('acme/app', BLOB, verb())],
  [
    'an upload',
    'opening an upload to HOST/acme/app',
    'target',
    (client) => client.openUpload('acme/app', BLOB.digest, verb()),
  ],
  [
    'a manifest',
    'writing HOST/acme/app:v1',
    'target',
    (client) => client.putManifest('acme/app', 'v1', MANIFEST, verb()),
  ],
  [
    'the bytes of a blob',
    `copying ${BLOB.digest} to HOST/acme/app`,
    'target',
    async (client, host) => {
      const session = { repository: 'acme/app', url: `http://${host}/u/1` };
      const answer = await client.upload(session, BLOB, BLOB.bytes, verb());
      if (answer.kind === 'broken') throw answer.error;
    },
  ],
];

const failures: readonly [PublishError['code'], string, Handler][] = [
  ['NETWORK_FAILED', 'the connection was c', ({ request }) => request.socket.resetAndDestroy()],
  [
    'PROTOCOL_VIOLATED',
    'something that is not HTTP',
    ({ response }) => reply(response, { status: 200, headers: { endless: 'x'.repeat(64 * 1024) } }),
  ],
  [
    'RATE_LIMITED',
    'asks for a wait of 9999 s',
    ({ response }) => reply(response, { status: 429, headers: { 'retry-after': '9999' } }),
  ],
];

describe.each(failures)('%s by the transport', (code, words, handler) => {
  test.each(verbs)('%s: tells what was being done and where, once', async (_name, doing, side, send) => {
    const server = await serve(handler);
    const step = doing.replace('HOST', server.host);
    const error = await failure(send(clientOf(server, { retries: 0 }), server.host));
    expect(error).toMatchObject({ code, side, registry: server.host, repository: 'acme/app' });
    expect(error.message).toMatch(/^[^\n]+$/);
    expect(error.message.startsWith(`${step}: ${server.host}`)).toBe(true);
    expect(error.message).toContain(words);
    expect(error.message.split(step)).toHaveLength(2);
    expect(error.hint).not.toBe('');
  });
});

test('a certificate that is not trusted is told the same way', async () => {
  const registry = await startRegistry({ tls: selfSigned(['127.0.0.1']) });
  onClose(() => registry.close());
  const error = await failure(clientOf(registry).getManifest('acme/app', 'v1', verb()));
  expect(error).toMatchObject({ code: 'TLS_FAILED', side: 'source', registry: registry.host, repository: 'acme/app' });
  expect(error.message.startsWith(`reading ${registry.host}/acme/app:v1: ${registry.host}: `)).toBe(true);
});

test('a body that breaks off for good is told the same way', async () => {
  const server = await serve(({ response }) => {
    response.writeHead(200, { 'content-length': '10' }).write('abc', () => response.destroy());
  });
  const error = await failure(clientOf(server, { retries: 0 }).getManifest('acme/app', 'v1', verb()));
  expect(error).toMatchObject({ code: 'NETWORK_FAILED', side: 'source', repository: 'acme/app' });
  expect(error.message.startsWith(`reading ${server.host}/acme/app:v1: `)).toBe(true);
});

test('what ended the run is thrown as it is', async () => {
  const run = new AbortController();
  const reason = new PublishError('NETWORK_FAILED', 'elsewhere', 'Run it again.');
  const server = await serve(() => run.abort(reason));
  await expect(clientOf(server).getManifest('a', 'v1', { signal: run.signal })).rejects.toBe(reason);
});

describe('a request that may go last', () => {
  test('goes when nobody else waits for a place at its host', async () => {
    const order: string[] = [];
    const server = await serve(async ({ response, seen, whole }) => {
      order.push(seen.url.split('/').at(-2) ?? '');
      await whole;
      reply(response, { status: 404 });
    });
    const limiter = createLimiter({ clock: realClock, requests: 2 });
    const client = clientOf(server, { limiter });
    const places = await Promise.all([
      limiter.take(server.host, verb().signal),
      limiter.take(server.host, verb().signal),
    ]);
    const asked = [
      client.hasBlob('acme/app', BLOB.digest, { ...verb(), last: true }),
      client.hasManifest('acme/app', BLOB.digest, verb()),
    ];
    // Both have come to wait by now.
    await turn();
    places[0]?.release();
    await Promise.all(asked);
    expect(order).toEqual(['manifests', 'blobs']);
  });
});
