import type { PublishRequest } from './request.ts';

/** How many lists of the same registries are under way at a time. The limiter sees to the requests; this keeps what is held in memory flat. */
const SIDE_BY_SIDE = 16;

/** How many of all registries. */
const ALTOGETHER = 64;

/** Lists that wait for one another, `width` at a time; each with its position among all. */
export type Lane = { readonly width: number; readonly lists: readonly (readonly [number, PublishRequest])[] };

/**
 * Lists that have to do with the same registries share a lane, so that those of a registry that is slow, or waits for
 * its sources, hold up none of another. Pure.
 */
export function lanesOf(requests: readonly PublishRequest[]): readonly Lane[] {
  const lanes = new Map<string, [number, PublishRequest][]>();
  const shared: [number, PublishRequest][][] = [];
  for (const [position, request] of requests.entries()) {
    const { targets, sources } = request;
    const hosts = [...targets, ...sources.map(({ reference }) => reference)].map(({ host }) => host);
    const key = [...new Set(hosts)].sort().join(' ');
    // With more kinds of lists than may be under way, some share a lane after all.
    const lane = lanes.get(key) ?? shared[lanes.size % ALTOGETHER] ?? [];
    if (!lanes.has(key) && shared.length < ALTOGETHER) shared.push(lane);
    lanes.set(key, lane);
    lane.push([position, request]);
  }
  const width = Math.min(SIDE_BY_SIDE, Math.floor(ALTOGETHER / Math.max(1, shared.length)));
  return shared.map((lists) => ({ width: Math.min(width, lists.length), lists }));
}
