import type { Place, UploadSession, VerbOptions } from '../registry/client.ts';
import type { PublishPorts } from './ports.ts';
import type { Location } from './resolved.ts';

/** How long a stopped run waits for the answers of requests that may have opened a session, in ms. */
const GRACE = 5_000;

/** Upload sessions that this run has opened and not used up: none may be left open when it ends. */
export interface OpenSessions {
  /**
   * Sends a request that may open a session. Once sent its answer is waited for, also when the run stops: a session
   * whose Location nobody has read cannot be cancelled. Without `place` one is taken, and then the run may stop first.
   */
  open<T>(send: (options: VerbOptions) => Promise<T>, place?: Place): Promise<T>;
  opened(session: UploadSession): UploadSession;
  /** The session goes on at another Location, which is the one to cancel. */
  moved(from: UploadSession, to: UploadSession): void;
  /** Its upload was answered: stored, or cancelled by the registry room. */
  used(session: UploadSession): void;
  /** Cancels it without holding anybody up. */
  cancel(session: UploadSession): void;
  /** Whether there is something that {@link OpenSessions.close} would have to wait for. */
  hasLeft(): boolean;
  /** Cancels all that is left and waits for every cancellation. Never fails. */
  close(): Promise<void>;
}

/** Keeps track of the sessions of one target repository. `signal` stops the run. */
export function trackSessions(target: Location, ports: PublishPorts, signal: AbortSignal): OpenSessions {
  const registry = ports.registry(target.host);
  const unused = new Set<UploadSession>();
  const cancellations: Promise<void>[] = [];
  const patience = new AbortController();
  const closing = new AbortController();
  const startGrace = (): void => {
    ports.clock.sleep(GRACE, closing.signal).then(
      () => patience.abort(signal.reason),
      // The run has closed before its grace was over.
      () => undefined,
    );
  };
  signal.addEventListener('abort', startGrace, { once: true });
  const cancel = (session: UploadSession): void => {
    if (unused.delete(session)) cancellations.push(registry.cancelUpload(session));
  };
  return {
    open: async (send, given) => {
      const place = given ?? (await ports.limiter.take(target.host, signal));
      try {
        signal.throwIfAborted();
        return await send({ place, signal: patience.signal });
      } finally {
        if (given === undefined) place.release();
      }
    },
    opened: (session) => {
      unused.add(session);
      return session;
    },
    moved: (from, to) => {
      if (unused.delete(from)) unused.add(to);
    },
    used: (session) => {
      unused.delete(session);
    },
    cancel,
    hasLeft: () => unused.size > 0 || cancellations.length > 0,
    close: async () => {
      for (const session of unused) cancel(session);
      await Promise.all(cancellations);
      signal.removeEventListener('abort', startGrace);
      closing.abort();
    },
  };
}
