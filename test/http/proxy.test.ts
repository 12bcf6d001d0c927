import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { createProxyRule } from '../../src/http/proxy.ts';
import { selfSigned } from './certificate.ts';
import { ask, client, closeAll, failure, listen, type RunningServer, resolver, serve, textOf } from './fixture.ts';

afterEach(closeAll);

const PROXY = 'http://proxy.test:3128';
const rule = (env: Record<string, string>) => {
  const proxyFor = createProxyRule(env);
  return (url: string) => proxyFor(new URL(url))?.url.host;
};

describe('which proxy', () => {
  it('is told by the scheme of the URL', () => {
    const proxyFor = rule({ HTTPS_PROXY: 'http://secure.test:1', HTTP_PROXY: 'http://plain.test:2' });
    expect(proxyFor('https://r.test/')).toBe('secure.test:1');
    expect(proxyFor('http://r.test/')).toBe('plain.test:2');
  });

  it('is read from names in capitals first, then from small ones', () => {
    expect(rule({ https_proxy: PROXY })('https://r.test/')).toBe('proxy.test:3128');
    expect(rule({ https_proxy: 'http://other.test', HTTPS_PROXY: PROXY })('https://r.test/')).toBe('proxy.test:3128');
    expect(rule({ HTTPS_PROXY: '', https_proxy: PROXY })('https://r.test/')).toBe('proxy.test:3128');
    expect(rule({})('https://r.test/')).toBeUndefined();
  });

  it('may be written without a scheme', () => {
    expect(rule({ HTTPS_PROXY: 'proxy.test:3128' })('https://r.test/')).toBe('proxy.test:3128');
  });

  it('is none for this machine', () => {
    const proxyFor = rule({ HTTPS_PROXY: PROXY, HTTP_PROXY: PROXY });
    for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '[::1]', 'a.localhost']) {
      expect(proxyFor(`http://${host}:5000/`), host).toBeUndefined();
    }
  });

  it('is not taken from HTTP_PROXY in a CGI program', () => {
    expect(rule({ HTTP_PROXY: PROXY, REQUEST_METHOD: 'GET' })('http://r.test/')).toBeUndefined();
  });

  it.each(['socks5://secret.test:1080', 'ftp://secret.test', 'http://[secret', 'http://%zz:secret@p.test'])(
    'is an error for %s',
    (text) => {
      expect(() => createProxyRule({ HTTPS_PROXY: text })).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }));
      expect(() => createProxyRule({ HTTPS_PROXY: text })).not.toThrow(/secret/);
    },
  );

  // Go's own table, httpproxy/proxy_test.go, and the spellings of mapped addresses.
  it.each([
    ['*', 'r.test', false],
    ['r.test', 'r.test', false],
    ['r.test', 'sub.r.test', false],
    ['r.test', 'other.test', true],
    ['r.test', 'bar.test', true],
    ['.r.test', 'r.test', true],
    ['.r.test', 'sub.r.test', false],
    ['*.r.test', 'r.test', true],
    ['*.r.test', 'sub.r.test', false],
    ['R.Test', 'r.test', false],
    ['r.test', 'R.TEST.', false],
    [' a.test , r.test ', 'r.test', false],
    ['r.test:443', 'r.test', false],
    ['r.test:5000', 'r.test', true],
    ['r.test:5000', 'r.test:5000', false],
    ['10.0.0.1', '10.0.0.1', false],
    ['10.0.0.1:5000', '10.0.0.1:5000', false],
    ['10.0.0.1:5000', '10.0.0.1', true],
    ['10.0.0.1', '10.0.0.11', true],
    ['10.0.0.0/8', '10.200.3.4', false],
    ['10.0.0.0/8', '11.0.0.1', true],
    ['10.0.0.1', '[::ffff:10.0.0.1]', false],
    ['10.0.0.0/8', '[::ffff:a00:1]', false],
    ['fd00::/8', '[fd12::1]', false],
    ['fd12::1', '[fd12:0:0::1]', false],
    ['[fd12::1]:5000', '[fd12::1]:5000', false],
    ['[fd12::1]:5000', '[fd12::1]', true],
    ['fd00::/8', '[fe00::1]', true],
    ['', 'r.test', true],
    [',', 'r.test', true],
    ['.', 'r.test', true],
    ['10.0.0.0/x', '10.0.0.1', true],
    ['nonsense/8', 'nonsense', true],
    ['*, r.test:1', 'other.test', false],
    ['10.0.0.0/33', '10.0.0.0', true],
    ['0.0.1', '10.0.0.1', true],
    ['.1', '10.0.0.1', true],
    [':443', 'r.test', true],
    ['bücher.test', 'xn--bcher-kva.test', false],
    ['BÜCHER.test', 'bücher.test', false],
    ['r.test:80', 'r.test', true],
    ['.r.test:443', 'sub.r.test', false],
    ['*.r.test:5000', 'sub.r.test', true],
    ['10.0.0.0/8:443', '10.0.0.1', true],
    ['::ffff:10.0.0.1', '10.0.0.1', false],
    // A zone used to end the program.
    ['fd00::%eth0/8', '[fd00::1]', false],
    ['fe80::1%eth0', 'x.test', true],
  ])('NO_PROXY=%s for %s: proxy %s', (exceptions, host, proxied) => {
    expect(rule({ HTTPS_PROXY: PROXY, NO_PROXY: exceptions })(`https://${host}/`) !== undefined).toBe(proxied);
  });
});

/** A proxy that records what it is asked, and sends everything to the port it is told. */
async function proxyTo(
  port: number,
  { login, tls, address }: { readonly login?: string; readonly tls?: TlsOptions; readonly address?: string } = {},
): Promise<RunningServer & { readonly lines: string[] }> {
  const lines: string[] = [];
  const allowed = (value: string | undefined) => login === undefined || value === login;
  const server = (tls === undefined ? createServer() : createTlsServer(tls)) as Server;
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    lines.push(`${request.method} ${request.url}`);
    if (!allowed(request.headers['proxy-authorization'])) {
      response.writeHead(407).end();
      return;
    }
    const { 'proxy-authorization': _, ...headers } = request.headers;
    const { pathname, search } = new URL(request.url ?? '');
    const back = httpRequest({ port, method: request.method, path: pathname + search, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    request.pipe(back);
  });
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    lines.push(`CONNECT ${request.url}`);
    if (!allowed(request.headers['proxy-authorization'])) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
      return;
    }
    const back = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      back.pipe(socket).pipe(back);
    });
    for (const end of [socket, back]) end.on('error', () => socket.destroy());
  });
  const running = await listen(server, { requests: [], connections: () => 0, open: () => 0 }, address);
  return { ...running, lines };
}

const certificate = selfSigned(['r.test']);
const nobody = resolver(() => {
  throw new Error('no name is resolved here');
});

describe('through a proxy', () => {
  it('https goes through a tunnel, with TLS to the registry itself', async () => {
    const registry = await serve((_request, response) => response.end('ok'), certificate);
    const proxy = await proxyTo(registry.port);
    const options = { proxy: createProxyRule({ HTTPS_PROXY: `http://${proxy.host}` }), lookup: nobody };
    const transport = client({ ...options, ca: [certificate.cert] });
    for (let count = 0; count < 2; count += 1) expect(await textOf(await ask(transport, 'r.test', '/v2/'))).toBe('ok');
    expect(proxy.lines).toEqual(['CONNECT r.test:443']);
    expect((await failure(ask(client(options), 'r.test', '/v2/'))).code).toBe('TLS_FAILED');
  });

  it('http is handed to the proxy with the whole address', async () => {
    const registry = await serve((_request, response) => response.end('ok'));
    const proxy = await proxyTo(registry.port);
    const hosts = { 'r.test:5000': { plainHttp: true } };
    const transport = client({ proxy: createProxyRule({ HTTP_PROXY: `http://${proxy.host}` }), lookup: nobody, hosts });
    expect(await textOf(await ask(transport, 'r.test:5000', '/v2/?a=b'))).toBe('ok');
    expect(proxy.lines).toEqual(['GET http://r.test:5000/v2/?a=b']);
    expect(registry.requests[0]?.headers.host).toBe('r.test:5000');
  });

  it('shows its login to the proxy only', async () => {
    const login = `Basic ${Buffer.from('us er:p:w').toString('base64')}`;
    const registry = await serve((_request, response) => response.end('ok'), certificate);
    const proxy = await proxyTo(registry.port, { login });
    const rules = createProxyRule({ HTTPS_PROXY: `http://us%20er:p%3Aw@${proxy.host}` });
    const transport = client({ proxy: rules, lookup: nobody, ca: [certificate.cert] });
    await (await ask(transport, 'r.test', '/v2/')).discard();
    expect(JSON.stringify(registry.requests)).not.toContain('proxy-authorization');
    expect(JSON.stringify(transport.events)).not.toContain('us%20er');
  });

  it.each(['http', 'https'])('says when the proxy of %s wants a login, and asks once', async (scheme) => {
    const registry = await serve((_request, response) => response.end('ok'));
    const proxy = await proxyTo(registry.port, { login: 'Basic x' });
    const env = { HTTPS_PROXY: `http://u:secret@${proxy.host}`, HTTP_PROXY: `http://u:secret@${proxy.host}` };
    const hosts = { 'r.test': { plainHttp: scheme === 'http' } };
    const error = await failure(ask(client({ proxy: createProxyRule(env), lookup: nobody, hosts }), 'r.test', '/v2/'));
    expect(error).toMatchObject({ code: 'NETWORK_FAILED', exitCode: 5 });
    expect(error.message).toContain(`through the proxy ${proxy.host}`);
    expect(error.message).toContain('407');
    expect(error.message).not.toContain('secret');
    expect(proxy.lines).toHaveLength(1);
  });

  it('says which proxy cannot be reached', async () => {
    const proxy = await proxyTo(1);
    await proxy.close();
    const rules = createProxyRule({ HTTPS_PROXY: `http://${proxy.host}` });
    const error = await failure(ask(client({ proxy: rules, retries: 1 }), 'r.test', '/v2/'));
    expect(error.message).toContain(`through the proxy ${proxy.host}: connection refused`);
    expect(error.message).toContain('2 tries');
  });

  it('judges literal addresses that a registry names, and no names', async () => {
    const registry = await serve((request, response) => {
      response
        .writeHead(307, { location: request.url === '/literal' ? 'https://10.0.0.1/' : 'https://r.test:444/' })
        .end();
    }, certificate);
    const proxy = await proxyTo(registry.port);
    const transport = client({
      proxy: createProxyRule({ HTTPS_PROXY: `http://${proxy.host}` }),
      lookup: nobody,
      ca: [certificate.cert],
    });
    expect((await failure(ask(transport, 'r.test', '/literal'))).message).toContain('10.0.0.1 is a private address');
    expect((await failure(ask(transport, 'r.test', '/named'))).message).toContain('more than 5');
    expect(proxy.lines).toEqual(['CONNECT r.test:443', 'CONNECT r.test:444']);
  });

  it.each([
    ['http', 'GET http://r.test/v2/'],
    ['https', 'CONNECT r.test:443'],
  ])('that is spoken to by TLS, %s goes as through any other', async (scheme, line) => {
    const own = selfSigned(['127.0.0.1']);
    const registry = await serve(
      (_request, response) => response.end('ok'),
      scheme === 'https' ? certificate : undefined,
    );
    const login = `Basic ${Buffer.from('u:p').toString('base64')}`;
    const proxy = await proxyTo(registry.port, { login, tls: own });
    const address = `https://u:p@${proxy.host}`;
    const options = {
      proxy: createProxyRule({ HTTPS_PROXY: address, HTTP_PROXY: address }),
      lookup: nobody,
      hosts: { 'r.test': { plainHttp: scheme === 'http' } },
      retries: 0,
    };
    const http = client({ ...options, ca: [certificate.cert, own.cert] });
    expect(await textOf(await ask(http, 'r.test', '/v2/'))).toBe('ok');
    expect(proxy.lines).toEqual([line]);
    expect(JSON.stringify(registry.requests)).not.toContain('proxy-authorization');
    // Its certificate is checked: nothing is said to a proxy that anybody could be.
    const error = await failure(ask(client({ ...options, ca: [certificate.cert] }), 'r.test', '/v2/'));
    expect(error.message).toContain(`through the proxy ${proxy.host}: the certificate or TLS of the proxy`);
    expect(error.hint).toContain('--ca-file');
    expect(proxy.lines).toHaveLength(1);
  });

  it('may have an IPv6 address, and so may the host behind it', async () => {
    const v6 = selfSigned(['2001:db8::7']);
    const registry = await serve((_request, response) => response.end('ok'), v6);
    const proxy = await proxyTo(registry.port, { address: '::1' });
    const rules = createProxyRule({ HTTPS_PROXY: `http://${proxy.host}` });
    const http = client({ proxy: rules, lookup: nobody, ca: [v6.cert] });
    expect(await textOf(await ask(http, '[2001:db8::7]:5000', '/v2/'))).toBe('ok');
    expect(proxy.lines).toEqual(['CONNECT [2001:db8::7]:5000']);
  });

  it.each([
    [403, 'PROXY_REFUSED 403', 1],
    [502, 'PROXY_FAILED 502', 2],
  ])(
    'that answers CONNECT with %i is named, and asked again only where that may help',
    async (status, words, times) => {
      let asked = 0;
      const refusing = createServer().on('connect', (_request, socket) => {
        asked += 1;
        socket.end(`HTTP/1.1 ${status} No\r\n\r\n`);
      });
      const proxy = await listen(refusing, { requests: [], connections: () => 0, open: () => 0 });
      const rules = createProxyRule({ HTTPS_PROXY: `http://${proxy.host}` });
      const error = await failure(ask(client({ proxy: rules, retries: 1 }), 'r.test', '/v2/'));
      expect(error).toMatchObject({ code: 'NETWORK_FAILED', exitCode: 5 });
      expect(error.message).toContain(`r.test through the proxy ${proxy.host}`);
      expect(error.message).toContain(words);
      expect(asked).toBe(times);
    },
  );
});
