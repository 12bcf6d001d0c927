import { PublishError } from '../errors.ts';
import { hostKey } from '../model/host-key.ts';
import { formatReference, type Reference, writtenReference } from '../model/reference.ts';
import { buildReport, type Measured, type ReportedList, reportEnded } from './build-report.ts';
import type { PublishEvent } from './events.ts';
import { lanesOf } from './lanes.ts';
import type { PublishPorts } from './ports.ts';
import { failedList, type ListResult, publishList, type SharedRun } from './publish-list.ts';
import type { PublishReport } from './report.ts';
import type { PublishRequest } from './request.ts';
import type { ManifestBytes } from './resolved.ts';
import { createRunMemory, repositoryName } from './run-memory.ts';
import { createSharedReads } from './shared-reads.ts';
import { createSiblings } from './siblings.ts';
import { stoppable } from './stop.ts';

/** How lists are published, besides what their requests say. */
export type ListsOptions = {
  /** A list that fails does not stop the others. */
  readonly keepGoing?: boolean;
  /** Bytes of sources that requests say are known. */
  readonly known?: ManifestBytes;
  /** A failure tells what was done, also of one list in one repository. */
  readonly tells?: boolean;
};

/**
 * Publishes lists, in order and some side by side. What they have in common is read and placed once: a second list of
 * the same images in the same repository costs one GET, of its tag, and one PUT.
 *
 * @throws PublishError of one list the first failing target's; of several the first failing list's, which ends the
 *   others, or `LISTS_FAILED` when they were to go on. Its `moved` names every tag that has moved, and its `report`
 *   tells what was done, where there was more than one list or repository.
 */
export async function publishLists(
  requests: readonly PublishRequest[],
  outerPorts: PublishPorts,
  signal: AbortSignal,
  { keepGoing = false, known = new Map(), tells: always = false }: ListsOptions = {},
): Promise<PublishReport> {
  checkLists(requests);
  const started = outerPorts.clock.now();
  const warnings: string[] = [];
  const ports = { ...outerPorts, emit: keepWarnings(outerPorts.emit, warnings) };
  const repositories = new Set(requests.flatMap(({ targets }) => targets.map(repositoryName)));
  const several = repositories.size > 1;
  const shared = several ? { reads: createSharedReads(ports), siblings: createSiblings() } : {};
  const run: SharedRun = { memory: createRunMemory(known, shared), several };
  if (requests.length > 1) ports.emit({ kind: 'run.start', lists: requests.length });

  const results = await runLists(requests, keepGoing, run, ports, signal);
  const seconds = (ports.clock.now() - started) / 1000;
  const measured: Measured = { ...ports.traffic(), seconds, warnings };
  const report = buildReport(
    results,
    measured,
    requests.some(({ dryRun }) => dryRun),
  );
  if (results.every(({ errors }) => errors.length === 0)) return report;
  const moved = results.flatMap((result) => result.moved);
  const tells = always || requests.length > 1 || several ? { report } : {};
  throw causeOf(results, keepGoing, signal).with({ moved, ...tells });
}

/**
 * What is kept of a list that has ended, to the end of the run: a thousand of them must not keep what they worked with.
 * `errors` in the order of its targets.
 */
type EndedList = ReportedList &
  Pick<ListResult, 'targets' | 'notRun'> & {
    readonly errors: readonly PublishError[];
    readonly moved: readonly string[];
  };

function endList(result: ListResult): EndedList {
  const { targets, notRun, repositories } = result;
  const errors = repositories.flatMap(({ error }) => error ?? []);
  return { ...reportEnded(result), targets, errors, moved: movedBy(result), ...(notRun === true ? { notRun } : {}) };
}

/** Runs the lists, some side by side; the results are in their order. */
async function runLists(
  requests: readonly PublishRequest[],
  keepGoing: boolean,
  run: SharedRun,
  ports: PublishPorts,
  outer: AbortSignal,
): Promise<readonly EndedList[]> {
  const { signal, stop } = stoppable(outer);
  const results: EndedList[] = [];
  let bug: { readonly by: unknown } | undefined;
  let halted: PublishError | undefined;
  const work = async (waiting: Iterable<readonly [number, PublishRequest]>): Promise<void> => {
    for (const [position, request] of waiting) {
      if (bug !== undefined) return;
      const notBegun = halted ?? (signal.aborted ? asError(signal.reason) : undefined);
      const result =
        notBegun === undefined
          ? await publishList(request, run, ports, signal)
          : { ...failedList(request, notBegun), notRun: true as const };
      const error = errorOf(result);
      // What failed when another had failed already was stopped, unless it says something of its own.
      const notRun = halted !== undefined && error?.code === 'INTERRUPTED' && !outer.aborted;
      const ended = endList(notRun ? { ...result, notRun } : result);
      results[position] = ended;
      if (requests.length > 1 && ended.notRun !== true) tellDone(request, result, error, ports);
      if (error === undefined || keepGoing || halted !== undefined || outer.aborted || requests.length === 1) continue;
      halted = stoppedBy(request, error);
      stop(halted);
    }
  };
  const guarded = (waiting: Iterable<readonly [number, PublishRequest]>): Promise<void> =>
    work(waiting).catch((error: unknown) => {
      bug ??= { by: error };
      stop(error);
    });
  const workers = lanesOf(requests).flatMap(({ width, lists }) => {
    const waiting = lists.values();
    return Array.from({ length: width }, () => guarded(waiting));
  });
  await Promise.all(workers);
  if (bug !== undefined) throw (bug as { readonly by: unknown }).by;
  return results;
}

function asError(reason: unknown): PublishError {
  if (reason instanceof PublishError) return reason;
  throw reason;
}

function stoppedBy(request: PublishRequest, error: PublishError): PublishError {
  const message = `not done, since ${nameOf(request)} failed: ${error.message}`;
  return new PublishError('INTERRUPTED', message, 'Run the same command again, or let the others go on: --keep-going.');
}

function tellDone(
  request: PublishRequest,
  { composition }: ListResult,
  error: PublishError | undefined,
  ports: PublishPorts,
): void {
  const digest = composition === undefined || request.stage === 'content' ? {} : { digest: composition.index.digest };
  const failure = error === undefined ? {} : { error: error.message };
  ports.emit({ kind: 'list.done', target: nameOf(request), ...digest, ...failure });
}

/** What is thrown for the run. */
function causeOf(results: readonly EndedList[], keepGoing: boolean, signal: AbortSignal): PublishError {
  const failed = results.filter(({ errors }) => errors.length > 0);
  const own = failed.filter(({ notRun }) => notRun !== true);
  const [first = failed[0]] = own;
  const error = first?.errors[0];
  if (error === undefined) throw new Error('no list has failed');
  if (!keepGoing || results.length === 1 || signal.aborted) return error;
  const names = failed.map(({ targets }) => targets.slice(0, 1).map(formatReference).join());
  return new PublishError(
    'LISTS_FAILED',
    `${failed.length} of ${results.length} lists failed: ${names.join(', ')}; the first because ${error.message}`,
    hintFor(results),
    { side: error.side, cause: error },
  );
}

/** What is to be done about failures of one kind; about several nothing helps but to look at each. */
function hintFor(results: readonly EndedList[]): string {
  const errors = results.flatMap((result) => result.errors);
  const [first] = errors;
  if (first !== undefined && errors.every(({ code }) => code === first.code)) return first.hint;
  return 'Run the same command again: what is there already is not sent again.';
}

/** The first failing target's error, by the order of targets. */
function errorOf({ repositories }: ListResult): PublishError | undefined {
  return repositories.find(({ error }) => error !== undefined)?.error;
}

/** Tags that a list has moved, or perhaps moved. */
function movedBy({ repositories }: ListResult): readonly string[] {
  return repositories.flatMap(({ error, execution }) => {
    if (error !== undefined) return error.moved ?? [];
    const outcomes = [...(execution?.tags.values() ?? [])];
    return outcomes.filter(({ action }) => action !== 'unchanged').map(({ reference }) => reference);
  });
}

/**
 * Lists run side by side, so that what hangs on their order would be chance.
 *
 * @throws PublishError `USAGE_INVALID` when two lists are to be put under one tag, or one is made from what another puts
 */
export function checkLists(requests: readonly PublishRequest[]): void {
  const owners = new Map<string, PublishRequest>();
  for (const request of requests) {
    for (const reference of request.targets) {
      const owner = owners.get(tagKey(reference));
      if (owner !== undefined && owner !== request) {
        const name = formatReference(reference);
        const message = `two lists are to be published as ${name}${placesOf(owner, request)}`;
        throw new PublishError('USAGE_INVALID', message, 'Give each list tags of its own, or make it one list.');
      }
      owners.set(tagKey(reference), request);
    }
  }
  for (const request of requests) {
    for (const { reference } of request.sources) {
      const name = formatReference(reference);
      const owner = owners.get(tagKey(reference));
      if (owner === undefined || owner === request || reference.digest !== undefined) continue;
      throw new PublishError(
        'USAGE_INVALID',
        `${nameOf(request)} is made from ${name}, which another list of this run is published as${placesOf(owner, request)}`,
        'Publish that list first, in a run of its own, or name the source by its digest.',
      );
    }
  }
}

/** The same for every way of writing one tag. */
function tagKey(reference: Reference): string {
  const { host, repository, tag } = writtenReference(reference);
  return `${hostKey(host)}/${repository}:${tag}`;
}

function placesOf(...requests: readonly PublishRequest[]): string {
  const places = requests.flatMap(({ origin }) => origin ?? []);
  return places.length === 0 ? '' : `: ${places.join(' and ')}`;
}

function nameOf({ targets: [first] }: PublishRequest): string {
  return first === undefined ? 'a list' : formatReference(first);
}

function keepWarnings(emit: (event: PublishEvent) => void, warnings: string[]): (event: PublishEvent) => void {
  return (event) => {
    if (event.kind === 'warning') warnings.push(event.text);
    emit(event);
  };
}
