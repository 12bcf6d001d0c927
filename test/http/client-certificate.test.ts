import { afterEach, describe, expect, it } from 'vitest';
import type { PublishError } from '../../src/errors.ts';
import { exchangeFailed } from '../../src/http/failure.ts';
import { selfSigned } from './certificate.ts';
import { ask, client, closeAll, failure, type Handler, resolver, serve, textOf } from './fixture.ts';

afterEach(closeAll);

const NAME = 'registry.example.test';
const server = selfSigned([NAME, 'cdn.example.test']);
const own = selfSigned(['me']);
const ok: Handler = (_request, response) => response.end('ok');

/** A host that takes only those who show `own`. */
async function guarded(maxVersion: 'TLSv1.2' | 'TLSv1.3' = 'TLSv1.3', handler: Handler = ok) {
  const options = { ...server, ca: [own.cert], requestCert: true, rejectUnauthorized: true, maxVersion };
  const { port, requests } = await serve(handler, options);
  const world = {
    ca: [server.cert],
    lookup: resolver(() => ['203.0.113.7']),
    connectTo: () => ({ host: '127.0.0.1', port: String(port) }),
    retries: 0,
  };
  return { requests, world, port };
}

describe.each(['TLSv1.2', 'TLSv1.3'] as const)('a host that asks for a certificate, by %s', (version) => {
  it('is shown the one of its settings', async () => {
    const { world } = await guarded(version);
    const http = client({ ...world, hosts: { [NAME]: { clientCertificate: own } } });
    expect(await textOf(await ask(http, NAME, '/v2/'))).toBe('ok');
  });

  it('is shown it beside an authority of its settings, and beside none', async () => {
    const { world } = await guarded(version);
    const hosts = { [NAME]: { ca: [server.cert], clientCertificate: own } };
    expect(await textOf(await ask(client({ ...world, ca: [], hosts }), NAME, '/v2/'))).toBe('ok');
    const insecure = { [NAME]: { insecure: true, clientCertificate: own } };
    expect(await textOf(await ask(client({ ...world, ca: [], hosts: insecure }), NAME, '/v2/'))).toBe('ok');
  });

  it('and is shown none is told of as such, and its own certificate is not blamed', async () => {
    const { world, requests } = await guarded(version);
    const error = await failure(ask(client(world), NAME, '/v2/'));
    expect(error).toMatchObject({ code: 'TLS_FAILED', exitCode: 5 });
    expect(error.message).toContain('client certificate');
    expect(error.hint).toContain(`certs.d/${NAME}`);
    expect(error.hint).not.toContain('--ca-file');
    expect(requests).toHaveLength(0);
  });
});

describe('a client certificate', () => {
  it('is not shown to another host that the registry names', async () => {
    const seen: boolean[] = [];
    const cdn = await serve(
      (request, response) => {
        const { socket } = request as unknown as { socket: { getPeerCertificate(): object } };
        seen.push(Object.keys(socket.getPeerCertificate() ?? {}).length > 0);
        response.end('bytes');
      },
      { ...server, requestCert: true, rejectUnauthorized: false },
    );
    const { world, port } = await guarded('TLSv1.3', (_request, response) => {
      response.writeHead(307, { location: 'https://cdn.example.test/' }).end();
    });
    const connectTo = (host: string) => ({ host: '127.0.0.1', port: String(host === NAME ? port : cdn.port) });
    const http = client({ ...world, connectTo, hosts: { [NAME]: { clientCertificate: own } } });
    expect(await textOf(await ask(http, NAME, '/'))).toBe('bytes');
    expect(seen).toEqual([false]);
  });
});

describe('an alert of a host', () => {
  const coded = (code: string, message = code) => Object.assign(new Error(message), { code });
  const words = (error: Error) => exchangeFailed(error, { host: NAME, via: undefined, sends: 1 }) as PublishError;

  // As they come from openssl and Go, by node's newer and older names.
  it.each([
    coded('ERR_SSL_TLSV1_ALERT_UNKNOWN_CA'),
    coded('ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE'),
    coded('EPROTO', 'write EPROTO 8:error:0A000418:SSL routines:ssl3_read_bytes:tlsv1 alert unknown ca:../a.c:1:'),
  ])('that does not like our certificate does not blame its own: %s', (error) => {
    expect(words(error)).toMatchObject({ code: 'TLS_FAILED' });
    expect(words(error).message).toContain('it does not accept our client certificate');
  });

  it('for anything else names neither', () => {
    const { message, hint } = words(coded('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION'));
    expect(`${message} ${hint}`).not.toContain('certificate');
  });
});

describe('what is wrong with what a host was laid down with', () => {
  const error = new Error('unfit') as never;

  it('is told when TLS is to be spoken with it, and not otherwise', async () => {
    const { world, requests } = await guarded();
    const hosts = { [NAME]: { problem: error } };
    await expect(ask(client({ ...world, hosts }), NAME, '/')).rejects.toBe(error);
    expect(requests).toHaveLength(0);
    const plain = await serve(ok);
    const connectTo = () => ({ host: '127.0.0.1', port: String(plain.port) });
    const both = { [NAME]: { problem: error, plainHttp: true }, 'another.test': { problem: error } };
    expect(await textOf(await ask(client({ ...world, connectTo, hosts: both }), NAME, '/'))).toBe('ok');
  });
});
