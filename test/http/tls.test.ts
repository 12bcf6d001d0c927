import { createServer } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, it } from 'vitest';
import { checkIdentity } from '../../src/http/server-identity.ts';
import { selfSigned } from './certificate.ts';
import { ask, client, closeAll, listen, textOf } from './fixture.ts';

afterEach(closeAll);

const loopback = selfSigned(['127.0.0.1', '::1']);

/** A registry that closes each connection after one answer, and what it saw of them. */
async function forgetful(version: 'TLSv1.2' | 'TLSv1.3') {
  const resumed: boolean[] = [];
  const protocols: unknown[] = [];
  const server = createServer({ ...loopback, minVersion: version, maxVersion: version }, (request, response) => {
    const socket = request.socket as TLSSocket;
    resumed.push(socket.isSessionReused());
    protocols.push([socket.getProtocol(), socket.alpnProtocol]);
    response.setHeader('connection', 'close').end('ok');
  });
  const { host } = await listen(server, { requests: [], connections: () => 0, open: () => 0 });
  return { host, resumed, protocols };
}

/** What has no owner is gone afterwards. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
}

describe('the TLS session of an origin', () => {
  it.each(['TLSv1.2', 'TLSv1.3'] as const)('is taken up by the next connection, with %s', async (version) => {
    const { host, resumed, protocols } = await forgetful(version);
    const http = client({ ca: [loopback.cert] });
    for (let number = 0; number < 3; number += 1) {
      expect(await textOf(await ask(http, host, '/v2/'))).toBe('ok');
      collectGarbage();
    }
    expect(resumed).toEqual([false, true, true]);
    expect(protocols).toEqual(Array.from({ length: 3 }, () => [version, 'http/1.1']));
  });

  it('is not taken up by a client that does not trust the certificate', async () => {
    const { host, resumed } = await forgetful('TLSv1.3');
    const trusting = client({ hosts: { [host]: { insecure: true } } });
    await textOf(await ask(trusting, host, '/v2/'));
    await expect(ask(client({ retries: 0 }), host, '/v2/')).rejects.toMatchObject({ code: 'TLS_FAILED' });
    expect(resumed).toEqual([false]);
  });
});

describe('an open TLS connection', () => {
  it('serves the next steps of a run', async () => {
    const sockets = new Set<object>();
    const server = createServer(loopback, (request, response) => {
      sockets.add(request.socket);
      response.end('ok');
    });
    const { host } = await listen(server, { requests: [], connections: () => 0, open: () => 0 });
    const http = client({ ca: [loopback.cert] });
    const step = () => Promise.all(Array.from({ length: 4 }, async () => textOf(await ask(http, host, '/v2/'))));
    await step();
    const opened = sockets.size;
    await step();
    await step();
    expect(sockets.size).toBe(opened);
  });
});

describe('the identity of a server that is named by its address', () => {
  const certificateOf = async (names: readonly string[]) => {
    const { X509Certificate } = await import('node:crypto');
    return new X509Certificate(selfSigned(names).cert).toLegacyObject() as Parameters<typeof checkIdentity>[1];
  };

  it.each([
    ['127.0.0.1', ['127.0.0.1'], true],
    ['127.0.0.1', ['127.0.0.2'], false],
    ['::1', ['::1'], true],
    ['0:0:0:0:0:0:0:1', ['::1'], true],
    ['2001:db8::7', ['2001:db8::8'], false],
    ['::1', ['registry.test'], false],
    ['registry.test', ['registry.test'], true],
    ['other.test', ['registry.test'], false],
    ['registry.test', ['::1'], false],
  ])('%s with a certificate for %j: %s', async (host, names, right) => {
    const error = checkIdentity(host, await certificateOf(names));
    expect(error === undefined).toBe(right);
    if (!right) expect(error).toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  });
});
