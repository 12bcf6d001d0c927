import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { selfSigned } from './certificate.ts';
import { ask, both, client, closeAll, failure, serve, textOf } from './fixture.ts';

afterEach(closeAll);

/** A registry that redirects everything, and the place it redirects to, on another port of this machine. */
async function pair(status: number, target = '/target') {
  const other = await serve((request, response) => {
    if (request.headers.authorization !== undefined) response.writeHead(400).end('only one auth mechanism allowed');
    else response.end('bytes');
  });
  const registry = await serve((request, response) => {
    if (request.url === '/target') response.end('own bytes');
    else response.writeHead(status, { location: target.replace('OTHER', other.host) }).end('moved');
  });
  return { registry, other };
}

describe('redirects of reads', () => {
  it.each([301, 302, 303, 307, 308])('%i is followed', async (status) => {
    const { registry } = await pair(status);
    const transport = client();
    const response = await ask(transport, registry.host, '/blob?a=b');
    expect(await textOf(response)).toBe('own bytes');
    expect(response.url.href).toBe(`http://${registry.host}/target`);
    expect(response.sends).toBe(1);
    expect(registry.connections()).toBe(1);
  });

  it('keep the method', async () => {
    const { registry } = await pair(303);
    await (await ask(client(), registry.host, '/blob', { method: 'HEAD' })).discard();
    expect(registry.requests.map(({ method }) => method)).toEqual(['HEAD', 'HEAD']);
  });

  it('keep Authorization within the origin', async () => {
    const { registry } = await pair(307);
    await (await ask(client(), registry.host, '/blob', { headers: { authorization: 'Basic x' } })).discard();
    expect(registry.requests.map(({ headers }) => headers.authorization)).toEqual(['Basic x', 'Basic x']);
  });

  it('drop Authorization for another origin, be it another port only, and keep the rest', async () => {
    const { registry, other } = await pair(307, 'http://OTHER/blob?signature=x');
    const headers = { Authorization: 'Basic x', range: 'bytes=1-' };
    const response = await ask(client(), registry.host, '/blob', { headers });
    expect(await textOf(response)).toBe('bytes');
    expect(other.requests[0]?.headers).toMatchObject({ range: 'bytes=1-' });
    expect(other.requests[0]?.headers.authorization).toBeUndefined();
    expect(registry.requests[0]?.headers.authorization).toBe('Basic x');
  });

  it('do not get Authorization back on the way home', async () => {
    const registry = await serve((request, response) => {
      if (request.url === '/home') response.end('home');
      else response.writeHead(307, { location: `http://${other.host}/` }).end();
    });
    const other = await serve((_request, response) => {
      response.writeHead(307, { location: `http://${registry.host}/home` }).end();
    });
    await (await ask(client(), registry.host, '/', { headers: { authorization: 'Basic x' } })).discard();
    expect(registry.requests.map(({ headers }) => headers.authorization)).toEqual(['Basic x', undefined]);
  });

  it('are asked for again from the start when their end fails for a while', async () => {
    let count = 0;
    const registry = await serve((request, response) => {
      if (request.url === '/blob') response.writeHead(307, { location: `/signed-${count}` }).end();
      else response.writeHead(count++ === 0 ? 503 : 200).end('x');
    });
    const response = await ask(client(), registry.host, '/blob');
    expect(response.sends).toBe(2);
    await response.discard();
    expect(registry.requests.map(({ url }) => url)).toEqual(['/blob', '/signed-0', '/blob', '/signed-1']);
  });

  it.each([
    ['300', 300, '/target'],
    ['305', 305, '/target'],
    ['no address', 307, ''],
    ['nonsense', 307, 'http://['],
    ['a metadata service', 307, 'http://169.254.169.254/latest'],
    ['a mapped metadata service', 307, 'http://[::ffff:a9fe:a9fe]/'],
    ['a user name', 307, 'http://user@OTHER/'],
    ['another protocol', 307, 'ftp://OTHER/'],
  ])('stop at %s', async (_what, status, location) => {
    const { registry, other } = await pair(status, location);
    const transport = client();
    const error = await failure(ask(transport, registry.host, '/blob'));
    expect(error).toMatchObject({ code: 'ORIGIN_REFUSED', exitCode: 7 });
    expect(other.requests).toHaveLength(0);
    expect(registry.requests).toHaveLength(1);
  });

  it('stop where they lead from https to http, be it on the same host', async () => {
    const certificate = selfSigned(['127.0.0.1']);
    const plain = await serve((_request, response) => response.end('bytes'));
    for (const location of [`http://${plain.host}/`, 'http://SELF/']) {
      const registry = await serve((_request, response) => {
        response.writeHead(307, { location: location.replace('SELF', registry.host) }).end();
      }, certificate);
      const error = await failure(ask(client({ ca: [certificate.cert] }), registry.host, '/blob'));
      expect(error).toMatchObject({ code: 'ORIGIN_REFUSED' });
      expect(error.message).toContain('from https to http');
      expect(registry.requests).toHaveLength(1);
    }
    expect(plain.requests).toHaveLength(0);
  });

  it('stop at a user name on their own origin, too', async () => {
    const registry = await serve((_request, response) => {
      response.writeHead(307, { location: `http://user:secret@${registry.host}/` }).end();
    });
    const error = await failure(ask(client(), registry.host, '/blob'));
    expect(error).toMatchObject({ code: 'ORIGIN_REFUSED' });
    expect(error.message).not.toContain('secret');
  });

  it('stop after five', async () => {
    const registry = await serve((_request, response) => response.writeHead(307, { location: '/again' }).end());
    const error = await failure(ask(client(), registry.host, '/blob'));
    expect(error.code).toBe('ORIGIN_REFUSED');
    expect(error.message).toContain('more than 5');
    expect(registry.requests).toHaveLength(6);
  });
});

describe('redirects of writes', () => {
  it.each([307, 308])('%i is followed within the origin, with the same bytes', async (status) => {
    const { registry } = await pair(status);
    await (await ask(client(), registry.host, '/upload', { method: 'PUT', body: Buffer.from('abc') })).discard();
    expect(registry.requests.map(({ method, url, body }) => [method, url, body.toString()])).toEqual([
      ['PUT', '/upload', 'abc'],
      ['PUT', '/target', 'abc'],
    ]);
  });

  it.each([301, 302, 303])('%i is refused, and never turned into a read', async (status) => {
    const { registry } = await pair(status);
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'] as const) {
      const error = await failure(ask(client(), registry.host, '/upload', { method }));
      expect(error).toMatchObject({ code: 'ORIGIN_REFUSED', status });
    }
    expect(registry.requests).toHaveLength(4);
  });

  it('are refused to another origin', async () => {
    const { registry, other } = await pair(307, 'http://OTHER/upload');
    const error = await failure(ask(client(), registry.host, '/upload', { method: 'POST' }));
    expect(error.code).toBe('ORIGIN_REFUSED');
    expect(other.requests).toHaveLength(0);
  });

  it('are refused for a stream, which is let go', async () => {
    const { registry } = await pair(307);
    const stream = Readable.from([Buffer.from('abc')]);
    const error = await failure(
      ask(client(), registry.host, '/upload', { method: 'PUT', body: { stream, length: 3 } }),
    );
    expect(error.code).toBe('ORIGIN_REFUSED');
    expect(stream.destroyed).toBe(true);
  });
});

describe('a proxy that sends everything from http to https on the same host', () => {
  const certificate = selfSigned(['127.0.0.1']);

  async function upgrading(status: number, path = '') {
    const secure = await serve((request, response) => {
      if (request.headers.authorization !== 'Basic x') response.writeHead(401).end();
      else response.end('ok');
    }, certificate);
    const plain = await serve((request, response) => {
      const location = `https://${request.headers.host}${path === '' ? request.url : path}`;
      response.writeHead(status, { location }).end('<h1>moved</h1>');
    });
    const front = await both(plain, secure);
    return { plain, secure, front };
  }

  const options = { headers: { authorization: 'Basic x' } };

  it.each([301, 302, 307, 308])(
    'is followed by writes with method, body and login, and remembered: %i',
    async (status) => {
      for (const method of ['POST', 'PATCH', 'PUT', 'DELETE'] as const) {
        const { plain, secure, front } = await upgrading(status);
        const transport = client({ ca: [certificate.cert], hosts: { [front.host]: { plainHttp: true } } });
        for (let count = 0; count < 2; count += 1) {
          const body = Buffer.from('abc');
          const response = await ask(transport, front.host, '/upload?a=b', { ...options, method, body });
          expect(await textOf(response)).toBe('ok');
          expect(response.url.href).toBe(`https://${front.host}/upload?a=b`);
        }
        expect(plain.requests).toHaveLength(1);
        expect(secure.requests.map((seen) => [seen.method, seen.url, seen.body.toString()])).toEqual([
          [method, '/upload?a=b', 'abc'],
          [method, '/upload?a=b', 'abc'],
        ]);
        expect(transport.baseUrl(front.host).href).toBe(`https://${front.host}/`);
      }
    },
  );

  it('is followed by reads with the login', async () => {
    const { front } = await upgrading(301);
    const transport = client({ ca: [certificate.cert], hosts: { [front.host]: { plainHttp: true } } });
    expect(await textOf(await ask(transport, front.host, '/blob', options))).toBe('ok');
  });

  it('is not followed by writes for a 303, which asks for a read', async () => {
    const { secure, front } = await upgrading(303);
    const transport = client({ ca: [certificate.cert], hosts: { [front.host]: { plainHttp: true } } });
    const error = await failure(ask(transport, front.host, '/upload', { ...options, method: 'POST' }));
    expect(error).toMatchObject({ code: 'ORIGIN_REFUSED', status: 303 });
    expect(error.hint).toContain('proxy in front of');
    expect(error.hint).toContain('POST');
    expect(secure.requests).toHaveLength(0);
  });

  it('is not followed by writes for another port, nor with a user name', async () => {
    const { secure, front } = await upgrading(308);
    const other = await serve((_request, response) => {
      response.writeHead(308, { location: `https://${front.host}/` }).end();
    });
    const named = await serve((request, response) => {
      response.writeHead(308, { location: `https://user:secret@${request.headers.host}/` }).end();
    });
    for (const { host } of [other, named]) {
      const error = await failure(ask(client(), host, '/', { method: 'PUT', body: Buffer.from('abc') }));
      expect(error.code).toBe('ORIGIN_REFUSED');
      expect(error.message).not.toContain('secret');
    }
    expect(secure.requests).toHaveLength(0);
  });

  it('loses the login when it leads to another host', async () => {
    const { secure, front } = await upgrading(301);
    const other = await serve((_request, response) => {
      response.writeHead(301, { location: `https://${front.host}/` }).end();
    });
    await (await ask(client({ ca: [certificate.cert] }), other.host, '/', options)).discard();
    expect(secure.requests.map(({ headers }) => headers.authorization)).toEqual([undefined]);
  });

  it('is not sent a stream twice', async () => {
    const { front } = await upgrading(307);
    const body = { stream: Readable.from([Buffer.from('abc')]), length: 3 };
    const transport = client({ hosts: { [front.host]: { plainHttp: true } } });
    const error = await failure(ask(transport, front.host, '/', { method: 'PUT', body }));
    expect(error.message).toContain('cannot be sent twice');
  });
});

describe('an https address at a port that speaks plain http', () => {
  it.each(['redirect', 'Location'])('is blamed on the registry that named it: %s', async (how) => {
    const registry = await serve((request, response) => {
      response.writeHead(307, { location: `https://${request.headers.host}/x` }).end();
    });
    const transport = client({ hosts: { [registry.host]: { plainHttp: true } } });
    const error = await failure(
      how === 'redirect'
        ? ask(transport, registry.host, '/')
        : ask(transport, registry.host, '/', { url: new URL(`https://${registry.host}/x`), namedBy: registry.host }),
    );
    expect(error).toMatchObject({ code: 'TLS_FAILED', exitCode: 5 });
    expect(error.message).toContain(`${registry.host} sends us to https://${registry.host}, which does not speak TLS`);
    expect(error.hint).toContain('X-Forwarded-Proto');
    expect(error.hint).not.toContain('--plain-http');
  });
});

describe('addresses that came out of an answer', () => {
  it('are asked when they pass the rule', async () => {
    const { registry, other } = await pair(200);
    const transport = client();
    await (await ask(transport, registry.host, '/v2/')).discard();
    const response = await transport.send({
      method: 'GET',
      url: new URL(`http://${other.host}/token`),
      namedBy: registry.host,
      signal: AbortSignal.timeout(5000),
    });
    expect(await textOf(response)).toBe('bytes');
  });

  it.each(['http://169.254.169.254/token', 'file:///etc/passwd', 'http://user:secret@127.0.0.1/'])(
    'are refused when they do not: %s',
    async (url) => {
      const { registry } = await pair(200);
      const transport = client();
      const named = { method: 'GET', url: new URL(url), namedBy: registry.host } as const;
      const error = await failure(transport.send({ ...named, signal: AbortSignal.timeout(5000) }));
      expect(error.code).toBe('ORIGIN_REFUSED');
      expect(error.message).not.toContain('secret');
      expect(transport.events).toEqual([]);
    },
  );
});
