import { randomUUID } from 'node:crypto';
import { type Digest, digestOf, isDigest } from '../model/digest.ts';
import { type BlobContent, generatedDigest } from './content.ts';
import { createDiskWriter, loadDisk } from './disk.ts';
import { addFault, createFaultTable, type FaultRule } from './faults.ts';
import { handle, handleStorage } from './handler.ts';
import { createJournal, type JournalEntry } from './journal.ts';
import { createLimitCounters } from './limits.ts';
import { type Listener, listen, type TlsFiles } from './listener.ts';
import { findProfile } from './profiles.ts';
import type { RegistryState, RegistryUser } from './state.ts';
import {
  contentOf,
  createRepository,
  createStore,
  dropManifest,
  findManifest,
  keepContent,
  missingBelow,
  storeManifest,
  type TagMove,
} from './store.ts';
import { applyChanges, type Profile, type ProfileChanges } from './switches.ts';

export type RegistryOptions = {
  /** A name of {@link PROFILES}, what differs from `spec`, or both: a name and what differs from it. */
  readonly profile?: string | ProfileChanges;
  readonly changes?: ProfileChanges;
  /** Multiplies the sizes of chunk, upload and proxy limits, so that tests can use small bodies; default 1. */
  readonly scale?: number;
  /** Default 127.0.0.1. */
  readonly address?: string;
  /** Default 0: any free port. */
  readonly port?: number;
  readonly tls?: TlsFiles;
  /** Keeps everything below this directory as well, and starts with what is there. */
  readonly disk?: string;
  /** Uploads longer than this many bytes are hashed and counted, not kept; default: all are kept. */
  readonly keepUpTo?: number;
  /** Default: one user `robot` with the password `secret`, who may do everything. */
  readonly users?: readonly RegistryUser[];
  /** Milliseconds; default the system's. Tests hand in their own to move tokens and windows. */
  readonly now?: () => number;
  /** Ids of sessions and tokens; default random UUIDs. */
  readonly newId?: () => string;
  /** Entries kept in the journal; default 100,000. */
  readonly journalLimit?: number;
  /** Waited for before each request is handled, its body unread: who hands it in decides when time goes on. */
  readonly hold?: () => Promise<void>;
  /** Told of every request when it has been answered. */
  readonly onEntry?: (entry: JournalEntry) => void;
};

/** A registry that listens. Everything it holds can be set and read without HTTP. */
export interface RunningRegistry {
  /** `127.0.0.1:PORT` */
  readonly host: string;
  readonly url: string;
  /** Requests since the start or the last {@link RunningRegistry.clearJournal}, oldest first. */
  readonly journal: readonly JournalEntry[];
  /** What every tag PUT and DELETE did. */
  readonly tagMoves: readonly TagMove[];
  readonly profile: Profile;
  createRepository(repository: string): void;
  repositories(): readonly string[];
  putBlob(repository: string, bytes: Uint8Array): Digest;
  /** A blob of any size that is made anew at every read: it costs no memory. Hashing takes about 2 s per GiB, once. */
  putGeneratedBlob(repository: string, size: number, seed: string): Digest;
  /** Stored as it is, valid or not, whatever it names. */
  putManifest(repository: string, bytes: Uint8Array, mediaType: string, tag?: string): Digest;
  setTag(repository: string, tag: string, digest: Digest): void;
  tagOf(repository: string, tag: string): Digest | undefined;
  tags(repository: string): readonly string[];
  manifestOf(
    repository: string,
    reference: string,
  ): { readonly bytes: Buffer; readonly mediaType: string; readonly digest: Digest } | undefined;
  hasBlob(repository: string, digest: string): boolean;
  /** The bytes of a small blob; undefined also when they were not kept. */
  blobOf(repository: string, digest: string): Buffer | undefined;
  /** Manifests and blobs that the reference reaches and the repository lacks, foreign layers aside. */
  missingFrom(repository: string, reference: string): readonly Digest[];
  deleteManifest(repository: string, digest: string): boolean;
  deleteBlob(repository: string, digest: string): boolean;
  /** Upload sessions that were neither committed nor cancelled. */
  openSessions(repository?: string): number;
  clearJournal(): void;
  /** Changes switches from now on. @throws RangeError naming a switch or value that is not there */
  configure(changes: ProfileChanges): void;
  addFault(rule: FaultRule): void;
  clearFaults(): void;
  close(): Promise<void>;
}

/** Starts the embedded registry. @throws RangeError naming a profile, switch or value that is not there */
export async function startRegistry(options: RegistryOptions = {}): Promise<RunningRegistry> {
  const base =
    typeof options.profile === 'string' ? findProfile(options.profile) : applyChanges(undefined, options.profile ?? {});
  const address = options.address ?? '127.0.0.1';
  let main: Listener | undefined;
  let storage: Promise<Listener> | undefined;
  const state: RegistryState = {
    profile: applyChanges(base, options.changes ?? {}),
    scale: options.scale ?? 1,
    store: createStore(),
    sessions: new Map(),
    tokens: new Map(),
    users: options.users ?? [{ name: 'robot', password: 'secret' }],
    journal: createJournal(options.journalLimit ?? 100_000, options.onEntry ?? (() => undefined)),
    faults: createFaultTable(),
    counters: createLimitCounters(),
    inFlight: new Set(),
    lost: new Set(),
    keepUpTo: options.keepUpTo ?? Number.POSITIVE_INFINITY,
    disk: options.disk,
    hold: options.hold,
    now: options.now ?? Date.now,
    newId: options.newId ?? randomUUID,
    secret: randomUUID(),
    origin: () => main?.origin ?? '',
    storageOrigin: async () => {
      storage ??= listen(state, 'storage', (call) => handleStorage(call, state), {
        address,
        port: 0,
        tls: options.tls,
      });
      return (await storage).origin;
    },
  };
  if (options.disk !== undefined) await loadDisk(options.disk, state.store);
  const save = options.disk === undefined ? undefined : createDiskWriter(options.disk, state.store);
  main = await listen(
    state,
    'registry',
    async (call) => {
      const reply = await handle(call, state);
      if (save !== undefined && call.method !== 'GET' && call.method !== 'HEAD') await save();
      return reply;
    },
    { address, port: options.port ?? 0, tls: options.tls },
  );
  const close = async (): Promise<void> => {
    await main?.close();
    await (await storage)?.close();
    await save?.();
  };
  return control(state, main, close);
}

function control(state: RegistryState, main: Listener, close: () => Promise<void>): RunningRegistry {
  const { store, journal } = state;
  const find = (repository: string) => store.repositories.get(repository);
  const link = (repository: string, digest: Digest, content: BlobContent): Digest => {
    const blob = { content: keepContent(store, digest, content), at: state.now(), visibleAt: 0 };
    createRepository(store, repository).blobs.set(digest, blob);
    return digest;
  };
  return {
    host: main.host,
    url: main.origin,
    journal: journal.entries,
    tagMoves: store.moves,
    get profile() {
      return state.profile;
    },
    createRepository: (repository) => void createRepository(store, repository),
    repositories: () => [...store.repositories.keys()].sort(),
    putBlob(repository, bytes) {
      const copy = Buffer.from(bytes);
      return link(repository, digestOf(copy), { kind: 'bytes', size: copy.length, bytes: copy });
    },
    putGeneratedBlob: (repository, size, seed) =>
      link(repository, generatedDigest(seed, size), { kind: 'generated', size, seed }),
    putManifest(repository, bytes, mediaType, tag) {
      const digest = digestOf(bytes);
      const target = createRepository(store, repository);
      storeManifest(target, { digest, bytes, mediaType, visibleAt: 0 });
      if (tag !== undefined) target.tags.set(tag, digest);
      return digest;
    },
    setTag: (repository, tag, digest) => void createRepository(store, repository).tags.set(tag, digest),
    tagOf: (repository, tag) => find(repository)?.tags.get(tag),
    tags: (repository) => [...(find(repository)?.tags.keys() ?? [])].sort(),
    manifestOf: (repository, reference) => findManifest(find(repository), reference),
    hasBlob: (repository, digest) =>
      isDigest(digest) && contentOf(store, find(repository)?.blobs.get(digest), digest) !== undefined,
    blobOf(repository, digest) {
      const content = isDigest(digest) ? contentOf(store, find(repository)?.blobs.get(digest), digest) : undefined;
      return content?.kind === 'bytes' ? content.bytes : undefined;
    },
    missingFrom(repository, reference) {
      const [home, manifest] = [find(repository), findManifest(find(repository), reference)];
      if (home !== undefined && manifest !== undefined) return missingBelow(store, home, manifest.digest);
      return isDigest(reference) ? [reference] : [];
    },
    deleteManifest(repository, digest) {
      const home = find(repository);
      return home !== undefined && isDigest(digest) && dropManifest(store, home, digest);
    },
    deleteBlob: (repository, digest) => isDigest(digest) && (find(repository)?.blobs.delete(digest) ?? false),
    openSessions: (repository) =>
      [...state.sessions.values()].filter((session) => repository === undefined || session.repository === repository)
        .length,
    clearJournal: () => void journal.entries.splice(0),
    configure(changes) {
      state.profile = applyChanges(state.profile, changes);
    },
    addFault: (rule) => addFault(state.faults, rule),
    clearFaults() {
      state.faults.rules = [];
    },
    close,
  };
}
