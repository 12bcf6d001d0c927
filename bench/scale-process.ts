import { argv } from 'node:process';
import { makeImage, makeIndex, putBuilt } from '../src/registry-server/images.ts';
import { startRegistry } from '../src/registry-server/index.ts';
import { DEBIAN_JOB, sourceRepository } from './job.ts';
import { type Exchange, summarize, type TrafficSummary } from './traffic.ts';

// The embedded registry in a process of its own, seeded in memory: a thousand lists take it a few seconds.
// `node scripts/run-ts.js bench/scale-process.ts LISTS CHILDREN BLOBS`, started with an IPC channel.

/** What the driver says. `look`: how much of what the repository's tags reach is missing there. */
export type Order =
  | { readonly kind: 'begin'; readonly mounts: 'work' | 'refused' }
  | { readonly kind: 'end' }
  | { readonly kind: 'look'; readonly repository: string };

/** What comes back: once `ready`, then one answer for each order. */
export type Reply =
  | { readonly kind: 'ready'; readonly host: string }
  | { readonly kind: 'begun' }
  | { readonly kind: 'traffic'; readonly traffic: TrafficSummary }
  | { readonly kind: 'looked'; readonly tags: number; readonly missing: number };

const LAYER_BYTES = 2048;
const WIDE_BYTES = 256;

/** More requests than a run makes: the registry forgets the oldest beyond. */
const JOURNAL = 1_000_000;

const registry = await startRegistry({ journalLimit: JOURNAL });
const reply = (message: Reply) => process.send?.(message);

/** Images of one architecture share their first layer, as applications built on one base image do. */
function seed(lists: number): void {
  for (const image of DEBIAN_JOB.images) {
    const repository = sourceRepository(image);
    const { platform } = image;
    for (let list = 1; list <= lists; list += 1) {
      const options = { platform, layers: 2, layerBytes: LAYER_BYTES, base: repository };
      putBuilt(registry, repository, makeImage(`${repository} ${list}`, options), `v${list}`);
    }
  }
}

/** `wide/source:all`: one index of so many images, each with so many blobs, its config among them. */
function seedWide(children: number, blobs: number): void {
  const entries = Array.from({ length: children }, (_, at) => {
    const platform = { os: 'windows', architecture: 'amd64', 'os.version': `10.0.${at}` };
    return { manifest: makeImage(`wide ${at}`, { platform, layers: blobs - 1, layerBytes: WIDE_BYTES }), platform };
  });
  putBuilt(registry, 'wide/source', makeIndex(entries), 'all');
}

function traffic(): TrafficSummary {
  const exchanges = registry.journal.map((entry): Exchange => {
    const { method, path, query, status = 0, startedAt: start, endedAt: end = start, connection } = entry;
    const target = query === '' ? path : `${path}?${query}`;
    return { method, target, status, start, end, up: entry.bytesIn, down: entry.bytesOut, connection };
  });
  return summarize({ exchanges, tlsHellos: 0 });
}

function look(repository: string): Reply {
  const tags = registry.tags(repository);
  const missing = tags.flatMap((tag) => registry.missingFrom(repository, tag)).length;
  return { kind: 'looked', tags: tags.length, missing };
}

process.on('message', (order: Order) => {
  if (order.kind === 'begin') {
    registry.configure({ mount: { mode: order.mounts === 'refused' ? 'ignore' : 'exists' } });
    registry.clearJournal();
    reply({ kind: 'begun' });
  } else {
    reply(order.kind === 'end' ? { kind: 'traffic', traffic: traffic() } : look(order.repository));
  }
});
process.once('disconnect', () => void registry.close());
const [lists = 0, children = 0, blobs = 0] = argv.slice(2).map(Number);
seed(lists);
if (children > 0) seedWide(children, blobs);
reply({ kind: 'ready', host: registry.host });
