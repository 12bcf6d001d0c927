import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:https';
import { createServer as createNetServer } from 'node:net';
import { Transform } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { createLoans } from '../../src/http/loans.ts';
import { selfSigned } from './certificate.ts';
import { ask, client, closeAll, listen } from './fixture.ts';

afterEach(closeAll);

const SIZE = 64;

/** A connection that reads into lent memory, and what it was given. */
function reader(loans = createLoans()) {
  const { buffer, callback } = loans.reading(SIZE);
  const chunks: Buffer[] = [];
  const next = buffer as () => Buffer;
  return {
    loans,
    chunks,
    /** As node does: the kernel has filled the memory when the callback is called. */
    read(bytes: number, fill: number): Buffer {
      const memory = next();
      memory.fill(fill, 0, bytes);
      callback.call({ push: (chunk: Buffer) => chunks.push(chunk) > 0 } as never, bytes, memory);
      return chunks.at(-1) ?? Buffer.alloc(0);
    },
  };
}

describe('memory for reads', () => {
  it('serves again once a whole read has been given back', () => {
    const { read, loans } = reader();
    const first = read(SIZE, 1);
    loans.giveBack(first);
    expect(read(SIZE, 2).buffer).toBe(first.buffer);
  });

  it('does not serve again before', () => {
    const { read, chunks } = reader();
    for (const fill of [1, 2, 3]) read(SIZE - fill, fill);
    expect(chunks.map((chunk) => [chunk.byteLength, chunk[0]])).toEqual([
      [SIZE - 1, 1],
      [SIZE - 2, 2],
      [SIZE - 3, 3],
    ]);
  });

  it.each([
    ['the end of a read, before which headers stand', (chunk: Buffer) => chunk.subarray(8)],
    ['the start of a read', (chunk: Buffer) => chunk.subarray(0, SIZE - 8)],
    ['a copy', (chunk: Buffer) => Buffer.from(chunk)],
    ['memory of somebody else', () => Buffer.allocUnsafeSlow(SIZE)],
  ])('is not taken back by %s', (_what, part) => {
    const { read, loans } = reader();
    const first = read(SIZE, 1);
    loans.giveBack(part(first));
    expect(read(SIZE, 2).buffer).not.toBe(first.buffer);
    expect(first[0]).toBe(1);
  });

  it('is taken back once: two reads never share it', () => {
    const { read, loans } = reader();
    const first = read(SIZE, 1);
    loans.giveBack(first);
    loans.giveBack(first);
    expect(read(SIZE, 2).buffer).not.toBe(read(SIZE, 3).buffer);
  });

  it('is not held by a small read, which is copied', () => {
    const { read } = reader();
    const small = [1, 2, 3].map((fill) => read(4, fill));
    expect(small.map((chunk) => [...chunk])).toEqual([1, 2, 3].map((fill) => [fill, fill, fill, fill]));
    expect(new Set(small.map(({ buffer }) => buffer)).size).toBeLessThanOrEqual(3);
    expect(small.every(({ buffer }) => buffer.byteLength !== SIZE)).toBe(true);
  });
});

const certificate = selfSigned(['127.0.0.1']);

/** Tells the hash of each body by its path; takes none of those whose path says slow before `others` are done. */
async function slowRegistry(secure: boolean, blobs: ReadonlyMap<string, Buffer>, others = Promise.resolve()) {
  const hashes = new Map<string, string>();
  const { createServer: createPlain } = await import('node:http');
  const listener: Parameters<typeof createPlain>[1] = (request, response) => {
    const path = request.url ?? '';
    if (request.method === 'GET') {
      response.end(blobs.get(path));
      return;
    }
    const hash = createHash('sha256');
    void (async () => {
      // What is sent meanwhile to the slow ones piles up on the other side, where the others go on reading.
      if (path.startsWith('/slow')) await others;
      for await (const chunk of request as AsyncIterable<Buffer>) hash.update(chunk);
      hashes.set(path, hash.digest('hex'));
      response.writeHead(201).end();
    })();
  };
  const server = secure ? createServer(certificate, listener) : createPlain(listener);
  const { host } = await listen(server, { requests: [], connections: () => 0, open: () => 0 });
  return { host, hashes };
}

describe('copies whose memory is used again', () => {
  it.each([false, true])(
    'arrive as they were, many at a time, however slowly they are taken (TLS: %s)',
    async (tls) => {
      const names = ['/slow/0', '/slow/1', ...Array.from({ length: 8 }, (_, index) => `/${index}`)];
      const blobs = new Map(names.map((path) => [path, randomBytes(path.startsWith('/slow') ? 24e6 : 8e6)]));
      let done = (): void => undefined;
      const others = new Promise<void>((resolve) => {
        done = resolve;
      });
      let left = names.length - 2;
      const { host, hashes } = await slowRegistry(tls, blobs, others);
      const http = client({ ca: [certificate.cert] });
      await Promise.all(
        [...blobs].map(async ([path, bytes]) => {
          const response = await ask(http, host, path);
          // One chunk is held back, as on the way of a blob.
          let held: Buffer | undefined;
          const stream = response.stream().pipe(
            new Transform({
              transform(chunk: Buffer, _encoding, done) {
                if (held !== undefined) this.push(held);
                held = chunk;
                done();
              },
              flush(done) {
                done(null, held);
              },
            }),
          );
          const body = { stream, length: bytes.byteLength, disposable: true };
          const put = await ask(http, host, path, { method: 'PUT', body, retries: 0 });
          expect(put.status).toBe(201);
          await put.discard();
          left -= 1;
          if (left === 0) done();
        }),
      );
      const expected = [...blobs].map(([path, bytes]) => [path, createHash('sha256').update(bytes).digest('hex')]);
      expect(Object.fromEntries(hashes)).toEqual(Object.fromEntries(expected));
    },
  );

  it('need little new memory: most reads of a long body go into what was given back', async () => {
    const size = 64 * 1024 * 1024;
    const block = Buffer.alloc(1024 * 1024, 7);
    const source = createNetServer((socket) => {
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n`);
        let left = size;
        const more = (): void => {
          while (left > 0) {
            left -= block.byteLength;
            if (!socket.write(block)) return;
          }
        };
        socket.on('drain', more);
        more();
      });
    });
    const { host } = await listen(source, { requests: [], connections: () => 0, open: () => 0 });
    const target = await slowRegistry(false, new Map());
    const http = client();
    const response = await ask(http, host, '/blob');
    const memory = new Set<ArrayBufferLike>();
    const stream = response.stream().pipe(
      new Transform({
        transform(chunk: Buffer, _encoding, done) {
          memory.add(chunk.buffer);
          done(null, chunk);
        },
      }),
    );
    const put = await ask(http, target.host, '/', { method: 'PUT', body: { stream, length: size, disposable: true } });
    expect(put.status).toBe(201);
    await put.discard();
    // 1,024 reads of 64 KiB; without it, as many pieces of memory.
    expect(memory.size).toBeLessThan(256);
  });
});
