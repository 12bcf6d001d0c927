import type { Digest } from '../model/digest.ts';
import type { FaultTable } from './faults.ts';
import type { Journal } from './journal.ts';
import type { LimitCounters } from './limits.ts';
import type { Session } from './sessions.ts';
import {
  type BlobLink,
  createRepository,
  isReferenced,
  type Repository,
  type Store,
  type StoredManifest,
} from './store.ts';
import type { Profile } from './switches.ts';
import type { Token } from './token.ts';

/**
 * Somebody who may log in. `access` maps a repository, `prefix/*` or `*` to what is allowed there; absent: everything.
 * The first pattern that fits decides.
 */
export type RegistryUser = {
  readonly name: string;
  readonly password: string;
  /** Accepted as `refresh_token` at the token endpoint. */
  readonly identityToken?: string;
  readonly access?: Readonly<Record<string, 'none' | 'pull' | 'push'>>;
};

/** One running registry; handlers get it with every call. */
export type RegistryState = {
  profile: Profile;
  readonly scale: number;
  readonly store: Store;
  readonly sessions: Map<string, Session>;
  readonly tokens: Map<string, Token>;
  readonly users: readonly RegistryUser[];
  readonly journal: Journal;
  readonly faults: FaultTable;
  readonly counters: LimitCounters;
  /** `repository@digest` of every blob whose closing PUT is being read. */
  readonly inFlight: Set<string>;
  /** Digests whose first commit was lost on purpose. */
  readonly lost: Set<string>;
  /** Uploads longer than this many bytes are hashed and counted, not kept. */
  readonly keepUpTo: number;
  readonly disk: string | undefined;
  readonly hold: (() => Promise<void>) | undefined;
  readonly now: () => number;
  readonly newId: () => string;
  /** Signs session states and storage URLs. */
  readonly secret: string;
  /** Scheme and authority of the registry itself. */
  readonly origin: () => string;
  /** Of the second listener, which stands for another host; started when it is first named. */
  readonly storageOrigin: () => Promise<string>;
};

/** The blob as the repository shows it now: late, expired and shared ones considered. */
export function visibleBlob(state: RegistryState, repository: string, digest: Digest): BlobLink | undefined {
  const { profile, store } = state;
  const own = linkIn(state, store.repositories.get(repository), digest);
  if (own !== undefined || !(profile.mount.shareAfterManifest || profile.blob.shared)) return own;
  for (const other of store.repositories.values()) {
    const link = linkIn(state, other, digest);
    if (link === undefined || !(profile.blob.shared || isReferenced(other, digest))) continue;
    // zot links the blob from its cache when it is asked for; others keep one heap for all repositories.
    createRepository(store, repository).blobs.set(digest, { ...link, at: state.now() });
    return link;
  }
  return undefined;
}

function linkIn(state: RegistryState, repository: Repository | undefined, digest: Digest): BlobLink | undefined {
  const link = repository?.blobs.get(digest);
  if (repository === undefined || link === undefined || link.visibleAt > state.now()) return undefined;
  const life = state.profile.upload.ttlSec * 1000;
  if (life > 0 && link.at + life <= state.now() && !isReferenced(repository, digest)) return undefined;
  return link;
}

/** The manifest as the repository shows it now. */
export function visibleManifest(
  state: RegistryState,
  repository: Repository | undefined,
  reference: string,
): StoredManifest | undefined {
  const digest = repository?.tags.get(reference) ?? (reference as Digest);
  const manifest = repository?.manifests.get(digest);
  return manifest === undefined || manifest.visibleAt > state.now() ? undefined : manifest;
}

/** When something that is written now is to be seen. */
export function appearsAt(state: RegistryState): number {
  const wait = state.profile.manifest.visibleAfterMs;
  return wait === 0 ? 0 : state.now() + wait;
}

/** A size of the profile as this registry applies and shows it, in whole bytes. */
export function scaled(state: RegistryState, bytes: number): number {
  return Math.ceil(bytes * state.scale);
}

/** Waits; the timer alone does not keep the process alive. */
export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds).unref();
  });
}
