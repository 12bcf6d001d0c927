import type { Hash } from 'node:crypto';
import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream';
import { PublishError } from '../errors.ts';
import { algorithmOf, type Digest, hashFor } from '../model/digest.ts';
import { BlobBody } from './blob-body.ts';
import type { BlobIdentity, HashMark } from './client.ts';

/** Why a body ended before its last byte was let go, when that was not the receiver's doing. */
export type BodyFault = {
  /** `source`: reading broke, another try may do. `corrupt`: these are not the blob's bytes. */
  readonly kind: 'source' | 'corrupt';
  readonly error: PublishError;
};

/** A blob on its way from one registry to another. */
export interface CheckedBody {
  /** What the receiver reads; never more than about one chunk is kept. */
  readonly stream: Readable;
  /** As in {@link HttpRequest.body}. */
  readonly disposable: boolean;
  /** Body bytes handed to the receiver so far. */
  sent(): number;
  /** Digest and size were right and the last bytes were let go: from here on the receiver may have committed. */
  complete(): boolean;
  fault(): BodyFault | undefined;
  /** The hash at some offsets so far, in ascending order; the first is at 0. */
  marks(): readonly HashMark[];
  /** Ends both streams; harmless when they have ended. */
  close(): void;
}

/**
 * Puts a hash and a counter between a source and an upload. The newest chunk is always held back, and the last one is
 * let go only when digest and size are right: an upload with an exact Content-Length that lacks its last bytes cannot
 * be committed, so wrong content never reaches a repository, not even on a registry that does not check.
 *
 * @param name what is being done, for messages
 * @param progress told after each chunk how many bytes have been handed on
 */
export function checkBody(
  source: Readable,
  blob: BlobIdentity,
  name: string,
  progress?: (sent: number) => void,
): CheckedBody {
  let sent = 0;
  let complete = false;
  let fault: BodyFault | undefined;
  const gate = new Gate(blob, name, {
    onSent: (bytes) => {
      sent += bytes;
      progress?.(sent);
    },
    onComplete: () => {
      complete = true;
    },
    onCorrupt: (error) => {
      fault ??= { kind: 'corrupt', error };
    },
  });
  const onSourceFailure = (cause: unknown): void => {
    // A source that fails because its receiver went away is not the one to blame.
    if (!gate.destroyed && !complete) fault ??= { kind: 'source', error: sourceFailed(name, cause) };
  };
  source.on('error', onSourceFailure);
  source.once('close', () => {
    if (!source.readableEnded) onSourceFailure(source.errored ?? new Error('closed before its end'));
  });
  if (source.destroyed) onSourceFailure(source.errored ?? new Error('closed before it was read'));
  // The receiver is told of its own failure, and of ours by the stream: what is left to do here is to listen, or node
  // would end the process.
  gate.on('error', () => undefined);
  // Destroys each stream when the other fails.
  pipeline(source, gate, () => undefined);
  return {
    stream: gate,
    // Bytes of any other kind of stream may go to others as well.
    disposable: source instanceof BlobBody,
    sent: () => sent,
    complete: () => complete,
    fault: () => fault,
    marks: () => gate.marks,
    close: () => {
      gate.destroy();
      // The pipeline would do so too, but only a moment later.
      source.destroy();
    },
  };
}

/** The same checks for bytes in memory; undefined when they are the blob's. */
export function checkBytes(bytes: Uint8Array, blob: BlobIdentity, name: string): PublishError | undefined {
  if (bytes.byteLength !== blob.size) return wrongSize(blob, name, `${bytes.byteLength}`);
  return checkHash(hashFor(blob.digest).update(bytes), blob, name);
}

type GateEvents = {
  readonly onSent: (bytes: number) => void;
  readonly onComplete: () => void;
  readonly onCorrupt: (error: PublishError) => void;
};

/** A class because that is how node makes streams. */
class Gate extends Transform {
  readonly #blob: BlobIdentity;
  readonly #name: string;
  readonly #events: GateEvents;
  readonly #hash: Hash;
  readonly marks: HashMark[] = [];
  #seen = 0;
  #held: Buffer | undefined;

  constructor(blob: BlobIdentity, name: string, events: GateEvents) {
    super();
    this.#blob = blob;
    this.#name = name;
    this.#events = events;
    this.#hash = hashFor(blob.digest);
    this.marks.push({ offset: 0, hash: this.#hash.copy() });
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#seen += chunk.byteLength;
    if (this.#seen > this.#blob.size) {
      this.#refuse(wrongSize(this.#blob, this.#name, `at least ${this.#seen}`), done);
      return;
    }
    this.#hash.update(chunk);
    const marked = this.marks.at(-1)?.offset ?? 0;
    if (this.#seen - marked >= markEvery(this.#blob.size)) {
      this.marks.push({ offset: this.#seen, hash: this.#hash.copy() });
    }
    this.#release();
    this.#held = chunk;
    done();
  }

  override _flush(done: TransformCallback): void {
    if (this.#seen !== this.#blob.size) {
      this.#refuse(wrongSize(this.#blob, this.#name, `${this.#seen}`), done);
      return;
    }
    const actual = endHash(this.#hash, this.#blob.digest);
    if (actual !== this.#blob.digest) {
      this.#refuse(wrongDigest(this.#blob, this.#name, actual), done);
      return;
    }
    this.#events.onComplete();
    this.#release();
    done();
  }

  #release(): void {
    if (this.#held === undefined) return;
    this.#events.onSent(this.#held.byteLength);
    this.push(this.#held);
    this.#held = undefined;
  }

  #refuse(error: PublishError, done: TransformCallback): void {
    this.#held = undefined;
    this.#events.onCorrupt(error);
    done(error);
  }
}

/** Who goes on from somewhere else has to read and hash what lies between a mark and that place. In bytes. */
function markEvery(size: number): number {
  return Math.max(MARK_LEAST, size / MARKS);
}

const MARK_LEAST = 256 * 1024;
const MARKS = 256;

/** Ends a hash and compares; undefined when it is the blob's. */
export function checkHash(hash: Hash, blob: BlobIdentity, name: string): PublishError | undefined {
  const actual = endHash(hash, blob.digest);
  return actual === blob.digest ? undefined : wrongDigest(blob, name, actual);
}

function endHash(hash: Hash, expected: Digest): string {
  return `${algorithmOf(expected)}:${hash.digest('hex')}`;
}

/** `actual`: what the source sent, in words. */
export function wrongSize(blob: BlobIdentity, name: string, actual: string): PublishError {
  return new PublishError(
    'SIZE_MISMATCH',
    `${name}: the source sent ${actual} bytes where its manifest says ${blob.size}; nothing was committed`,
    'Run the same command again; if it repeats, the source repository is damaged: push the image again.',
    { side: 'source' },
  );
}

function wrongDigest(blob: BlobIdentity, name: string, actual: string): PublishError {
  return new PublishError(
    'DIGEST_MISMATCH',
    `${name}: the source sent bytes that hash to ${actual}, not to ${blob.digest}; nothing was committed`,
    'Run the same command again; if it repeats, the source repository is damaged: push the image again.',
    { side: 'source' },
  );
}

export function sourceFailed(name: string, cause: unknown): PublishError {
  if (cause instanceof PublishError) return cause.with({ message: `${name}: ${cause.message}`, side: 'source' });
  const why = cause instanceof Error ? cause.message : String(cause);
  return new PublishError(
    'NETWORK_FAILED',
    `${name}: reading from the source broke off: ${why.split('\n', 1)[0]}`,
    'Run the same command again; what has been copied stays.',
    { side: 'source', cause },
  );
}
