import { PublishError } from '../errors.ts';
import type { Digest } from '../model/digest.ts';
import { parseManifest } from '../model/manifest.ts';
import { formatReference, type Reference, requestTarget } from '../model/reference.ts';
import type { RawManifest, RegistryClient, RepositoryUse } from '../registry/client.ts';
import { expandSource } from './flatten.ts';
import { knownSource, relabelled } from './known.ts';
import { foundSources, isMissing, sourceNotFound } from './missing-sources.ts';
import { allOrNone } from './once.ts';
import { atOrigin } from './origin.ts';
import type { PublishPorts } from './ports.ts';
import { readPresent } from './read-present.ts';
import type { PublishRequest, SourceRequest } from './request.ts';
import type { Resolution, ResolvedSource, TagState, TargetRepository } from './resolved.ts';
import { type RunMemory, readingOnce, repositoryName } from './run-memory.ts';
import { stoppable } from './stop.ts';

/** Longest pause between two looks at a source that is waited for, in ms. */
const SLOWEST_LOOK = 10_000;

/** What {@link resolve} has found. */
export type Found = Pick<Resolution, 'sources' | 'present'> & {
  /** In the order of the request. */
  readonly repositories: readonly FoundRepository[];
};

/** A target repository with the targets in it. `failed`: their tags could not be read, and it is left alone. */
export type FoundRepository = TargetRepository &
  (
    | { readonly kind: 'read'; readonly tags: readonly TagState[] }
    | { readonly kind: 'failed'; readonly error: PublishError }
  );

/**
 * Reads the targets' tags and every source side by side, and the children of sources that are indexes. What was read
 * before in this run is not read again, but for the targets' tags.
 *
 * The first tag is asked for before anything else: where credentials exist its answer teaches the scheme to all
 * other requests (design section 5). A repository whose tags cannot be read does not stop the others; when all have
 * failed, `sources` is empty.
 *
 * @throws PublishError `SOURCE_NOT_FOUND` naming every missing source, `PLATFORM_NOT_FOUND`, `MANIFEST_UNSUPPORTED`,
 *   `MANIFEST_INVALID`, and what the registry throws
 */
export async function resolve(
  request: PublishRequest,
  memory: RunMemory,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<Found> {
  const [first] = request.targets;
  if (first === undefined) throw new Error('a publish request has at least one target');
  const repositories = groupTargets(request.targets);
  announce(request, repositories, ports);
  ports.emit({ kind: 'resolve.start', sources: request.sources.length, target: formatReference(first) });

  const reading = stoppable(signal);
  let left = repositories.length;
  let held: RawManifest | undefined;
  const readTags = async (repository: TargetRepository): Promise<FoundRepository> => {
    const own = stoppable(reading.signal);
    const registry = ports.registry(repository.target.host);
    try {
      const reads = repository.references.map((reference) => {
        const isTarget = formatReference(reference) === formatReference(first);
        return readTag(registry, reference, own.signal, (manifest) => {
          if (isTarget) held = manifest;
        });
      });
      return { ...repository, kind: 'read', tags: await allOrNone(reads, own.stop) };
    } catch (error) {
      left -= 1;
      if (left === 0 || !(error instanceof PublishError)) reading.stop(error);
      if (error instanceof PublishError) return { ...repository, kind: 'failed', error };
      throw error;
    }
  };
  const sourcePorts = readingOnce(ports, memory);
  try {
    const tags = repositories.map(readTags);
    const sources = Promise.allSettled(
      request.sources.map((source) =>
        readSource(source, request, repositories, memory.bytes, sourcePorts, reading.signal).catch((error: unknown) => {
          // A source that is missing may be one of several, and be waited for; anything else ends the run now.
          if (!isMissing(error)) reading.stop(error);
          throw error;
        }),
      ),
    );
    const amended = tags[0]?.then(async (found) => {
      const [tag] = found.kind === 'read' ? found.tags : [];
      if (request.amend !== true || tag === undefined) return undefined;
      return readPresent(tag, held, request, memory.bytes, sourcePorts, reading.signal);
    });
    amended?.catch(reading.stop);
    const [found, outcomes, present] = await Promise.all([Promise.all(tags), sources, amended]);
    return {
      repositories: found,
      sources: left === 0 ? [] : foundSources(outcomes, request, ports),
      ...(present === undefined ? {} : { present }),
    };
  } finally {
    // Reads of a failed index that nobody waits for any more end here.
    reading.stop();
  }
}

/** Targets by repository, in order, each once. */
export function groupTargets(targets: readonly Reference[]): readonly TargetRepository[] {
  const groups = new Map<string, Map<string, Reference>>();
  for (const reference of targets) {
    const name = repositoryName(reference);
    const group = groups.get(name) ?? new Map<string, Reference>();
    groups.set(name, group.set(formatReference(reference), reference));
  }
  return [...groups.values()].map((group) => {
    const references = [...group.values()];
    const [{ host, repository } = { host: '', repository: '' }] = references;
    return { target: { host, repository }, references };
  });
}

/** Tells each registry what will be asked of it, so that tokens are fetched side by side and ahead of need. */
function announce(request: PublishRequest, repositories: readonly TargetRepository[], ports: PublishPorts): void {
  const read = new Map<string, Set<string>>();
  for (const { reference } of request.sources) {
    read.set(reference.host, (read.get(reference.host) ?? new Set()).add(reference.repository));
  }
  const hosts = new Set([...repositories.map(({ target }) => target.host), ...read.keys()]);
  for (const host of hosts) {
    const targets = repositories.filter(({ target }) => target.host === host).map(({ target }) => target.repository);
    const sources = [...(read.get(host) ?? [])];
    const writes = targets.map((repository): RepositoryUse => {
      if (request.dryRun) return { repository, access: 'pull' };
      // A blob that has been placed in one target may be mounted from there into the next.
      const mountFrom = [...new Set([...sources, ...targets])].filter((other) => other !== repository);
      return { repository, access: 'push', mountFrom };
    });
    const others = sources.filter((repository) => !targets.includes(repository));
    const reads = others.map((repository): RepositoryUse => ({ repository, access: 'pull' }));
    ports.registry(host).announce([...writes, ...reads]);
  }
}

async function readTag(
  registry: RegistryClient,
  reference: Reference,
  signal: AbortSignal,
  keep: (manifest: RawManifest) => void,
): Promise<TagState> {
  const tag = requestTarget(reference);
  const answer = await registry.getManifest(reference.repository, tag, { signal }).catch((error: unknown) => {
    // What ended the reading of all, a source perhaps, is not this tag's.
    throw error instanceof PublishError && !signal.aborted ? error.with({ side: 'target' }) : error;
  });
  if (answer.kind === 'absent') return { reference, tag, kind: 'absent' };
  if (answer.kind === 'unknown')
    return { reference, tag, kind: 'unknown', error: answer.error.with({ side: 'target' }) };
  keep(answer.manifest);
  const { bytes, digest, contentType } = answer.manifest;
  try {
    const manifest = parseManifest(bytes, digest, contentType, formatReference(reference));
    const isImage = manifest.kind === 'image';
    const children = isImage ? [] : manifest.manifests.map((entry) => entry.digest);
    return { reference, tag, kind: 'present', digest, isImage, children };
  } catch (error) {
    // The tag is about to be replaced: what it holds need not be something we would publish.
    if (error instanceof PublishError) return { reference, tag, kind: 'present', digest, isImage: false, children: [] };
    throw error;
  }
}

/** What reading a source needs to know of the request. */
type ReadOptions = Pick<PublishRequest, 'platforms' | 'attestations' | 'waitForSource' | 'ignoreMissing' | 'part'>;

/**
 * Reads every source side by side, with the children of those that are indexes.
 *
 * @throws as {@link resolve}
 */
export async function readEvery(
  sources: readonly SourceRequest[],
  options: ReadOptions,
  bytes: Map<Digest, Uint8Array>,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<readonly ResolvedSource[]> {
  const reads = sources.map((source) => readNow(source, options, bytes, ports, signal));
  return foundSources(await Promise.allSettled(reads), options, ports);
}

async function readSource(
  source: SourceRequest,
  request: ReadOptions,
  repositories: readonly TargetRepository[],
  bytes: Map<Digest, Uint8Array>,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<ResolvedSource> {
  const { known, reference } = source;
  const here = repositories.some(
    ({ target }) => target.host === reference.host && target.repository === reference.repository,
  );
  const drops = request.attestations === 'drop';
  if (known !== undefined && !here) return knownSource(source, known, bytes, drops);
  const read = await readNow(source, request, bytes, ports, signal).catch((error: unknown) => {
    // What stopped the read from outside is told of by whoever was there.
    throw error instanceof PublishError && error !== signal.reason ? atOrigin(error, source.origin) : error;
  });
  return known === undefined ? read : relabelled(read, known);
}

async function readNow(
  source: SourceRequest,
  request: ReadOptions,
  bytes: Map<Digest, Uint8Array>,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<ResolvedSource> {
  const manifest = await getSource(source.reference, request.waitForSource, ports, signal);
  bytes.set(manifest.digest, manifest.bytes);
  const name = formatReference(source.reference);
  const root = parseManifest(manifest.bytes, manifest.digest, manifest.contentType, name);
  const resolved = await expandSource(source, root, request, bytes, ports, signal);
  ports.emit({ kind: 'resolve.source', source: name, digest: root.digest, images: resolved.children.length });
  return resolved;
}

/** Reads a source; one that is not there is asked for again until `wait` ms have passed. */
async function getSource(
  reference: Reference,
  wait: number,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<RawManifest> {
  const registry = ports.registry(reference.host);
  const began = ports.clock.now();
  const deadline = began + wait;
  for (let pause = 1000; ; pause = Math.min(pause * 2, SLOWEST_LOOK)) {
    const answer = await registry.getManifest(reference.repository, requestTarget(reference), { signal });
    if (answer.kind === 'found') return answer.manifest;
    const left = deadline - ports.clock.now();
    if (answer.kind === 'unknown' || left <= 0) {
      const seconds = Math.round((ports.clock.now() - began) / 1000);
      if (answer.kind === 'unknown') throw answer.error.with({ side: 'source' });
      throw sourceNotFound(answer.error, wait > 0 ? `, after ${seconds} s of waiting` : '');
    }
    await ports.clock.sleep(Math.min(pause, left), signal);
  }
}
