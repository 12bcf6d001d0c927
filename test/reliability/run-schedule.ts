import { PublishError } from '../../src/errors.ts';
import { publish } from '../../src/publish/publish.ts';
import type { PublishReport } from '../../src/publish/report.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { requestOf } from '../helpers/publishing.ts';
import { makeRandom } from '../peers/random.ts';
import type { PlannedFault, Schedule } from './schedule.ts';
import { imagesOf, LOGIN, listOf, SOURCE_LOGIN, type Stage, setStage, TARGET, tagsOf } from './schedule-stage.ts';
import { clientWorld, type WorldOptions } from './schedule-world.ts';

/** What a run came to. */
export type Ending =
  | { readonly kind: 'done'; readonly report: PublishReport }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'hung' };

/** A schedule's outcome; `problems` are broken promises. */
export type ScheduleOutcome = { readonly exitCode: number; readonly problems: readonly string[] };

/** Codes of the documentation that a publish may end with; 1 is a bug of ours, and 2, 8 and 9 are not to be had here. */
const CODES: ReadonlySet<number> = new Set([3, 4, 5, 6, 7, 143]);

/** In real ms: longer than a hundred stalls. */
const HANGS = 60_000;

/** Silence of a registry that counts as a failure, in real ms, where a schedule has any. */
const PATIENCE = 80;

/** Runs the schedule, then the same request without faults, and tells what was not as promised. */
export async function runSchedule(schedule: Schedule): Promise<ScheduleOutcome> {
  const stage = await setStage(schedule);
  const problems: string[] = [];
  try {
    const old = stage.target.tagOf(TARGET, 'v1');
    for (const { at, onTags, ...rule } of schedule.faults) {
      const registry = at === 'source' ? (stage.second ?? stage.target) : stage.target;
      registry.addFault({ ...rule, ...(onTags === true ? { path: /\/manifests\/v\d$/ } : {}) });
    }
    const stalls = schedule.faults.some(({ action }) => action.kind === 'stall');
    const first = await runOnce(schedule, stage, old, {
      ...(stalls ? { patience: PATIENCE } : {}),
      requests: schedule.requests,
      jobs: schedule.jobs,
      retries: schedule.retries,
      endAt: schedule.endAt,
    });
    problems.push(...judge('with faults', first, schedule, stage, old));
    problems.push(...judgeFailure(first, schedule, stage, old), ...judgeSessions(first, schedule, stage));

    for (const registry of [stage.target, stage.second]) registry?.clearFaults();
    const before = new Set(blobsOf(schedule).filter((digest) => stage.target.hasBlob(TARGET, digest)));
    const from = stage.target.journal.length;
    // Few connections: they are what costs most here.
    const second = await runOnce(schedule, stage, old, { requests: 8 });
    problems.push(...judge('again', second, schedule, stage, old));
    if (second.kind !== 'done') problems.push(`again: ${describe(second)}`);
    for (const entry of stage.target.journal.slice(from)) {
      const digest = new URLSearchParams(entry.query).get('digest') ?? '';
      if (entry.operation === 'uploadPut' && entry.bytesIn > 0 && before.has(digest)) {
        problems.push(`again: ${digest} was sent, though it was there`);
      }
    }
    return { exitCode: exitCodeOf(first), problems };
  } finally {
    await stage.close();
  }
}

const blobsOf = (schedule: Schedule): readonly string[] => [
  ...new Set(imagesOf(schedule).flatMap(({ blobs }) => blobs.map(({ descriptor }) => descriptor.digest as string))),
];

async function runOnce(
  schedule: Schedule,
  stage: Stage,
  old: string | undefined,
  options: Partial<WorldOptions> & { readonly endAt?: number | undefined },
): Promise<Ending> {
  const controller = new AbortController();
  const world = clientWorld(stage.traffic, {
    ...options,
    random: () => random.below(1000) / 1000,
    upload: schedule.upload,
    logins: stage.logins,
    onRequest: (count) => {
      if (count === options.endAt) controller.abort(new PublishError('TERMINATED', 'terminated (SIGTERM)', 'Again.'));
    },
  });
  const random = makeRandom(schedule.seed);
  const [first = 'v1', ...tags] = tagsOf(schedule);
  const guard = !schedule.guarded ? {} : old === undefined ? { noClobber: true } : { expectDigest: old as never };
  const request = requestOf(`${stage.target.host}/${TARGET}:${first}`, stage.sources, {
    tags,
    verify: schedule.verify,
    ...guard,
  });
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Ending>((resolve) => {
    timer = setTimeout(resolve, HANGS, { kind: 'hung' });
  });
  const run = async (): Promise<Ending> => {
    let ending: Ending;
    try {
      ending = { kind: 'done', report: await publish(request, world.ports, controller.signal) };
    } catch (error) {
      ending = { kind: 'failed', error };
    }
    await world.close();
    const said = JSON.stringify([world.events, ending.kind === 'done' ? ending.report : messages(ending)]);
    const secrets = [LOGIN, SOURCE_LOGIN].flatMap(({ name, password }) => [
      password,
      Buffer.from(`${name}:${password}`).toString('base64'),
    ]);
    if (secrets.some((secret) => said.includes(secret))) throw new Error('a secret was told');
    return ending;
  };
  try {
    return await Promise.race([run(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What holds after every run (N1, N2, N4, N6). */
function judge(
  name: string,
  ending: Ending,
  schedule: Schedule,
  { target, second }: Stage,
  old: string | undefined,
): readonly string[] {
  const problems: string[] = [];
  const list = listOf(schedule);
  const moves = target.tagMoves.filter(({ repository }) => repository === TARGET);
  for (const { tag, from, to, missing } of moves) {
    if (to !== list.digest) problems.push(`${name}: ${tag} moved to ${to}`);
    if (from !== old && from !== to) problems.push(`${name}: ${tag} moved from ${from}`);
    if (missing.length > 0) problems.push(`${name}: ${tag} moved, while these were missing: ${missing.join(', ')}`);
  }
  for (const tag of tagsOf(schedule)) {
    const held = target.tagOf(TARGET, tag);
    if (held !== old && held !== list.digest) problems.push(`${name}: ${tag} holds ${held}`);
    if (ending.kind === 'done' && held !== list.digest) problems.push(`${name}: exit 0, but ${tag} holds ${held}`);
  }
  if (ending.kind === 'done') {
    const targets = ending.report.lists[0]?.targets ?? [];
    if (targets.length !== schedule.tags || targets.some(({ digest }) => digest !== list.digest)) {
      problems.push(`${name}: reported ${JSON.stringify(targets)}, not ${list.digest}`);
    }
    if (schedule.verify) problems.push(...target.missingFrom(TARGET, 'v1').map((one) => `${name}: ${one} is missing`));
  }
  if (ending.kind === 'hung') problems.push(`${name}: it did not end; ${underWay(target, second)}`);
  const strangers = [
    ...[target, second]
      .flatMap((registry) => registry?.journal ?? [])
      .filter(({ authorization }) => schedule.auth === 'none' && authorization !== 'none'),
    ...seenAt(target, SOURCE_LOGIN),
    ...(second === undefined ? [] : seenAt(second, LOGIN)),
  ];
  if (strangers.length > 0) problems.push(`${name}: a credential went to ${strangers[0]?.path}`);
  return problems;
}

/** For whoever has to find out why a run hangs. */
function underWay(...registries: readonly (RunningRegistry | undefined)[]): string {
  const all = registries.flatMap((registry) => registry?.journal ?? []);
  const open = all.filter(({ end }) => end === undefined);
  const told = [...open, ...all.slice(-5)].map(
    ({ start, end, method, path, status, connection }) =>
      `${start}-${end} ${method} ${path} ${status} on ${connection}`,
  );
  return `${open.length} requests under way: ${told.join(', ')}`;
}

function seenAt(registry: RunningRegistry, { name, password }: typeof LOGIN) {
  const basic = Buffer.from(`${name}:${password}`).toString('base64');
  return registry.journal.filter(({ headers }) => headers['authorization']?.includes(basic));
}

/** A failure is one of ours, with a code of the documentation, and what it says of the tags is true. */
function judgeFailure(ending: Ending, schedule: Schedule, stage: Stage, old: string | undefined): readonly string[] {
  if (ending.kind !== 'failed') return [];
  const { error } = ending;
  if (!(error instanceof PublishError) || !CODES.has(error.exitCode)) return [`ended with ${describe(ending)}`];
  const problems: string[] = [];
  if (error.exitCode === 143 && schedule.endAt === undefined) problems.push('ended with 143, though nobody ended it');
  if (/\n/.test(error.message) || error.hint === '') problems.push(`message or hint: ${describe(ending)}`);
  // What a registry says of a tag is believed: a 404 that is not true cannot be told from one that is.
  const liesOfTags = schedule.faults.some(
    ({ operation, action }) => operation === 'manifestGet' && action.kind === 'answer' && action.status === 404,
  );
  if (liesOfTags) return problems;
  const list = listOf(schedule).digest;
  // A PUT of what the tag holds already, where it could not be read: told as moved, and nobody can see that it was not.
  if (old === list) return problems;
  for (const tag of tagsOf(schedule)) {
    const reference = `${stage.target.host}/${TARGET}:${tag}`;
    const moved = stage.target.tagOf(TARGET, tag) === list;
    const said = error.moved?.find((text) => text.startsWith(reference));
    if (moved && said === undefined) problems.push(`${tag} moved, and the error does not say so: ${describe(ending)}`);
    if (!moved && said === reference) problems.push(`${tag} did not move, and the error says so: ${describe(ending)}`);
  }
  return problems;
}

/** Where the address of a session is told. */
const TOLD: readonly string[] = ['mount', 'uploadPost', 'uploadPatch', 'uploadGet'];
/** Waits longer than the five seconds that a cancellation is given. */
const LONG_WAITS: readonly string[] = ['30', '119', '200', 'Mon, 30 Nov 2026 00:00:07 GMT'];
/** So many answers of 429 in a row and the host is left alone for longer than a cancellation waits. */
const LIMITED_MOST = 3;

/** A session may be left open only where its address was lost, or where cancelling it is what went wrong. */
function judgeSessions(ending: Ending, { faults, profile }: Schedule, { target }: Stage): readonly string[] {
  const left = target.openSessions();
  if (left === 0 || profile.upload?.cancel !== '204') return [];
  const cancelFails = ({ operation, action, times = 1 }: PlannedFault) =>
    operation === 'uploadDelete' ||
    operation === 'token' ||
    (action.kind === 'answer' &&
      action.status === 429 &&
      (times > LIMITED_MOST || LONG_WAITS.includes(String(action.headers?.['Retry-After']))));
  if (faults.some(cancelFails)) return [];
  // Who is told that a session is not there (404) has nothing to cancel.
  const denied = ({ operation, action }: PlannedFault) =>
    action.kind === 'answer' && action.status === 404 && /^upload(?:Patch|Put|Get)$/.test(String(operation));
  // With a state in the address, what arrived of a body that broke has changed it.
  const hasState = profile.upload.state !== undefined && profile.upload.state !== 'none';
  const movesOn = ({ operation, action }: PlannedFault) =>
    hasState && action.kind === 'reset' && (operation === 'uploadPatch' || operation === 'uploadPut');
  // And so have bodies of other blobs that the registry has taken when a run ends, before anybody reads its answer.
  if (hasState && ending.kind !== 'done') return [];
  const losesAddress = ({ operation, action }: PlannedFault) =>
    TOLD.includes(String(operation)) &&
    (['loseAnswer', 'stall', 'truncate', 'headers'].includes(action.kind) ||
      (action.kind === 'reset' && action.when === 'after'));
  const lost = faults
    .filter((fault) => losesAddress(fault) || denied(fault) || movesOn(fault))
    .reduce((sum, { times = 1 }) => sum + times, 0);
  return left <= lost ? [] : [`${left} sessions were left open, and at most ${lost} can have been lost`];
}

function exitCodeOf(ending: Ending): number {
  if (ending.kind === 'done') return 0;
  return ending.kind === 'failed' && ending.error instanceof PublishError ? ending.error.exitCode : 1;
}

function describe(ending: Ending): string {
  if (ending.kind !== 'failed') return ending.kind;
  const { error } = ending;
  if (!(error instanceof PublishError)) return error instanceof Error ? `${error.stack}` : String(error);
  return `${error.code} (exit ${error.exitCode}): ${error.message} | moved: ${error.moved?.join(', ')}`;
}

function messages(ending: Ending): readonly string[] {
  const texts: string[] = [];
  for (let error = ending.kind === 'failed' ? ending.error : undefined; error instanceof Error; error = error.cause) {
    texts.push(error.message, error.stack ?? '', error instanceof PublishError ? error.hint : '');
  }
  return texts;
}
