import { PublishError } from '../errors.ts';
import type { Digest } from '../model/digest.ts';
import { formatReference, type Reference } from '../model/reference.ts';
import { announcePlan } from './announce.ts';
import { type Composition, compose, composeEarly, namesPlatforms, verbatimIndex } from './compose.ts';
import { readConfigs } from './configs.ts';
import { type Execution, execute } from './execute.ts';
import { expectBlobs } from './expectations.ts';
import { allOrNone } from './once.ts';
import { type PublishPlan, planPublish } from './plan.ts';
import type { PublishPorts } from './ports.ts';
import type { FoundReferrer } from './referrers.ts';
import type { PublishRequest } from './request.ts';
import { type Found, type FoundRepository, groupTargets, resolve } from './resolve.ts';
import type { Resolution, ResolvedChild, TagState, TargetRepository } from './resolved.ts';
import type { RunMemory } from './run-memory.ts';
import { composePart } from './stage-content.ts';
import { withoutContent } from './stage-index.ts';
import { stoppable } from './stop.ts';
import { checkFirst, checkTags, guardOf, type TagGuard } from './tag-guard.ts';
import { lookAlong, referringTo } from './take-along.ts';

/** What became of one list, whether it was done or not. */
export type ListResult = {
  /** Each once, in the order of the request. */
  readonly targets: readonly Reference[];
  /** Absent when it failed before its index was known. */
  readonly composition?: Composition;
  /** In the order of their first targets. */
  readonly repositories: readonly RepositoryResult[];
  /** What a run that only looks would take along with the children. */
  readonly referrers?: readonly FoundReferrer[];
  /** The run ended, for something else, before it was begun or done. */
  readonly notRun?: true;
  /** Only this stage was to be done. */
  readonly stage?: PublishRequest['stage'];
};

/** What became of a list in one repository. `tags`: as they were when the list was begun. */
export type RepositoryResult = TargetRepository & {
  readonly tags?: readonly TagState[];
  readonly plan?: PublishPlan;
  /** Absent when nothing was to be written, or nothing was written. */
  readonly execution?: Execution;
  readonly error?: PublishError;
};

/** What the lists of a run share. */
export type SharedRun = {
  readonly memory: RunMemory;
  /** The run writes to several repositories: events name them. */
  readonly several: boolean;
};

/**
 * Publishes one list: reads sources and tags, plans, places blobs and children, then the index, then the tags, in each
 * repository by itself. One repository that fails does not stop another; what is wrong with the sources or the index
 * ends all, before any manifest is put.
 *
 * @returns also failures that the user can act on; anything else is thrown
 */
export async function publishList(
  request: PublishRequest,
  run: SharedRun,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<ListResult> {
  try {
    const result = await runList(request, run, ports, signal);
    return request.stage === undefined ? result : { ...result, stage: request.stage };
  } catch (error) {
    if (error instanceof PublishError) return failedList(request, error);
    throw error;
  }
}

/** A list of which nothing was done. */
export function failedList({ targets, stage }: PublishRequest, error: PublishError): ListResult {
  const repositories = groupTargets(targets);
  const only = stage === undefined ? {} : { stage };
  return { targets: eachOnce(targets), repositories: repositories.map((one) => ({ ...one, error })), ...only };
}

async function runList(
  request: PublishRequest,
  { memory, several }: SharedRun,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<ListResult> {
  const targets = eachOnce(request.targets);
  const found = await resolve(request, memory, ports, signal);
  checkTarget(request, found);
  warnOfTags(request, found, ports);
  const [first] = found.repositories;
  // Without what TARGET holds nobody else can be given what it gets.
  if (request.amend === true && first?.kind === 'failed') throw first.error;
  const guard = guardOf(request, first?.kind === 'read' ? first.tags[0] : undefined);
  const { checked, inDoubt } = checkGuard(guard, found.repositories);
  if (checked.every(({ kind }) => kind === 'failed')) return { targets, repositories: checked.map(untouched) };

  const all = [...found.sources, ...(found.present === undefined ? [] : [found.present])];
  const children = all.flatMap((source) => source.children);
  const sizeInDoubt = !namesPlatforms(request) && request.part !== true && composeEarly(request, found) === 'in doubt';
  const composeNow = (): Promise<Composition> => composeWith(request, found, children, memory, ports, signal);
  // What the request says about platforms is checked before any write, for one round trip more, and so is what hangs on
  // the digest or the size of the index when these decide whether there is anything to write.
  const isEarly = request.dryRun || namesPlatforms(request) || inDoubt || sizeInDoubt || request.part === true;
  const early = isEarly ? await composeNow() : undefined;
  const allowed = early === undefined ? checked : checkIndex(guard, checked, early.index.digest);
  const planned = early === undefined ? children : early.listed.map(({ child }) => child);
  const takesAlong = request.referrers === 'all' && request.stage !== 'content';
  const referring = takesAlong ? referringTo(planned, all, request.foreignLayers) : undefined;
  const plans = allowed.map((one) => (one.kind === 'failed' ? one : withPlan(request, one, found, planned)));
  for (const one of plans) if ('plan' in one) announcePlan(one.plan, early, memory, ports);
  if (early !== undefined && (request.dryRun || allowed.every(({ kind }) => kind === 'failed'))) {
    const known = plans.flatMap((one) => ('plan' in one ? [one.plan] : []));
    const looks = referring !== undefined && request.dryRun;
    const referrers = looks ? await lookAlong(referring, known, early, memory, ports, signal) : [];
    return { targets, composition: early, repositories: plans.map(untouched), referrers };
  }

  const composing = early === undefined ? composeNow() : Promise.resolve(early);
  for (const one of plans) if ('plan' in one) expectBlobs(one.plan, memory);
  const { signal: own, stop } = stoppable(signal);
  const executed = plans.map(async (one): Promise<RepositoryResult> => {
    if (!('plan' in one)) return untouched(one);
    const { verify } = request;
    const { resolution } = one;
    const input = { resolution, memory, composing, verify, guard, several, referring, stage: request.stage };
    const execution = await execute(one.plan, input, ports, own);
    const error = execution.error === undefined ? {} : { error: execution.error };
    return { ...untouched(one), execution, ...error };
  });
  const repositories = await allOrNone(executed, stop);
  const [composition] = await Promise.allSettled([composing]);
  return { targets, repositories, ...(composition.status === 'fulfilled' ? { composition: composition.value } : {}) };
}

type PlannedRepository = Extract<FoundRepository, { kind: 'read' }> & {
  readonly resolution: Resolution;
  readonly plan: PublishPlan;
};

function withPlan(
  request: PublishRequest,
  repository: Extract<FoundRepository, { kind: 'read' }>,
  { sources, present }: Found,
  children: readonly ResolvedChild[],
): PlannedRepository {
  const { target, tags } = repository;
  const resolution = { target, tags, sources, ...(present === undefined ? {} : { present }) };
  const plan = planPublish(request, resolution, children);
  return { ...repository, resolution, plan: request.stage === 'index' ? withoutContent(plan) : plan };
}

/** A repository in which nothing was done, or nothing yet. */
function untouched(repository: FoundRepository | PlannedRepository): RepositoryResult {
  const { target, references } = repository;
  if (repository.kind === 'failed') return { target, references, error: repository.error };
  const plan = 'plan' in repository ? { plan: repository.plan } : {};
  return { target, references, tags: repository.tags, ...plan };
}

function eachOnce(targets: readonly Reference[]): readonly Reference[] {
  return [...new Map(targets.map((reference) => [formatReference(reference), reference])).values()];
}

/** The guard holds for each repository by itself: one that may not be moved does not keep another from it. */
function checkGuard(
  guard: TagGuard | undefined,
  repositories: readonly FoundRepository[],
): { readonly checked: readonly FoundRepository[]; readonly inDoubt: boolean } {
  if (guard === undefined) return { checked: repositories, inDoubt: false };
  let inDoubt = false;
  const checked = repositories.map((one) =>
    unlessRefused(one, (tags) => {
      if (checkFirst(guard, tags) === 'in doubt') inDoubt = true;
    }),
  );
  return { checked, inDoubt };
}

function checkIndex(
  guard: TagGuard | undefined,
  repositories: readonly FoundRepository[],
  index: Digest,
): readonly FoundRepository[] {
  if (guard === undefined) return repositories;
  return repositories.map((one) => unlessRefused(one, (tags) => checkTags(guard, tags, index)));
}

function unlessRefused(one: FoundRepository, check: (tags: readonly TagState[]) => void): FoundRepository {
  if (one.kind === 'failed') return one;
  try {
    check(one.tags);
    return one;
  } catch (error) {
    if (!(error instanceof PublishError)) throw error;
    const { target, references } = one;
    return { target, references, kind: 'failed', error };
  }
}

/**
 * Whoever comes from `imagetools create -t` writes the sources first, and the first of them is then taken for TARGET.
 *
 * @throws PublishError `TAG_EXISTS`
 */
function checkTarget({ guardsImage, targets: [target] }: PublishRequest, found: Found): void {
  if (guardsImage !== true || target === undefined) return;
  const name = formatReference(target);
  for (const tag of found.repositories.flatMap((one) => (one.kind === 'read' ? one.tags : []))) {
    if (formatReference(tag.reference) !== name || !isLostImage(tag, found)) continue;
    throw new PublishError(
      'TAG_EXISTS',
      `TARGET ${name} is an image of its own (${tag.digest}) and no source: it would be replaced by the list`,
      'TARGET comes first: publish TARGET SOURCE...; if its image is really to be replaced by a list, publish it without -t first.',
      { side: 'target', registry: target.host, repository: target.repository },
    );
  }
}

/** Whether the tag holds a single image that is not among those the list is made from. */
function isLostImage(tag: TagState, { sources, present }: Found): tag is Extract<TagState, { kind: 'present' }> {
  if (tag.kind !== 'present' || !tag.isImage) return false;
  const read = present === undefined ? sources : [...sources, present];
  return !read.some(({ children }) => children.some(({ manifest }) => manifest.digest === tag.digest));
}

function warnOfTags({ stage }: PublishRequest, found: Found, ports: PublishPorts): void {
  for (const tag of found.repositories.flatMap((one) => (one.kind === 'read' ? one.tags : []))) {
    if (tag.kind === 'unknown') warn(ports, `${tag.error.message}; taken as not there`);
    if (stage !== 'content' && isLostImage(tag, found)) {
      const name = formatReference(tag.reference);
      warn(ports, `${name} is an image of its own (${tag.digest}) and no source: it is replaced by the list`);
    }
  }
}

async function composeWith(
  request: PublishRequest,
  found: Found,
  children: readonly ResolvedChild[],
  memory: RunMemory,
  ports: PublishPorts,
  signal: AbortSignal,
): Promise<Composition> {
  const verbatim = verbatimIndex(request, found) !== undefined && request.expectPlatforms === undefined;
  const platforms = await readConfigs(verbatim ? [] : children, memory, ports, signal);
  const composition =
    request.part === true
      ? composePart(request, found.sources, platforms)
      : compose(request, found, platforms, memory.bytes);
  for (const warning of composition.warnings) warn(ports, warning);
  if (request.part === true) return composition;
  const { index, listed } = composition;
  const images = listed.map(({ child, entry }) => ({
    digest: entry.digest,
    platform: entry.platform,
    kind: child.kind,
  }));
  ports.emit({ kind: 'index', digest: index.digest, mediaType: index.mediaType, images });
  return composition;
}

function warn(ports: PublishPorts, text: string): void {
  ports.emit({ kind: 'warning', text });
}
