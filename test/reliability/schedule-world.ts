import { createAuthorizer } from '../../src/auth/authorizer.ts';
import { createSecrets } from '../../src/auth/secrets.ts';
import { type Credential, Secret } from '../../src/http/credential.ts';
import { createLimiter } from '../../src/http/limiter.ts';
import type { HttpRequest } from '../../src/http/message.ts';
import { createTransport } from '../../src/http/transport.ts';
import type { PublishEvent } from '../../src/publish/events.ts';
import type { Clock, PublishPorts } from '../../src/publish/ports.ts';
import type { RegistryClient } from '../../src/registry/client.ts';
import { createRegistryClient } from '../../src/registry/remote.ts';
import { simulatedClock } from './simulated-clock.ts';

/** How a run of the client is set up; sizes in bytes, times in real ms. */
export type WorldOptions = {
  /** Requests and copies at a time on a host. */
  readonly requests?: number;
  readonly jobs?: number;
  readonly retries?: number;
  /** Silence of a host that counts as a failure; default: longer than any test. */
  readonly patience?: number;
  readonly upload?: 'auto' | 'whole' | 'chunks';
  readonly chunkSize?: number;
  readonly logins?: ReadonlyMap<string, { readonly name: string; readonly password: string }>;
  readonly random: () => number;
  readonly onRequest?: (count: number) => void;
};

/** The client's side of one run, with everything that it told. */
export type ClientWorld = {
  readonly ports: PublishPorts;
  readonly events: readonly PublishEvent[];
  close(): Promise<void>;
};

const NOBODY: Credential = { kind: 'none' };

/** Requests that have come to a registry, and those that it is done with: so simulated time knows when nothing goes on. */
export type Traffic = { readonly entered: () => number; readonly left: () => number };

/** The rooms of the program put together as `cli/connect.ts` does it, with simulated time and short patience. */
export function clientWorld(traffic: readonly Traffic[], options: WorldOptions): ClientWorld {
  const events: PublishEvent[] = [];
  let requests = 0;
  let retries = 0;
  const sum = (field: keyof Traffic) => traffic.reduce((all, one) => all + one[field](), 0);
  const clock: Clock & { stop(): void } = simulatedClock({
    steps: () => sum('entered') + sum('left') + requests + retries + events.length,
    open: () => sum('entered') - sum('left'),
  });
  const limiter = createLimiter({
    clock,
    ...(options.requests === undefined ? {} : { requests: options.requests }),
    ...(options.jobs === undefined ? {} : { jobs: options.jobs }),
  });
  const tries = options.retries ?? 5;
  const { patience = 60_000 } = options;
  const real = createTransport({
    limiter,
    clock,
    random: options.random,
    retries: tries,
    timeouts: { connect: 10_000, headers: patience, body: patience },
    // No name is ever looked up: whatever a broken answer says, nothing leaves this machine.
    lookup: (host, _options, callback) => callback(Object.assign(new Error(host), { code: 'ENOTFOUND' }), '', 4),
    onEvent: (event) => {
      if (event.kind === 'request') {
        requests += 1;
        options.onRequest?.(requests);
      } else if (event.kind === 'retry') retries += 1;
    },
  });
  // Commits and manifests have a longer patience of their own, which here is as short as all others.
  const transport = {
    ...real,
    send: (request: HttpRequest) =>
      real.send(options.patience === undefined ? request : { ...request, headersTimeout: patience }),
  };
  // The same login must be the same object: tokens are kept by it.
  const logins = new Map<string, Credential>();
  for (const [host, { name, password }] of options.logins ?? []) {
    logins.set(host, { kind: 'basic', username: name, password: new Secret(password) });
  }
  const credentials = { lookup: async (host: string) => logins.get(host) ?? NOBODY };
  const authorizer = createAuthorizer({ transport, clock, secrets: createSecrets(), credentials });
  const clients = new Map<string, RegistryClient>();
  const registry = (host: string): RegistryClient => {
    const known = clients.get(host);
    if (known !== undefined) return known;
    const made = createRegistryClient({
      host,
      transport,
      authorizer,
      clock,
      retries: tries,
      uploading: {
        mode: options.upload ?? 'auto',
        ...(options.chunkSize === undefined ? {} : { chunkSize: options.chunkSize }),
      },
      uploadSizes: { chunk: 200, tooLarge: 150, least: 32, scout: 256, uncut: 256 },
    });
    clients.set(host, made);
    return made;
  };
  return {
    events,
    ports: {
      registry,
      limiter,
      clock,
      random: options.random,
      emit: (event) => void events.push(event),
      traffic: () => ({ requests, retries }),
      retries: tries,
    },
    async close() {
      await transport.close();
      clock.stop();
    },
  };
}
