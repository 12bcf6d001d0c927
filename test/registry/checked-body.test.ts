import { PassThrough, Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { digestOf } from '../../src/model/digest.ts';
import { checkBody, checkBytes } from '../../src/registry/checked-body.ts';
import { type Blob, blobOf } from './fixture.ts';

/** Everything that came out before the end or the failure. */
async function drain(stream: Readable): Promise<{ readonly bytes: Buffer; readonly error: unknown }> {
  const chunks: Buffer[] = [];
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  const error = await pipeline(stream, sink).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return { bytes: Buffer.concat(chunks), error };
}

/** Resolves when the stream is closed, whatever it failed with. */
function closed(stream: Readable): Promise<void> {
  return new Promise((resolve) => stream.once('close', resolve));
}

function chunksOf({ bytes }: Blob, size: number): Readable {
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
  return Readable.from(chunks, { objectMode: false });
}

describe('checkBody', () => {
  test('lets the very bytes through, in any chunks, and counts them', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 5000 }), fc.integer({ min: 1, max: 999 }), async (size, chunk) => {
        const blob = blobOf(size, 7);
        const told: number[] = [];
        const checked = checkBody(chunksOf(blob, chunk), blob, 'copying', (sent) => told.push(sent));
        const { bytes, error } = await drain(checked.stream);
        expect(error).toBeUndefined();
        expect(bytes).toEqual(blob.bytes);
        expect(checked.complete()).toBe(true);
        expect(checked.sent()).toBe(size);
        expect(checked.fault()).toBeUndefined();
        expect(told.at(-1) ?? 0).toBe(size);
      }),
      { numRuns: 50 },
    );
  });

  test('never lets the last chunk go when one bit is wrong', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 5000 }),
        fc.integer({ min: 1, max: 999 }),
        fc.nat(),
        async (size, chunk, at) => {
          const blob = blobOf(size, 7);
          const wrong = { ...blob, bytes: Buffer.from(blob.bytes) };
          const place = at % size;
          wrong.bytes[place] = (wrong.bytes[place] ?? 0) ^ 1;
          const checked = checkBody(chunksOf(wrong, chunk), blob, 'copying');
          const { bytes } = await drain(checked.stream);
          expect(bytes.length).toBeLessThan(size);
          expect(checked.complete()).toBe(false);
          expect(checked.fault()).toMatchObject({
            kind: 'corrupt',
            error: { code: 'DIGEST_MISMATCH', side: 'source' },
          });
        },
      ),
      { numRuns: 50 },
    );
  });

  test('tells both digests', async () => {
    const blob = blobOf(10);
    const other = blobOf(10, 2);
    const checked = checkBody(Readable.from([other.bytes]), blob, 'copying x');
    await drain(checked.stream);
    const message = checked.fault()?.error.message ?? '';
    expect(message).toContain('copying x');
    expect(message).toContain(blob.digest);
    expect(message).toContain(other.digest);
  });

  test.each([
    ['short', 99],
    ['long', 101],
    ['empty', 0],
  ])('a %s source is corrupt and its last chunk is kept back', async (_name, size) => {
    const blob = blobOf(100);
    const checked = checkBody(chunksOf(blobOf(size), 30), blob, 'copying');
    const { bytes } = await drain(checked.stream);
    expect(bytes.length).toBeLessThan(100);
    expect(checked.fault()).toMatchObject({ kind: 'corrupt', error: { code: 'SIZE_MISMATCH' } });
  });

  test('an endless source is stopped at the first chunk too many', async () => {
    let given = 0;
    const source = new Readable({
      read() {
        given += 1;
        this.push(Buffer.alloc(1000));
      },
    });
    const checked = checkBody(source, { ...blobOf(0), size: 5000 }, 'copying');
    await drain(checked.stream);
    expect(checked.fault()?.kind).toBe('corrupt');
    expect(source.destroyed).toBe(true);
    expect(given).toBeLessThan(100);
  });

  test('works in sha512', async () => {
    const { bytes, size } = blobOf(100);
    const checked = checkBody(Readable.from([bytes]), { digest: digestOf(bytes, 'sha512'), size }, 'copying');
    expect((await drain(checked.stream)).bytes).toEqual(bytes);
  });

  test('keeps about a chunk in memory while the receiver does not read', async () => {
    const blob = { digest: blobOf(1).digest, size: 100 * 1024 * 1024 };
    let given = 0;
    const source = new Readable({
      highWaterMark: 64 * 1024,
      read() {
        given += 64 * 1024;
        this.push(Buffer.alloc(64 * 1024));
      },
    });
    const checked = checkBody(source, blob, 'copying');
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(given).toBeLessThan(1024 * 1024);
    checked.close();
  });

  test('a source that breaks is to blame', async () => {
    const source = new PassThrough();
    const checked = checkBody(source, blobOf(100), 'copying x');
    const draining = drain(checked.stream);
    source.write(blobOf(50).bytes);
    source.destroy(new Error('socket hang up'));
    await draining;
    const fault = checked.fault();
    expect(fault).toMatchObject({ kind: 'source', error: { code: 'NETWORK_FAILED', side: 'source' } });
    expect(fault?.error.message).toBe('copying x: reading from the source broke off: socket hang up');
  });

  test('its own error is kept, with its side', async () => {
    const source = new PassThrough();
    const checked = checkBody(source, blobOf(100), 'copying x');
    const draining = drain(checked.stream);
    source.destroy(new PublishError('FILE_FAILED', 'disk gone', 'Mount it.'));
    await draining;
    expect(checked.fault()).toMatchObject({
      kind: 'source',
      error: { code: 'FILE_FAILED', side: 'source', hint: 'Mount it.' },
    });
  });

  test('so is one that closes without a word', async () => {
    const source = new PassThrough();
    const checked = checkBody(source, blobOf(100), 'copying');
    const draining = drain(checked.stream);
    source.destroy();
    await draining;
    expect(checked.fault()?.kind).toBe('source');
  });

  test('so is one that was broken before anybody looked', async () => {
    const source = new PassThrough();
    source.on('error', () => undefined);
    source.destroy(new Error('long gone'));
    await closed(source);
    const checked = checkBody(source, blobOf(100), 'copying');
    await drain(checked.stream);
    expect(checked.fault()?.error.message).toContain('long gone');
  });

  test('a receiver that goes away is to blame itself, and the source is ended', async () => {
    const source = new PassThrough();
    const checked = checkBody(source, blobOf(100), 'copying');
    source.write(blobOf(50).bytes);
    checked.stream.destroy(new Error('target gone'));
    await closed(source);
    expect(checked.fault()).toBeUndefined();
    expect(source.destroyed).toBe(true);
  });

  test('a receiver that fails after the source has ended does not end the process', async () => {
    const blob = blobOf(100);
    const checked = checkBody(Readable.from([blob.bytes]), blob, 'copying');
    await new Promise((resolve) => checked.stream.once('finish', resolve));
    await new Promise((resolve) => setImmediate(resolve));
    checked.stream.destroy(new Error('target gone'));
    await closed(checked.stream);
    expect(checked.fault()).toBeUndefined();
  });

  test('closing ends both streams, more than once too', async () => {
    const source = new PassThrough();
    const checked = checkBody(source, blobOf(100), 'copying');
    checked.close();
    checked.close();
    await closed(source);
    expect(checked.stream.destroyed).toBe(true);
    expect(checked.fault()).toBeUndefined();
  });
});

describe('checkBytes', () => {
  test('has nothing to say about the right bytes', () => {
    const blob = blobOf(10);
    expect(checkBytes(blob.bytes, blob, 'copying')).toBeUndefined();
    expect(checkBytes(new Uint8Array(0), blobOf(0), 'copying')).toBeUndefined();
  });

  test('tells size and digest errors', () => {
    const blob = blobOf(10);
    expect(checkBytes(blobOf(11).bytes, blob, 'copying')?.code).toBe('SIZE_MISMATCH');
    expect(checkBytes(blobOf(10, 2).bytes, blob, 'copying')?.code).toBe('DIGEST_MISMATCH');
  });
});
