import { Readable } from 'node:stream';
import { PublishError } from '../errors.ts';
import type { BlobReads, VerbOptions } from './client.ts';

/** A read that brought as much, in bytes, was worth its while, and asking for the rest is no repetition. */
const FRUITFUL = 1024 * 1024;

/** A body and how many of its first bytes come before the wanted ones. */
export type Opened = { readonly body: Readable; readonly skip: number };

type Source = {
  readonly open: (at: number, options: VerbOptions, left: number) => Promise<Opened>;
  readonly options: VerbOptions;
  readonly retries: number;
  readonly reads: BlobReads;
};

/**
 * A blob as it arrives. Where the connection breaks the rest is asked for, so that the upload it feeds does not notice;
 * the digest of the whole shows whether the parts belong together. A class because that is how node makes streams.
 */
export class BlobBody extends Readable {
  readonly #source: Source;
  readonly #closing = new AbortController();
  #body: Readable;
  #skip: number;
  #at: number;
  /** Where the running read began to bring anything new. */
  #from: number;

  constructor({ body, skip }: Opened, at: number, source: Source) {
    super({ highWaterMark: 64 * 1024 });
    this.#source = source;
    this.#at = at;
    this.#from = at;
    this.#skip = skip;
    this.#body = this.#attach(body);
    // A failure before the first read is kept by the stream for its reader.
    this.on('error', () => undefined);
  }

  #attach(body: Readable): Readable {
    body.on('data', (piece: Buffer) => this.#receive(piece));
    body.once('end', () => this.push(null));
    body.once('error', (error) => this.#broke(error));
    body.pause();
    return body;
  }

  #receive(piece: Buffer): void {
    const wanted = this.#skip === 0 ? piece : piece.subarray(Math.min(this.#skip, piece.byteLength));
    this.#skip -= piece.byteLength - wanted.byteLength;
    this.#at += wanted.byteLength;
    if (wanted.byteLength > 0 && !this.push(wanted)) this.#body.pause();
  }

  #broke(error: Error): void {
    const { open, options, retries, reads } = this.#source;
    if (this.#at - this.#from < FRUITFUL) reads.fruitless += 1;
    this.#from = this.#at;
    const left = retries - reads.fruitless;
    const again = error instanceof PublishError && error.code === 'NETWORK_FAILED' && left >= 0;
    if (!again || options.signal.aborted || this.destroyed) {
      this.destroy(error);
      return;
    }
    const signal = AbortSignal.any([options.signal, this.#closing.signal]);
    open(this.#at, { ...options, signal }, left).then(
      ({ body, skip }) => {
        this.#skip = skip;
        this.#body = this.#attach(body);
        if (this.destroyed) body.destroy();
        else this.#body.resume();
      },
      (failure: unknown) => {
        // It was asked for as often as was left.
        reads.fruitless = Math.max(reads.fruitless, retries + 1);
        this.destroy(failure instanceof Error ? failure : error);
      },
    );
  }

  override _read(): void {
    this.#body.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#closing.abort(new Error('no longer wanted'));
    this.#body.destroy();
    callback(error);
  }
}
