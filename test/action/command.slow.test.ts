import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { emptyFolder } from '../cli/program.ts';
import { seedImage } from '../helpers/images.ts';
import { startRegistry } from '../helpers/registry.ts';
import { commandsIn, runCommand, runStep } from './runner.ts';

let folder: string;
let registry: RunningRegistry;
let source: string;
let target: string;

beforeEach(async () => {
  folder = emptyFolder();
  registry = await startRegistry();
  seedImage(registry, 't/amd64', '1', { platform: { os: 'linux', architecture: 'amd64' } });
  source = `${registry.host}/t/amd64:1`;
  target = `${registry.host}/acme/app:1`;
});

afterEach(() => registry.close());

/** Without the time, which is another one for every run. */
const steady = (text: string) => text.replace(/ · [\d.]+ m?s$/m, '');

describe('publish in a step of GitHub Actions', () => {
  it('hands on the same as the action, and prints the digest as everywhere', async () => {
    const step = await runCommand(folder, ['publish', target, source, '-t', 'latest']);
    expect(step.exitCode, step.stderr).toBe(0);
    expect(step.stdout).toBe(`${registry.tagOf('acme/app', '1')}\n`);
    expect(commandsIn(step.stderr)).toEqual([]);
    const other = await startRegistry();
    try {
      seedImage(other, 't/amd64', '1', { platform: { os: 'linux', architecture: 'amd64' } });
      const ported = (text: string) => text.replaceAll(other.host, registry.host);
      const action = await runStep(emptyFolder(), {
        target: target.replace(registry.host, other.host),
        tags: 'latest',
        sources: source.replace(registry.host, other.host),
      });
      const { json: _, ...outputs } = step.outputs;
      const { json: __, ...others } = action.outputs;
      expect(outputs).toEqual(Object.fromEntries(Object.entries(others).map(([name, text]) => [name, ported(text)])));
      expect(steady(step.summary)).toBe(steady(ported(action.summary)));
    } finally {
      await other.close();
    }
  });

  it('begins a line of its own where what wrote to the files before has left one open', async () => {
    writeFileSync(join(folder, 'set_output'), 'x=y');
    writeFileSync(join(folder, 'step_summary'), 'Tests passed');
    const step = await runCommand(folder, ['publish', target, source]);
    expect(step.exitCode, step.stderr).toBe(0);
    expect(step.outputs).toMatchObject({ x: 'y', digest: registry.tagOf('acme/app', '1') });
    expect(step.summary).toMatch(/^Tests passed\n### /);
  });

  it('hands on nothing elsewhere, or with --no-github', async () => {
    for (const [words, env] of [
      [['--no-github'], {}],
      [['--github=false'], {}],
      [[], { GITHUB_ACTIONS: '' }],
      [[], { GITHUB_STEP_SUMMARY: '' }],
    ] as const) {
      const step = await runCommand(folder, ['publish', target, source, ...words], env);
      expect(step).toMatchObject({ exitCode: 0, outputs: {}, summary: '' });
      const failed = await runCommand(folder, ['publish', target, `${source}-not`, ...words], env);
      expect(failed).toMatchObject({ exitCode: 4, outputs: {}, summary: '' });
      expect(commandsIn(failed.stderr)).toEqual([]);
    }
  });

  it('hands on with --github wherever the files are named, and refuses it where none is', async () => {
    const step = await runCommand(folder, ['publish', target, source, '--github'], {
      GITHUB_ACTIONS: '',
      GITHUB_STEP_SUMMARY: '',
    });
    expect(step.exitCode, step.stderr).toBe(0);
    expect(step.outputs['digest']).toBe(registry.tagOf('acme/app', '1'));
    registry.clearJournal();
    const none = await runCommand(folder, ['publish', target, source, '--github'], {
      GITHUB_OUTPUT: '',
      GITHUB_STEP_SUMMARY: '',
    });
    expect(none.exitCode).toBe(2);
    expect(none.stderr).toContain('GITHUB_OUTPUT and GITHUB_STEP_SUMMARY are not set');
    expect(registry.journal).toEqual([]);
  });

  it('in a container, where the files are not, says so and publishes', async () => {
    const missing = { GITHUB_OUTPUT: join(folder, 'no', 'output'), GITHUB_STEP_SUMMARY: join(folder, 'no', 'summary') };
    const step = await runCommand(folder, ['publish', target, source], missing);
    expect(step.exitCode).toBe(0);
    expect(step.stderr).toContain('warning: cannot write to the file of GITHUB_OUTPUT (ENOENT)');
    const asked = await runCommand(folder, ['publish', target, source, '--github'], missing);
    expect(asked.exitCode).toBe(8);
  });

  it('annotates a failure once, on stderr, also a wrong command line and with --json', async () => {
    for (const [words, exitCode, code] of [
      [[target, `${source}-not`], 4, 'SOURCE_NOT_FOUND'],
      [[target, `${source}-not`, '--json', '-q'], 4, 'SOURCE_NOT_FOUND'],
      [[target, source, '--no-such-flag'], 2, 'USAGE_INVALID'],
    ] as const) {
      const step = await runCommand(folder, ['publish', ...words]);
      expect(step.exitCode).toBe(exitCode);
      expect(commandsIn(step.stderr)).toEqual(['error']);
      expect(commandsIn(step.stdout)).toEqual([]);
      expect(step.stderr).toContain(`::error title=manifest-publish%3A ${code} (exit ${exitCode})::`);
    }
  });

  it('tells nothing to the runner that nobody reads in a log', async () => {
    const step = await runCommand(folder, ['publish', target, source]);
    expect(step.masks).toEqual([]);
  });
});

describe('push in a step of GitHub Actions', () => {
  it('hands on as publish does, and keeps docker’s lines', async () => {
    const created = await runCommand(folder, ['create', target, source]);
    expect(created).toMatchObject({ exitCode: 0, outputs: {} });
    const step = await runCommand(folder, ['push', target]);
    const digest = registry.tagOf('acme/app', '1');
    expect(step.exitCode, step.stderr).toBe(0);
    expect(step.stdout.endsWith(`${digest}\n`)).toBe(true);
    expect(step.outputs).toMatchObject({ digest, tags: target, ref: `${registry.host}/acme/app@${digest}` });
    expect(step.summary).toContain(`### \`${target}\``);
  });
});
