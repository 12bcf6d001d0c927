import { describe, expect, test } from 'vitest';
import { blobOf, clientOf, failure, type Handler, serve, verb, world } from './fixture.ts';

const BLOB = blobOf(300_000);

type Ranges = 'exact' | 'none' | 'wrong' | 'refused';

/** A registry that cuts the first `cuts` answers after so many bytes, and knows ranges in one way or another. */
function source(ranges: Ranges, cuts: number, after = 50_000): Handler {
  let left = cuts;
  return ({ request, response }) => {
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
    const part = from > 0 && (ranges === 'exact' || ranges === 'wrong');
    const start = part ? from : 0;
    const says = ranges === 'wrong' ? start - 1 : start;
    if (from > 0 && ranges === 'refused') {
      response.writeHead(416, { 'content-range': `bytes */${BLOB.size}` }).end();
      return;
    }
    const bytes = BLOB.bytes.subarray(start);
    const range = part ? { 'content-range': `bytes ${says}-${BLOB.size - 1}/${BLOB.size}` } : {};
    response.writeHead(part ? 206 : 200, { 'content-length': bytes.byteLength, ...range });
    left -= 1;
    if (left < 0) response.end(bytes);
    else response.write(bytes.subarray(0, after), () => setTimeout(() => request.socket.destroy(), 20));
  };
}

async function read(handler: Handler, from = 0, retries = 5) {
  const server = await serve(handler);
  const stream = await clientOf(server, { retries }).openBlob('app', BLOB, { ...verb(), from });
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  return { bytes: Buffer.concat(pieces), asked: server.seen.map(({ headers }) => headers.range) };
}

describe('a blob whose connection breaks', () => {
  test('is read on from the byte where it broke', async () => {
    const { bytes, asked } = await read(source('exact', 3));
    expect(bytes.equals(BLOB.bytes)).toBe(true);
    expect(asked).toEqual([undefined, 'bytes=50000-', 'bytes=100000-', 'bytes=150000-']);
  });

  test('is read again and skipped where ranges are not known', async () => {
    const { bytes, asked } = await read(source('none', 2, 60_000));
    expect(bytes.equals(BLOB.bytes)).toBe(true);
    expect(asked).toHaveLength(3);
  });

  test('is read from the start where a range is answered by another one', async () => {
    const { bytes, asked } = await read(source('wrong', 1));
    expect(bytes.equals(BLOB.bytes)).toBe(true);
    expect(asked).toEqual([undefined, 'bytes=50000-', undefined]);
  });

  test('is given up after the retries', async () => {
    const server = await serve(source('exact', 99, 1000));
    const stream = await clientOf(server).openBlob('app', BLOB, verb());
    const error = await failure(
      (async () => {
        for await (const _ of stream);
      })(),
    );
    expect(error.code).toBe('NETWORK_FAILED');
    expect(server.seen).toHaveLength(6);
  });

  test('costs a retry only where next to nothing came, in all reads of the blob together', async () => {
    const server = await serve(source('exact', 99, 1000));
    const reads = { fruitless: 0 };
    const all = async () => {
      const client = world({ kind: 'none' }, {}).client(server.host, undefined, { retries: 2 });
      for await (const _ of await client.openBlob('app', BLOB, { ...verb(), reads }));
    };
    await failure(all());
    expect(server.seen).toHaveLength(3);
    expect(reads.fruitless).toBe(3);
    await failure(all());
    expect(server.seen).toHaveLength(4);
    const large = blobOf(5 * 1024 * 1024);
    const cutting = await serve(({ request, response }) => {
      const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
      const bytes = large.bytes.subarray(from);
      const range = { 'content-range': `bytes ${from}-${large.size - 1}/${large.size}` };
      response.writeHead(from > 0 ? 206 : 200, { 'content-length': bytes.byteLength, ...(from > 0 ? range : {}) });
      const most = 1_200_000;
      if (bytes.byteLength <= most) response.end(bytes);
      else response.write(bytes.subarray(0, most), () => setTimeout(() => request.socket.destroy(), 20));
    });
    const pieces: Buffer[] = [];
    const client = world().client(cutting.host, undefined, { retries: 0 });
    for await (const piece of await client.openBlob('app', large, verb())) pieces.push(piece as Buffer);
    expect(Buffer.concat(pieces).equals(large.bytes)).toBe(true);
  });

  test('and cannot be opened again is given up with what was left of the tries', async () => {
    let asked = 0;
    const server = await serve((exchange) => {
      asked += 1;
      if (asked === 1) source('exact', 99, 1000)(exchange);
      else exchange.response.writeHead(503).end();
    });
    const reads = { fruitless: 0 };
    const error = await failure(
      (async () => {
        const client = world().client(server.host, undefined, { retries: 2 });
        for await (const _ of await client.openBlob('app', BLOB, { ...verb(), reads }));
      })(),
    );
    expect(error.code).toBe('REGISTRY_FAILED');
    expect(asked).toBe(3);
    expect(reads.fruitless).toBe(3);
  });

  test('that nobody wants any more is not asked for again', async () => {
    const server = await serve(source('exact', 99));
    const stream = await clientOf(server).openBlob('app', BLOB, verb());
    stream.destroy();
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(server.seen).toHaveLength(1);
  });
});

describe('a blob from some byte on', () => {
  test.each(['exact', 'none', 'wrong'] as const)('is what follows, with ranges %s', async (ranges) => {
    const { bytes } = await read(source(ranges, 0), 123_456);
    expect(bytes.equals(BLOB.bytes.subarray(123_456))).toBe(true);
  });

  test('is nothing at its end, and nothing is asked', async () => {
    const { bytes, asked } = await read(source('exact', 0), BLOB.size);
    expect(bytes.byteLength).toBe(0);
    expect(asked).toEqual([]);
  });
});
