import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Clock } from './clock.ts';

/** Below this rate, kept up for a minute, a body counts as stalled although it never falls silent. Bytes a second. */
const LEAST_RATE = 1024;
const RATE_WINDOW = 60_000;

/** How much of an answer is read ahead of its reader, in bytes. */
const READ_AHEAD = 256 * 1024;

/** The body of an answer as it arrives. A class because that is how node makes streams. */
export class AnswerBody extends Readable {
  readonly #controller: Dispatcher.DispatchController;
  readonly #abort: (reason: Error) => void;
  readonly #clock: Clock;
  #windowStart: number;
  #windowBytes = 0;

  constructor(controller: Dispatcher.DispatchController, abort: (reason: Error) => void, clock: Clock) {
    super({ highWaterMark: READ_AHEAD });
    this.#controller = controller;
    this.#abort = abort;
    this.#clock = clock;
    this.#windowStart = clock.now();
    // A failure between the headers and the first read is kept by the stream for its reader.
    this.on('error', () => undefined);
  }

  receive(chunk: Buffer): void {
    this.#watchRate(chunk.byteLength);
    if (!this.push(chunk)) this.#controller.pause();
  }

  /** Undici ends a body that falls silent, not one that trickles. A slow reader on our side is no fault of the host. */
  #watchRate(bytes: number): void {
    this.#windowBytes += bytes;
    const elapsed = this.#clock.now() - this.#windowStart;
    if (elapsed < RATE_WINDOW) return;
    if ((this.#windowBytes * 1000) / elapsed < LEAST_RATE) {
      this.#abort(Object.assign(new Error('the answer stalled'), { code: 'STALLED' }));
    }
    this.#startWindow();
  }

  #startWindow(): void {
    this.#windowStart = this.#clock.now();
    this.#windowBytes = 0;
  }

  override _read(): void {
    if (!this.#controller.paused) return;
    this.#startWindow();
    this.#controller.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#abort(error ?? new Error('no longer wanted'));
    callback(error);
  }
}
