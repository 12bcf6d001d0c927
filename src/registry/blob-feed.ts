import { Readable } from 'node:stream';
import { hashFor } from '../model/digest.ts';
import { BlobBody } from './blob-body.ts';
import { type BodyFault, checkHash, sourceFailed, wrongSize } from './checked-body.ts';
import type { BlobIdentity, HashMark } from './client.ts';

/**
 * A blob that leaves in several bodies. It is read once, forwards, through one hash; nothing is kept but the piece that
 * lies across the border of two chunks.
 */
export interface BlobFeed {
  /** The next `length` bytes as a body. The one before must have been read. */
  next(length: number): Readable;
  /** As in {@link HttpRequest.body}. */
  readonly disposable: boolean;
  /** How far the source has been read: what has left at most. */
  offset(): number;
  /** Reads on to `offset` and lets nothing out: the registry has these bytes. @throws what {@link BlobFeed.fault} tells */
  skipTo(offset: number): Promise<void>;
  /** Reads the source to its end and checks everything. @throws what {@link BlobFeed.fault} tells */
  finish(): Promise<void>;
  fault(): BodyFault | undefined;
  /** The hash at the start of the feed and of each body. */
  marks(): readonly HashMark[];
  /** Ends the source; harmless when it has ended. */
  close(): void;
}

/**
 * @param start where the source begins in the blob, and the hash over what comes before; absent: the blob's start
 * @param onRead told after each piece how far the source has been read
 */
export function feedBlob(
  source: Readable,
  blob: BlobIdentity,
  name: string,
  start?: HashMark,
  onRead?: (offset: number) => void,
): BlobFeed {
  const hash = start?.hash.copy() ?? hashFor(blob.digest);
  const marks: HashMark[] = [];
  // Whoever reads is told; between two bodies nobody does, and node would end the process.
  source.on('error', () => undefined);
  const pieces = source[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let read = start?.offset ?? 0;
  let rest: Buffer = Buffer.alloc(0);
  let fault: BodyFault | undefined;

  function mark(): void {
    if (marks.at(-1)?.offset !== read) marks.push({ offset: read, hash: hash.copy() });
  }

  function corrupt(error: BodyFault['error']): BodyFault['error'] {
    fault ??= { kind: 'corrupt', error };
    return error;
  }

  /** Undefined at the end of the source. */
  async function pull(): Promise<Buffer | undefined> {
    try {
      const { done, value } = await pieces.next();
      return done === true ? undefined : value;
    } catch (cause) {
      const error = sourceFailed(name, cause);
      fault ??= { kind: 'source', error };
      throw error;
    }
  }

  /** Bytes up to `end` of the blob, hashed, one piece at a time. */
  async function* readTo(end: number): AsyncGenerator<Buffer> {
    while (read < end) {
      const whole = rest.byteLength > 0 ? rest : await pull();
      if (whole === undefined) throw corrupt(wrongSize(blob, name, `${read}`));
      const piece = whole.subarray(0, end - read);
      rest = whole.subarray(piece.byteLength);
      hash.update(piece);
      read += piece.byteLength;
      if (piece.byteLength === 0) continue;
      onRead?.(read);
      yield piece;
    }
  }

  mark();
  return {
    next: (length) => {
      mark();
      return Readable.from(readTo(read + length), { objectMode: false });
    },
    disposable: source instanceof BlobBody,
    offset: () => read,
    skipTo: async (offset) => {
      for await (const _ of readTo(offset));
    },
    finish: async () => {
      let more = rest.byteLength > 0 ? rest : await pull();
      while (more?.byteLength === 0) more = await pull();
      if (more !== undefined) throw corrupt(wrongSize(blob, name, `at least ${read + more.byteLength}`));
      const error = checkHash(hash.copy(), blob, name);
      if (error !== undefined) throw corrupt(error);
    },
    fault: () => fault,
    marks: () => marks,
    close: () => {
      source.destroy();
    },
  };
}
