import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { emptyFolder, variables } from '../cli/program.ts';
import { makeImage, putBuilt } from '../helpers/images.ts';
import { run } from '../helpers/processes.ts';
import { BIN, judged, runProgram } from '../helpers/program.ts';
import { startRegistry } from '../helpers/registry.ts';
import { canary } from '../helpers/watching.ts';

// The rows of the fault matrix that are about this machine: they run the built program.

const PASSWORD = canary();
const PRIVATE = { auth: { scheme: 'basic', anonymousPull: false } } as const;

let folder: string;
let registry: RunningRegistry;

beforeEach(async () => {
  folder = emptyFolder();
  registry = await startRegistry({ users: [{ name: 'robot', password: PASSWORD }] });
  for (const architecture of ['amd64', 'arm64']) {
    putBuilt(registry, `t/${architecture}`, makeImage(architecture, { platform: { architecture, os: 'linux' } }), '1');
  }
});

afterEach(() => registry.close());

const target = () => `${registry.host}/t/all:1`;
const sources = () => ['amd64', 'arm64'].map((name) => `${registry.host}/t/${name}:1`);
const secrets = () => [{ text: PASSWORD, host: registry.host }];

const mp = (words: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  runProgram(words, { folder, env: variables(folder, env), secrets: secrets() });

const store = () => join(folder, 'store');
const withStore = (words: readonly string[]) => mp(words, { MANIFEST_PUBLISH_DATA_DIR: store() });

it('row 44: two publishers of the same content both end well', async () => {
  const both = await Promise.all([1, 2].map(() => mp(['publish', target(), ...sources()])));
  expect(both.map(({ exitCode }) => exitCode)).toEqual([0, 0]);
  expect(new Set(both.map(({ stdout }) => stdout)).size).toBe(1);
  expect(registry.missingFrom('t/all', '1')).toEqual([]);
});

describe('row 48: local files', () => {
  it('a result that cannot be written is said, and what was published with it', async () => {
    const line = `'${process.execPath}' '${BIN}' publish ${target()} ${sources().join(' ')} > /dev/full`;
    const work = () => run('/bin/bash', ['-c', line], { cwd: folder, env: variables(folder) });
    const { exitCode, stderr } = await judged(work, { words: [line], folder });
    expect(exitCode).toBe(8);
    expect(stderr).toContain('what was asked for is published');
  });

  it('a report where no file can be is refused before anything is sent', async () => {
    const { exitCode } = await mp([
      'publish',
      target(),
      ...sources(),
      '--report',
      join(folder, 'no', 'such', 'folder.json'),
    ]);
    expect(exitCode).toBe(8);
    expect(registry.journal.filter(({ method }) => method === 'PUT')).toEqual([]);
  });

  it('a store that is a file', async () => {
    writeFileSync(store(), '');
    const { exitCode, stderr } = await withStore(['create', target(), ...sources()]);
    expect(exitCode).toBe(8);
    expect(stderr).toContain(store());
  });
});

/** Files of drafts below a folder. */
const readDrafts = (below: string): readonly string[] =>
  readdirSync(below, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.json'))
    .map((entry) => join(entry.parentPath, entry.name));

describe('row 49: drafts', () => {
  it('a damaged one is named, and left as it is', async () => {
    await withStore(['create', target(), ...sources()]);
    const [file = ''] = readDrafts(store());
    writeFileSync(file, '{"half');
    const { exitCode, stderr } = await withStore(['push', target()]);
    expect(exitCode).toBe(8);
    expect(stderr).toContain(file);
    expect(readFileSync(file, 'utf8')).toBe('{"half');
    expect(registry.tagOf('t/all', '1')).toBeUndefined();
  });

  it('a store that is a symbolic link is not written through', async () => {
    const elsewhere = join(folder, 'elsewhere');
    mkdirSync(elsewhere);
    symlinkSync(elsewhere, store());
    const { exitCode } = await withStore(['create', target(), ...sources()]);
    // A link that the user made himself may be followed; what lies behind it stays a store like any other.
    if (exitCode === 0) expect(readDrafts(elsewhere)).toHaveLength(1);
    else expect(exitCode).toBe(8);
  });

  it('two writers at once lose nothing', async () => {
    await withStore(['create', target(), ...sources()]);
    const words = (at: number) => ['annotate', target(), sources()[at] ?? '', '--os-features', `f${at}`];
    const ends = await Promise.all([0, 1].map((at) => withStore(words(at))));
    expect(ends.map(({ exitCode }) => exitCode)).toEqual([0, 0]);
    const { stdout } = await withStore(['inspect', '--local', target()]);
    expect(stdout).toContain('f0');
    expect(stdout).toContain('f1');
  });
});

/** A credential helper, as a shell script on PATH. */
const helper = (script: string): Readonly<Record<string, string>> => {
  const programs = join(folder, 'programs');
  mkdirSync(programs, { recursive: true });
  mkdirSync(join(folder, '.docker'), { recursive: true });
  const file = join(programs, 'docker-credential-test');
  writeFileSync(file, `#!/bin/sh\necho "$@" > '${join(folder, 'argv')}'\n${script}\n`);
  chmodSync(file, 0o755);
  writeFileSync(join(folder, '.docker', 'config.json'), JSON.stringify({ credHelpers: { [registry.host]: 'test' } }));
  return { PATH: `${programs}:${process.env['PATH'] ?? ''}` };
};

describe('row 50: a credential helper', () => {
  it.each([
    ['fails', `echo '${PASSWORD}' ; exit 1`, 'ended with 1'],
    ['prints 10 MB', `yes '${PASSWORD}' | head -c 10000000`, 'more than'],
    ['prints nonsense', `echo '{"Secret":"${PASSWORD}'`, 'not a login'],
  ])('that %s ends the run with its name', async (_name, script, words) => {
    registry.configure(PRIVATE);
    const { exitCode, stderr } = await mp(['publish', target(), ...sources()], helper(script));
    expect(exitCode).toBe(3);
    expect(stderr).toContain('docker-credential-test');
    expect(stderr).toContain(words);
    expect(registry.journal.filter(({ status }) => status !== 401)).toEqual([]);
  });

  it('that is missing', async () => {
    registry.configure(PRIVATE);
    helper('true');
    const { exitCode, stderr } = await mp(['publish', target(), ...sources()]);
    expect(exitCode).toBe(3);
    expect(stderr).toContain('is not on PATH');
  });

  it('that works is asked with nothing secret in its words', async () => {
    registry.configure(PRIVATE);
    const login = JSON.stringify({ ServerURL: 'x', Username: 'robot', Secret: PASSWORD });
    const { exitCode, stderr } = await mp(
      ['publish', target(), ...sources(), '--debug'],
      helper(`cat <<'E'\n${login}\nE`),
    );
    expect(exitCode, stderr).toBe(0);
    expect(readFileSync(join(folder, 'argv'), 'utf8')).toBe('get\n');
  });
});

describe('row 52: readers', () => {
  it.each(['| true', '2>&- ', '>&- 2>&-'])('the work goes on to its end: %s', async (rest) => {
    const line = `'${process.execPath}' '${BIN}' publish ${target()} ${sources().join(' ')} ${rest}`;
    const work = () => run('/bin/bash', ['-c', line], { cwd: folder, env: variables(folder, { CI: '1' }) });
    await judged(work, { words: [line], folder });
    expect(registry.tagOf('t/all', '1')).toBeDefined();
    expect(registry.missingFrom('t/all', '1')).toEqual([]);
  });
});

it('row 55: words of a registry are no commands of a runner, and no escapes', async () => {
  const message = 'no\r\n::set-output name=x::y\n::error::z\u001b[31m\u202egpj ##[error]';
  const body = JSON.stringify({ errors: [{ code: 'DENIED', message }] });
  registry.addFault({
    operation: 'manifestPut',
    times: Number.POSITIVE_INFINITY,
    action: { kind: 'answer', status: 403, body },
  });
  const { exitCode, stdout, stderr } = await mp(['publish', target(), ...sources()], {
    GITHUB_ACTIONS: 'true',
    CI: 'true',
  });
  expect(exitCode).toBe(3);
  const text = `${stdout}${stderr}`;
  for (const bad of ['##[', '\u001b', '\r', '\u202e']) expect(text).not.toContain(bad);
  expect(text).not.toMatch(/^\s*::/m);
});
