import type { BlobIdentity, MountAnswer, Presence, VerbOptions } from '../registry/client.ts';
import { type CheckRun, whenVisible } from './mount-check-run.ts';
import type { MountEvidence } from './mount-check-words.ts';

/**
 * Asks for the mount without `from`, then with it. The other way round the first would tell nothing: after a 201 the
 * target has the blob, and could find it with itself.
 */
export async function askMounts(
  blob: BlobIdentity,
  run: CheckRun,
): Promise<Pick<MountEvidence, 'any' | 'first' | 'refusal'>> {
  const any = await askAny(blob, run);
  const first = await askMount(blob, run);
  const refused = [first, any].find((answer) => answer.kind === 'refused');
  return { any: any.kind, first: first.kind, ...(refused?.kind === 'refused' ? { refusal: refused.why } : {}) };
}

function askAny({ digest }: BlobIdentity, run: CheckRun): Promise<MountAnswer> {
  const ask = (options: VerbOptions) => run.registry.mountAnyBlob(run.target, digest, options);
  return mount('mount without from', ask, 'mounted, found without a source', run);
}

/** The mount as `publish` asks for it. */
export function askMount({ digest }: BlobIdentity, run: CheckRun): Promise<MountAnswer> {
  const ask = (options: VerbOptions) => run.registry.mountBlob(run.target, digest, run.source, options);
  return mount('mount with from', ask, 'mounted', run);
}

/** Asks, and gives back the session that a refusal opens. */
async function mount(
  what: string,
  ask: (options: VerbOptions) => Promise<MountAnswer>,
  mounted: string,
  { record, sessions, target }: CheckRun,
): Promise<MountAnswer> {
  const answer = await record.take(
    'POST',
    what,
    target,
    (witness) => sessions.open((options) => ask({ ...options, ...witness })),
    (given) => {
      if (given.kind === 'mounted') return mounted;
      return given.kind === 'session' ? 'not mounted: an upload session, given up' : `refused: ${given.why}`;
    },
  );
  if (answer.kind === 'session') sessions.cancel(sessions.opened(answer.session));
  return answer;
}

/** Whether the target shows the blob; `present` is what it means if it does. */
export async function look({ digest }: BlobIdentity, present: string, run: CheckRun): Promise<Presence['kind']> {
  const presence = await run.record.take(
    'HEAD',
    'blob',
    run.target,
    (witness) => run.registry.hasBlob(run.target, digest, { signal: run.signal, ...witness }),
    ({ kind }) => ({ present, absent: 'not there', unknown: 'no news' })[kind],
  );
  return presence.kind;
}

/**
 * After a 201, which some registries give without having mounted anything (infobloxopen/konk#626). With a blob of our
 * own also after refusals: a target that shows it then shows what other repositories have. Never before a mount: on zot
 * the look itself brings the blob in.
 */
export async function lookAfter(
  blob: BlobIdentity,
  { write, any, first, second }: MountEvidence,
  run: CheckRun,
): Promise<Pick<MountEvidence, 'after'>> {
  if ([any, first, second].includes('mounted')) {
    return { after: await whenVisible(() => look(blob, 'there', run), run) };
  }
  return write ? { after: await look(blob, 'shown, though only the source has it', run) } : {};
}

/**
 * A mount that was refused and opened nothing may have been refused for its source or because the target takes nothing
 * from us: a plain upload tells, as it would in a publish.
 */
export async function provePush({ digest }: BlobIdentity, evidence: MountEvidence, run: CheckRun): Promise<void> {
  const { any, first, second } = evidence;
  if ([any, first, second].some((kind) => kind === 'mounted' || kind === 'session')) return;
  const { record, sessions, registry, target } = run;
  const session = await record.take(
    'POST',
    'upload',
    target,
    (witness) => sessions.open((options) => registry.openUpload(target, digest, { ...options, ...witness })),
    () => 'an upload session, given up: only the mount is refused',
  );
  sessions.cancel(sessions.opened(session));
}
