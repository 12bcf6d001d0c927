import { setMaxListeners } from 'node:events';
import { SYSTEM_CLOCK } from '../../src/cli/runtime.ts';
import type { Digest } from '../../src/model/digest.ts';
import { createMountMemory } from '../../src/publish/mount-memory.ts';
import type { PlannedBlob } from '../../src/publish/plan.ts';
import type { Clock, PublishPorts } from '../../src/publish/ports.ts';
import type { BlobOutcome } from '../../src/publish/report.ts';
import { trackSessions } from '../../src/publish/sessions.ts';
import { createSharedReads } from '../../src/publish/shared-reads.ts';
import { createSiblings } from '../../src/publish/siblings.ts';
import { placeBlob, type TransferRun } from '../../src/publish/transfer.ts';
import type { JournalEntry, RegistryOptions, RunningRegistry } from '../../src/registry-server/index.ts';
import { type PortOptions, withPorts } from '../helpers/publishing.ts';
import { startRegistry } from '../helpers/registry.ts';

export const MIB: number = 1024 * 1024;

/** Runs so much faster than the world. */
function fastClock(faster: number): Clock {
  return {
    now: () => SYSTEM_CLOCK.now() * faster,
    epoch: SYSTEM_CLOCK.epoch,
    sleep: (milliseconds, signal) => SYSTEM_CLOCK.sleep(milliseconds / faster, signal),
  };
}

/** One registry to read from and several to write to, with what was seen. */
export type Stage = {
  readonly source: RunningRegistry;
  readonly targets: readonly RunningRegistry[];
  /** Puts a blob of this size into the source. */
  blob(size: number, seed?: string): PlannedBlob;
  /** Copies the blobs to `t/all` of all targets, or to these repositories; what each copy came to. */
  copy(blobs: readonly PlannedBlob[], options?: CopyOptions): Promise<readonly Settled[]>;
};

export type CopyOptions = PortOptions & {
  readonly repositories?: readonly string[];
  /** How much faster policy's clock runs than the world; default 1. */
  readonly faster?: number;
  readonly onStart?: (controller: AbortController) => void;
};

export type Settled = PromiseSettledResult<BlobOutcome> & {
  readonly target: RunningRegistry;
  readonly repository: string;
  readonly digest: Digest;
  /** Since all began. */
  readonly milliseconds: number;
};

export async function withStage<T>(
  kinds: readonly RegistryOptions[],
  use: (stage: Stage) => Promise<T>,
  sourceKind: RegistryOptions = {},
): Promise<T> {
  const source = await startRegistry(sourceKind);
  const targets: RunningRegistry[] = [];
  try {
    for (const kind of kinds) targets.push(await startRegistry({ keepUpTo: MIB, ...kind }));
    return await use({
      source,
      targets,
      blob: (size, seed = 'seed') => plannedBlob(source, size, seed),
      copy: (blobs, options = {}) => copyAll(source, targets, blobs, options),
    });
  } finally {
    for (const registry of [source, ...targets]) await registry.close();
  }
}

function plannedBlob(source: RunningRegistry, size: number, seed: string): PlannedBlob {
  const digest = source.putGeneratedBlob('s/one', size, seed);
  const sources = [{ host: source.host, repository: 's/one' }];
  return { digest, size, sources, mountFrom: [], present: false, waitsFor: [] };
}

function copyAll(
  source: RunningRegistry,
  targets: readonly RunningRegistry[],
  blobs: readonly PlannedBlob[],
  { repositories = ['t/all'], faster = 1, onStart, ...options }: CopyOptions,
): Promise<readonly Settled[]> {
  return withPorts(
    options,
    async (given, outer) => {
      const controller = new AbortController();
      const ports: PublishPorts = { ...given, clock: fastClock(faster) };
      const reads = createSharedReads(ports);
      const siblings = createSiblings();
      const places = targets.flatMap((target) => repositories.map((repository) => ({ target, repository })));
      const nameOf = ({ target, repository }: (typeof places)[number]) => `${target.host}/${repository}`;
      for (const at of places) for (const { digest } of blobs) reads.expect(digest, nameOf(at));
      onStart?.(controller);
      const signal = AbortSignal.any([outer, controller.signal]);
      setMaxListeners(0, signal);
      const began = performance.now();
      const all = places.map(async ({ target, repository }) => {
        const at = { host: target.host, repository };
        const member = nameOf({ target, repository });
        const sessions = trackSessions(at, ports, signal);
        const run: TransferRun = {
          target: at,
          registry: ports.registry(target.host),
          ports,
          signal,
          mounts: createMountMemory(),
          sessions,
          inMemory: new Map(),
          gate: Promise.resolve(),
          stop: () => undefined,
          reads,
          member,
          siblings,
        };
        const settled = await Promise.all(
          blobs.map(async (blob): Promise<Settled> => {
            const placed = placeBlob(blob, run).finally(() => reads.leave(blob.digest, member));
            const [result] = await Promise.allSettled([placed]);
            const milliseconds = performance.now() - began;
            return { ...result, target, repository, digest: blob.digest, milliseconds };
          }),
        );
        await sessions.close();
        return settled;
      });
      return (await Promise.all(all)).flat();
    },
    [source, ...targets],
  );
}

/** Reads of the blob at its source, oldest first. */
export function readsOf(source: RunningRegistry, { digest }: Pick<PlannedBlob, 'digest'>): readonly JournalEntry[] {
  return source.journal.filter(({ method, reference }) => method === 'GET' && reference === digest);
}
