import { annotateFailure, withGithub } from '../cli/github.ts';
import { publishInput } from '../cli/publish-inputs.ts';
import { reportFailure } from '../cli/report-failure.ts';
import { type Published, runPublish } from '../cli/run-publish.ts';
import type { World } from '../cli/runtime.ts';
import { newStanding, note, noteOutcome, type Session, type Standing, withSession } from '../cli/session.ts';
import type { CommonFlags } from '../cli/settings.ts';
import { partOfRun, runPart } from '../cli/shard.ts';
import { PublishError } from '../errors.ts';
import { GROUP_END, groupStart, page, renderGroup, renderPlan } from '../ui/render.ts';
import { type ActionInputs, readInputs } from './inputs.ts';
import { maskingSecrets } from './masks.ts';
import { actionWords, inInputWords } from './words.ts';

/** The step: inputs to a request, the request to the registry, what came of it to the runner. */
export async function runAction(world: World): Promise<void> {
  const standing = newStanding();
  // "Enable debug logging" of a run that is repeated sets it.
  const debug = world.env['RUNNER_DEBUG'] === '1';
  try {
    await publishInputs(world, standing, debug);
  } catch (error) {
    const failure = translated(error);
    await reportFailure(world, debug ? ['--debug'] : [], failure, standing.circumstances);
    annotateFailure(world, failure);
  }
}

async function publishInputs(world: World, standing: Standing, debug: boolean): Promise<void> {
  const { inputs, part, input } = await whatIsAsked(world).catch(async (error: unknown): Promise<never> => {
    // Outputs and summary tell of inputs that are wrong, too.
    const summary = !/^\s*false\s*$/i.test(world.env['INPUT_SUMMARY'] ?? '');
    const failure = translated(error);
    await withGithub(world, standing, { wanted: undefined, listing: false, summary }, () => Promise.reject(failure));
    throw failure;
  });
  const host = input.requests({})[0]?.targets[0]?.host ?? '';
  const { listing } = input;
  const common = { ...commonFlags(inputs, debug), jobs: inputs.jobs };

  const work = async (session: Session) => {
    for (const text of input.notes) session.ports.emit({ kind: 'warning', text });
    const { requests, notes, lists } = await partOfRun(input.requests(session.config), part);
    for (const text of notes) note(world, standing, common, (theme) => page([text], theme));
    return runPublish(requests, session, { 'dry-run': inputs.dryRun }, { listing, part, lists });
  };
  const options = {
    workers: part.shard?.total ?? 1,
    watchSecrets: (own: Parameters<typeof maskingSecrets>[0]) => maskingSecrets(own, world.command),
  };
  const run = () =>
    withSession(world, standing, common, host, work, options).then(translatedFailure, (error: unknown) => {
      const failure = translated(error);
      // A file that was found by search is nobody's input.
      if (!(failure instanceof PublishError && failure.code === 'CONFIG_INVALID' && inputs.config !== undefined))
        throw failure;
      throw failure.with({ message: `input config: ${failure.message}` });
    });
  const github = { wanted: true, listing, summary: inputs.summary };
  const published = await withGithub(world, standing, github, () => (debug ? grouped(world, run) : run()));

  const { report, plans, failure } = published;
  if (debug && !report.dryRun) notePlans(world, standing, common, plans);
  if (report.lists.length > 0) noteOutcome(world, standing, common, published);
  if (failure !== undefined) throw failure;
}

/** Reads inputs and the files that they name. */
async function whatIsAsked(world: World) {
  const inputs = readInputs(world.env);
  const { words, flags, settings } = actionWords(inputs, world.env);
  const part = runPart({ 'dry-run': inputs.dryRun }, world.env);
  return { inputs, part, input: await publishInput(words, flags, settings, world) };
}

/** What ends a run that has a report all the same. */
function translatedFailure(published: Published): Published {
  const { failure } = published;
  return failure === undefined ? published : { ...published, failure: inInputWords(failure) };
}

function translated(error: unknown): unknown {
  return error instanceof PublishError ? inInputWords(error) : error;
}

function commonFlags({ config }: ActionInputs, debug: boolean): CommonFlags {
  return { json: false, quiet: false, debug, config, 'no-color': false };
}

/** One line a request, folded together. */
async function grouped<T>(world: World, work: () => Promise<T>): Promise<T> {
  world.note(groupStart('Requests'));
  try {
    return await work();
  } finally {
    world.note(GROUP_END);
  }
}

function notePlans(world: World, standing: Standing, flags: CommonFlags, plans: Published['plans']): void {
  for (const plan of plans) {
    note(world, standing, flags, (theme) => renderGroup(`Plan of ${plan.target}`, renderPlan(plan, theme)));
  }
}
