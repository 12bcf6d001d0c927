import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';
import { deferred } from './promises.ts';
import type { Connector } from './resume.ts';

/** A connector that can be told to connect before undici asks it to. */
export interface Ahead {
  readonly connect: Connector;
  /** Opens one connection more, for the next that is asked for. */
  open(): void;
  /** How many nobody has asked for yet. */
  unused(): number;
  /** Closes those that nobody has asked for. */
  close(): void;
}

type Opened = { readonly socket: Socket } | { readonly error: Error };

/** @param target what `connect` will be asked for */
export function openingAhead(connect: Connector, target: buildConnector.Options): Ahead {
  const waiting: Promise<Opened>[] = [];
  const idle = new Set<Socket>();
  let closed = false;

  return {
    open() {
      const { promise, resolve } = deferred<Opened>();
      waiting.push(promise);
      connect(target, (...[error, socket]) => {
        if (error !== null) {
          // Whoever waits for it by now is told. It fails nobody who asks later: the other side may be up again.
          const at = waiting.indexOf(promise);
          if (at >= 0) waiting.splice(at, 1);
          resolve({ error });
          return;
        }
        if (closed) socket.destroy();
        else idle.add(socket);
        resolve({ socket });
      });
    },

    connect(wanted, callback) {
      const next = waiting.shift();
      if (next === undefined) {
        connect(wanted, callback);
        return;
      }
      next.then((opened) => {
        if ('error' in opened) {
          callback(opened.error, null);
          return;
        }
        const { socket } = opened;
        idle.delete(socket);
        // The other side may have had enough of waiting.
        if (socket.destroyed || !socket.writable || socket.readableEnded) connect(wanted, callback);
        else callback(null, socket);
      });
    },

    unused: () => waiting.length,

    close() {
      closed = true;
      for (const socket of idle) socket.destroy();
    },
  };
}
