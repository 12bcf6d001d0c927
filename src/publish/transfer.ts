import type { Digest } from '../model/digest.ts';
import { isLayoutHost } from '../model/reference.ts';
import type { RegistryClient } from '../registry/client.ts';
import { type CopyResult, copyBlob } from './copy.ts';
import type { MountMemory } from './mount-memory.ts';
import type { PlannedBlob } from './plan.ts';
import type { PublishPorts } from './ports.ts';
import type { BlobOutcome } from './report.ts';
import type { Location } from './resolved.ts';
import type { OpenSessions } from './sessions.ts';
import type { SharedReads } from './shared-reads.ts';
import { firstPlaced, type Sibling, type Siblings } from './siblings.ts';

/** What every transfer of a run into one target repository shares. */
export type TransferRun = {
  readonly target: Location;
  readonly registry: RegistryClient;
  readonly ports: PublishPorts;
  readonly signal: AbortSignal;
  readonly mounts: MountMemory;
  readonly sessions: OpenSessions;
  /** Blobs that were read already: configs. */
  readonly inMemory: ReadonlyMap<Digest, Uint8Array>;
  /** Settles when the platforms are known to be good: until then mounts are asked for, but no byte is sent. */
  readonly gate: Promise<unknown>;
  /** Stops everything else of the run. */
  readonly stop: (reason: unknown) => void;
  /** Reads that are shared with other target repositories; this one is their `member`. */
  readonly reads?: SharedReads;
  readonly member?: string;
  /** What the run brings to other repositories of this registry. */
  readonly siblings?: Siblings;
};

/**
 * Puts one blob into the target repository by the cheapest way the registry allows: mount it, or stream it into the
 * session that the refusal itself opened; the target is asked whether it holds the blob only after a refusal, since a
 * mount answers that question too (design section 4, rules 2 to 4).
 *
 * @throws as {@link copyBlob}
 * @see distribution-spec v1.1.1 spec.md, section "Mounting a blob from another repository"
 */
export async function placeBlob(blob: PlannedBlob, run: TransferRun): Promise<BlobOutcome> {
  const { digest, size } = blob;
  run.ports.emit({ kind: 'blob.start', digest, size });
  const bring = async (earlier: readonly Sibling[]): Promise<BlobOutcome> =>
    finish(blob, await place(blob, earlier, run), run);
  return run.siblings === undefined ? bring([]) : run.siblings.beside(run.target, digest, bring);
}

/** Streams a blob that the target is known to lack, though a mount or a child's presence had promised it. */
export async function replaceBlob(blob: PlannedBlob, why: string, run: TransferRun): Promise<BlobOutcome> {
  const { digest, size } = blob;
  run.ports.emit({ kind: 'blob.start', digest, size });
  run.ports.emit({ kind: 'blob.refused', digest, why });
  const result = await copyBlob(blob, { kind: 'post', look: false }, why, run);
  return finish(blob, result, run);
}

async function place(blob: PlannedBlob, earlier: readonly Sibling[], run: TransferRun): Promise<CopyResult> {
  const { target, registry, mounts, sessions } = run;
  if (registry.mounting === 'never' && blob.mountFrom.length > 0) {
    return lookAndCopy(blob, `mounts are off for ${target.host} by the configuration`, run);
  }
  const from = mounts.choose(blob.mountFrom);
  if (from === undefined) return placeWithoutMount(blob, earlier, run);
  if (mounts.looksClosed(from)) {
    await run.gate;
    return copyBlob(blob, { kind: 'mount', from, look: true }, 'mount refused', run);
  }
  const answer = await sessions.open((options) => registry.mountBlob(target.repository, blob.digest, from, options));
  if (answer.kind === 'mounted') {
    mounts.mounted(from);
    return answer;
  }
  mounts.refused(from, answer.kind === 'refused' && answer.sourceBarred);
  run.ports.emit({ kind: 'blob.refused', digest: blob.digest, why: answer.why });
  if (answer.kind === 'refused') return askAndCopy(blob, answer.why, run);
  const session = sessions.opened(answer.session);
  await run.gate;
  return copyBlob(blob, { kind: 'session', session, look: true }, answer.why, run);
}

/** No mount to try: the source is elsewhere, or its repository is barred. */
async function placeWithoutMount(
  blob: PlannedBlob,
  earlier: readonly Sibling[],
  run: TransferRun,
): Promise<CopyResult> {
  if (blob.mountFrom.length > 0) return askAndCopy(blob, 'the registry refused this source repository before', run);
  const { mounts, target, registry, reads, member, signal } = run;
  const why = whyNoMount(blob, run);
  const siblings =
    registry.mounting === 'never'
      ? []
      : earlier.filter(
          ({ repository }) => mounts.choose([repository]) !== undefined && !mounts.looksClosed(repository),
        );
  if (siblings.length === 0) return lookAndCopy(blob, why, run);
  // Whoever streams the blob elsewhere need not wait for this repository.
  if (member !== undefined) reads?.leave(blob.digest, member);
  const isThere = siblings.some((sibling) => sibling.isPlaced());
  if (!isThere) {
    const presence = await registry.hasBlob(target.repository, blob.digest, { signal });
    if (presence.kind === 'present') return { kind: 'present' };
  }
  const sibling = await firstPlaced(siblings, signal);
  if (sibling !== undefined) return place({ ...blob, mountFrom: [sibling.repository] }, [], run);
  await run.gate;
  return copyBlob(blob, { kind: 'post', look: false }, why, run);
}

function whyNoMount({ sources }: PlannedBlob, { target }: TransferRun): string {
  if (isLayoutHost(target.host)) return 'nothing is mounted into a layout';
  return sources.every(({ host }) => isLayoutHost(host)) ? 'source in a layout' : 'source on another registry';
}

/** Asks whether the blob is there before a session is opened for it. */
async function lookAndCopy(blob: PlannedBlob, why: string, run: TransferRun): Promise<CopyResult> {
  const { target, registry, signal } = run;
  const presence = await registry.hasBlob(target.repository, blob.digest, { signal });
  if (presence.kind === 'present') return { kind: 'present' };
  await run.gate;
  return copyBlob(blob, { kind: 'post', look: false }, why, run);
}

/** Asks whether the blob is there while the session opens: the answer is mostly no, and then nothing was waited for. */
async function askAndCopy(blob: PlannedBlob, why: string, run: TransferRun): Promise<CopyResult> {
  const { target, registry, sessions, signal } = run;
  await run.gate;
  const [presence, session] = await Promise.allSettled([
    registry.hasBlob(target.repository, blob.digest, { signal }),
    sessions.open((options) => registry.openUpload(target.repository, blob.digest, options)).then(sessions.opened),
  ]);
  if (presence.status === 'fulfilled' && presence.value.kind === 'present') {
    if (session.status === 'fulfilled') sessions.cancel(session.value);
    return { kind: 'present' };
  }
  if (session.status === 'rejected') throw session.reason;
  if (presence.status === 'rejected') throw presence.reason;
  return copyBlob(blob, { kind: 'session', session: session.value, look: false }, why, run);
}

function finish({ digest, size }: PlannedBlob, result: CopyResult, { ports }: TransferRun): BlobOutcome {
  const sent = result.kind === 'copied' ? result.bytesSent : 0;
  ports.emit({ kind: 'blob.done', digest, size, how: result.kind, bytesSent: sent });
  return {
    digest,
    size,
    how: result.kind,
    bytesSent: sent,
    ...(result.kind === 'copied' ? { why: result.why } : {}),
  };
}
