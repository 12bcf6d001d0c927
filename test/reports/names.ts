import { networkInterfaces } from 'node:os';
import { createAuthorizer } from '../../src/auth/authorizer.ts';
import { createCredentialSource } from '../../src/auth/credentials.ts';
import { SYSTEM_CLOCK } from '../../src/cli/runtime.ts';
import { createLimiter } from '../../src/http/limiter.ts';
import { createTransport, type TransportOptions } from '../../src/http/transport.ts';
import { parseReference } from '../../src/model/reference.ts';
import type { Inspection } from '../../src/publish/findings.ts';
import { inspect } from '../../src/publish/inspect.ts';
import type { PublishPorts } from '../../src/publish/ports.ts';
import type { RegistryClient } from '../../src/registry/client.ts';
import { createRegistryClient } from '../../src/registry/remote.ts';
import { type JumpingClock, jumpingClock } from '../http/fixture.ts';

/** The program's network in this process, where names lead to loopback or nowhere. */
export type NamedWorld = {
  readonly ports: PublishPorts;
  /** `name:port` of every connection that was wanted, each once, in order. */
  readonly connected: readonly string[];
};

/** @see withNames */
export type NamedOptions = {
  /** Where `name:port` really is; a name that is in no key does not resolve, a port that is not is refused. */
  readonly reach: Readonly<Record<string, string>>;
  /** The text of docker's `config.json`. */
  readonly logins?: string;
  readonly network?: Pick<TransportOptions, 'hosts' | 'ca' | 'retries'>;
  /** Waiting takes no time by it; a registry that shares it sees how long was waited. */
  readonly clock?: JumpingClock;
};

/** Port 1 of loopback: nobody listens there. */
const NOBODY = { host: '127.0.0.1', port: '1' };

/** For hosts that cannot be loopback, such as docker.io: the rooms of the program are put together as it does it. */
export async function withNames<T>(options: NamedOptions, use: (world: NamedWorld) => Promise<T>): Promise<T> {
  const { reach, logins, network = {}, clock = jumpingClock() } = options;
  const names = new Set(Object.keys(reach).map((name) => name.replace(/:\d+$/, '')));
  const connected: string[] = [];
  const limiter = createLimiter({ clock });
  const random = () => 0.5;
  const traffic = { requests: 0, retries: 0 };
  const transport = createTransport({
    ...network,
    limiter,
    clock,
    random,
    onEvent: ({ kind }) => {
      traffic[kind === 'request' ? 'requests' : 'retries'] += 1;
    },
    lookup: (name, _options, callback) => {
      if (names.has(name)) callback(null, [{ address: '127.0.0.1', family: 4 }]);
      else callback(Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' }), []);
    },
    connectTo: (name, port) => {
      const wanted = `${name}:${port}`;
      if (!connected.includes(wanted)) connected.push(wanted);
      const { hostname, port: real } = new URL(`http://${reach[wanted] ?? 'none.invalid:1'}`);
      return reach[wanted] === undefined ? NOBODY : { host: hostname, port: real };
    },
  });
  const credentials = createCredentialSource({
    env: { DOCKER_CONFIG: '/docker' },
    home: '/home',
    readFile: async (path) => (path === '/docker/config.json' ? logins : undefined),
    runHelper: async () => ({ kind: 'failed', why: 'there are no helpers here' }),
  });
  const authorizer = createAuthorizer({ transport, credentials, clock });
  const clients = new Map<string, RegistryClient>();
  const registry = (host: string): RegistryClient => {
    const client = clients.get(host) ?? createRegistryClient({ host, transport, authorizer, clock: SYSTEM_CLOCK });
    clients.set(host, client);
    return client;
  };
  const ports = { registry, limiter, clock, random, emit: () => undefined, traffic: () => traffic, retries: 5 };
  try {
    return await use({ ports, connected });
  } finally {
    await transport.close();
  }
}

/** `inspect` as the command has it. */
export function inspected(reference: string, { ports }: NamedWorld): Promise<Inspection> {
  return inspect(parseReference(reference), { tree: false }, ports, AbortSignal.timeout(15_000));
}

/** Whether this machine has ::1; containers often do not. */
export function hasIPv6(): boolean {
  return Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));
}
