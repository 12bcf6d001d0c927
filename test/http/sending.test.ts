import { createServer as createNetServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { selfSigned } from './certificate.ts';
import { ask, client, closeAll, failure, listen, resolver, serve } from './fixture.ts';

afterEach(closeAll);

const NAME = 'registry.example.test';
const certificate = selfSigned([NAME]);
const nothing = { requests: [], connections: () => 0, open: () => 0 };
/** Far more than the buffers on the way hold. */
const LENGTH = 200_000_000;

function endless(): Readable {
  const chunk = Buffer.alloc(65_536);
  return new Readable({
    read() {
      this.push(chunk);
    },
  });
}

/** Reads the first bytes, and then nothing more. */
function deaf(socket: Socket): void {
  socket.on('error', () => undefined);
  socket.once('data', () => socket.pause());
}

describe('a receiver that takes nothing', () => {
  it.each([
    ['http', () => createNetServer(deaf)],
    ['https', () => createTlsServer(certificate, deaf)],
  ])('is given up after the time for silence, by %s', async (scheme, create) => {
    const server = await listen(create(), nothing);
    const transport = client({
      timeouts: { body: 300 },
      ca: [certificate.cert],
      hosts: { [NAME]: { plainHttp: scheme === 'http' } },
      lookup: resolver(() => ['203.0.113.7']),
      connectTo: () => ({ host: '127.0.0.1', port: String(server.port) }),
    });
    const started = performance.now();
    const stream = endless();
    const body = { stream, length: LENGTH };
    const error = await failure(ask(transport, NAME, '/', { method: 'PUT', body }));
    expect(error).toMatchObject({ code: 'NETWORK_FAILED', exitCode: 5 });
    expect(error.message).toContain('it took nothing more of what was sent (SENDING_STALLED)');
    expect(performance.now() - started).toBeLessThan(5000);
    expect(stream.destroyed).toBe(true);
  });

  it('is given up and asked again when the body is bytes', async () => {
    const server = await listen(createNetServer(deaf), nothing);
    const transport = client({ timeouts: { body: 100 }, retries: 1, hosts: { [server.host]: { plainHttp: true } } });
    const error = await failure(ask(transport, server.host, '/', { method: 'PUT', body: Buffer.alloc(40_000_000) }));
    expect(error.message).toContain('SENDING_STALLED, 2 tries');
  });

  it('is not blamed for a source that is slow', async () => {
    const server = await serve((_request, response) => response.end('ok'));
    let count = 0;
    const stream = new Readable({
      read() {
        count += 1;
        setTimeout(() => this.push(count > 4 ? null : Buffer.alloc(1000)), 150);
      },
    });
    const transport = client({ timeouts: { body: 100 } });
    const response = await ask(transport, server.host, '/', { method: 'PUT', body: { stream, length: 4000 } });
    expect(response.status).toBe(200);
    await response.discard();
  });

  it('is not blamed for taking its time with the answer', async () => {
    const server = await serve((_request, response) => void setTimeout(() => response.end('ok'), 400));
    const transport = client({ timeouts: { body: 100 } });
    const response = await ask(transport, server.host, '/', { method: 'PUT', body: Buffer.alloc(1000) });
    expect(response.status).toBe(200);
    await response.discard();
  });
});
