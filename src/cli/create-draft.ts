import { PublishError } from '../errors.ts';
import { formatReference, parseReference, type Reference } from '../model/reference.ts';
import { allOrNone } from '../publish/once.ts';
import type { PublishPorts } from '../publish/ports.ts';
import { readSources } from '../publish/read-sources.ts';
import type { SourceRequest } from '../publish/request.ts';
import { stoppable } from '../publish/stop.ts';
import { amendDraft } from '../store/amend.ts';
import type { Draft, DraftEntry, DraftStore, StoredDraft } from '../store/draft.ts';
import { draftWarnings } from '../store/draft-warnings.ts';
import { draftEntry, mergedEntries, requestsOf } from './draft-entry.ts';
import { type Drafts, dockerNotes } from './drafts.ts';

/** What `create` does with a draft of that name. */
export type CreateMode = 'new' | 'amend' | 'replace';

/** @see createDraft */
export type CreateOptions = {
  readonly list: Reference;
  readonly sources: readonly SourceRequest[];
  readonly mode: CreateMode;
};

/**
 * Reads the sources and puts the draft down, once every one of them was read. Amending reads the given sources anew,
 * and those of the draft whose tags have moved; what `annotate` said of them stays.
 *
 * @throws PublishError `DRAFT_EXISTS`, `SOURCE_NOT_FOUND`, `MANIFEST_UNSUPPORTED`, `PLATFORM_NOT_FOUND`, and what the
 *   registry and the store throw: the draft is then as it was
 */
export async function createDraft(
  { list, sources, mode }: CreateOptions,
  drafts: Drafts,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<Draft> {
  const reference = formatReference(list);
  const before = mode === 'replace' ? undefined : await drafts.find(reference);
  if (before !== undefined && mode === 'new') throw exists(reference, before.origin);

  const names = new Set(sources.map((source) => formatReference(source.reference)));
  const others = before?.stored.draft.entries.filter((entry) => !names.has(entry.reference)) ?? [];
  const moved = before === undefined ? [] : await movedSources(others, before.stored, ports, signal);
  const read = await readSources([...sources, ...moved], ports, signal);
  const fresh = mergedEntries(read.sources.map((source) => draftEntry(source, read)));

  let warnings: readonly string[] = [];
  let done: Draft = { reference, entries: [] };
  await write(drafts.own, reference, mode, async (current) => {
    if (current !== undefined && mode === 'new') throw exists(reference, 'own');
    // Another process may have changed it meanwhile: what it did is kept. Docker's own is where an amendment starts.
    const base = current ?? (before?.origin === 'docker' ? before.stored : undefined);
    const held = new Set(base?.draft.entries.map((entry) => entry.reference));
    const wanted = fresh.entries.filter((entry) => names.has(entry.reference) || held.has(entry.reference));
    const amended = amendDraft(mode === 'replace' ? undefined : base, reference, wanted, read.bytes);
    done = amended.stored.draft;
    warnings = [...fresh.warnings, ...amended.warnings];
    return amended.stored;
  });
  const taken = before === undefined ? [] : dockerNotes(reference, before, 'this takes over');
  for (const text of [...taken, ...warnings, ...draftWarnings(done)]) ports.emit({ kind: 'warning', text });
  return done;
}

/** A draft that cannot be read any more is no reason not to start afresh. */
async function write(
  own: DraftStore,
  reference: string,
  mode: CreateMode,
  work: Parameters<DraftStore['change']>[1],
): Promise<void> {
  try {
    await own.change(reference, work);
  } catch (error) {
    if (mode !== 'replace' || !(error instanceof PublishError) || error.code !== 'DRAFT_INVALID') throw error;
    await own.remove(reference);
    await own.change(reference, work);
  }
}

/**
 * The entries of a draft whose tags name something else by now. A tag that is gone keeps what it named, which a
 * registry often still has, with a warning.
 */
async function movedSources(
  entries: readonly DraftEntry[],
  { manifests }: StoredDraft,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<readonly SourceRequest[]> {
  const reading = stoppable(signal);
  const look = async (entry: DraftEntry): Promise<readonly SourceRequest[]> => {
    const { host, repository, tag, digest } = parseReference(entry.reference);
    if (tag === undefined || digest !== undefined) return [];
    const answer = await ports.registry(host).getManifest(repository, tag, { signal: reading.signal });
    if (answer.kind === 'found')
      return answer.manifest.digest === entry.root.digest ? [] : requestsOf(entry, manifests);
    if (answer.kind === 'unknown') throw answer.error.with({ side: 'source' });
    const text = `${entry.reference} is not there any more; the draft keeps ${entry.root.digest}`;
    ports.emit({ kind: 'warning', text });
    return [];
  };
  try {
    return (await allOrNone(entries.map(look), reading.stop)).flat();
  } finally {
    reading.stop();
  }
}

function exists(reference: string, origin: 'own' | 'docker'): PublishError {
  const drop =
    origin === 'own' ? `drop it with manifest-publish rm ${reference}` : `docker manifest rm ${reference} drops it`;
  return new PublishError(
    'DRAFT_EXISTS',
    `refusing to amend an existing manifest list with no --amend flag: ${reference}${origin === 'docker' ? " is in docker's own store" : ''}`,
    `Add --amend to keep what it has, --replace to start afresh, or ${drop}.`,
  );
}
