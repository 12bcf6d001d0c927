import { PassThrough, Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { feedBlob } from '../../src/registry/blob-feed.ts';
import { checkBody, checkBytes, checkHash, sourceFailed } from '../../src/registry/checked-body.ts';
import type { HashMark } from '../../src/registry/client.ts';
import { type Blob, blobOf } from './fixture.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

const sourceOf = (...pieces: readonly Buffer[]) => Readable.from(pieces, { objectMode: false });
const read = async (stream: Readable) => Buffer.concat(await stream.toArray());

/** Every mark is at the offset it says, with the hash of what lies before it. */
function expectMarks(marks: readonly HashMark[], bytes: Buffer, offsets: readonly number[]): void {
  expect(marks.map(({ offset }) => offset)).toEqual(offsets);
  for (const { offset, hash } of marks) {
    expect(`sha256:${hash.copy().digest('hex')}`).toBe(digestOf(bytes.subarray(0, offset)));
  }
}

describe('a checked body', () => {
  const feed = async (size: number, given: Buffer, piece: number) => {
    const source = new PassThrough();
    const checked = checkBody(source, { ...blobOf(0), size }, 'copying');
    checked.stream.on('error', () => undefined).resume();
    for (let at = 0; at < given.length; at += piece) {
      if (!source.write(given.subarray(at, at + piece))) await new Promise((resolve) => source.once('drain', resolve));
    }
    await new Promise(setImmediate);
    checked.close();
    return checked.marks();
  };

  test('remembers the hash every 256 KiB, from the start on', async () => {
    const { bytes } = blobOf(700 * KIB);
    expectMarks(await feed(700 * KIB + 1, bytes, 64 * KIB), bytes, [0, 256 * KIB, 512 * KIB]);
    const few = blobOf(256 * KIB - 1);
    expectMarks(await feed(MIB, few.bytes, 64 * KIB), few.bytes, [0]);
  });

  test('remembers it 256 times at most, however large the blob is', async () => {
    const { bytes } = blobOf(3 * MIB);
    expectMarks(await feed(256 * MIB, bytes, 512 * KIB), bytes, [0, MIB, 2 * MIB, 3 * MIB]);
  });

  test('is not complete before the last chunk, which is let go with the count of all', async () => {
    const blob = blobOf(100);
    const source = new PassThrough();
    const told: number[] = [];
    const checked = checkBody(source, blob, 'copying', (sent) => told.push(sent));
    const taken = read(checked.stream);
    source.write(blob.bytes.subarray(0, 60));
    source.write(blob.bytes.subarray(60));
    await new Promise(setImmediate);
    expect([checked.sent(), checked.complete(), told]).toEqual([60, false, [60]]);
    source.end();
    expect(await taken).toEqual(blob.bytes);
    expect([checked.sent(), checked.complete(), told]).toEqual([100, true, [60, 100]]);
  });

  test('says what the source sent, and that nothing was committed', async () => {
    const blob = blobOf(10);
    const faultOf = async (bytes: Buffer) => {
      const checked = checkBody(sourceOf(bytes), blob, 'copying x');
      await read(checked.stream).catch(() => undefined);
      return checked.fault()?.error;
    };
    const [short, long, other] = await Promise.all(
      [9, 11].map((size) => faultOf(blobOf(size).bytes)).concat([faultOf(blobOf(10, 2).bytes)]),
    );
    expect(short?.message).toBe('copying x: the source sent 9 bytes where its manifest says 10; nothing was committed');
    expect(long?.message).toBe(
      'copying x: the source sent at least 11 bytes where its manifest says 10; nothing was committed',
    );
    expect(other?.message).toBe(
      `copying x: the source sent bytes that hash to ${blobOf(10, 2).digest}, not to ${blob.digest}; nothing was committed`,
    );
    for (const error of [short, long, other]) {
      expect(error).toMatchObject({
        side: 'source',
        hint: expect.stringMatching(/same command again.*push the image again/),
      });
    }
  });

  test('blames a source that broke before anybody looked, or closed before its end', async () => {
    const gone = new PassThrough();
    gone.destroy();
    const before = checkBody(gone, blobOf(10), 'copying');
    expect(before.fault()?.error.message).toBe('copying: reading from the source broke off: closed before it was read');
    const source = new PassThrough();
    const during = checkBody(source, blobOf(10), 'copying');
    during.stream.on('error', () => undefined);
    source.destroy();
    await new Promise((resolve) => during.stream.once('close', resolve));
    expect(during.fault()?.error.message).toBe('copying: reading from the source broke off: closed before its end');
  });

  test('blames nobody when the source has ended and the receiver is slow', async () => {
    const source = new PassThrough();
    const room = source.readableHighWaterMark;
    const blob = blobOf(room + 4 * KIB);
    const checked = checkBody(source, blob, 'copying');
    for (let at = 0; at < blob.size; at += KIB) source.write(blob.bytes.subarray(at, at + KIB));
    source.end();
    await new Promise((resolve) => source.once('close', resolve));
    expect([checked.complete(), checked.fault()]).toEqual([false, undefined]);
    expect(await read(checked.stream)).toEqual(blob.bytes);
    expect([checked.complete(), checked.fault()]).toEqual([true, undefined]);
  });

  test('blames nobody when a source fails behind its last byte', async () => {
    const blob = blobOf(10);
    const source = new Readable({ read: () => undefined });
    const checked = checkBody(source, blob, 'copying');
    const taken = read(checked.stream);
    source.push(blob.bytes);
    source.push(null);
    await taken;
    source.emit('error', new Error('late'));
    expect(checked.fault()).toBeUndefined();
    expect(checked.complete()).toBe(true);
  });

  test('is closed at once with its source', () => {
    const source = new PassThrough();
    const checked = checkBody(source, blobOf(10), 'copying');
    checked.close();
    expect([source.destroyed, checked.stream.destroyed]).toEqual([true, true]);
  });
});

describe('bytes in memory', () => {
  test('are told by their own size', () => {
    const error = checkBytes(blobOf(3).bytes, blobOf(4), 'copying x');
    expect(error?.message).toContain('sent 3 bytes where its manifest says 4');
  });

  test('are the blob’s by their hash', () => {
    const blob = blobOf(4);
    const hash = (bytes: Buffer) => checkHash(hashOf(blob, bytes), blob, 'x')?.code;
    expect(hash(blob.bytes)).toBeUndefined();
    expect(hash(blobOf(4, 2).bytes)).toBe('DIGEST_MISMATCH');
  });

  function hashOf(blob: Blob, bytes: Buffer) {
    return feedBlob(sourceOf(), blob, 'x').marks()[0]?.hash.copy().update(bytes) ?? expect.unreachable();
  }
});

describe('a source that failed', () => {
  test.each([
    [new Error('hang up\nmore'), 'hang up'],
    ['plain words', 'plain words'],
  ])('is told in one line: %s', (cause, why) => {
    expect(sourceFailed('copying x', cause)).toMatchObject({
      code: 'NETWORK_FAILED',
      side: 'source',
      message: `copying x: reading from the source broke off: ${why}`,
      hint: expect.stringMatching(/same command again; what has been copied stays/),
      cause,
    });
  });
});

describe('a blob that leaves in several bodies', () => {
  const blob = blobOf(10);
  const { bytes } = blob;

  test('is cut where the bodies end, wherever its pieces do', async () => {
    const seen: number[] = [];
    const pieces = [bytes.subarray(0, 3), Buffer.alloc(0), bytes.subarray(3, 8), bytes.subarray(8)];
    // As objects, so that the empty piece arrives.
    const source = Readable.from(pieces);
    const feed = feedBlob(source, blob, 'copying', undefined, (offset) => seen.push(offset));
    expect(feed.offset()).toBe(0);
    expect(await read(feed.next(4))).toEqual(bytes.subarray(0, 4));
    expect(feed.offset()).toBe(4);
    expect(await read(feed.next(4))).toEqual(bytes.subarray(4, 8));
    expect(await read(feed.next(2))).toEqual(bytes.subarray(8));
    await feed.finish();
    expect(seen).toEqual([3, 4, 8, 10]);
    expect(feed.fault()).toBeUndefined();
    expectMarks(feed.marks(), bytes, [0, 4, 8]);
  });

  test('is remembered once at a place that it is asked for twice', async () => {
    const feed = feedBlob(sourceOf(bytes), blob, 'copying');
    expect(await read(feed.next(0))).toHaveLength(0);
    expect(await read(feed.next(6))).toEqual(bytes.subarray(0, 6));
    feed.next(1);
    feed.next(1);
    expectMarks(feed.marks(), bytes, [0, 6]);
  });

  test('goes on from a place with the hash of what lies before it, which stays as it was', async () => {
    const first = feedBlob(sourceOf(bytes), blob, 'copying');
    await first.skipTo(6);
    first.next(1);
    const mark = first.marks().at(-1);
    expect(mark?.offset).toBe(6);
    for (let count = 0; count < 2; count += 1) {
      const rest = feedBlob(sourceOf(bytes.subarray(6)), blob, 'copying', mark);
      expect(rest.offset()).toBe(6);
      expect(await read(rest.next(4))).toEqual(bytes.subarray(6));
      await rest.finish();
      expect(rest.fault()).toBeUndefined();
    }
  });

  test('lets nothing out of what is skipped, and hashes it', async () => {
    const feed = feedBlob(sourceOf(bytes.subarray(0, 5), bytes.subarray(5)), blob, 'copying');
    await feed.skipTo(3);
    await feed.skipTo(3);
    expect(feed.offset()).toBe(3);
    expect(await read(feed.next(7))).toEqual(bytes.subarray(3));
    await feed.finish();
  });

  test.each([
    ['short', bytes.subarray(0, 9), 10, 'sent 9 bytes'],
    ['long, with the rest at hand', Buffer.concat([bytes, Buffer.from('xy')]), 10, 'sent at least 12 bytes'],
  ])('is corrupt when its source is %s', async (_what, sent, length, words) => {
    const feed = feedBlob(sourceOf(sent), blob, 'copying x');
    const failure = await read(feed.next(length))
      .then(() => feed.finish())
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'SIZE_MISMATCH', message: expect.stringContaining(words) });
    expect(feed.fault()).toEqual({ kind: 'corrupt', error: failure });
  });

  test('is corrupt when its source goes on after the end, behind empty pieces too', async () => {
    const feed = feedBlob(Readable.from([bytes, Buffer.alloc(0), Buffer.from('x')]), blob, 'copying');
    await feed.skipTo(10);
    await expect(feed.finish()).rejects.toThrow('sent at least 11 bytes');
    const quiet = feedBlob(Readable.from([bytes, Buffer.alloc(0), Buffer.alloc(0)]), blob, 'copying');
    await quiet.skipTo(10);
    await quiet.finish();
  });

  test('is corrupt when one bit is wrong, and its first fault stays', async () => {
    const wrong = Buffer.from(bytes);
    wrong[9] = (wrong[9] ?? 0) ^ 1;
    const feed = feedBlob(sourceOf(wrong), blob, 'copying');
    await feed.skipTo(10);
    const failure = await feed.finish().catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'DIGEST_MISMATCH' });
    await expect(feed.skipTo(11)).rejects.toMatchObject({ code: 'SIZE_MISMATCH' });
    expect(feed.fault()).toEqual({ kind: 'corrupt', error: failure });
  });

  test('blames its source when that breaks, between two bodies too', async () => {
    const source = new PassThrough();
    source.write(bytes.subarray(0, 4));
    const feed = feedBlob(source, blob, 'copying x');
    await feed.skipTo(4);
    source.destroy(new Error('hang up'));
    await new Promise(setImmediate);
    await expect(feed.skipTo(10)).rejects.toThrow('copying x: reading from the source broke off: hang up');
    expect(feed.fault()).toMatchObject({ kind: 'source', error: { code: 'NETWORK_FAILED' } });
  });

  test('leaves as bytes, of which the reader takes as many as it likes', async () => {
    expect(feedBlob(sourceOf(bytes), blob, 'copying').next(4).readableObjectMode).toBe(false);
  });

  test('is listened to before anybody reads, or a source that breaks would end the process', () => {
    const source = new PassThrough();
    feedBlob(source, blob, 'copying');
    expect(() => source.emit('error', new Error('early'))).not.toThrow();
  });

  test('ends its source when it is closed', () => {
    const source = new PassThrough();
    feedBlob(source, blob, 'copying').close();
    expect(source.destroyed).toBe(true);
  });
});
