import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { type Secret, type SeenRegistry, type SeenRun, tagName, violations } from './invariants.ts';

/** A password that is in no dictionary, and that every encoding spells in another way. */
export function canary(): string {
  return `canary+/${randomBytes(12).toString('hex')}=&"é`;
}

/** The login of a host that no test asks anything of: no run may show it. */
export const STRANGER = { host: 'stranger.example.test', password: canary() } as const;

/** `DOCKER_AUTH_CONFIG` with the stranger's login, and others by host. */
export function loginText(passwords: Readonly<Record<string, string>> = {}): string {
  const all = Object.entries({ ...passwords, [STRANGER.host]: STRANGER.password });
  const auths = all.map(([host, password]) => [host, { auth: Buffer.from(`robot:${password}`).toString('base64') }]);
  return JSON.stringify({ auths: Object.fromEntries(auths) });
}

/** Registries of this test file that are running. */
const running = new Set<RunningRegistry>();

/** From now on every run of the program is judged by what this registry sees, too. */
export function watchRegistry(registry: RunningRegistry): RunningRegistry {
  running.add(registry);
  return {
    ...registry,
    // A getter, which a copy would freeze.
    get profile() {
      return registry.profile;
    },
    close: async () => {
      running.delete(registry);
      await registry.close();
    },
  };
}

/** The registries that {@link watchRegistry} was told of. */
export function watchedRegistries(): readonly RunningRegistry[] {
  return [...running];
}

/** What a run came to, as far as it is not seen by the registries. */
export type Ending = Pick<SeenRun, 'exitCode' | 'printed' | 'outputs'> & {
  readonly secrets?: readonly Secret[];
  readonly lingered?: number;
};

/** A look at the registries before a run. */
export type Watching = {
  /** Asserts what must hold of every run. Failures name the rule. */
  check(ending: Ending): void;
  /** The same as words. */
  problems(ending: Ending): readonly string[];
};

let underWay = 0;

/** Looks at the registries; {@link Watching.check} looks again when the run is over. Sockets are of this process. */
export function startWatching(registries: readonly RunningRegistry[], sockets?: WatchedSockets): Watching {
  const marks = registries.map((registry) => ({ registry, ...markOf(registry) }));
  let alone = underWay === 0;
  underWay += 1;
  const look = (ending: Ending): readonly string[] => {
    underWay -= 1;
    alone &&= underWay === 0;
    return violations({
      secrets: [],
      lingered: 0,
      ...ending,
      alone,
      registries: marks.map(seen),
      connected: sockets?.addresses() ?? [],
      openSockets: sockets?.open() ?? 0,
    });
  };
  return { problems: look, check: (ending) => expect(look(ending)).toEqual([]) };
}

type Mark = {
  readonly moves: number;
  /** The last request before; journals may be cleared in between. */
  readonly last: number;
  readonly sessions: number;
  readonly before: ReadonlyMap<string, string>;
};

function markOf(registry: RunningRegistry): Mark {
  const tags = registry.repositories().flatMap((repository) =>
    registry.tags(repository).map((tag): [string, string] => {
      return [tagName(repository, tag), registry.tagOf(repository, tag) ?? ''];
    }),
  );
  return {
    moves: registry.tagMoves.length,
    last: registry.journal.at(-1)?.start ?? 0,
    sessions: registry.openSessions(),
    before: new Map(tags),
  };
}

function seen({
  registry,
  moves,
  last,
  sessions,
  before,
}: Mark & { readonly registry: RunningRegistry }): SeenRegistry {
  return {
    host: registry.host,
    tagOf: registry.tagOf,
    manifestOf: registry.manifestOf,
    journal: registry.journal.filter(({ start }) => start > last),
    tagMoves: registry.tagMoves.slice(moves),
    sessions: registry.openSessions() - sessions,
    before,
  };
}

/** The client's sockets of this process. */
export type WatchedSockets = {
  addresses(): readonly string[];
  open(): number;
  /** Waits until all have closed, for a second at most. */
  settled(): Promise<void>;
};

/** A socket that was closed needs a few turns until it is gone. */
const CLOSING = 1_000;

/** Every address that `use` connects to: names have been resolved by then. What servers of a test do is not counted. */
export async function withSockets<T>(use: (sockets: WatchedSockets) => Promise<T>): Promise<T> {
  const addresses: string[] = [];
  const sockets = new Set<Socket>();
  const watcher: Watcher = (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('connectionAttempt', (address: string) => addresses.push(address));
  };
  const open = (): number => [...sockets].filter((socket) => !socket.destroyed).length;
  const settled = async () => {
    for (const end = performance.now() + CLOSING; open() > 0 && performance.now() < end; ) await sleep(5);
  };
  return watching.run(watcher, () => use({ addresses: () => addresses, open, settled }));
}

type Watcher = (socket: Socket) => void;

const watching = new AsyncLocalStorage<Watcher>();
const { connect } = Socket.prototype;

// Sockets of TLS connect by this method too; nothing else of Node's tells of every one.
Socket.prototype.connect = function (this: Socket, ...args: unknown[]) {
  watching.getStore()?.(this);
  return Reflect.apply(connect, this, args);
} as typeof connect;
