import { type Digest, digestOf } from '../model/digest.ts';
import { hostKey } from '../model/host-key.ts';
import { formatPlatform } from '../model/platform.ts';
import { formatReference, type Reference, repositoryName } from '../model/reference.ts';
import type { PublishRequest, SourceRequest } from './request.ts';
import { partOf } from './stage-content.ts';

/** One of `total` workers that divide a run among them; both count from 1. */
export type Shard = { readonly index: number; readonly total: number };

/** What is divided: it goes to one worker as a whole. */
export type Unit = {
  readonly name: string;
  /** How much work it is, as far as that is known without a request. */
  readonly weight: number;
};

/** What one worker has to do. */
export type ShardWork = {
  readonly requests: readonly PublishRequest[];
  /** Names of its units: target repositories, or sources. */
  readonly names: readonly string[];
  readonly by: 'repository' | 'source';
  /** How many units all workers have. */
  readonly of: number;
  /** Of what decides the division: workers in which it differs may have left a list to each other. */
  readonly lists: Digest;
};

/**
 * The part of a run that one worker does. Every worker that is told the same lists finds the same division, in whatever
 * order they stand, and nothing is asked of anybody: no worker need know of another.
 *
 * Lists go by target repository, since lists of one repository share blobs that two workers would both send. With
 * `bySource` (the content stage, which puts nothing that needs a whole list) and one repository, its sources are divided.
 */
export function workOfShard(requests: readonly PublishRequest[], shard: Shard, bySource: boolean): ShardWork {
  const groups = groupByRepository(requests);
  if (bySource && groups.length === 1) return sourcesOfShard(requests, shard);
  const own = shareOf(groups, shard);
  const lists = new Set(own.flatMap((group) => group.lists));
  return {
    requests: requests.filter((request) => lists.has(request)),
    names: own.flatMap(({ repositories }) => repositories).sort(byCodeUnit),
    by: 'repository',
    of: groups.reduce((sum, { repositories }) => sum + repositories.length, 0),
    lists: fingerprint(requests.map(({ targets, sources }) => [...namesOf(targets), String(sources.length)])),
  };
}

/** The same for every order of the lists. */
function fingerprint(lines: readonly (readonly string[])[]): Digest {
  const sorted = lines.map((line) => JSON.stringify(line)).sort(byCodeUnit);
  return digestOf(new TextEncoder().encode(sorted.join('\n')));
}

function namesOf(targets: readonly Reference[]): readonly string[] {
  return targets.map(formatReference).sort(byCodeUnit);
}

/**
 * The units of one worker: the largest go first, each to the worker that has least, to the first of several. So the
 * fullest worker has at most the weight of one unit more than the emptiest.
 */
export function shareOf<U extends Unit>(units: readonly U[], { index, total }: Shard): readonly U[] {
  const loads = Array.from({ length: total }, () => 0);
  const own: U[] = [];
  const sorted = [...units].sort((one, other) => other.weight - one.weight || byCodeUnit(one.name, other.name));
  for (const unit of sorted) {
    let least = 0;
    for (let at = 1; at < total; at += 1) if ((loads[at] ?? 0) < (loads[least] ?? 0)) least = at;
    loads[least] = (loads[least] ?? 0) + unit.weight;
    if (least === index - 1) own.push(unit);
  }
  return own;
}

type Group = Unit & { readonly lists: readonly PublishRequest[]; readonly repositories: readonly string[] };

/** Lists that share a target repository, also by way of others, with all repositories that they are published to. */
function groupByRepository(requests: readonly PublishRequest[]): readonly Group[] {
  const parents = new Map<string, string>();
  const rootOf = (name: string): string => {
    const parent = parents.get(name) ?? name;
    if (parent === name) return name;
    const root = rootOf(parent);
    parents.set(name, root);
    return root;
  };
  for (const { targets } of requests) {
    const [first, ...others] = targets.map(placeOf);
    if (first === undefined) continue;
    parents.set(first, rootOf(first));
    for (const other of others) parents.set(rootOf(other), rootOf(first));
  }
  const groups = new Map<string, { lists: PublishRequest[]; repositories: Set<string>; weight: number }>();
  for (const request of requests) {
    const places = request.targets.map(placeOf);
    const root = rootOf(places[0] ?? '');
    const group = groups.get(root) ?? { lists: [], repositories: new Set(), weight: 0 };
    groups.set(root, group);
    group.lists.push(request);
    for (const place of places) group.repositories.add(place);
    group.weight += request.sources.length;
  }
  return [...groups.values()].map(({ lists, repositories, weight }) => {
    const names = [...repositories].sort(byCodeUnit);
    return { name: names[0] ?? '', weight, lists, repositories: names };
  });
}

/** `HOST/REPOSITORY`, the same for every way of writing a host or a folder. */
function placeOf({ host, repository }: Reference): string {
  return repositoryName({ host: hostKey(host), repository });
}

function sourcesOfShard(requests: readonly PublishRequest[], shard: Shard): ShardWork {
  const all = new Set(requests.flatMap(({ sources }) => sources.map(nameOf)));
  const units = [...all].map((name) => ({ name, weight: 1 }));
  const own = new Set(shareOf(units, shard).map(({ name }) => name));
  return {
    requests: requests.flatMap((request) => {
      const sources = request.sources.filter((source) => own.has(nameOf(source)));
      return sources.length === 0 ? [] : [partOf(request, sources)];
    }),
    names: [...own].sort(byCodeUnit),
    by: 'source',
    of: all.size,
    lists: fingerprint(
      requests.map(({ targets, sources }) => [...namesOf(targets), ...sources.map(nameOf).sort(byCodeUnit)]),
    ),
  };
}

/** An index whose images are picked one by one is as many sources. */
function nameOf({ platform, reference }: SourceRequest): string {
  return `${platform === undefined ? '' : `${formatPlatform(platform)}=`}${formatReference(reference)}`;
}

function byCodeUnit(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
