import { PublishError } from '../errors.ts';
import type { Digest } from '../model/digest.ts';
import { parseManifest } from '../model/manifest.ts';
import { formatReference, type Reference, requestTarget } from '../model/reference.ts';
import type { RawManifest, RegistryClient, RepositoryUse } from '../registry/client.ts';
import { expandSource } from './flatten.ts';
import { knownSource, relabelled } from './known.ts';
import { allOrNone } from './once.ts';
import type { PublishPorts } from './ports.ts';
import type { PublishRequest, SourceRequest } from './request.ts';
import type { Location, Resolution, ResolvedSource, TagState } from './resolved.ts';
import { stoppable } from './stop.ts';

/** Longest pause between two looks at a source that is waited for, in ms. */
const SLOWEST_LOOK = 10_000;

/**
 * Reads the target's tags and every source side by side, and the children of sources that are indexes. Exact bytes
 * of all manifests read are put into `bytes`.
 *
 * The first tag is asked for before anything else: where credentials exist its answer teaches the scheme to all
 * other requests (design section 5).
 *
 * @throws PublishError `SOURCE_NOT_FOUND` naming every missing source, `PLATFORM_NOT_FOUND`, `MANIFEST_UNSUPPORTED`,
 *   `MANIFEST_INVALID`, and what the registry throws
 */
export async function resolve(
  request: PublishRequest,
  bytes: Map<Digest, Uint8Array>,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<Resolution> {
  const first = request.targets[0];
  if (first === undefined) throw new Error('a publish request has at least one target');
  const target: Location = { host: first.host, repository: first.repository };
  announce(request, target, ports);
  ports.emit({ kind: 'resolve.start', sources: request.sources.length, target: formatReference(first) });

  const registry = ports.registry(target.host);
  const reading = stoppable(signal);
  try {
    const tags = allOrNone(
      request.targets.map((reference) => readTag(registry, reference, reading.signal)),
      reading.stop,
    );
    const sources = Promise.allSettled(
      request.sources.map((source) =>
        readSource(source, request, target, bytes, ports, reading.signal).catch((error: unknown) => {
          // A source that is missing may be one of several, and be waited for; anything else ends the run now.
          if (!isMissing(error)) reading.stop(error);
          throw error;
        }),
      ),
    );
    const [tagStates, outcomes] = await Promise.all([tags, sources]);
    return { target, tags: tagStates, sources: foundSources(outcomes) };
  } finally {
    // Reads of a failed index that nobody waits for any more end here.
    reading.stop();
  }
}

/** Tells each registry what will be asked of it, so that tokens are fetched side by side and ahead of need. */
function announce(request: PublishRequest, target: Location, ports: PublishPorts): void {
  const uses = new Map<string, RepositoryUse[]>();
  const others = new Set<string>();
  for (const { reference } of request.sources) {
    if (reference.host !== target.host) {
      const known = uses.get(reference.host) ?? [];
      if (!known.some((use) => use.repository === reference.repository)) {
        uses.set(reference.host, [...known, { repository: reference.repository, access: 'pull' }]);
      }
    } else if (reference.repository !== target.repository) {
      others.add(reference.repository);
    }
  }
  const reads = [...others].map((repository): RepositoryUse => ({ repository, access: 'pull' }));
  const push: RepositoryUse = request.dryRun
    ? { repository: target.repository, access: 'pull' }
    : { repository: target.repository, access: 'push', mountFrom: [...others] };
  ports.registry(target.host).announce([push, ...reads]);
  for (const [host, repositories] of uses) ports.registry(host).announce(repositories);
}

async function readTag(registry: RegistryClient, reference: Reference, signal: AbortSignal): Promise<TagState> {
  const tag = requestTarget(reference);
  const answer = await registry.getManifest(reference.repository, tag, { signal }).catch((error: unknown) => {
    throw error instanceof PublishError ? error.with({ side: 'target' }) : error;
  });
  if (answer.kind === 'absent') return { reference, tag, kind: 'absent' };
  if (answer.kind === 'unknown')
    return { reference, tag, kind: 'unknown', error: answer.error.with({ side: 'target' }) };
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
type ReadOptions = Pick<PublishRequest, 'platforms' | 'waitForSource'>;

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
  return foundSources(
    await Promise.allSettled(sources.map((source) => readNow(source, options, bytes, ports, signal))),
  );
}

async function readSource(
  source: SourceRequest,
  request: ReadOptions,
  target: Location,
  bytes: Map<Digest, Uint8Array>,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<ResolvedSource> {
  const { known, reference } = source;
  const here = reference.host === target.host && reference.repository === target.repository;
  if (known !== undefined && !here) return knownSource(source, known, bytes);
  const read = await readNow(source, request, bytes, ports, signal);
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
  const resolved = await expandSource(source, root, request.platforms, bytes, ports, signal);
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
      const waited = answer.kind === 'absent' && wait > 0;
      const message = waited ? `${answer.error.message}, after ${seconds} s of waiting` : answer.error.message;
      throw answer.error.with({ side: 'source', message });
    }
    await ports.clock.sleep(Math.min(pause, left), signal);
  }
}

function isMissing(error: unknown): error is PublishError {
  return error instanceof PublishError && error.code === 'MANIFEST_NOT_FOUND';
}

/** All sources or one error: missing ones are named together, so that one run tells all there is to push first. */
function foundSources(outcomes: readonly PromiseSettledResult<ResolvedSource>[]): readonly ResolvedSource[] {
  const found: ResolvedSource[] = [];
  const missing: PublishError[] = [];
  for (const outcome of outcomes) {
    if (outcome.status === 'fulfilled') found.push(outcome.value);
    else if (isMissing(outcome.reason)) missing.push(outcome.reason);
    else throw outcome.reason;
  }
  const [only] = missing;
  if (only === undefined) return found;
  const message =
    missing.length === 1
      ? only.message
      : `${missing.length} sources are not there: ${missing.map((error) => error.message).join('; ')}`;
  throw only.with({ code: 'SOURCE_NOT_FOUND', message, side: 'source' });
}
