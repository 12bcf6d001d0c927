import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { type RunningRegistry, seedDebian } from '../../src/registry-server/index.ts';
import { readSpec } from '../../src/spec/index.ts';
import type { Finished, Variables } from '../helpers/processes.ts';
import { withRegistry } from '../helpers/registry.ts';
import { BIN, cli, emptyFolder } from './program.ts';
import { together } from './shard-run.ts';

const FOLDER = new URL('../../examples/', import.meta.url);
const example = (name: string) => readFileSync(new URL(name, FOLDER), 'utf8');
const tree = (name: string): unknown => parse(example(name));

/** What keys and indexes lead to; nothing where they lead nowhere. */
function at(value: unknown, ...keys: readonly (string | number)[]): unknown {
  return keys.reduce<unknown>((inner, key) => (inner as Readonly<Record<string, unknown>> | undefined)?.[key], value);
}

function items(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new Error(`not a list: ${JSON.stringify(value)}`);
}

function word(value: unknown): string {
  if (typeof value === 'string') return value;
  throw new Error(`not a text: ${JSON.stringify(value)}`);
}

type Line = { readonly line: string; readonly env?: Variables };

/** A folder as a job finds it: the spec file for this registry, and on its PATH the program and an npx that has it. */
function stage(registry: RunningRegistry) {
  seedDebian(registry);
  const folder = emptyFolder();
  writeFileSync(join(folder, 'lists.yaml'), example('lists.yaml').replaceAll('localhost:5000', registry.host));
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const program = (name: string, text: string) => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  program('manifest-publish', `exec '${process.execPath}' '${BIN}' "$@"`);
  program(
    'npx',
    '[ "$1" = --yes ] && shift\n[ "$1" = manifest-publish@0.1 ] || exit 99\nshift\nexec manifest-publish "$@"',
  );
  const path = `${bin}:${process.env['PATH'] ?? ''}`;
  /** Lines of scripts, run as a runner does, with the words of the file and nothing changed in them; side by side. */
  const shells = (lines: readonly Line[]): Promise<readonly Finished[]> =>
    together(
      folder,
      lines.map(({ line, env }) => ({ program: 'sh', words: ['-e', '-c', line], env: { PATH: path, ...env } })),
    );
  const shell = async (line: string): Promise<Finished> => {
    const [finished] = await shells([{ line }]);
    if (finished === undefined) throw new Error('nothing was run');
    return finished;
  };
  return { folder, shell, shells };
}

/** All lists of lists.yaml are at the registry, and one report tells of them. */
function complete(registry: RunningRegistry, joined: Finished): void {
  expect(joined.stderr + joined.stdout).toMatch(/8 reports of 8 shards\n6 lists in /);
  expect(joined.exitCode).toBe(0);
  const names = ['debian', 'debian-arm', 'debian-x86', 'debian-ibm', 'debian-one'];
  for (const name of names) expect(registry.tagOf(`mirror/${name}`, 'bullseye')).toBeDefined();
  expect(registry.tags('mirror/debian')).toEqual(['11', 'bullseye', 'small']);
}

const SHARDS = Array.from({ length: 8 }, (_, at) => at + 1);

/** Two at a time: this machine may have two cores. */
async function inPairs(lines: readonly Line[], shells: (pair: readonly Line[]) => Promise<readonly Finished[]>) {
  const done: Finished[] = [];
  for (let at = 0; at < lines.length; at += 2) done.push(...(await shells(lines.slice(at, at + 2))));
  return done;
}

const ends = (finished: readonly Finished[]) =>
  expect(finished.map(({ exitCode }) => exitCode)).toEqual(SHARDS.map(() => 0));

describe('examples', () => {
  it('are all told of in their README and in docs/scale-out.md', () => {
    const files = readdirSync(FOLDER, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const names = files.map(({ name }) => name).filter((name) => name !== 'README.md' && !name.startsWith('library'));
    for (const name of names) expect(example('README.md')).toContain(name);
    const page = readFileSync(new URL('../docs/scale-out.md', FOLDER), 'utf8');
    for (const [, name = ''] of page.matchAll(/\.\.\/examples\/([^)#]+)/g)) expect(() => example(name)).not.toThrow();
  });

  it('lists.yaml is published as it is by one run, too', () =>
    withRegistry({}, async (registry) => {
      const { folder } = stage(registry);
      const { exitCode, stdout } = await cli(folder, ['publish', '-f', 'lists.yaml']);
      expect(exitCode).toBe(0);
      expect(stdout.trim().split('\n')).toHaveLength(7);
      const spec = { name: 'lists.yaml', text: example('lists.yaml') };
      expect(readSpec(spec, { flags: {}, config: {} })).toHaveLength(6);
    }));

  it('shards.sh publishes with eight processes, and joins their reports', () =>
    withRegistry({}, async (registry) => {
      const { folder, shell } = stage(registry);
      writeFileSync(join(folder, 'shards.sh'), example('shards.sh'));
      mkdirSync(join(folder, 'reports'));
      writeFileSync(join(folder, 'reports', 'shard-9.json'), 'of an earlier run');
      const finished = await shell('sh shards.sh lists.yaml 8 reports');
      complete(registry, finished);
      // The lines of eight processes, in whatever order.
      expect(finished.stdout.trim().split('\n')).toHaveLength(7);
      const again = await shell('sh shards.sh lists.yaml 2 reports');
      expect(again.stderr).toContain('2 reports of 2 shards');
    }));

  it('github-shards.yml', () =>
    withRegistry({}, async (registry) => {
      const { folder, shell, shells } = stage(registry);
      const jobs = at(tree('github-shards.yml'), 'jobs');
      const steps = at(jobs, 'publish', 'steps');
      const shards = items(at(jobs, 'publish', 'strategy', 'matrix', 'shard'));
      expect(shards).toEqual(SHARDS);
      expect(at(jobs, 'publish', 'strategy', 'fail-fast')).toBe(false);
      const values = (shard: unknown) => ({
        'matrix.shard': String(shard),
        'strategy.job-total': String(shards.length),
      });
      const lines = shards.map((shard) => ({ line: filled(runOf(steps), values(shard)) }));
      ends(await inPairs(lines, shells));
      // As the artifacts are unpacked: a folder for each.
      const upload = stepOf(steps, 'actions/upload-artifact');
      const download = stepOf(at(jobs, 'merge', 'steps'), 'actions/download-artifact');
      expect(at(download, 'with', 'pattern')).toBe('report-*');
      const reports = join(folder, word(at(download, 'with', 'path')));
      for (const shard of shards) {
        const artifact = join(reports, filled(word(at(upload, 'with', 'name')), values(shard)));
        const file = filled(word(at(upload, 'with', 'path')), values(shard));
        mkdirSync(artifact, { recursive: true });
        writeFileSync(join(artifact, file), readFileSync(join(folder, file)));
      }
      complete(registry, await shell(runOf(at(jobs, 'merge', 'steps'))));
    }));

  it('gitlab-shards.yml', () =>
    withRegistry({}, async (registry) => {
      const { shell, shells } = stage(registry);
      const jobs = tree('gitlab-shards.yml');
      expect(at(jobs, 'publish', 'parallel')).toBe(8);
      expect(at(jobs, 'publish', 'artifacts')).toMatchObject({ when: 'always', paths: ['reports/'] });
      const script = (job: string) => items(at(jobs, job, 'script')).join('\n');
      const lines = SHARDS.map((index) => ({
        line: script('publish'),
        env: { GITLAB_CI: 'true', CI_NODE_INDEX: String(index), CI_NODE_TOTAL: '8' },
      }));
      ends(await inPairs(lines, shells));
      complete(registry, await shell(script('merge')));
    }));

  it('kubernetes-shards.yaml and kubernetes-merge.yaml', () =>
    withRegistry({}, async (registry) => {
      const { folder, shell, shells } = stage(registry);
      mkdirSync(join(folder, 'reports'));
      const [claim, job] = parseAllDocuments(example('kubernetes-shards.yaml')).map((one): unknown => one.toJS());
      expect(claim).toMatchObject({ kind: 'PersistentVolumeClaim', spec: { accessModes: ['ReadWriteMany'] } });
      expect(job).toMatchObject({
        apiVersion: 'batch/v1',
        kind: 'Job',
        // Indexes are told, and one is tried again alone, only with these.
        spec: { completionMode: 'Indexed', backoffLimitPerIndex: 3, template: { spec: { restartPolicy: 'Never' } } },
      });
      const pod = at(job, 'spec', 'template', 'spec');
      const container = at(pod, 'containers', 0);
      const total = items(at(container, 'env')).find((one) => at(one, 'name') === 'JOB_COMPLETIONS');
      expect(at(total, 'value')).toBe(String(at(job, 'spec', 'completions')));
      const names = (value: unknown) => items(value).map((one) => at(one, 'name'));
      expect(names(at(container, 'volumeMounts'))).toEqual(names(at(pod, 'volumes')));
      const line = (words: unknown, index: string) =>
        items(words)
          .map((one) => word(one).replace('$(JOB_COMPLETION_INDEX)', index))
          .map((one) => `'${one.replace('/lists/', '').replace('/reports', 'reports')}'`)
          .join(' ');
      const lines = SHARDS.map((shard) => {
        const index = String(shard - 1);
        const env = { JOB_COMPLETIONS: '8', JOB_COMPLETION_INDEX: index };
        return { line: line(at(container, 'command'), index), env };
      });
      ends(await inPairs(lines, shells));
      const merge = at(tree('kubernetes-merge.yaml'), 'spec', 'template', 'spec');
      expect(at(merge, 'volumes')).toEqual([items(at(pod, 'volumes')).at(-1)]);
      complete(registry, await shell(line(at(merge, 'containers', 0, 'command'), '')));
    }));

  it('aws-batch', () =>
    withRegistry({}, async (registry) => {
      const { folder, shell, shells } = stage(registry);
      mkdirSync(join(folder, 'reports'));
      const definition = tree('aws-batch/job-definition.json');
      const submit = tree('aws-batch/submit-job.json');
      expect(at(submit, 'jobDefinition')).toBe(at(definition, 'jobDefinitionName'));
      expect(at(submit, 'arrayProperties')).toEqual({ size: 8 });
      const container = at(definition, 'containerProperties');
      expect(at(container, 'mountPoints', 0, 'sourceVolume')).toBe(at(container, 'volumes', 0, 'name'));
      const data = word(at(container, 'mountPoints', 0, 'containerPath'));
      const [sh, c, line] = items(at(container, 'command'));
      expect([sh, c]).toEqual(['sh', '-c']);
      const lines = SHARDS.map((shard) => ({
        line: word(line).replaceAll(`${data}/`, ''),
        env: {
          AWS_BATCH_JOB_ID: `0a1b-2c:${shard - 1}`,
          AWS_BATCH_JOB_ARRAY_INDEX: String(shard - 1),
          AWS_BATCH_JOB_ARRAY_SIZE: '8',
        },
      }));
      ends(await inPairs(lines, shells));
      complete(registry, await shell('manifest-publish report merge reports/0a1b-2c'));
    }));
});

function runOf(steps: unknown): string {
  const lines = items(steps).flatMap((step) => at(step, 'run') ?? []);
  expect(lines).toHaveLength(1);
  return word(lines[0]);
}

function stepOf(steps: unknown, action: string): unknown {
  const step = items(steps).find((one) => String(at(one, 'uses')).startsWith(`${action}@`));
  if (step === undefined) throw new Error(`no step uses ${action}`);
  return step;
}

/** Expressions of GitHub, of which every one must be known here. */
function filled(text: string, values: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\{\{ ([^}]+) \}\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`what is ${name}?`);
    return value;
  });
}
