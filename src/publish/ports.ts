import type { Limiter, RegistryClient } from '../registry/client.ts';
import type { PublishEvent } from './events.ts';

/** Time as it is handed in: tests turn it by hand. */
export interface Clock {
  /** Milliseconds of a clock that never goes back; only differences mean something. */
  now(): number;
  /** Milliseconds since 1970, for dates that a registry names. */
  epoch(): number;
  /** @throws the signal's reason when it is aborted first */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>;
}

/** The world as policy sees it. Made in `cli/runtime.ts`; tests make their own. */
export interface PublishPorts {
  /** The client of a host, the same object for the same host. */
  registry(host: string): RegistryClient;
  readonly limiter: Limiter;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly emit: (event: PublishEvent) => void;
  /** Requests and retries sent so far by the whole process. */
  readonly traffic: () => { readonly requests: number; readonly retries: number };
  /** `--retries`: a streamed blob is tried at most `1 + retries` times. */
  readonly retries: number;
}
