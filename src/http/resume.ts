import { TLSSocket } from 'node:tls';
import { buildConnector } from 'undici';

export type Connector = ReturnType<typeof buildConnector>;

/**
 * Connects, and takes up the last TLS session where there is one: no certificates to be sent and checked again. undici
 * would do so too, but lets go of its sessions at the next garbage collection.
 *
 * To be made for each host and each set of rules: what was checked when the session began is not checked again.
 */
export function resuming(options: buildConnector.BuildOptions): Connector {
  let session: Buffer | undefined;
  const keep = (newer: Buffer | undefined): void => {
    session = newer;
  };
  return (target, callback) => {
    const known = session === undefined ? {} : { session };
    const connect = buildConnector({ ...options, maxCachedSessions: 0, ...known });
    connect(target, (...[error, socket]) => {
      if (error !== null) {
        // It may have been the session that was not liked.
        keep(undefined);
        callback(error, null);
        return;
      }
      if (socket instanceof TLSSocket) {
        // TLS 1.3 hands out its sessions later, 1.2 with the handshake.
        socket.on('session', keep);
        if (socket.getProtocol() !== 'TLSv1.3') keep(socket.getSession());
      }
      callback(null, socket);
    });
  };
}
