import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { readFile } from 'node:fs/promises';
import packageJson from '../../package.json' with { type: 'json' };
import type { CredentialSource } from '../auth/credentials.ts';
import { addProxyLogins, type Secrets } from '../auth/secrets.ts';
import type { HostSettings } from '../http/endpoint.ts';
import { isLayoutHost } from '../model/reference.ts';
import type { PublishEvent } from '../publish/events.ts';
import type { Clock, PublishPorts } from '../publish/ports.ts';
import type { RegistryClient } from '../registry/client.ts';
import type { RegistryClientOptions } from '../registry/remote.ts';
import type { TrafficEvent } from '../ui/tally.ts';
import { readAuthorities } from './authorities.ts';
import { certificateFolders } from './certificate-folders.ts';
import { readClientCertificates } from './client-certificates.ts';
import type { Environment } from './environment.ts';
import { layoutClient } from './layout-client.ts';
import type { LayoutWriter } from './layouts.ts';
import { type NotedEvent, registryNotes } from './registry-notes.ts';
import type { NetworkSettings } from './settings.ts';

/** What a run is told of while it works. */
export type Observer = {
  readonly emit: (event: PublishEvent) => void;
  readonly http: (event: TrafficEvent) => void;
};

/** What is around a run. */
export type Surroundings = {
  readonly env: Environment;
  readonly clock: Clock;
  readonly random: () => number;
  /** Told every login and token. */
  readonly secrets: Secrets;
  /** Ends the run, and with it everything that nobody waits for. */
  readonly signal?: AbortSignal;
  /** Who writes to image layouts, for other processes that do. */
  readonly writer?: LayoutWriter;
};

/** Where the logins of the user are. */
export type Login = {
  readonly env: Environment;
  readonly platform: NodeJS.Platform;
  readonly home: () => string;
  /** @see HelperWorld.killGroup */
  readonly killGroup?: (leader: number) => void;
};

/** The registries as one run speaks to them. */
export type Connections = {
  readonly ports: PublishPorts;
  /** What registries had to say, as sentences, in the order in which it came; each was told as a warning. */
  readonly notes: () => readonly string[];
  close(): Promise<void>;
};

/**
 * Puts the rooms together; without `login` nobody is logged in. The network code is loaded here and not before, as it
 * costs 30 ms of CPU that a wrong command line need not pay.
 */
export async function connect(
  network: NetworkSettings,
  observer: Observer,
  { env, clock, random, secrets, signal: outer, writer = { ...NOBODY, own: new Set() } }: Surroundings,
  login: Login | undefined,
): Promise<Connections> {
  const { createAuthorizer, createLimiter, createProxyRule, createRegistryClient, createTransport } = await import(
    './network.ts'
  );
  const limiter = createLimiter({ clock, jobs: network.jobs, maxRps: ratesOf(network) });
  const traffic = { requests: 0, retries: 0 };
  const folders = login === undefined ? [] : certificateFolders(login.home);
  const { ca, hosts } = await readAuthorities(network, env, folders);
  const certificates = await readClientCertificates(network);
  const withCertificate = ([host, settings]: [string, HostSettings]): [string, HostSettings] => {
    const clientCertificate = certificates.get(host);
    return [host, { ...settings, ...(clientCertificate === undefined ? {} : { clientCertificate }) }];
  };
  const notes = registryNotes();
  const transport = createTransport({
    ca,
    hosts: Object.fromEntries(Object.entries(hosts).map(withCertificate)),
    limiter,
    clock,
    random,
    proxy: createProxyRule(env),
    retries: network.retries,
    userAgent: `${packageJson.name}/${packageJson.version}`,
    onEvent(event) {
      if (event.kind === 'warning' || event.kind === 'rate') {
        const text = notes.add(concealed(event, secrets));
        if (text !== undefined) observer.emit({ kind: 'warning', text });
        return;
      }
      if (event.kind === 'request') traffic.requests += 1;
      else traffic.retries += 1;
      observer.http(event);
    },
  });
  addProxyLogins(secrets, env);
  const closing = new AbortController();
  const signal = outer === undefined ? closing.signal : AbortSignal.any([outer, closing.signal]);
  setMaxListeners(0, signal);
  const credentials = login === undefined ? NO_CREDENTIALS : await userCredentials(login, signal);
  const authorizer = createAuthorizer({ transport, credentials, clock, secrets, signal });
  const common = { transport, authorizer, clock, retries: network.retries };
  const clients = new Map<string, RegistryClient>();
  const layouts = { clock, writer, token: randomUUID, limiter };
  const create = (host: string): RegistryClient =>
    isLayoutHost(host)
      ? layoutClient(host, layouts)
      : createRegistryClient({ host, ...common, ...sendingOf(network, host) });
  const registry = (host: string): RegistryClient => {
    const client = clients.get(host) ?? create(host);
    clients.set(host, client);
    return client;
  };

  return {
    ports: {
      registry,
      limiter,
      clock,
      random,
      emit: observer.emit,
      traffic: () => ({ ...traffic }),
      retries: network.retries,
    },
    notes: notes.all,
    async close() {
      closing.abort(new Error('the run has ended'));
      await transport.close();
    },
  };
}

/** Whatever of it is the registry's own word. */
function concealed(event: NotedEvent, { conceal }: Secrets): NotedEvent {
  if (event.kind === 'warning') return { ...event, text: conceal(event.text) };
  return event.source === undefined ? event : { ...event, source: conceal(event.source) };
}

/** Of such a lock only its age is known to others. */
const NOBODY: Omit<LayoutWriter, 'own'> = { pid: 0, host: '', isAlive: () => true };

const NO_CREDENTIALS: CredentialSource = { lookup: async () => ({ kind: 'none' }) };

/** Logins as docker and podman keep them. */
async function userCredentials(
  { env, platform, home, killGroup }: Login,
  signal: AbortSignal,
): Promise<CredentialSource> {
  const { createCredentialSource, createHelperRunner } = await import('./network.ts');
  return createCredentialSource({
    env,
    home: home(),
    readFile: readIfThere,
    runHelper: createHelperRunner({ env, platform, signal, ...(killGroup === undefined ? {} : { killGroup }) }),
  });
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) {
      return undefined;
    }
    throw error;
  }
}

/** What the user said of how blobs get to this registry. */
function sendingOf({ hosts, uploadSizes }: NetworkSettings, host: string): Partial<RegistryClientOptions> {
  const { mount, upload, chunkSize } = hosts[host] ?? {};
  return {
    ...(mount === undefined ? {} : { mounting: mount }),
    uploading: { mode: upload ?? 'auto', ...(chunkSize === undefined ? {} : { chunkSize }) },
    ...(uploadSizes === undefined ? {} : { uploadSizes }),
  };
}

function ratesOf(network: NetworkSettings): Record<string, number> {
  const rates: Record<string, number> = {};
  for (const [host, { maxRps }] of Object.entries(network.hosts)) {
    if (maxRps !== undefined) rates[host] = maxRps;
  }
  return rates;
}
