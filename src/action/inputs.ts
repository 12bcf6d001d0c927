import type { Environment } from '../cli/environment.ts';
import { usage } from '../cli/settings.ts';
import { nearest } from '../model/nearest.ts';
import { quoted } from '../model/quoted.ts';
import { listOf } from './lists.ts';

/** Names of the inputs; those of action.yml. */
export const INPUTS = [
  'target',
  'tags',
  'sources',
  'spec',
  'digests-dir',
  'metadata-files',
  'platform',
  'expect-platforms',
  'annotations',
  'dry-run',
  'config',
  'jobs',
  'summary',
] as const;

/** The name of an input. */
export type InputName = (typeof INPUTS)[number];

/** What the workflow wrote; an input that is empty was not written. */
export type ActionInputs = {
  readonly target: string | undefined;
  readonly tags: readonly string[];
  readonly sources: readonly string[];
  readonly spec: readonly string[];
  readonly digestsDir: string | undefined;
  readonly metadataFiles: readonly string[];
  readonly platform: readonly string[];
  readonly expectPlatforms: readonly string[];
  readonly annotations: readonly string[];
  readonly dryRun: boolean;
  readonly config: string | undefined;
  readonly jobs: string | undefined;
  readonly summary: boolean;
};

/** How the runner hands an input over: hyphens stay. */
const PREFIX = 'INPUT_';

/**
 * Reads the inputs as the runner puts them into the environment of an action.
 *
 * @throws PublishError `USAGE_INVALID` that names the input
 * @see actions/runner, src/Runner.Worker/Handlers/Handler.cs, AddInputsToEnvironment
 */
export function readInputs(env: Environment): ActionInputs {
  refuseSlips(env);
  const text = (name: InputName) => (env[`${PREFIX}${name.toUpperCase()}`] ?? '').trim();
  const one = (name: InputName) => text(name) || undefined;
  const list = (name: InputName) => listOf(text(name));
  const check = (name: InputName) => {
    const items = list(name);
    // As `${{ … }},${{ … }}` is when both came out empty: it was written to keep something from being published.
    if (items.length === 0 && text(name) !== '')
      throw usage(`input ${name} names no platform`, `Write for example ${name}: linux/amd64, or leave it out.`);
    return items;
  };
  return {
    target: one('target'),
    tags: list('tags'),
    sources: list('sources'),
    spec: list('spec'),
    digestsDir: one('digests-dir'),
    metadataFiles: list('metadata-files'),
    platform: check('platform'),
    expectPlatforms: check('expect-platforms'),
    annotations: listOf(text('annotations'), { commas: false }),
    dryRun: truth('dry-run', text('dry-run'), false),
    config: one('config'),
    jobs: one('jobs'),
    summary: truth('summary', text('summary'), true),
  };
}

/** The words of YAML 1.2, which `getBooleanInput` of GitHub's own toolkit takes. */
function truth(name: InputName, text: string, otherwise: boolean): boolean {
  if (text === '') return otherwise;
  if (/^(?:true|True|TRUE)$/.test(text)) return true;
  if (/^(?:false|False|FALSE)$/.test(text)) return false;
  throw usage(`input ${name} must be true or false, and is ${quoted(text)}`, `Write for example ${name}: true.`);
}

/** The runner only warns of an input that there is not, and `expect-platform` would leave out the check that it was to be. */
function refuseSlips(env: Environment): void {
  for (const variable of Object.keys(env)) {
    if (!variable.startsWith(PREFIX)) continue;
    const name = variable.slice(PREFIX.length).toLowerCase();
    const guess = INPUTS.some((known) => known === name) ? undefined : nearest(name, INPUTS);
    if (guess !== undefined) throw usage(`there is no input ${quoted(name)}`, `Did you mean ${guess}?`);
  }
}
