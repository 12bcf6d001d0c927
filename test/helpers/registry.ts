import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type JournalEntry,
  type Operation,
  type ProfileChanges,
  type RegistryOptions,
  type RunningRegistry,
  startRegistry as startUnwatched,
} from '../../src/registry-server/index.ts';
import { watchRegistry } from './watching.ts';

/** The embedded registry; runs of the program are judged by what it sees, too. */
export async function startRegistry(options: RegistryOptions = {}): Promise<RunningRegistry> {
  return watchRegistry(await startUnwatched(options));
}

/**
 * Runs `use` against a registry of its own and closes it, whatever happens. `profile` is a name, what differs from
 * `spec`, or whole options.
 */
export async function withRegistry<T>(
  profile: string | ProfileChanges | { readonly options: RegistryOptions },
  use: (registry: RunningRegistry) => Promise<T> | T,
): Promise<T> {
  const options: RegistryOptions =
    typeof profile === 'object' && 'options' in profile
      ? profile.options
      : { profile: profile as string | ProfileChanges };
  const registry = await startRegistry(options);
  try {
    return await use(registry);
  } finally {
    await registry.close();
  }
}

/** Two registries at once, for copies between hosts. */
export async function withRegistries<T>(
  source: string | ProfileChanges,
  target: string | ProfileChanges,
  use: (source: RunningRegistry, target: RunningRegistry) => Promise<T> | T,
): Promise<T> {
  return withRegistry(source, (from) => withRegistry(target, (to) => use(from, to)));
}

/** Requests of these kinds, oldest first. */
export function requests(registry: RunningRegistry, ...operations: readonly Operation[]): readonly JournalEntry[] {
  return registry.journal.filter((entry) => operations.length === 0 || operations.includes(entry.operation));
}

/** Bytes of blobs that the registry was sent. */
export function blobBytesReceived(registry: RunningRegistry): number {
  return requests(registry, 'uploadPatch', 'uploadPut', 'uploadPost').reduce((sum, entry) => sum + entry.bytesIn, 0);
}

/** Requests that change something: what "nothing was written" rules out. */
export function writes(registry: RunningRegistry): readonly JournalEntry[] {
  return registry.journal.filter((entry) => !['GET', 'HEAD'].includes(entry.method) && entry.operation !== 'token');
}

/** A directory of its own that is removed afterwards. */
export async function withDirectory<T>(use: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'manifest-publish-test-'));
  try {
    return await use(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
