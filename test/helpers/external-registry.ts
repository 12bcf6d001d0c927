import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Certificate } from './certificate.ts';
import { needProgram, type Server, startServer } from './processes.ts';
import type { TokenServer } from './token-server.ts';

/** A registry program of somebody else that runs on this machine. */
export type ExternalRegistry = {
  /** `127.0.0.1:PORT`: what stands before the repository in a reference. */
  readonly host: string;
  readonly process: Server;
  /** Ends the program; what it stored stays until the folder is removed. */
  stop(): Promise<void>;
};

/** Who may use a registry of distribution's. */
export type RegistryAuth =
  | { readonly kind: 'basic'; readonly user: BasicUser }
  | { readonly kind: 'token'; readonly server: TokenServer };

/** A user and a line of an htpasswd file; the registry reads bcrypt alone, and Node has none to make it. */
export type BasicUser = { readonly name: string; readonly password: string; readonly bcrypt: string };

/** Cost 4, the lowest there is: the registry computes it anew for every request. */
export const PEER_USER: BasicUser = {
  name: 'peer',
  password: 'peer-password',
  bcrypt: '$2a$04$ztiXmqDlcy3BUhzaf.1WSuWHMreXjpJav2Yze5nZQUAXB2yoJOrIO',
};

/** Another one, for a second registry. */
export const SECOND_USER: BasicUser = {
  name: 'second',
  password: 'second-password',
  bcrypt: '$2a$04$IDplCHdHSE9ZmVGA6dqdd.JiADC.obabEN0x4QxanRO0ssnJDNrR2',
};

/** A folder for one test file, and how to remove it. */
export async function makeFolder(): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'manifest-publish-peers-'));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/** Where a registry of distribution's stores, and who may use it. */
export type DistributionOptions = { readonly auth?: RegistryAuth; readonly tls?: Certificate };

/**
 * Debian's `docker-registry` (distribution 2.8) on a port of its own choice, storing in `folder`/storage. Several may
 * serve one folder at a time, so that an open one can look behind one that wants credentials. Deletes are enabled.
 */
export function startDebianRegistry(folder: string, options: DistributionOptions = {}): Promise<ExternalRegistry> {
  return startDistribution('docker-registry', folder, options);
}

/** distribution 3, as {@link startDebianRegistry}; `.ci/run` builds it under a name that stands in nobody's way. */
export function startDistributionV3(folder: string, options: DistributionOptions = {}): Promise<ExternalRegistry> {
  return startDistribution('distribution-v3', folder, options);
}

async function startDistribution(
  program: string,
  folder: string,
  options: DistributionOptions,
): Promise<ExternalRegistry> {
  await mkdir(folder, { recursive: true });
  const name = `${program}-${options.auth?.kind ?? 'open'}-${options.tls === undefined ? 'http' : 'https'}`;
  const configuration = {
    version: '0.1',
    log: { level: 'info', accesslog: { disabled: true } },
    storage: {
      filesystem: { rootdirectory: join(folder, 'storage') },
      delete: { enabled: true },
      maintenance: { uploadpurging: { enabled: false } },
    },
    http: {
      addr: '127.0.0.1:0',
      secret: 'same for all that serve this folder',
      ...(options.tls === undefined ? {} : { tls: { certificate: options.tls.file, key: options.tls.keyFile } }),
    },
    ...(options.auth === undefined ? {} : { auth: await authSection(folder, options.auth) }),
  };
  // JSON is YAML.
  const file = join(folder, `${name}.yml`);
  await writeFile(file, JSON.stringify(configuration, undefined, 2));
  // distribution 3 looks for a collector of traces unless it is told that there is none.
  const env = { OTEL_TRACES_EXPORTER: 'none' };
  const args = ['serve', file];
  const server = await startServer(needProgram(program), args, /listening on (127\.0\.0\.1:\d+)/, { env });
  return { host: server.found, process: server, stop: () => server.stop() };
}

/** `crane registry serve`, in memory: it mounts nothing, and shows every blob in every repository. */
export async function startCraneRegistry(): Promise<ExternalRegistry> {
  const args = ['registry', 'serve', '--address', '127.0.0.1:0'];
  const server = await startServer(needProgram('crane'), args, /serving on port (\d+)/);
  return { host: `127.0.0.1:${server.found}`, process: server, stop: () => server.stop() };
}

async function authSection(folder: string, auth: RegistryAuth): Promise<object> {
  if (auth.kind === 'basic') {
    const path = join(folder, 'htpasswd');
    await writeFile(path, `${auth.user.name}:${auth.user.bcrypt}\n`);
    return { htpasswd: { realm: 'peers', path } };
  }
  const { realm, service, issuer, certificateFile } = auth.server;
  return { token: { realm, service, issuer, rootcertbundle: certificateFile } };
}
