import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { reportFailure } from '../../src/cli/report-failure.ts';
import type { World } from '../../src/cli/runtime.ts';
import { PublishError } from '../../src/errors.ts';

/** A process that only remembers. */
function fakeWorld(): { readonly world: World; readonly seen: { stdout: string; stderr: string; exitCode: number } } {
  const seen = { stdout: '', stderr: '', exitCode: 0 };
  const stream = () => new PassThrough() as unknown as NodeJS.WriteStream;
  const world: World = {
    env: {},
    folder: () => '/',
    home: () => '/',
    program: () => '/bin/run.js',
    writer: { pid: 1, host: 'here', isAlive: () => true },
    token: () => 'token',
    platform: 'linux',
    versions: 'linux-x64 node-v20.0.0',
    stdout: stream(),
    stdin: () => new PassThrough(),
    stderr: stream(),
    print: async (content) => {
      seen.stdout += content;
    },
    conceal: (text) => text,
    note: (text) => {
      seen.stderr += text;
    },
    command: (text) => {
      seen.stderr += text;
    },
    setExitCode: (code) => {
      seen.exitCode = code;
    },
    expectEnd: () => () => undefined,
    abortOnSignals: () => () => undefined,
    onCrash: () => undefined,
    endWithin: () => undefined,
  };
  return { world, seen };
}

async function reported(error: unknown, ...argv: string[]) {
  const { world, seen } = fakeWorld();
  await reportFailure(world, argv, error);
  return seen;
}

describe('a document that cannot be written', () => {
  it('is told for people instead, once, with the exit code of what failed', async () => {
    const { world, seen } = fakeWorld();
    let tries = 0;
    const full: World = {
      ...world,
      print: () => {
        tries += 1;
        return Promise.reject(new PublishError('FILE_FAILED', 'cannot write to stdout (ENOSPC)', 'Make room.'));
      },
    };
    await reportFailure(full, ['--json'], new PublishError('DENIED', 'may not push', 'Log in.'));
    expect(seen.stderr).toContain('may not push');
    expect({ tries, exitCode: seen.exitCode }).toEqual({ tries: 1, exitCode: 3 });
  });
});

describe('a hint', () => {
  const error = new PublishError(
    'USAGE_INVALID',
    'no',
    'Run manifest-publish ls, or npm install -g manifest-publish, then manifest-publish docker-plugin install.',
  );

  it('names the command that was typed: docker calls us as its plugin', async () => {
    const { world, seen } = fakeWorld();
    await reportFailure({ ...world, env: { DOCKER_CLI_PLUGIN_ORIGINAL_CLI_COMMAND: '/usr/bin/docker' } }, [], error);
    expect(seen.stderr).toContain(
      'hint: Run docker mpublish ls, or npm install -g manifest-publish, then docker mpublish docker-plugin install.',
    );
    expect((await reported(error)).stderr).toContain(`hint: ${error.hint}`);
  });
});

describe('a bug of ours', () => {
  const bug = new TypeError('x is not a function');

  it('is exit code 1, told with versions and what to do, without a stack', async () => {
    const { stdout, stderr, exitCode } = await reported(bug);
    expect(stderr).toContain('TypeError: x is not a function');
    expect(stderr).toMatch(/manifest-publish\/\d+\.\d+\.\d+ linux-x64 node-v20\.0\.0/);
    expect(stderr).toContain('--debug');
    expect(stderr).not.toContain('    at ');
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 1 });
  });

  it('shows its stack with --debug', async () => {
    expect((await reported(bug, '--debug')).stderr).toMatch(/ at .*report-failure\.test\.ts/);
  });

  it('is a document with --json', async () => {
    const { stdout, stderr, exitCode } = await reported(bug, 'publish', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'BUG', exitCode: 1 } });
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 1 });
  });
});

describe('a failure the user can act on', () => {
  const failure = new PublishError('DENIED', 'may not push', 'Log in.', {
    side: 'target',
    registry: 'ghcr.io',
    status: 403,
  });

  it('is told with its code, its place and what to do, never with a stack', async () => {
    const { stderr, exitCode } = await reported(failure, '--debug');
    for (const part of ['may not push', 'ghcr.io', '403', 'DENIED (exit 3)', 'Log in.']) expect(stderr).toContain(part);
    expect(stderr).not.toContain('    at ');
    expect(exitCode).toBe(3);
  });

  it('is a document with --json, unless that stands behind --', async () => {
    expect(JSON.parse((await reported(failure, '--json')).stdout)).toEqual({
      error: {
        code: 'DENIED',
        message: 'may not push',
        hint: 'Log in.',
        side: 'target',
        registry: 'ghcr.io',
        status: 403,
        exitCode: 3,
      },
    });
    expect((await reported(failure, '--', '--json')).stdout).toBe('');
  });
});
