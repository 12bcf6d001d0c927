import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type RunningRegistry, seedDebian } from '../../src/registry-server/index.ts';
import { run } from '../helpers/processes.ts';
import { startRegistry } from '../helpers/registry.ts';
import { BIN, cli, emptyFolder, variables } from './program.ts';

const folder = emptyFolder();
const running = new Set<ChildProcess>();
let registry: RunningRegistry;
let sources: readonly string[];
let target: string;

beforeEach(async () => {
  registry = await startRegistry({ changes: { mount: { mode: 'ignore' } } });
  sources = seedDebian(registry).map((image) => `${registry.host}/${image.repository}:${image.tag}`);
  target = `${registry.host}/debian/debian:bullseye`;
});

afterEach(async () => {
  for (const child of running) child.kill('SIGKILL');
  await registry.close();
});

type Program = {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  readonly output: { stdout: string; stderr: string };
};

function start(args: readonly string[]): Program {
  const env = { PATH: process.env['PATH'] ?? '', ...variables(folder) };
  const child = spawn(process.execPath, [BIN, ...args], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (piece) => {
    output.stdout += piece;
  });
  child.stderr.on('data', (piece) => {
    output.stderr += piece;
  });
  const ended = once(child, 'close').then(([code]) => {
    running.delete(child);
    return code as number | null;
  });
  return { child, ended, output };
}

async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('it did not happen');
    await sleep(5);
  }
}

/** All 40 blobs have a session whose opening was answered, and some are being sent. */
function uploading(): boolean {
  const posts = registry.journal.filter((entry) => entry.method === 'POST');
  const answered = posts.every((entry) => entry.status === 202);
  return posts.length === 40 && answered && registry.journal.some((entry) => entry.method === 'PUT');
}

describe('a signal during an upload', () => {
  it.each([
    ['SIGINT', 130, 'INTERRUPTED'],
    ['SIGTERM', 143, 'TERMINATED'],
  ] as const)('%s cancels the sessions, moves no tag and ends with %i', async (signal, exitCode, code) => {
    registry.configure({ upload: { commit: 'slow(60000)' } });
    const { child, ended, output } = start(['publish', target, ...sources]);
    await until(uploading);
    const at = performance.now();
    child.kill(signal);
    expect(await ended).toBe(exitCode);
    expect(performance.now() - at).toBeLessThan(3000);
    expect(output.stderr).toContain(`${code} (exit ${exitCode})`);
    expect(output.stderr).toContain('Run the same command again');
    expect(output.stdout).toBe('');
    expect(registry.tagOf('debian/debian', 'bullseye')).toBeUndefined();
    expect(registry.openSessions('debian/debian')).toBe(0);
  });

  it('the second one ends it at once', async () => {
    registry.configure({ upload: { commit: 'slow(60000)' } });
    const { child, ended } = start(['publish', target, ...sources]);
    await until(uploading);
    registry.configure({ answer: { latencyMs: 60_000 } });
    child.kill('SIGINT');
    await until(() => registry.journal.some((entry) => entry.method === 'DELETE'));
    const at = performance.now();
    child.kill('SIGINT');
    expect(await ended).toBe(130);
    expect(performance.now() - at).toBeLessThan(1000);
  });

  it('the same command finishes it later', async () => {
    registry.configure({ upload: { commit: 'slow(60000)' } });
    const { child, ended } = start(['publish', target, ...sources]);
    await until(uploading);
    child.kill('SIGINT');
    await ended;
    registry.configure({ upload: { commit: 'ok' } });
    const { exitCode, stderr } = await cli(folder, ['publish', target, ...sources]);
    expect(exitCode, stderr).toBe(0);
    expect(registry.missingFrom('debian/debian', 'bullseye')).toEqual([]);
  });
});

describe('a reader that goes away', () => {
  it('neither stops the work nor makes a noise', async () => {
    const args = [BIN, 'publish', target, ...sources].map((arg) => `'${arg}'`).join(' ');
    const script = `set -o pipefail; '${process.execPath}' ${args} | true`;
    const { exitCode, stderr } = await run('/bin/bash', ['-c', script], { cwd: folder, env: variables(folder) });
    expect(stderr).not.toContain('EPIPE');
    expect(stderr).not.toContain('    at ');
    expect(exitCode).toBe(0);
    expect(registry.missingFrom('debian/debian', 'bullseye')).toEqual([]);
  });
});

describe('what nobody caught', () => {
  it.each([
    ['an exception', 'throw new TypeError("broken")'],
    ['a rejection', 'Promise.reject(new TypeError("broken"))'],
  ])('%s is told as a bug of ours and ends with 1', async (_, code) => {
    const crash = join(folder, 'crash.cjs');
    writeFileSync(crash, `setTimeout(() => { ${code} }, 500)`);
    const args = ['--require', crash, BIN, 'registry', 'serve', '--port', '0'];
    const { exitCode, stderr } = await run(process.execPath, args, { cwd: folder, env: variables(folder) });
    expect(stderr).toContain('TypeError: broken');
    expect(stderr).toMatch(/^manifest-publish\/\d+\.\d+\.\d+ /m);
    expect(stderr).not.toContain('    at ');
    expect(exitCode).toBe(1);
  });
});

describe('registry serve', () => {
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('prints its address, serves until %s, and ends with %i', async (signal, exitCode) => {
    const { child, ended, output } = start([
      'registry',
      'serve',
      '--port',
      '0',
      '--seed',
      'debian',
      '--profile',
      'gitea',
    ]);
    await until(() => output.stdout.endsWith('\n'));
    const host = output.stdout.trim();
    expect(host).toMatch(/^127\.0\.0\.1:\d+$/);
    await until(() => output.stderr.includes('debian/s390x:bullseye'));
    const inspected = await cli(folder, ['inspect', '--digest', `${host}/debian/amd64:bullseye`]);
    expect(inspected.stdout, inspected.stderr).toMatch(/^sha256:/);
    child.kill(signal);
    expect(await ended).toBe(exitCode);
    expect(output.stdout.trim()).toBe(host);
    expect(output.stderr).not.toContain('error:');
  });

  it('tells a login that needs no docker, and with --debug what it answered', async () => {
    const args = ['registry', 'serve', '--port', '0', '--seed', 'debian', '--profile', 'ecr-mounting', '--debug'];
    const { child, ended, output } = start(args);
    await until(() => output.stdout.endsWith('\n') && output.stderr.includes('debian/s390x:bullseye'));
    const [, DOCKER_AUTH_CONFIG = ''] = /export DOCKER_AUTH_CONFIG='(.*)'/.exec(output.stderr) ?? [];
    for (const host of [output.stdout.trim(), output.stdout.trim().replace('127.0.0.1', 'localhost')]) {
      const repositories = [`${host}/debian/debian:bullseye`, `${host}/debian/amd64:bullseye`];
      const { exitCode, stderr } = await cli(folder, ['publish', ...repositories], { env: { DOCKER_AUTH_CONFIG } });
      expect(exitCode, stderr).toBe(0);
    }
    child.kill('SIGTERM');
    await ended;
    expect(output.stderr).toMatch(/^GET \/v2\/debian\/amd64\/manifests\/bullseye 200$/m);
    expect(output.stderr).toMatch(/^POST \/v2\/debian\/debian\/blobs\/uploads\/\?mount=\S+ 201 mounted$/m);
    expect(output.stdout.trim()).toMatch(/^127\.0\.0\.1:\d+$/);
  });

  it.each([
    [['--profile', 'ecr-public'], /with --seed debian there is debian\/debian to publish to$/m],
    [
      ['--profile', 'ecr-reset', '--seed', 'debian'],
      /publish to localhost:\d+\/debian\/debian, which is there and empty$/m,
    ],
    [['--profile', 'spec'], undefined],
  ])('tells where to publish to if a push makes no repository: %j', async (flags, words) => {
    const { child, output, ended } = start(['registry', 'serve', '--port', '0', ...flags]);
    await until(() => output.stdout.includes('\n'));
    child.kill('SIGINT');
    await ended;
    if (words === undefined) expect(output.stderr).not.toContain('makes no repository');
    else expect(output.stderr).toMatch(words);
  });

  it('lists its profiles', async () => {
    const { stdout, exitCode } = await cli(folder, ['registry', 'serve', '--list-profiles']);
    for (const name of ['spec', 'ecr-public', 'docker-hub', 'ghcr'])
      expect(stdout).toMatch(new RegExp(`^${name} `, 'm'));
    expect(exitCode).toBe(0);
  });

  it('says when the port is taken', async () => {
    const port = registry.host.split(':')[1] ?? '';
    const { stderr, exitCode } = await cli(folder, ['registry', 'serve', '--port', port]);
    expect(stderr).toContain(`port ${port} (EADDRINUSE)`);
    expect(stderr).toContain('perhaps another registry serve');
    expect(exitCode).toBe(8);
  });
});
