import { STAGES } from '../config/values.ts';
import type { PublishRequest } from '../publish/request.ts';
import type { Shard } from '../publish/shards.ts';
import type { Environment } from './environment.ts';
import { choice, usage } from './settings.ts';
import type { OwnWork } from './shard-work.ts';

/** Which part of the whole this run is to do; what is absent is not divided. */
export type RunPart = { readonly shard?: Shard; readonly stage?: (typeof STAGES)[number] };

/** What `--shard`, `--stage` and what does not go with them parse to. */
export type PartFlags = {
  readonly shard?: string | undefined;
  readonly stage?: string | undefined;
  readonly 'dry-run': boolean;
  readonly 'digest-file'?: string | undefined;
  readonly 'metadata-file'?: string | undefined;
};

/** As many children as an array job of AWS Batch can have. */
export const SHARDS_MAX = 10_000;

/** How an engine tells each of its workers which one it is. */
type Engine = {
  readonly name: string;
  readonly index: string;
  readonly total: string;
  /** What the first worker has as its index. */
  readonly first: 0 | 1;
  /** Only where this is set too: others use the same names in another way. */
  readonly mark?: string;
};

/** Heroku CI has GitLab's names too, and counts from 0. A Kubernetes Job tells no total: its manifest has to set one. */
const ENGINES: readonly Engine[] = [
  { name: 'GitLab', index: 'CI_NODE_INDEX', total: 'CI_NODE_TOTAL', first: 1, mark: 'GITLAB_CI' },
  { name: 'CircleCI', index: 'CIRCLE_NODE_INDEX', total: 'CIRCLE_NODE_TOTAL', first: 0 },
  { name: 'Buildkite', index: 'BUILDKITE_PARALLEL_JOB', total: 'BUILDKITE_PARALLEL_JOB_COUNT', first: 0 },
  { name: 'a Kubernetes Indexed Job', index: 'JOB_COMPLETION_INDEX', total: 'JOB_COMPLETIONS', first: 0 },
  { name: 'AWS Batch', index: 'AWS_BATCH_JOB_ARRAY_INDEX', total: 'AWS_BATCH_JOB_ARRAY_SIZE', first: 0 },
];

/**
 * Reads `--shard`, else `MANIFEST_PUBLISH_SHARD`, and `--stage`. Variables of an engine are looked at only where `auto`
 * says so: a job that is run in parallel for a reason of its own must not publish a part without a word.
 *
 * @throws PublishError `USAGE_INVALID`
 */
export function runPart(flags: PartFlags, env: Environment): RunPart {
  const { stage: stageText } = flags;
  const fromEnvironment = env['MANIFEST_PUBLISH_SHARD'];
  const written =
    flags.shard !== undefined
      ? { name: '--shard', text: flags.shard }
      : fromEnvironment === undefined || fromEnvironment === ''
        ? undefined
        : { name: 'MANIFEST_PUBLISH_SHARD', text: fromEnvironment };
  const shard =
    written === undefined ? undefined : written.text === 'auto' ? detectShard(env, written.name) : parseShard(written);
  const stage = stageText === undefined ? undefined : choice({ name: '--stage', text: stageText }, STAGES);
  if (stage !== undefined && flags['dry-run']) {
    throw usage('--dry-run and --stage cannot be used together', 'Leave --stage out: a dry run looks at the whole.');
  }
  const file = (['digest-file', 'metadata-file'] as const).find((flag) => flags[flag] !== undefined);
  if (stage === 'content' && file !== undefined) {
    throw usage(
      `--${file} and --stage content cannot be used together: there is no index yet`,
      `Write --${file} with --stage index; --report goes with both.`,
    );
  }
  return { ...(shard === undefined ? {} : { shard }), ...(stage === undefined ? {} : { stage }) };
}

type Written = { readonly name: string; readonly text: string };

function parseShard({ name, text }: Written): Shard {
  const [, index = '', total = ''] = /^(\d{1,5})\/(\d{1,5})$/.exec(text) ?? [];
  const shard = { index: Number(index), total: Number(total) };
  if (total !== '' && shard.total >= 1 && shard.total <= SHARDS_MAX && isWithin(shard)) return shard;
  const example = shard.index === 0 && shard.total > 1 ? `1/${shard.total}` : '3/8';
  const hint =
    total !== '' && shard.index === 0
      ? `Shards count from 1: ${name}=${example} is the first.`
      : `Write for example ${name}=${example}.`;
  throw usage(`${name} must be I/N with I from 1 to N, or auto; N is at most ${SHARDS_MAX}`, hint);
}

function isWithin({ index, total }: Shard): boolean {
  return index >= 1 && index <= total;
}

/**
 * What the engine says that this is a worker of.
 *
 * @throws PublishError `USAGE_INVALID` when no engine says anything, or half of it, or two differ
 */
function detectShard(env: Environment, name: string): Shard {
  const found = ENGINES.flatMap((engine) => {
    const shard = shardOf(engine, env);
    return shard === undefined ? [] : [{ engine, shard }];
  });
  const [first] = found;
  if (first === undefined) throw nothingFound(name);
  const other = found.find(({ shard }) => shard.index !== first.shard.index || shard.total !== first.shard.total);
  if (other === undefined) return first.shard;
  const say = ({ engine, shard }: typeof first) => `${engine.index} and ${engine.total} say ${labelOf(shard)}`;
  throw usage(
    `${name} auto: ${say(first)}, but ${say(other)}`,
    `Write which it is, for example --shard ${labelOf(first.shard)}.`,
  );
}

function shardOf(engine: Engine, env: Environment): Shard | undefined {
  const { index, total, first, mark } = engine;
  const has = (variable: string) => env[variable] !== undefined && env[variable] !== '';
  if (mark !== undefined && !has(mark)) return undefined;
  // GitLab sets the total in every job, and 1 where there is but one.
  if (!has(index) && (!has(total) || env[total] === '1')) return undefined;
  const lacking = [index, total].find((variable) => !has(variable));
  if (lacking !== undefined) {
    const hint =
      lacking === 'JOB_COMPLETIONS'
        ? 'Set it in the manifest of the Job to the number of its completions.'
        : lacking === 'JOB_COMPLETION_INDEX'
          ? 'Set completionMode: Indexed in the manifest of the Job.'
          : 'Write --shard I/N yourself.';
    throw usage(`${lacking} is not set, and ${lacking === index ? total : index} of ${engine.name} is`, hint);
  }
  const [at = '', of = ''] = [index, total].map((variable) => env[variable] ?? '');
  const shard = { index: Number(at) + 1 - first, total: Number(of) };
  if (/^\d{1,5}$/.test(at) && /^\d{1,5}$/.test(of) && shard.total <= SHARDS_MAX && isWithin(shard)) return shard;
  throw usage(
    `${index}=${at} and ${total}=${of} of ${engine.name} name no shard: the first is ${first}, and at most ${SHARDS_MAX} there can be`,
    'Write --shard I/N yourself.',
  );
}

function nothingFound(name: string) {
  const looked = ENGINES.map(({ name: engine, index }) => `${index} (${engine})`);
  return usage(
    `${name} auto: nothing says which shard this is; looked for ${looked.join(', ')}`,
    `Write --shard I/N; GitHub Actions sets no variables: --shard \${{ matrix.shard }}/\${{ strategy.job-total }}.`,
  );
}

/** `3/8` */
function labelOf({ index, total }: Shard): string {
  return `${index}/${total}`;
}

/**
 * The lists of this run, in their order.
 *
 * @throws PublishError `USAGE_INVALID` for lists that do not go together, in every shard alike
 */
export async function partOfRun(all: readonly PublishRequest[], part: RunPart): Promise<OwnWork> {
  const { shard, stage } = part;
  const requests = stage === undefined ? all : all.map((request) => ({ ...request, stage }));
  if (shard === undefined) return { requests, notes: [] };
  const { workNoted } = await import('./shard-work.ts');
  return workNoted(requests, shard, stage === 'content');
}
