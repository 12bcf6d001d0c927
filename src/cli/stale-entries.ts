import { parseReference } from '../model/reference.ts';
import { allOrNone } from '../publish/once.ts';
import type { PublishPorts } from '../publish/ports.ts';
import { stoppable } from '../publish/stop.ts';
import type { DraftEntry } from '../store/draft.ts';

/**
 * Which entries of a draft name by tag what that tag does not name any more, as sentences. Docker pushes them without
 * a word (docker/cli#954). A tag that cannot be read now is no news.
 */
export async function staleEntries(
  entries: readonly DraftEntry[],
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const reading = stoppable(signal);
  const look = async ({ reference, root }: DraftEntry): Promise<readonly string[]> => {
    const { host, repository, tag, digest } = parseReference(reference);
    if (tag === undefined || digest !== undefined) return [];
    const answer = await ports.registry(host).getManifest(repository, tag, { signal: reading.signal });
    if (answer.kind !== 'found' || answer.manifest.digest === root.digest) return [];
    return [
      `${reference} has moved since the draft was made: it names ${answer.manifest.digest}, pushed is ${root.digest}`,
    ];
  };
  return (await allOrNone(entries.map(look), reading.stop)).flat();
}
