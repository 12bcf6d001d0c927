import type { Socket } from 'node:net';

/** What is seen of a connection while a request is on it. */
export interface Watch {
  /**
   * The first error of the connection: a host that turns away our certificate says so in an alert, of which undici
   * keeps no more than that the connection was closed.
   */
  firstError(): Error | undefined;
  /** What is sent is answered, or given up. */
  answered(): void;
  /** The connection is done with. */
  end(): void;
}

/**
 * Breaks the connection off when the other side takes nothing of a body for `sendTimeout` ms. While there is nothing to
 * be taken, since the source of the body is slow or the body is out, this is not the other side's fault; what is out
 * and not answered is under the time-out of the headers.
 *
 * @param sendTimeout undefined for a request without a body
 */
export function watchConnection(connection: Socket, sendTimeout: number | undefined): Watch {
  let first: Error | undefined;
  const onError = (error: Error) => {
    first ??= error;
  };
  const onSilence = () => {
    if (connection.writableLength === 0) return;
    connection.destroy(Object.assign(new Error('nothing was taken'), { code: 'SENDING_STALLED' }));
  };
  connection.on('error', onError);
  if (sendTimeout !== undefined) connection.setTimeout(sendTimeout, onSilence);
  const answered = () => {
    if (sendTimeout !== undefined) connection.setTimeout(0, onSilence);
  };
  return {
    firstError: () => first,
    answered,
    end: () => {
      answered();
      connection.off('error', onError);
    },
  };
}
