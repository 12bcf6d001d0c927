import {
  type DistributionOptions,
  type ExternalRegistry,
  makeFolder,
  PEER_USER,
  type RegistryAuth,
} from '../helpers/external-registry.ts';
import type { Finished } from '../helpers/processes.ts';
import { type Exchange, type RecordingProxy, startProxy } from '../helpers/proxy.ts';
import { startTokenServer, type TokenServer } from '../helpers/token-server.ts';
import { attestedSources, debianSources, type Source } from './images.ts';
import { type Login, makeHome, type Published, publish, runAtHome } from './publish-command.ts';
import { pushSource } from './registry-access.ts';

/** How one comes in. */
export type Access = 'anonymous' | 'Basic' | 'token';

/** Starts one registry that stores below the folder. */
export type StartRegistry = (folder: string, options?: DistributionOptions) => Promise<ExternalRegistry>;

/** A registry with the sources in it, behind two proxies that write down what passes. */
export type Stage = {
  /** The same storage without credentials, to look behind the one that is published to. */
  readonly inside: string;
  readonly accepting: Recorder;
  /** Drops the query of every mount. */
  readonly refusing: Recorder;
  readonly folder: string;
  readonly tokens: TokenServer | undefined;
  /** How many tokens had been asked for before this test. */
  tokensBefore(): number;
  /** Publishes the sources, or others, to `repository`:bullseye through one of the proxies. */
  publish(through: Recorder, repository: string, options?: StagedPublish): Promise<Published>;
  /** Asks through one of the proxies how the registry mounts from the first source into `repository`. */
  checkMounts(through: Recorder, repository: string, ...flags: readonly string[]): Promise<Finished>;
  /** Starts the records afresh. */
  forget(): void;
  stop(): Promise<void>;
};

export type Recorder = { readonly host: string; readonly exchanges: () => readonly Exchange[] };

export type StagedPublish = { readonly sources?: readonly Source[]; readonly password?: string };

export const SOURCES = debianSources();
export const ATTESTED = attestedSources();

/** What the challenge costs at the registry: the tag is asked for alone, and learns the scheme. */
export const CHALLENGE: Readonly<Record<Access, Readonly<Record<string, number>>>> = {
  anonymous: {},
  Basic: { 'manifest GET 401': 1 },
  token: { 'manifest GET 401': 1 },
};

/**
 * Seeds a storage through an open registry, then puts the one under test and two proxies before it.
 *
 * @param targets repositories that a token may push to
 */
export async function startStage(start: StartRegistry, access: Access, targets: readonly string[]): Promise<Stage> {
  const folder = await makeFolder();
  const open = await start(folder.path);
  for (const source of [...SOURCES, ...ATTESTED]) await pushSource(open.host, source);

  const tokens = access === 'token' ? await startTokenServer(folder.path, tokenUsers(targets)) : undefined;
  const auth: RegistryAuth =
    tokens === undefined ? { kind: 'basic', user: PEER_USER } : { kind: 'token', server: tokens };
  const target = access === 'anonymous' ? open : await start(folder.path, { auth });
  const accepting = await startProxy(target.host);
  const refusing = await startProxy(target.host, { refuseMounts: true });

  let tokensBefore = 0;
  return {
    inside: open.host,
    accepting: recorder(accepting),
    refusing: recorder(refusing),
    folder: folder.path,
    tokens,
    tokensBefore: () => tokensBefore,
    publish({ host }, repository, { sources = SOURCES, password = PEER_USER.password } = {}) {
      const references = sources.map((source) => `${host}/${source.repository}:${source.tag}`);
      const logins: readonly Login[] = access === 'anonymous' ? [] : [{ host, name: PEER_USER.name, password }];
      return publish(folder.path, [`${host}/${repository}:bullseye`, ...references], { logins });
    },
    async checkMounts({ host }, repository, ...flags) {
      const [source] = SOURCES;
      const logins = access === 'anonymous' ? [] : [{ host, name: PEER_USER.name, password: PEER_USER.password }];
      const home = await makeHome(folder.path, logins);
      const from = `${host}/${source?.repository}:${source?.tag}`;
      return runAtHome(home, ['mount-check', `${host}/${repository}`, from, '--json', ...flags]);
    },
    forget() {
      accepting.forget();
      refusing.forget();
      tokensBefore = tokens?.requests.length ?? 0;
    },
    async stop() {
      for (const part of [accepting, refusing, target, open, tokens]) await part?.stop();
      await folder.remove();
    },
  };
}

function recorder(proxy: RecordingProxy): Recorder {
  return { host: proxy.host, exchanges: () => proxy.exchanges };
}

function tokenUsers(targets: readonly string[]) {
  const sources = [...SOURCES, ...ATTESTED].map(({ repository }) => ({ repository, actions: ['pull'] }));
  const pushed = targets.map((repository) => ({ repository, actions: ['pull', 'push'] }));
  return { [PEER_USER.name]: { password: PEER_USER.password, may: [...sources, ...pushed] } };
}
