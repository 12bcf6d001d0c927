import type { OnReadOpts } from 'node:net';

/**
 * Memory for what connections read, lent out and taken back. node would make 64 KiB anew for each read: for 2 GiB these
 * are 32,000 pieces to be found, faulted in and collected, a fifth of what a copy costs, and they pile up between two
 * collections.
 *
 * Who has read a piece need not give it back: it is collected then, as ever. Only who has had it for itself and is done
 * with it may.
 */
export interface Loans {
  /** How a connection reads, for `net.connect` and `tls.connect`; `size` of one read at most, in bytes. */
  reading(size: number): OnReadOpts;
  /**
   * Takes back a piece that is one read in full. One that is not is left alone: what else is in the same memory, such as
   * the headers before it, may still be looked at.
   */
  giveBack(chunk: Uint8Array): void;
}

/** Pieces of each size that are kept for the next reads at most: 2 MiB of 64 KiB. */
const KEPT = 32;
/** A read that brings less than this part of a piece is copied out of it, or small answers would hold a lot of memory. */
const SMALL = 8;

type Loan = { readonly bytes: number; readonly keep: () => void };

/** @see Loans */
export function createLoans(): Loans {
  const lent = new WeakMap<ArrayBufferLike, Loan>();
  return {
    reading: (size) => {
      const free: Uint8Array[] = [];
      const keep = (buffer: Uint8Array): void => {
        if (free.length < KEPT) free.push(buffer);
      };
      return {
        buffer: () => free.pop() ?? Buffer.allocUnsafeSlow(size),
        // node calls it as a method of the connection, and does not push for itself then.
        callback(this: { push(chunk: Buffer): boolean }, bytes, buffer) {
          const read = Buffer.from(buffer.buffer, 0, bytes);
          if (bytes >= size / SMALL) {
            lent.set(buffer.buffer, { bytes, keep: () => keep(buffer) });
            return this.push(read);
          }
          const copy = Buffer.from(read);
          keep(buffer);
          return this.push(copy);
        },
      };
    },
    giveBack: (chunk) => {
      const loan = lent.get(chunk.buffer);
      if (loan === undefined || chunk.byteOffset !== 0 || chunk.byteLength !== loan.bytes) return;
      lent.delete(chunk.buffer);
      loan.keep();
    },
  };
}
