import { chmodSync, cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { run } from '../helpers/processes.ts';
import { BIN, cli, emptyFolder, parsed } from './program.ts';

const folder = emptyFolder();

// Only root may become a user that nobody knows.
describe.runIf(process.getuid?.() === 0)('a user without an entry in passwd', () => {
  it('can run the program without HOME', async () => {
    // The checkout may lie where only its owner may look.
    const open = emptyFolder();
    chmodSync(open, 0o755);
    for (const name of ['bin', 'lib', 'package.json', 'oclif.manifest.json']) {
      cpSync(join(BIN, '..', '..', name), join(open, name), { recursive: true });
    }
    const program = join(open, 'bin', 'run.js');
    const args = ['--reuid', '54321', '--clear-groups', process.execPath, program, 'publish', 'A/B', 'x'];
    const { stderr, exitCode } = await run('setpriv', args, { cwd: '/', env: {} });
    expect(stderr).toMatch(/must be lowercase/);
    expect(exitCode).toBe(2);
  });
});

describe('version and help', () => {
  it.each([['--version'], ['-v']])('%s prints name, version, machine and Node', async (flag) => {
    const { stdout, stderr, exitCode } = await cli(folder, [flag]);
    expect(stdout).toMatch(/^manifest-publish\/\d+\.\d+\.\d+ \S+-\S+ node-v\d+\.\d+\.\d+\n$/);
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
  });

  it.each([[[]], [['--help']], [['-h']], [['help']]])('%j lists the commands', async (args) => {
    const { stdout, stderr, exitCode } = await cli(folder, args);
    for (const command of ['publish', 'inspect', 'verify', 'registry', 'demo'])
      expect(stdout).toContain(`  ${command} `);
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
  });

  it.each([
    [['publish', '--help']],
    [['help', 'publish']],
    [['publish', 'a', 'b', '-h']],
    [['--progress', 'plain', 'publish', '--help']],
  ])('%j explains publish', async (args) => {
    const { stdout, exitCode } = await cli(folder, args);
    expect(stdout).toContain('$ manifest-publish publish TARGET SOURCE... [FLAG...]');
    expect(stdout).toContain('--expect-platforms');
    expect(exitCode).toBe(0);
  });

  it('a topic alone lists its commands', async () => {
    const { stdout, exitCode } = await cli(folder, ['registry']);
    expect(stdout).toContain('registry serve');
    expect(exitCode).toBe(0);
  });

  it('no line of it is wider than a terminal', () => {
    const { help } = JSON.parse(readFileSync(new URL('../../lib/help.json', import.meta.url), 'utf8'));
    for (const [name, text] of Object.entries<string>(help)) {
      for (const line of text.split('\n')) expect(line.length, `${name}: ${line}`).toBeLessThanOrEqual(80);
    }
  });

  it('what follows -- is no flag', async () => {
    const { stderr, exitCode } = await cli(folder, ['inspect', '--', '--help']);
    expect(stderr).toContain('REFERENCE_INVALID');
    expect(exitCode).toBe(2);
  });
});

describe('a wrong command line ends with exit code 2 and a hint', () => {
  it.each([
    ['unknown flag', ['publish', 'a', 'b', '--jbos', '4'], 'unknown flag --jbos', 'Did you mean --jobs?'],
    ['login as a flag', ['publish', 'a', 'b', '--username=me'], 'unknown flag --username', 'run docker login HOST'],
    ['target as a flag', ['publish', '--target', 'a', 'b'], 'unknown flag --target', 'TARGET is the first argument'],
    ['source as a flag', ['publish', 'a', '-m', 'b'], 'unknown flag -m', 'Sources are arguments after TARGET'],
    ['-m of another command', ['verify', 'a', '-m'], 'unknown flag -m', 'hint: Run manifest-publish verify --help.'],
    ['login as a command', ['login', 'HOST'], 'unknown command "login"', 'run docker login HOST'],
    ['version as a command', ['version'], 'unknown command "version"', 'Write manifest-publish --version.'],
    ['words of docker', ['manifest', 'create', 'a'], 'unknown command "manifest"', 'Leave "manifest" out'],
    ['target behind -t', ['publish', '-t', 'h/a:1', 'h/b:1'], 'missing argument SOURCE', 'hint: TARGET comes first'],
    ['tag behind -t', ['publish', '-t', '1', 'h/b:1'], 'missing argument SOURCE', 'hint: Write TARGET SOURCE...'],
    ['missing argument', ['publish', 'a'], 'missing argument SOURCE', 'publish --help'],
    ['missing argument of another command', ['verify'], 'missing argument REF', 'verify --help'],
    ['no argument', ['publish'], 'missing argument TARGET, SOURCE', 'publish --help'],
    ['argument too many', ['verify', 'a', 'b'], '1 argument too many', 'Pass REF.'],
    ['missing value', ['publish', 'a', 'b', '--jobs'], 'flag --jobs expects a value', 'publish --help'],
    [
      'flag given twice',
      ['verify', 'a', '-j', '1', '-j', '2'],
      'flag --jobs can only be specified once',
      'verify --help',
    ],
    ['unknown command', ['pubish', 'a'], 'unknown command "pubish"', 'Did you mean "publish"?'],
    ['unknown command of a topic', ['registry', 'server'], 'unknown command "registry server"', 'registry serve'],
    ['topic without a command', ['registry', '--json=x'], '"registry" needs a command after it', 'registry serve'],
    ['help of an unknown command', ['help', 'pubish'], 'unknown command "pubish"', 'Did you mean "publish"?'],
    ['flag without a command', ['--nosuch'], 'unknown flag --nosuch', 'COMMAND --help'],
    ['flags that exclude each other', ['inspect', 'a', '--raw', '--tree'], 'cannot also be provided', 'inspect --help'],
    ['bad reference', ['verify', 'acme/App'], 'REFERENCE_INVALID', ''],
    ['bad source', ['publish', 'a', 'linux/amd64='], 'a source is empty', '[PLATFORM=]REF'],
    ['bad platform', ['publish', 'a', 'windows95=b'], 'PLATFORM_INVALID', ''],
    ['target with a digest', ['publish', `a@sha256:${'0'.repeat(64)}`, 'b'], 'a target cannot have a digest', ''],
    ['bad tag', ['publish', 'a', 'b', '-t', '-x'], 'not a tag', ''],
    ['bad type', ['publish', 'a', 'b', '--type', 'oct'], '--type must be one of auto, oci, docker', ''],
    ['bad progress', ['verify', 'a', '--progress', 'fancy'], '--progress must be one of auto, tty', ''],
    ['bad duration', ['verify', 'a', '--timeout', '10'], '--timeout must be a duration such as 90s', '--timeout=10s.'],
    ['no duration', ['verify', 'a', '--timeout', 'soon'], '--timeout must be a duration such as 90s', '--timeout=10m.'],
    ['bad count', ['verify', 'a', '-j', '100'], '--jobs must be a whole number from 1 to 64', '--jobs=64.'],
    ['bad rate', ['verify', 'a', '--max-rps', 'docker.io'], '--max-rps must be HOST=N', 'docker.io=5'],
    ['bad profile', ['registry', 'serve', '--profile', 'ecr-publik'], 'no profile "ecr-publik"', 'ecr-public'],
    [
      'beginning of a profile',
      ['registry', 'serve', '--profile', 'ecr'],
      'no profile "ecr"',
      'ecr-off, ecr-mounting, ',
    ],
    [
      'bad port',
      ['registry', 'serve', '--port', '65536'],
      '--port must be a whole number from 0 to 65535',
      '--port=65535.',
    ],
    ['no port', ['registry', 'serve', '--port', 'abc'], '--port must be a whole number', '--port=5001.'],
  ] as const)('%s', async (_, args, message, hint) => {
    const { stdout, stderr, exitCode } = await cli(folder, args);
    expect(stderr).toContain(message);
    expect(stderr).toContain(`hint: `);
    expect(stderr).toContain(hint);
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 });
  });

  it.each([
    ['MANIFEST_PUBLISH_JOBS', 'many', 'MANIFEST_PUBLISH_JOBS must be a whole number'],
    ['MANIFEST_PUBLISH_TIMEOUT', 'soon', 'MANIFEST_PUBLISH_TIMEOUT must be a duration'],
    ['MANIFEST_PUBLISH_RETRIES', '-1', 'MANIFEST_PUBLISH_RETRIES must be a whole number'],
    ['MANIFEST_PUBLISH_PROGRESS', 'fancy', 'MANIFEST_PUBLISH_PROGRESS must be one of'],
    ['MANIFEST_PUBLISH_MAX_RPS', 'docker.io=1,x', 'MANIFEST_PUBLISH_MAX_RPS must be HOST=N'],
  ])('%s=%s', async (name, value, message) => {
    const { stderr, exitCode } = await cli(folder, ['verify', '127.0.0.1:1/a'], { env: { [name]: value } });
    expect(stderr).toContain(message);
    expect(exitCode).toBe(2);
  });
});

describe('--json', () => {
  it('prints an error as one document on stdout, with the same exit code', async () => {
    const finished = await cli(folder, ['publish', 'a', 'b', '--json', '--no-such-flag']);
    expect(parsed(finished)).toEqual({
      error: {
        code: 'USAGE_INVALID',
        message: 'unknown flag --no-such-flag',
        hint: 'Run manifest-publish publish --help.',
        side: 'local',
        exitCode: 2,
      },
    });
    expect({ stderr: finished.stderr, exitCode: finished.exitCode }).toEqual({ stderr: '', exitCode: 2 });
  });

  it('also for an unknown command', async () => {
    const finished = await cli(folder, ['pubish', '--json']);
    expect(parsed(finished)).toMatchObject({ error: { code: 'USAGE_INVALID', exitCode: 2 } });
  });

  it.each([
    [['publish', 'a', 'b', '--password=hunter2', '--json']],
    [['publish', 'a', 'b', '--password=hunter2']],
    [['verify', 'a', '--password', 'hunter2', '--json']],
    [['verify', 'a', 'hunter2', '--json']],
    [['verify', 'a', '--timeout', 'hunter2', '--json']],
    [['verify', 'a', '--max-rps', 'x=hunter2']],
    [['hunter2', '--json']],
    [['--password=hunter2']],
  ])('and no value of the command line: %j', async (args) => {
    const { stdout, stderr, exitCode } = await cli(folder, args);
    // A word in the place of a command is no value.
    if (args[0] !== 'hunter2') expect(stdout + stderr).not.toContain('hunter2');
    expect(`${stdout}${stderr}`.split('\n').length).toBeLessThan(14);
    expect(exitCode).toBe(2);
  });
});

describe('a configuration file', () => {
  it('that is wrong is told with line and column', async () => {
    const own = emptyFolder();
    writeFileSync(join(own, 'manifest-publish.yaml'), 'jobs: 4\nretris: 1\n');
    const { stderr, exitCode } = await cli(own, ['verify', '127.0.0.1:1/a']);
    expect(stderr).toContain('manifest-publish.yaml:2:1: unknown key "retris"');
    expect(stderr).toContain('Did you mean "retries"?');
    expect(exitCode).toBe(2);
  });

  it('found by search may not make a registry insecure', async () => {
    const own = emptyFolder();
    writeFileSync(join(own, 'manifest-publish.yaml'), 'registries:\n  ghcr.io:\n    insecure: true\n');
    const { stderr, exitCode } = await cli(own, ['verify', '127.0.0.1:1/a']);
    expect(stderr).toContain('manifest-publish.yaml:3:5: a configuration found by search may not set "insecure"');
    expect(stderr).toContain('--config manifest-publish.yaml');
    expect(exitCode).toBe(2);
  });

  it('that is named may be before or after the arguments', async () => {
    for (const args of [
      ['verify', '--config', 'missing.yaml', '127.0.0.1:1/a'],
      ['verify', '127.0.0.1:1/a', '--config=missing.yaml'],
      ['--config', 'missing.yaml', 'verify', '127.0.0.1:1/a'],
    ]) {
      const { stderr, exitCode } = await cli(folder, args);
      expect(stderr).toContain('missing.yaml: cannot be read (ENOENT)');
      expect(exitCode).toBe(2);
    }
  });
});
