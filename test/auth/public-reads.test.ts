import { describe, expect, it } from 'vitest';
import { createAuthorizer } from '../../src/auth/authorizer.ts';
import { SYSTEM_CLOCK } from '../../src/cli/runtime.ts';
import { createLimiter } from '../../src/http/limiter.ts';
import { Secret } from '../../src/http/origin.ts';
import { createTransport } from '../../src/http/transport.ts';
import { publish } from '../../src/publish/publish.ts';
import { createRegistryClient } from '../../src/registry/remote.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { seedImage } from '../helpers/images.ts';
import { checkInvariants, requestOf } from '../helpers/publishing.ts';
import { requests, withRegistry } from '../helpers/registry.ts';

const LOGIN = { name: 'u', password: 'hunter2' };

/** A publish as the program does it, with a login for every registry. `places`: requests in flight on a host. */
async function publishWithLogin(registry: RunningRegistry, sources: readonly string[], places = 64): Promise<void> {
  const clock = SYSTEM_CLOCK;
  const limiter = createLimiter({ clock, requests: places });
  const transport = createTransport({ limiter, clock, random: Math.random });
  const login = { kind: 'basic', username: LOGIN.name, password: new Secret(LOGIN.password) } as const;
  const authorizer = createAuthorizer({ transport, credentials: { lookup: async () => login }, clock });
  const client = createRegistryClient({ host: registry.host, transport, authorizer, clock });
  const ports = {
    registry: () => client,
    limiter,
    clock,
    random: Math.random,
    emit: () => undefined,
    traffic: () => ({ requests: 0, retries: 0 }),
    retries: 5,
  };
  const full = sources.map((source) => `${registry.host}/${source}`);
  try {
    await publish(requestOf(`${registry.host}/t/all:1`, full), ports, AbortSignal.timeout(20_000));
  } finally {
    await transport.close();
  }
  checkInvariants(registry);
}

/** Six images of four blobs each, none of which the target has. */
function seed(registry: RunningRegistry): readonly string[] {
  return Array.from({ length: 6 }, (_, index) => {
    const platform = { os: 'linux', architecture: 'arm', variant: `v${index}` };
    const repository = `s/image${index}`;
    seedImage(registry, repository, '1', { platform, layers: 3 });
    return `${repository}:1`;
  });
}

describe.each(['basic', 'bearer'] as const)('a whole publish with a login, %s', (scheme) => {
  it.each([
    ['private reads', false, 64],
    ['public reads', true, 64],
    ['public reads and hardly a place for a request', true, 2],
  ] as const)('%s: one 401 in all', (_name, anonymousPull, places) =>
    withRegistry({ options: { profile: { auth: { scheme, anonymousPull } }, users: [LOGIN] } }, async (registry) => {
      const sources = seed(registry);
      await publishWithLogin(registry, sources, places);
      const mounts = requests(registry, 'mount').filter(({ status }) => status === 201);
      expect(mounts.length).toBeGreaterThanOrEqual(18);
      expect(registry.journal.filter(({ status }) => status === 401).map(({ path }) => path)).toHaveLength(1);
    }),
  );
});
