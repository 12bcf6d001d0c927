import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PublishReport } from '../../src/publish/report.ts';
import { type RunningRegistry, seedDebian } from '../../src/registry-server/index.ts';
import { seedImage } from '../helpers/images.ts';
import { startRegistry } from '../helpers/registry.ts';
import { cli, emptyFolder, parsed } from './program.ts';

let folder: string;
let home: RunningRegistry;
let other: RunningRegistry;

beforeEach(async () => {
  folder = emptyFolder();
  [home, other] = await Promise.all([startRegistry(), startRegistry()]);
  for (const architecture of ['amd64', 'arm64']) {
    seedImage(home, `t/${architecture}`, '1', { platform: { os: 'linux', architecture } });
  }
});

afterEach(async () => {
  await Promise.all([home.close(), other.close()]);
});

const words = () => [
  'publish',
  `${home.host}/t/app:1`,
  `${home.host}/t/amd64:1`,
  `${home.host}/t/arm64:1`,
  '-t',
  `${other.host}/copy/app:1`,
  '-t',
  `${other.host}/copy/app:latest`,
  '-t',
  'latest',
];

describe('one list in several registries', () => {
  it('has one digest, told once on stdout, and a line for each target on stderr', async () => {
    const { stdout, stderr, exitCode } = await cli(folder, [...words(), '--metadata-file', 'metadata']);
    expect(exitCode, stderr).toBe(0);
    const digest = home.tagOf('t/app', '1');
    expect(stdout).toBe(`${digest}\n`);
    for (const tag of ['1', 'latest']) {
      expect(home.tagOf('t/app', tag)).toBe(digest);
      expect(other.tagOf('copy/app', tag)).toBe(digest);
    }
    expect(other.missingFrom('copy/app', '1')).toEqual([]);
    expect(stderr).toContain('2 platforms to 2 repositories in ');
    expect(stderr).toMatch(new RegExp(`created +${other.host}/copy/app:1 `));
    const metadata = JSON.parse(readFileSync(join(folder, 'metadata'), 'utf8')) as Record<string, string>;
    expect(metadata['image.name']?.split(',')).toHaveLength(4);
  });

  it('one that fails leaves the other done: its error, its exit code, what moved, and a report', async () => {
    other.addFault({
      operation: 'manifestPut',
      action: { kind: 'answer', status: 403 },
      times: Number.POSITIVE_INFINITY,
    });
    const { stdout, stderr, exitCode } = await cli(folder, [
      ...words(),
      '--report',
      'report',
      '--digest-file',
      'digest',
    ]);
    expect(exitCode).toBe(3);
    expect(stdout).toBe('');
    expect(home.tagOf('t/app', '1')).toBeDefined();
    expect(stderr).toContain(`failed: ${other.host}/copy/app:1, ${other.host}/copy/app:latest: `);
    expect(stderr).toMatch(/moved before this: .*t\/app:1/);
    const report = JSON.parse(readFileSync(join(folder, 'report'), 'utf8')) as PublishReport;
    const actions = report.lists[0]?.targets.map(({ action }) => action);
    expect(actions).toEqual(['created', 'failed', 'failed', 'created']);
    expect(() => readFileSync(join(folder, 'digest'))).toThrow('ENOENT');

    const json = await cli(folder, [...words(), '--json']);
    expect(json.exitCode).toBe(3);
    const document = parsed(json) as { error: { code: string }; report: PublishReport };
    expect(document.error.code).toBe('DENIED');
    expect(document.report.lists[0]?.targets.map(({ action }) => action)).toEqual([
      'unchanged',
      'failed',
      'failed',
      'unchanged',
    ]);
  });

  it('a re-run after that writes only what is missing', async () => {
    other.addFault({
      operation: 'manifestPut',
      action: { kind: 'answer', status: 403 },
      times: Number.POSITIVE_INFINITY,
    });
    expect((await cli(folder, words())).exitCode).toBe(3);
    other.clearFaults();
    home.clearJournal();
    const { stderr, exitCode } = await cli(folder, words());
    expect(exitCode, stderr).toBe(0);
    expect(home.journal.filter(({ method }) => !['GET', 'HEAD'].includes(method))).toEqual([]);
    expect(other.missingFrom('copy/app', 'latest')).toEqual([]);
  });
});

it('images are placed side by side', async () => {
  const sources = seedDebian(home).map(({ repository, tag }) => `${home.host}/${repository}:${tag}`);
  const latencyMs = 100;
  home.configure({ answer: { latencyMs } });
  const started = performance.now();
  const { stderr, exitCode } = await cli(folder, ['publish', `${home.host}/debian/debian:1`, ...sources]);
  const elapsed = performance.now() - started;
  expect(exitCode, stderr).toBe(0);
  expect(home.journal.length).toBeGreaterThan(100);
  expect(elapsed).toBeLessThan((home.journal.length * latencyMs) / 2);
});

describe('push', () => {
  it('takes tags in other registries too, and prints docker’s lines for each repository', async () => {
    const list = `${home.host}/t/app:1`;
    const created = await cli(folder, ['create', list, `${home.host}/t/amd64:1`, `${home.host}/t/arm64:1`]);
    expect(created.exitCode, created.stderr).toBe(0);
    const { stdout, stderr, exitCode } = await cli(folder, ['push', list, '-t', `${other.host}/copy/app:1`]);
    expect(exitCode, stderr).toBe(0);
    const lines = stdout.trim().split('\n');
    expect(lines).toHaveLength(5);
    expect(lines.filter((line) => line.startsWith(`Pushed ref ${other.host}/copy/app@sha256:`))).toHaveLength(2);
    expect(lines.at(-1)).toBe(other.tagOf('copy/app', '1'));
  });
});
