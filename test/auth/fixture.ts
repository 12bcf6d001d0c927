import { createAuthorizer } from '../../src/auth/authorizer.ts';
import type { CredentialSource } from '../../src/auth/credentials.ts';
import { SYSTEM_CLOCK } from '../../src/cli/runtime.ts';
import { createLimiter } from '../../src/http/limiter.ts';
import { type Credential, Secret } from '../../src/http/origin.ts';
import { createTransport, type TransportOptions } from '../../src/http/transport.ts';
import { publish } from '../../src/publish/publish.ts';
import type { PublishReport } from '../../src/publish/report.ts';
import { createRegistryClient } from '../../src/registry/remote.ts';
import { requestOf } from '../helpers/publishing.ts';

/** A login by name and password. */
export function basic(username: string, password: string): Credential {
  return { kind: 'basic', username, password: new Secret(password) };
}

/** A publish as the program does it, with these logins; nothing is retried. */
export async function publishWith(
  lookup: CredentialSource['lookup'],
  target: string,
  sources: readonly string[],
  options: Partial<TransportOptions> = {},
): Promise<PublishReport> {
  const clock = SYSTEM_CLOCK;
  const limiter = createLimiter({ clock });
  const transport = createTransport({ limiter, clock, random: Math.random, retries: 0, ...options });
  const authorizer = createAuthorizer({ transport, credentials: { lookup }, clock });
  const clients = new Map<string, ReturnType<typeof createRegistryClient>>();
  const registry = (host: string) => {
    const client = clients.get(host) ?? createRegistryClient({ host, transport, authorizer, clock });
    clients.set(host, client);
    return client;
  };
  const ports = {
    registry,
    limiter,
    clock: { ...clock, sleep: async () => undefined },
    random: Math.random,
    emit: () => undefined,
    traffic: () => ({ requests: 0, retries: 0 }),
    retries: 2,
  };
  try {
    return await publish(requestOf(target, sources), ports, AbortSignal.timeout(20_000));
  } finally {
    await transport.close();
  }
}
