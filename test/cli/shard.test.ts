import { describe, expect, it } from 'vitest';
import { DEFAULT_NETWORK, sharedRates } from '../../src/cli/settings.ts';
import { runPart } from '../../src/cli/shard.ts';
import { PublishError } from '../../src/errors.ts';

const FLAGS = { 'dry-run': false };

function refusal(flags: Partial<Parameters<typeof runPart>[0]>, env: Parameters<typeof runPart>[1] = {}): PublishError {
  try {
    runPart({ ...FLAGS, ...flags }, env);
  } catch (error) {
    if (error instanceof PublishError) return error;
    throw error;
  }
  throw new Error('it was not refused');
}

const AUTO = { ...FLAGS, shard: 'auto' };

describe('--shard', () => {
  it('counts from 1', () => {
    expect(runPart({ ...FLAGS, shard: '3/8' }, {})).toEqual({ shard: { index: 3, total: 8 } });
    expect(runPart({ ...FLAGS, shard: '1/1' }, {})).toEqual({ shard: { index: 1, total: 1 } });
    expect(runPart({ ...FLAGS, shard: '10000/10000' }, {})).toEqual({ shard: { index: 10_000, total: 10_000 } });
    expect(refusal({ shard: '0/8' }).hint).toBe('Shards count from 1: --shard=1/8 is the first.');
  });

  it.each(['', '/8', '3/', '3', '9/8', '1/0', '0/0', '-1/8', '1/10001', '1.5/8', 'a/b', '1/8/2', ' 1/8', 'AUTO'])(
    'refuses %j with exit code 2',
    (shard) => {
      expect(refusal({ shard })).toMatchObject({ code: 'USAGE_INVALID', exitCode: 2 });
    },
  );

  it('is what the variable says where there is no flag', () => {
    expect(runPart(FLAGS, { MANIFEST_PUBLISH_SHARD: '2/4' })).toEqual({ shard: { index: 2, total: 4 } });
    expect(runPart({ ...FLAGS, shard: '1/4' }, { MANIFEST_PUBLISH_SHARD: '2/4' }).shard?.index).toBe(1);
    expect(runPart(FLAGS, { MANIFEST_PUBLISH_SHARD: '' })).toEqual({});
    expect(refusal({}, { MANIFEST_PUBLISH_SHARD: '5/4' }).message).toMatch(/^MANIFEST_PUBLISH_SHARD must be/);
  });
});

describe('--shard auto', () => {
  it.each([
    ['GitLab', { GITLAB_CI: 'true', CI_NODE_INDEX: '3', CI_NODE_TOTAL: '8' }],
    ['CircleCI', { CIRCLE_NODE_INDEX: '2', CIRCLE_NODE_TOTAL: '8' }],
    ['Buildkite', { BUILDKITE_PARALLEL_JOB: '2', BUILDKITE_PARALLEL_JOB_COUNT: '8' }],
    ['a Kubernetes Indexed Job', { JOB_COMPLETION_INDEX: '2', JOB_COMPLETIONS: '8' }],
    ['AWS Batch', { AWS_BATCH_JOB_ARRAY_INDEX: '2', AWS_BATCH_JOB_ARRAY_SIZE: '8' }],
  ])('finds the third of eight jobs of %s', (_, env) => {
    expect(runPart(AUTO, env)).toEqual({ shard: { index: 3, total: 8 } });
    expect(runPart(FLAGS, { ...env, MANIFEST_PUBLISH_SHARD: 'auto' })).toEqual({ shard: { index: 3, total: 8 } });
  });

  it('is needed: a job that runs in parallel for another reason publishes all', () => {
    expect(runPart(FLAGS, { GITLAB_CI: 'true', CI_NODE_INDEX: '3', CI_NODE_TOTAL: '8' })).toEqual({});
  });

  it('is refused when nothing says which shard this is, with what was looked for', () => {
    const error = refusal({ shard: 'auto' }, { GITLAB_CI: 'true', CI_NODE_TOTAL: '1', CI_NODE_INDEX: '' });
    expect(error.exitCode).toBe(2);
    const names = [
      'CI_NODE_INDEX',
      'CIRCLE_NODE_INDEX',
      'BUILDKITE_PARALLEL_JOB',
      'JOB_COMPLETION_INDEX',
      'AWS_BATCH_JOB_ARRAY_INDEX',
    ];
    for (const name of names) expect(error.message).toContain(name);
    expect(error.hint).toMatch(/--shard \$\{\{ matrix\.shard \}\}\/\$\{\{ strategy\.job-total \}\}/);
  });

  it('takes CI_NODE_INDEX from GitLab alone: others count it from 0', () => {
    expect(refusal({ shard: 'auto' }, { CI_NODE_INDEX: '1', CI_NODE_TOTAL: '2' }).message).toContain('nothing says');
  });

  it.each([
    ['JOB_COMPLETIONS is not set', { JOB_COMPLETION_INDEX: '0' }, 'Set it in the manifest'],
    ['JOB_COMPLETION_INDEX is not set', { JOB_COMPLETIONS: '8' }, 'completionMode: Indexed'],
    ['CI_NODE_INDEX is not set', { GITLAB_CI: '1', CI_NODE_TOTAL: '2' }, 'I/N'],
    ['BUILDKITE_PARALLEL_JOB_COUNT is not set', { BUILDKITE_PARALLEL_JOB: '1' }, 'I/N'],
  ])('is refused where %s', (message, env, hint) => {
    const error = refusal({ shard: 'auto' }, env);
    expect(error).toMatchObject({ exitCode: 2, message: expect.stringContaining(message) });
    expect(error.hint).toContain(hint);
  });

  it.each([
    { GITLAB_CI: 'true', CI_NODE_INDEX: '0', CI_NODE_TOTAL: '8' },
    { CIRCLE_NODE_INDEX: '8', CIRCLE_NODE_TOTAL: '8' },
    { AWS_BATCH_JOB_ARRAY_INDEX: 'x', AWS_BATCH_JOB_ARRAY_SIZE: '8' },
    { AWS_BATCH_JOB_ARRAY_INDEX: '0', AWS_BATCH_JOB_ARRAY_SIZE: '10001' },
  ])('is refused for %j, which names no shard', (env) => {
    expect(refusal({ shard: 'auto' }, env).message).toContain('name no shard');
  });

  it('is refused when two engines differ, and not when they agree', () => {
    const gitlab = { GITLAB_CI: 'true', CI_NODE_INDEX: '3', CI_NODE_TOTAL: '8' };
    const error = refusal({ shard: 'auto' }, { ...gitlab, JOB_COMPLETION_INDEX: '0', JOB_COMPLETIONS: '8' });
    expect(error.message).toContain('CI_NODE_TOTAL say 3/8, but JOB_COMPLETION_INDEX and JOB_COMPLETIONS say 1/8');
    const same = { ...gitlab, JOB_COMPLETION_INDEX: '2', JOB_COMPLETIONS: '8' };
    expect(runPart(AUTO, same).shard).toEqual({ index: 3, total: 8 });
  });
});

describe('--stage', () => {
  it('is content or index', () => {
    expect(runPart({ ...FLAGS, stage: 'content' }, {})).toEqual({ stage: 'content' });
    expect(runPart({ ...FLAGS, stage: 'index', 'digest-file': 'd' }, {})).toEqual({ stage: 'index' });
    expect(refusal({ stage: 'all' }).message).toBe('--stage must be one of content, index');
  });

  it('does not go with a dry run, nor content with files about an index', () => {
    expect(refusal({ stage: 'index', 'dry-run': true }).exitCode).toBe(2);
    expect(refusal({ stage: 'content', 'digest-file': 'd' }).message).toContain('--digest-file');
    expect(refusal({ stage: 'content', 'metadata-file': 'm' }).message).toContain('--metadata-file');
  });
});

describe('--max-rps', () => {
  it('is divided by the workers, from wherever it comes, and nothing else is', () => {
    const network = {
      ...DEFAULT_NETWORK,
      hosts: { 'a.test': { maxRps: 10, insecure: true }, 'b.test': { plainHttp: true } },
    };
    expect(sharedRates(network, 8).hosts).toEqual({
      'a.test': { maxRps: 1.25, insecure: true },
      'b.test': { plainHttp: true },
    });
    expect(sharedRates(network, 1)).toBe(network);
  });
});
