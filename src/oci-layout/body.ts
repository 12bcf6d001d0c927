import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { failed } from './files.ts';

/** How much is read at a time, in bytes: what a copy holds in memory. */
const PIECE = 256 * 1024;

/** A file from some byte on. A class because that is how node makes streams. */
export class FileBody extends Readable {
  readonly #handle: FileHandle;
  readonly #path: string;
  readonly #signal: AbortSignal;
  readonly #onAbort: () => void;
  #at: number;

  constructor(handle: FileHandle, path: string, from: number, signal: AbortSignal) {
    super({ highWaterMark: PIECE });
    this.#handle = handle;
    this.#path = path;
    this.#at = from;
    this.#signal = signal;
    this.#onAbort = () => {
      const { reason } = signal;
      this.destroy(reason instanceof Error ? reason : new Error('stopped', { cause: reason }));
    };
    signal.addEventListener('abort', this.#onAbort, { once: true });
    // A failure before the first read is kept by the stream for its reader.
    this.on('error', () => undefined);
    if (signal.aborted) this.#onAbort();
  }

  override _read(): void {
    this.#handle.read(Buffer.allocUnsafe(PIECE), 0, PIECE, this.#at).then(
      ({ bytesRead, buffer }) => {
        this.#at += bytesRead;
        this.push(bytesRead === 0 ? null : buffer.subarray(0, bytesRead));
      },
      (error: unknown) => {
        const failure = failed(error, `cannot read ${this.#path}`);
        this.destroy(failure instanceof Error ? failure : new Error(String(failure)));
      },
    );
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#handle.close().then(
      () => callback(error),
      (failure: unknown) => callback(error ?? (failure instanceof Error ? failure : null)),
    );
  }
}
