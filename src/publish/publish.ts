import { PublishError } from '../errors.ts';
import type { Digest } from '../model/digest.ts';
import { formatReference } from '../model/reference.ts';
import { buildReport, dryReport } from './build-report.ts';
import { type Composition, compose, composeEarly, namesPlatforms, verbatimIndex } from './compose.ts';
import { readConfigs } from './configs.ts';
import type { PublishEvent } from './events.ts';
import { execute } from './execute.ts';
import { type PublishPlan, planPublish } from './plan.ts';
import type { PublishPorts } from './ports.ts';
import type { PublishReport } from './report.ts';
import type { PublishRequest } from './request.ts';
import { resolve } from './resolve.ts';
import type { ManifestBytes, Resolution, ResolvedChild } from './resolved.ts';
import { checkFirst, checkTags, guardOf } from './tag-guard.ts';

/**
 * Publishes one list: reads sources and tags, plans, places blobs and children, then the index, then the tags. A tag
 * moves only to an index whose every child is in the target, and never to anything but the complete new index.
 *
 * A run with nothing to do writes nothing and reports `unchanged`. `known` holds the bytes of sources that the request
 * says are known.
 *
 * @throws PublishError for everything the user can act on; nothing is left half open behind it
 */
export async function publish(
  request: PublishRequest,
  ports: PublishPorts,
  signal: AbortSignal,
  known: ManifestBytes = new Map(),
): Promise<PublishReport> {
  try {
    return await run(request, ports, signal, known);
  } catch (error) {
    throw error instanceof PublishError && error.moved === undefined ? error.with({ moved: [] }) : error;
  }
}

async function run(
  request: PublishRequest,
  outerPorts: PublishPorts,
  signal: AbortSignal,
  known: ManifestBytes,
): Promise<PublishReport> {
  const started = outerPorts.clock.now();
  const warnings: string[] = [];
  const ports = { ...outerPorts, emit: keepWarnings(outerPorts.emit, warnings) };
  const bytes = new Map<Digest, Uint8Array>(known);
  const configs = new Map<Digest, Uint8Array>();
  const measure = (): Measured => ({ ...ports.traffic(), seconds: (ports.clock.now() - started) / 1000, warnings });

  const resolution = await resolve(request, bytes, ports, signal);
  for (const tag of resolution.tags) {
    if (tag.kind === 'unknown') warn(ports, `${tag.error.message}; taken as not there`);
    if (tag.kind === 'present' && tag.isImage && !isSource(tag.digest, resolution)) {
      // Whoever comes from `imagetools create -t` writes the sources first.
      const name = formatReference(tag.reference);
      warn(ports, `${name} is an image of its own (${tag.digest}) and no source: it is replaced by the list`);
    }
  }
  const guard = guardOf(request);
  const tagsInDoubt = guard !== undefined && checkFirst(guard, resolution.tags) === 'in doubt';
  const sizeInDoubt = !namesPlatforms(request) && composeEarly(request, resolution) === 'in doubt';

  const all = resolution.sources.flatMap((source) => source.children);
  const composeNow = (): Promise<Composition> => composeWith(request, resolution, bytes, configs, all, ports, signal);
  // What the request says about platforms is checked before any write, for one round trip more, and so is what hangs on
  // the digest or the size of the index when these decide whether there is anything to write.
  const isEarly = request.dryRun || namesPlatforms(request) || tagsInDoubt || sizeInDoubt;
  const early = isEarly ? await composeNow() : undefined;
  if (guard !== undefined && early !== undefined) checkTags(guard, resolution.tags, early.index.digest);
  const plan = planPublish(request, resolution, early === undefined ? all : early.listed.map(({ child }) => child));
  announcePlan(plan, early, ports);
  if (request.dryRun && early !== undefined) return dryReport(early, resolution.tags, measure());

  const composing = early === undefined ? composeNow() : Promise.resolve(early);
  const input = { resolution, bytes, configs, composing, verify: request.verify, guard };
  return buildReport(plan, await execute(plan, input, ports, signal), measure());
}

function isSource(digest: Digest, { sources }: Resolution): boolean {
  return sources.some(({ children }) => children.some(({ manifest }) => manifest.digest === digest));
}

/** Figures of the run that the report adds to what was done. */
export type Measured = {
  readonly requests: number;
  readonly retries: number;
  readonly seconds: number;
  readonly warnings: readonly string[];
};

async function composeWith(
  request: PublishRequest,
  resolution: Resolution,
  bytes: ReadonlyMap<Digest, Uint8Array>,
  configs: Map<Digest, Uint8Array>,
  children: readonly ResolvedChild[],
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<Composition> {
  const verbatim = verbatimIndex(request, resolution.sources) !== undefined && request.expectPlatforms === undefined;
  const platforms = await readConfigs(verbatim ? [] : children, configs, ports, signal);
  const composition = compose(request, resolution, platforms, bytes);
  for (const warning of composition.warnings) warn(ports, warning);
  const { index, listed } = composition;
  const images = listed.map(({ child, entry }) => ({
    digest: entry.digest,
    platform: entry.platform,
    kind: child.kind,
  }));
  ports.emit({ kind: 'index', digest: index.digest, mediaType: index.mediaType, images });
  return composition;
}

function announcePlan(plan: PublishPlan, composition: Composition | undefined, ports: PublishPorts): void {
  const platforms = new Map(composition?.listed.map(({ entry }) => [entry.digest, entry.platform]));
  const sizes = new Map(plan.blobs.map((blob) => [blob.digest, blob.size]));
  ports.emit({
    kind: 'plan',
    target: `${plan.target.host}/${plan.target.repository}`,
    images: plan.children.map((child) => ({
      source: child.name,
      digest: child.digest,
      platform: platforms.get(child.digest),
      kind: child.kind,
      blobs: child.blobs.length,
      bytes: child.blobs.reduce((sum, digest) => sum + (sizes.get(digest) ?? 0), 0),
    })),
    blobs: plan.blobs.length,
    bytes: plan.blobs.reduce((sum, blob) => sum + blob.size, 0),
  });
}

function warn(ports: PublishPorts, text: string): void {
  ports.emit({ kind: 'warning', text });
}

function keepWarnings(emit: (event: PublishEvent) => void, warnings: string[]): (event: PublishEvent) => void {
  return (event) => {
    if (event.kind === 'warning') warnings.push(event.text);
    emit(event);
  };
}
