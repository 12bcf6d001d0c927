import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const FOLDER = join(import.meta.dirname, '..', '.github', 'workflows');

type Job = { readonly permissions?: unknown; readonly 'timeout-minutes'?: number; readonly steps: readonly Step[] };
type Step = { readonly uses?: string; readonly run?: string; readonly with?: Readonly<Record<string, unknown>> };
type Workflow = { readonly permissions: unknown; readonly jobs: Readonly<Record<string, Job>> };

const WORKFLOWS = readdirSync(FOLDER).map((name) => join(FOLDER, name));

/** One that users copy: what they put into it decides how long it may take. */
const EXAMPLE = join(import.meta.dirname, '..', 'examples', 'github-shards.yml');

describe.each([...WORKFLOWS, EXAMPLE])('the workflow %s', (path) => {
  const text = readFileSync(path, 'utf8');
  const { permissions, jobs } = parse(text) as Workflow;
  const steps = Object.values(jobs).flatMap((job) => job.steps);

  it('gives no right that a job does not name, and every job an end', () => {
    expect(permissions).toEqual({});
    for (const job of Object.values(jobs)) {
      expect(job.permissions).toBeTypeOf('object');
      if (path !== EXAMPLE) expect(job['timeout-minutes']).toBeGreaterThan(0);
    }
  });

  it('takes actions by commit, with the version beside it', () => {
    const used = text.split('\n').filter((line) => line.includes('uses:'));
    expect(used).toHaveLength(steps.filter(({ uses }) => uses !== undefined).length);
    for (const line of used) expect(line).toMatch(/uses: [a-z-]+\/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it('leaves no token behind in the checkout', () => {
    const checkouts = steps.filter(({ uses }) => uses?.startsWith('actions/checkout@'));
    expect(checkouts.length).toBeGreaterThan(0);
    for (const step of checkouts) expect(step.with?.['persist-credentials']).toBe(false);
  });

  it('puts no expression into a script, where it would be read as code', () => {
    // Numbers of a matrix that stands in the file itself.
    const own = /\$\{\{ (?:matrix\.shard|strategy\.job-total) \}\}/g;
    for (const { run } of steps) expect((run ?? '').replaceAll(own, '')).not.toContain('${{');
  });
});
