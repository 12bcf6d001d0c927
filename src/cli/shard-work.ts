import type { Digest } from '../model/digest.ts';
import { checkLists } from '../publish/publish-lists.ts';
import type { PublishRequest } from '../publish/request.ts';
import { type Shard, type ShardWork, workOfShard } from '../publish/shards.ts';
import { untrusted } from '../ui/render.ts';

/** What a run is to publish, and what is to be said of it. */
export type OwnWork = {
  readonly requests: readonly PublishRequest[];
  readonly notes: readonly string[];
  /** Of what all shards have, as this one was told; absent where nothing is divided. */
  readonly lists?: Digest;
};

/** The part of one shard, and a line for people that says what it is. @throws PublishError `USAGE_INVALID` */
export function workNoted(requests: readonly PublishRequest[], shard: Shard, bySource: boolean): OwnWork {
  // Of two lists that get in each other's way a shard may see one.
  checkLists(requests);
  const work = workOfShard(requests, shard, bySource);
  return { requests: work.requests, notes: [noteOf(work, shard, requests.length)], lists: work.lists };
}

/** Names that are told at most. */
const NAMES = 10;

function noteOf({ requests, names, by, of }: ShardWork, shard: Shard, lists: number): string {
  const head = `shard ${shard.index}/${shard.total}: `;
  const units = by === 'repository' ? 'repositories' : 'sources';
  if (names.length === 0) return `${head}nothing to do, since there are fewer ${units} than shards: ${of}`;
  const more = names.length > NAMES ? ` and ${names.length - NAMES} more` : '';
  const shown = `${names
    .slice(0, NAMES)
    .map((name) => untrusted(name, 300))
    .join(', ')}${more}`;
  const own = `${names.length} of ${of} ${units}`;
  return by === 'source' ? `${head}${own}: ${shown}` : `${head}${requests.length} of ${lists} lists, ${own}: ${shown}`;
}
