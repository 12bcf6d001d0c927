import { Readable } from 'node:stream';

/** With less than this left to give, in bytes, a body asks for more. */
const ASKS_BELOW = 64 * 1024;

/** A body that holds as much has no room; it has room again when it asks. In bytes. */
const HOLDS = 1024 * 1024;

/** What becomes of a body, told to whoever feeds it. */
export type BodyEvents = {
  /** It has next to nothing left. */
  readonly asks: () => void;
  /** Nothing more is wanted, for whatever reason. */
  readonly closed: () => void;
  /** Opens what is left of the blob from this byte on. */
  readonly rest: (from: number) => Promise<Readable>;
};

/**
 * One member's end of a shared read. It can be left to itself at any byte and then reads the rest of the blob on its
 * own, which its reader does not notice. A class because that is how node makes streams.
 */
export class SharedBody extends Readable {
  readonly #events: BodyEvents;
  #received = 0;
  #asking = false;
  #full = false;
  #alone = false;
  /** Once it is alone and has asked. */
  #own: { body?: Readable } | undefined;

  constructor(events: BodyEvents) {
    super({ highWaterMark: ASKS_BELOW });
    this.#events = events;
    // A failure before the first read is kept by the stream for its reader.
    this.on('error', () => undefined);
  }

  /** Whether its reader is about to run dry. */
  get asking(): boolean {
    return this.#asking;
  }

  get full(): boolean {
    return this.#full;
  }

  /** The next piece, which other bodies hold too. */
  receive(piece: Buffer): void {
    this.#received += piece.byteLength;
    this.#asking = false;
    this.push(piece);
    // Reading may have gone on while pushing.
    this.#full = this.readableLength >= HOLDS;
  }

  finish(): void {
    this.push(null);
  }

  /** What it holds is given out first. The rest is opened when that is asked for: nobody may have room for it now. */
  goAlone(): void {
    this.#alone = true;
    if (this.#asking) this.#goOn();
  }

  #goOn(): void {
    if (this.#own !== undefined) {
      this.#own.body?.resume();
      return;
    }
    const own: { body?: Readable } = {};
    this.#own = own;
    this.#events.rest(this.#received).then(
      (body) => {
        own.body = body;
        body.on('data', (piece: Buffer) => {
          if (!this.push(piece)) body.pause();
        });
        body.once('end', () => this.push(null));
        body.once('error', (error) => this.destroy(error));
        if (this.destroyed) body.destroy();
      },
      (error: unknown) => this.destroy(error instanceof Error ? error : new Error(String(error))),
    );
  }

  override _read(): void {
    this.#asking = true;
    this.#full = false;
    if (this.#alone) this.#goOn();
    else this.#events.asks();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#own?.body?.destroy();
    this.#events.closed();
    callback(error);
  }
}
