import { PublishError } from '../errors.ts';
import type { BlobIdentity, Presence, RegistryClient } from '../registry/client.ts';
import type { LeftBehind } from './mount-check-report.ts';
import type { StepRecord } from './mount-check-steps.ts';
import type { MountEvidence } from './mount-check-words.ts';
import type { PublishPorts } from './ports.ts';
import type { OpenSessions } from './sessions.ts';

/** Waits in ms for something that has just been written and is not to be seen yet (Nexus, ECR). */
const LATE: readonly number[] = [1000, 2000, 4000];

/** What one check works with. */
export type CheckRun = {
  readonly registry: RegistryClient;
  readonly target: string;
  readonly source: string;
  readonly record: StepRecord;
  readonly sessions: OpenSessions;
  readonly ports: PublishPorts;
  readonly signal: AbortSignal;
  /** What is there to be told should the check fail: the blob that is asked about, and what is or may be left behind. */
  readonly book: { blob?: BlobIdentity; left: readonly LeftBehind[] };
};

/** What the requests of one way to ask have brought. */
export type Found = {
  readonly blob: BlobIdentity;
  readonly evidence: MountEvidence;
  /** Whether the target showed the blob before any mount. */
  readonly before?: boolean;
  readonly left: readonly LeftBehind[];
};

/** Asks again, for as long as late registries take, while the answer is `absent`. */
export async function whenVisible(
  ask: () => Promise<Presence['kind']>,
  { ports, signal }: Pick<CheckRun, 'ports' | 'signal'>,
): Promise<Presence['kind']> {
  for (const wait of LATE) {
    const presence = await ask();
    if (presence !== 'absent') return presence;
    await ports.clock.sleep(wait, signal);
  }
  return ask();
}

/** What is written is told before it is, in every way in which progress is shown. */
export function announceWrite(text: string, { ports }: CheckRun): void {
  ports.emit({ kind: 'warning', text: `mount-check writes: ${text}` });
}

/** What a 201 has put into the target, unless a look has shown that it has put nothing there. */
export function mountedHere(
  { digest }: BlobIdentity,
  { any, first, second, after }: Pick<MountEvidence, 'any' | 'first' | 'second' | 'after'>,
  { target }: CheckRun,
): readonly LeftBehind[] {
  if (after === 'absent') return [];
  return [any, first, second].includes('mounted') ? [{ what: 'blob', repository: target, digest }] : [];
}

/** With the host in front, as a report has it. */
export function named(left: readonly LeftBehind[], { registry }: CheckRun): readonly LeftBehind[] {
  return left.map((one) => ({ ...one, repository: `${registry.host}/${one.repository}` }));
}

/** A source whose read fails for want of rights is a failure of its own kind with `write`. */
export function needsPush(error: unknown, { registry, source }: CheckRun): unknown {
  if (!(error instanceof PublishError) || error.exitCode !== 3) return error;
  const hint = `Log in with a right to push to ${registry.host}/${source}, which --write needs, or leave --write out.`;
  return error.with({ side: 'source', hint });
}
