import { setTimeout as sleep } from 'node:timers/promises';
import { createAuthorizer } from '../../src/auth/authorizer.ts';
import { createCredentialSource } from '../../src/auth/credentials.ts';
import { SYSTEM_CLOCK } from '../../src/cli/runtime.ts';
import { PublishError } from '../../src/errors.ts';
import { createLimiter } from '../../src/http/limiter.ts';
import type { Transport } from '../../src/http/message.ts';
import { createTransport, type TransportOptions } from '../../src/http/transport.ts';
import type { Clock, PublishPorts } from '../../src/publish/ports.ts';
import { publish } from '../../src/publish/publish.ts';
import type { PublishReport } from '../../src/publish/report.ts';
import type { PublishRequest } from '../../src/publish/request.ts';
import type { RegistryClient } from '../../src/registry/client.ts';
import { createRegistryClient } from '../../src/registry/remote.ts';
import type { UploadSizes } from '../../src/registry/upload-sizes.ts';
import {
  type JournalEntry,
  type ProfileChanges,
  type RegistryOptions,
  type RunningRegistry,
  startRegistry,
} from '../../src/registry-server/index.ts';
import type { BuiltManifest } from '../helpers/images.ts';
import { makeImage, makeIndex, putBuilt } from '../helpers/images.ts';
import type { Secret } from '../helpers/invariants.ts';
import { endingOf, requestOf } from '../helpers/publishing.ts';
import { canary, loginText, startWatching, withSockets } from '../helpers/watching.ts';
import { jumpingClock } from '../http/fixture.ts';

/** Where everything is: names that exist in no resolver, on loopback behind {@link Stage.reach}. */
export const HOST = 'registry.example.test';
export const SOURCE_HOST = 'source.example.test';
export const TARGET = 'debian/all';
export const SOURCES = ['debian/amd64', 'debian/arm64'] as const;
export const TAG = '1';

/** One publish of two images over an older list, before it runs: a case may change everything in it. */
export type Stage = {
  readonly registry: RunningRegistry;
  /** Where the sources are; the same registry unless the case wants another. */
  readonly source: RunningRegistry;
  readonly images: readonly BuiltManifest[];
  /** What the target tag holds before. */
  readonly old: BuiltManifest;
  /** Addresses of names, as a resolver gives them. */
  readonly addresses: Record<string, readonly string[]>;
  /** `name:port` to where it really is; the rest leads to nobody. */
  readonly reach: Record<string, string>;
  readonly network: { -readonly [K in keyof TransportOptions]?: TransportOptions[K] };
  request: Partial<Omit<PublishRequest, 'sources' | 'targets'>> & { readonly tags?: readonly string[] };
  /** Repositories, or whole references. */
  sources: readonly string[];
  /** Passwords of `robot` by host. */
  readonly logins: Record<string, string>;
  /** Text of docker's `config.json` instead. */
  configText: string | undefined;
  readonly clock: ReturnType<typeof jumpingClock>;
  /** Sizes on which uploads turn. */
  readonly uploadSizes: Partial<UploadSizes>;
  /** Addresses on loopback are what they are. */
  direct: boolean;
  /** Ends the run. */
  readonly controller: AbortController;
  /** Told of every event. */
  onEvent: (event: unknown) => void;
  readonly closers: (() => Promise<void>)[];
};

/** What a run came to. */
export type Outcome = {
  readonly exit: number;
  readonly code: string | undefined;
  /** Message and hint, or the warnings of a good run. */
  readonly text: string;
  readonly moved: readonly string[] | undefined;
  readonly report: PublishReport | undefined;
  /** `name:port` of every connection that was wanted. */
  readonly wanted: readonly string[];
  /** Waits of the transport, in ms. */
  readonly slept: readonly number[];
  /** Requests at the target and at the source, oldest first. */
  readonly journal: readonly JournalEntry[];
  readonly broken: readonly string[];
  readonly events: string;
  /** By the clock on the wall. */
  readonly milliseconds: number;
};

/** How a stage is set. */
export type Setting = {
  readonly profile?: ProfileChanges;
  readonly options?: Pick<RegistryOptions, 'tls' | 'now' | 'scale'>;
  /** The sources are on a registry of their own. */
  readonly apart?: boolean;
  readonly layerBytes?: number;
  readonly arrange?: (stage: Stage) => void | Promise<void>;
  /** Mends the registries before the run that must converge; faults are cleared anyway. */
  readonly mend?: (stage: Stage) => void;
  /** What must hold besides the invariants; words for what does not. */
  readonly holds?: (outcome: Outcome, stage: Stage) => readonly string[];
};

const PLATFORMS = [
  { architecture: 'amd64', os: 'linux' },
  { architecture: 'arm64', os: 'linux', variant: 'v8' },
] as const;

/** Sets the stage, hands it to `use` and takes it down. */
export async function withStage<T>(setting: Setting, use: (stage: Stage) => Promise<T>): Promise<T> {
  const password = canary();
  const start = (profile: ProfileChanges): Promise<RunningRegistry> =>
    startRegistry({ profile, users: [{ name: 'robot', password }], ...setting.options });
  const registry = await start(setting.profile ?? {});
  const source = setting.apart === true ? await start({}) : registry;
  const images = SOURCES.map((repository, at) => {
    const image = makeImage(repository, { layerBytes: setting.layerBytes ?? 4096, ...platformOf(at) });
    putBuilt(source, repository, image, TAG);
    return image;
  });
  const old = makeIndex([{ manifest: makeImage('old', platformOf(0)), platform: PLATFORMS[0] }]);
  putBuilt(registry, TARGET, old, TAG);
  const stage: Stage = {
    registry,
    source,
    images,
    old,
    addresses: { [HOST]: ['93.184.215.14'], [SOURCE_HOST]: ['93.184.215.15'] },
    reach: { [`${HOST}:80`]: registry.host, [`${SOURCE_HOST}:80`]: source.host },
    network: { hosts: { [HOST]: { plainHttp: true }, [SOURCE_HOST]: { plainHttp: true } } },
    request: {},
    sources: SOURCES,
    logins: { [HOST]: password },
    configText: undefined,
    clock: jumpingClock(),
    uploadSizes: {},
    direct: false,
    controller: new AbortController(),
    onEvent: () => undefined,
    closers: [],
  };
  try {
    return await use(stage);
  } finally {
    for (const close of stage.closers.reverse()) await close();
    await registry.close();
    if (source !== registry) await source.close();
  }
}

function platformOf(at: number): { readonly platform: (typeof PLATFORMS)[number] } {
  return { platform: PLATFORMS[at] ?? PLATFORMS[0] };
}

/** Port 1 of loopback: nobody listens there. */
const NOBODY = { host: '127.0.0.1', port: '1' };

/** Policy waits a twentieth of what it wants to, so that a look of 5 s has time to be answered. */
const HASTE = 20;

/** Publishes on the stage, with the rooms of the program put together as it does it, and judges the run. */
export function play(stage: Stage): Promise<Outcome> {
  const { registry, source, clock } = stage;
  const registries = source === registry ? [registry] : [registry, source];
  const marks = registries.map(({ journal }) => journal.at(-1)?.start ?? 0);
  return withSockets(async (sockets) => {
    const watching = startWatching(registries, sockets);
    const wanted: string[] = [];
    const told: unknown[] = [];
    const before = clock.slept.length;
    const began = performance.now();
    const { ports, close } = world(stage, wanted, (event) => {
      told.push(event);
      stage.onEvent(event);
    });
    const { tags = [], ...fields } = stage.request;
    const from = source === registry ? HOST : SOURCE_HOST;
    const full = stage.sources.map((name) => (name.includes('.test/') ? name : `${from}/${name}:${TAG}`));
    let ended: { readonly value: PublishReport } | { readonly error: unknown };
    try {
      const request = requestOf(`${HOST}/${TARGET}:${TAG}`, full, { tags, ...fields });
      ended = {
        value: await publish(request, ports, AbortSignal.any([stage.controller.signal, AbortSignal.timeout(20_000)])),
      };
    } catch (error) {
      ended = { error };
    }
    await close();
    await sockets.settled();
    await quiet(registries);
    const secrets: readonly Secret[] = Object.values(stage.logins).map((text) => ({ text, host: registry.host }));
    const broken = watching.problems({ ...endingOf(ended, told), secrets: source === registry ? secrets : [] });
    const error = 'error' in ended ? ended.error : undefined;
    const failure = error instanceof PublishError ? error : undefined;
    return {
      exit: error === undefined ? 0 : (failure?.exitCode ?? 1),
      code: failure?.code,
      text: error === undefined ? warningsOf(ended) : `${String(Object(error).message)} | ${failure?.hint}`,
      moved: failure?.moved,
      report: 'value' in ended ? ended.value : undefined,
      wanted,
      slept: clock.slept.slice(before),
      journal: registries.flatMap(({ journal }, at) => journal.filter(({ start }) => start > (marks[at] ?? 0))),
      broken,
      events: told.map((event) => JSON.stringify(event)).join('\n'),
      milliseconds: performance.now() - began,
    };
  });
}

/** What the client has given up may still be on its way to the registry. */
async function quiet(registries: readonly RunningRegistry[]): Promise<void> {
  for (let seen = -1; ; ) {
    const count = registries.reduce((sum, { journal }) => sum + journal.length, 0);
    if (count === seen) return;
    seen = count;
    await sleep(10);
  }
}

function warningsOf(ended: object): string {
  return 'value' in ended ? (ended.value as PublishReport).warnings.join(' | ') : '';
}

/** What a client needs to know of its surroundings. */
export type Surroundings = Pick<
  Stage,
  'clock' | 'network' | 'addresses' | 'reach' | 'logins' | 'configText' | 'uploadSizes' | 'direct'
>;

/** The rooms of the program, put together as it does it; `wanted` gets every place that is to be connected to. */
export function world(stage: Surroundings, wanted: string[], emit: (event: unknown) => void) {
  const { clock } = stage;
  const limiter = createLimiter({ clock });
  const random = (): number => 0.5;
  const traffic = { requests: 0, retries: 0 };
  const { headers: headersTimeout } = stage.network.timeouts ?? {};
  const real = createTransport({
    limiter,
    clock,
    random,
    onEvent: (event) => {
      traffic[event.kind === 'request' ? 'requests' : 'retries'] += 1;
      emit(event);
    },
    lookup: (name, _options, callback) => {
      const addresses = stage.addresses[name];
      if (addresses === undefined) {
        callback(Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' }), []);
      } else {
        const all = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
        callback(null, all);
      }
    },
    connectTo: (name, port) => {
      wanted.push(`${name}:${port}`);
      if (stage.direct && name === '127.0.0.1') return undefined;
      const { hostname, port: there } = new URL(`http://${stage.reach[`${name}:${port}`] ?? 'none.invalid:1'}`);
      return stage.reach[`${name}:${port}`] === undefined ? NOBODY : { host: hostname, port: there };
    },
    ...stage.network,
  });
  // A registry may take minutes to commit; that patience is the request's own.
  const transport: Transport = {
    ...real,
    send: (request) => real.send({ ...request, ...(headersTimeout === undefined ? {} : { headersTimeout }) }),
  };
  const credentials = createCredentialSource({
    env: { DOCKER_CONFIG: '/docker' },
    home: '/home',
    readFile: async (path) =>
      path === '/docker/config.json' ? (stage.configText ?? loginText(stage.logins)) : undefined,
    runHelper: async () => ({ kind: 'failed', why: 'is not on PATH' }),
  });
  const authorizer = createAuthorizer({ transport, credentials, clock });
  const common = { transport, authorizer, clock: SYSTEM_CLOCK, uploadSizes: stage.uploadSizes };
  const clients = new Map<string, RegistryClient>();
  const registry = (host: string): RegistryClient => {
    const client = clients.get(host) ?? createRegistryClient({ ...common, host });
    clients.set(host, client);
    return client;
  };
  const hasty: Clock = {
    ...SYSTEM_CLOCK,
    sleep: async (milliseconds, signal) => {
      signal.throwIfAborted();
      await sleep(milliseconds / HASTE, undefined, { signal }).catch(() => signal.throwIfAborted());
    },
  };
  const retries = stage.network.retries ?? 5;
  const ports: PublishPorts = {
    registry,
    limiter,
    clock: hasty,
    random,
    emit,
    traffic: () => ({ ...traffic }),
    retries,
  };
  return { ports, close: () => transport.close() };
}
