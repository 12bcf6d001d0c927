import { createServer as createNetServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { selfSigned } from './certificate.ts';
import { ask, client, closeAll, failure, type Handler, listen, resolver, serve, textOf } from './fixture.ts';

afterEach(closeAll);

const ok: Handler = (_request, response) => response.end('ok');
const certificate = selfSigned(['127.0.0.1', 'localhost', 'registry.example.test', 'registry-1.docker.io']);

/** Names resolve to an address that is nobody's; connections go to the port given for `name:port`. */
function world(ports: Readonly<Record<string, number>>) {
  return {
    lookup: resolver(() => ['203.0.113.7']),
    connectTo: (host: string, port: string) => ({ host: '127.0.0.1', port: String(ports[`${host}:${port}`] ?? 1) }),
  };
}

describe('a loopback host', () => {
  it('is spoken to by http first', async () => {
    const server = await serve(ok);
    const transport = client();
    expect(transport.baseUrl(server.host).href).toBe(`http://${server.host}/`);
    const response = await ask(transport, server.host, '/v2/');
    await response.discard();
    expect(response.url.protocol).toBe('http:');
  });

  it('is spoken to by https when TLS answers, which is remembered', async () => {
    const server = await serve(ok, certificate);
    const transport = client({ ca: [certificate.cert] });
    expect(await textOf(await ask(transport, server.host, '/v2/'))).toBe('ok');
    expect(transport.baseUrl(server.host).protocol).toBe('https:');
    const sends = transport.events.length;
    await (await ask(transport, server.host, '/v2/')).discard();
    expect(transport.events.length).toBe(sends + 1);
    expect(transport.clock.slept).toEqual([]);
  });

  it('is found out by all first requests at once, none waiting for another', async () => {
    let waiting: (() => void)[] = [];
    const server = await serve((_request, response) => {
      waiting.push(() => response.end('ok'));
      if (waiting.length < 8) return;
      for (const answer of waiting) answer();
      waiting = [];
    }, certificate);
    const transport = client({ ca: [certificate.cert] });
    const all = Array.from({ length: 8 }, (_, index) => ask(transport, server.host, `/${index}`, { method: 'POST' }));
    for (const response of await Promise.all(all)) expect(await textOf(response)).toBe('ok');
    expect(server.requests.map(({ url }) => url).sort()).toEqual(['/0', '/1', '/2', '/3', '/4', '/5', '/6', '/7']);
  });

  it('is not taken at its word when the run ends while that is being found out', async () => {
    const server = await serve((_request, response) => {
      response
        .writeHead(400, { 'content-type': 'text/plain' })
        .end('Client sent an HTTP request to an HTTPS server.\n');
    });
    const run = new AbortController();
    const reason = new Error('another request has met the certificate');
    const transport = client({ onEvent: () => run.abort(reason) });
    await expect(ask(transport, server.host, '/v2/', { signal: run.signal })).rejects.toBe(reason);
  });

  it.each([
    ['Go', 'HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n'],
    [
      'nginx',
      'HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<title>400 The plain HTTP request was sent to HTTPS port</title>',
    ],
  ])('is tried by https when it complains as %s does', async (_name, words) => {
    const secure = await serve(ok, certificate);
    // Plain HTTP gets the complaint; anything that looks like TLS goes to the secure server.
    const { connect } = await import('node:net');
    const front = await listen(
      createNetServer((socket) =>
        socket.once('data', (first) => {
          if (first[0] !== 0x16) return socket.end(words);
          const back = connect(secure.port, '127.0.0.1');
          back.write(first);
          back.pipe(socket).pipe(back);
          back.on('error', () => socket.destroy());
          return undefined;
        }),
      ),
      secure,
    );
    for (const method of ['GET', 'HEAD', 'POST'] as const) {
      const transport = client({ ca: [certificate.cert] });
      const response = await ask(transport, front.host, '/v2/', { method });
      expect(response).toMatchObject({ status: 200, sends: 1 });
      expect(response.url.protocol).toBe('https:');
      await response.discard();
    }
  });

  it('keeps to http when a 400 is its own', async () => {
    const server = await serve((_request, response) =>
      response.writeHead(400, { 'content-type': 'text/plain' }).end('no'),
    );
    const transport = client();
    const response = await ask(transport, server.host, '/v2/');
    expect(response.status).toBe(400);
    expect(await textOf(response)).toBe('no');
    expect(transport.baseUrl(server.host).protocol).toBe('http:');
    expect(server.requests).toHaveLength(1);
  });

  it('keeps to http when a connection was cut for another reason', async () => {
    let count = 0;
    const server = await serve((request, response) => {
      if (count++ === 0) request.socket.destroy();
      else response.end('ok');
    });
    const transport = client();
    expect(await textOf(await ask(transport, server.host, '/v2/'))).toBe('ok');
    expect(transport.baseUrl(server.host).protocol).toBe('http:');
  });

  it('shows what is wrong with the certificate', async () => {
    const server = await serve(ok, certificate);
    const error = await failure(ask(client(), server.host, '/v2/'));
    expect(error).toMatchObject({ code: 'TLS_FAILED', exitCode: 5 });
    expect(error.hint).toContain('--ca-file');
    expect(error.hint).toContain('--insecure');
    expect(error.hint).toContain(`\`registries: {"${server.host}": {insecure: true}}\``);
  });

  it('may be IPv6', async () => {
    const { createServer } = await import('node:http');
    const server = await listen(
      createServer((_request, response) => response.end('ok')),
      { requests: [], connections: () => 0, open: () => 0 },
      '::1',
    );
    expect(await textOf(await ask(client(), server.host, '/v2/'))).toBe('ok');
  });
});

describe('an IPv6 address', () => {
  const v6 = selfSigned(['::1', '127.0.0.1']);

  it('of a host that speaks TLS is checked against the addresses in the certificate', async () => {
    const server = await serve(ok, v6, '::1');
    const http = client({ ca: [v6.cert] });
    expect(await textOf(await ask(http, server.host, '/v2/'))).toBe('ok');
    expect(server.requests[0]?.headers.host).toBe(server.host);
    const other = await serve(ok, selfSigned(['::2']), '::1');
    const error = await failure(ask(client({ hosts: { [other.host]: { ca: [v6.cert] } } }), other.host, '/v2/'));
    expect(error.code).toBe('TLS_FAILED');
  });

  it('may be named by a registry, and is connected to', async () => {
    const cdn = await serve((_request, response) => response.end('bytes'), v6);
    const registry = await serve((_request, response) => {
      response.writeHead(307, { location: 'https://[2001:db8::7]/blob' }).end();
    }, certificate);
    const lookup = resolver(() => ['203.0.113.7']);
    const asked: string[] = [];
    const connectTo = (host: string, port: string) => {
      asked.push(`${host} ${port}`);
      return { host: '127.0.0.1', port: String(host === 'registry.example.test' ? registry.port : cdn.port) };
    };
    const http = client({ lookup, connectTo, ca: [certificate.cert, v6.cert] });
    expect(await textOf(await ask(http, 'registry.example.test', '/v2/'))).toBe('bytes');
    expect(asked.at(-1)).toMatch(/^\[?2001:db8::7\]? 443$/);
  });
});

describe('any other host', () => {
  it('is spoken to by https alone', async () => {
    const server = await serve(ok);
    const { lookup, connectTo } = world({
      'registry.example.test:80': server.port,
      'registry.example.test:443': server.port,
    });
    const transport = client({ lookup, connectTo });
    const error = await failure(ask(transport, 'registry.example.test', '/v2/'));
    expect(error).toMatchObject({ code: 'TLS_FAILED' });
    expect(error.message).toContain('does not speak TLS');
    expect(error.hint).toContain('--plain-http (it is for the registry named first)');
    expect(error.hint).toContain('`registries: {"registry.example.test": {plainHttp: true}}`');
    expect(error.hint).toContain('--config FILE');
    expect(server.requests).toHaveLength(0);
    expect(transport.events).toHaveLength(1);
  });

  it('is not tried again when its certificate is not accepted', async () => {
    const server = await serve(ok, certificate);
    const { lookup, connectTo } = world({ 'registry.example.test:443': server.port });
    const transport = client({ lookup, connectTo });
    expect((await failure(ask(transport, 'registry.example.test', '/v2/'))).code).toBe('TLS_FAILED');
    expect(transport.events).toHaveLength(1);
  });

  it('is checked for its name', async () => {
    const server = await serve(ok, certificate);
    const { lookup, connectTo } = world({ 'other.example.test:443': server.port });
    const transport = client({ lookup, connectTo, ca: [certificate.cert] });
    const error = await failure(ask(transport, 'other.example.test', '/v2/'));
    expect(error.code).toBe('TLS_FAILED');
    expect(error.message).toContain('its certificate is for another name (ERR_TLS_CERT_ALTNAME_INVALID)');
    expect(error.hint).not.toContain('--ca-file');
    expect(error.hint).toContain('{"other.example.test": {insecure: true}}');
  });

  it('is trusted by an authority of its own settings', async () => {
    const server = await serve(ok, certificate);
    const { lookup, connectTo } = world({ 'registry.example.test:443': server.port });
    const hosts = { 'registry.example.test': { ca: [certificate.cert] } };
    const response = await ask(client({ lookup, connectTo, hosts }), 'registry.example.test', '/v2/');
    expect(await textOf(response)).toBe('ok');
  });

  it.each(['docker.io', 'index.docker.io', 'registry-1.docker.io'])('is registry-1.docker.io for %s', async (host) => {
    const server = await serve(ok, certificate);
    const { lookup, connectTo } = world({ 'registry-1.docker.io:443': server.port });
    const transport = client({ lookup, connectTo, ca: [certificate.cert] });
    expect(transport.baseUrl(host).href).toBe('https://registry-1.docker.io/');
    expect(await textOf(await ask(transport, host, '/v2/'))).toBe('ok');
    expect(server.requests[0]?.headers.host).toBe('registry-1.docker.io');
  });
});

describe('--insecure', () => {
  const host = 'registry.example.test';

  it('does not check the certificate', async () => {
    const server = await serve(ok, selfSigned(['someone.else.test']));
    const { lookup, connectTo } = world({ [`${host}:443`]: server.port });
    const transport = client({ lookup, connectTo, hosts: { [host]: { insecure: true } } });
    expect(await textOf(await ask(transport, host, '/v2/'))).toBe('ok');
    expect(transport.baseUrl(host).protocol).toBe('https:');
  });

  it('speaks http when https is not spoken, and remembers', async () => {
    const server = await serve(ok);
    const withPort = `${host}:5000`;
    const { lookup, connectTo } = world({ [withPort]: server.port });
    const transport = client({ lookup, connectTo, hosts: { [withPort]: { insecure: true } } });
    for (let count = 0; count < 2; count += 1) expect(await textOf(await ask(transport, withPort, '/v2/'))).toBe('ok');
    expect(transport.baseUrl(withPort).href).toBe(`http://${withPort}/`);
    expect(transport.events.map((event) => event.kind === 'request' && event.status)).toEqual([undefined, 200, 200]);
  });

  it('speaks http on port 80 when https is refused on port 443', async () => {
    const server = await serve(ok);
    const { lookup, connectTo } = world({ [`${host}:80`]: server.port });
    const transport = client({ lookup, connectTo, hosts: { [host]: { insecure: true } } });
    expect(await textOf(await ask(transport, host, '/v2/'))).toBe('ok');
    expect(transport.clock.slept).toEqual([]);
  });

  it('reaches to other ports of the host, and to no other host that it names', async () => {
    const elsewhere = await serve(ok, selfSigned(['someone.else.test']));
    const server = await serve(
      (request, response) => {
        const location = request.url === '/port' ? `https://${host}:5001/` : 'https://cdn.example.test/';
        response.writeHead(307, { location }).end();
      },
      selfSigned(['someone.else.test']),
    );
    const ports = {
      [`${host}:443`]: server.port,
      [`${host}:5001`]: elsewhere.port,
      'cdn.example.test:443': elsewhere.port,
    };
    const transport = client({ ...world(ports), hosts: { [host]: { insecure: true } } });
    expect(await textOf(await ask(transport, host, '/port'))).toBe('ok');
    const error = await failure(ask(transport, host, '/cdn'));
    expect(error).toMatchObject({ code: 'TLS_FAILED', registry: 'cdn.example.test' });
  });

  it('is for the host it was said of only', async () => {
    const server = await serve(ok, selfSigned(['someone.else.test']));
    const { lookup, connectTo } = world({ [`${host}:443`]: server.port });
    const transport = client({ lookup, connectTo, hosts: { 'other.example.test': { insecure: true } } });
    expect((await failure(ask(transport, host, '/v2/'))).code).toBe('TLS_FAILED');
  });
});

describe('--plain-http', () => {
  it('is for the port it was said of only', () => {
    const transport = client({ hosts: { 'registry.example.test:80': { plainHttp: true } } });
    expect(transport.baseUrl('registry.example.test:80').protocol).toBe('http:');
    expect(transport.baseUrl('registry.example.test').protocol).toBe('https:');
  });

  it('speaks http at once', async () => {
    const host = 'registry.example.test';
    const server = await serve(ok);
    const { lookup, connectTo } = world({ [`${host}:80`]: server.port });
    const transport = client({ lookup, connectTo, hosts: { [host]: { plainHttp: true } } });
    expect(await textOf(await ask(transport, host, '/v2/'))).toBe('ok');
    expect(transport.events).toHaveLength(1);
  });
});
