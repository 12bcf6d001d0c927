import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { isMainThread } from 'node:worker_threads';
import { afterAll, describe, expect, it } from 'vitest';
import { keysFor, normaliseKey } from '../../src/auth/auth-file.ts';
import { createCredentialSource } from '../../src/auth/credentials.ts';
import { createHelperRunner, type HelperRun } from '../../src/auth/helper.ts';
import { type Credential, Secret } from '../../src/http/origin.ts';
import { failure } from '../http/fixture.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');

/** A source over files and helpers that exist in memory only. */
function source(
  files: Readonly<Record<string, unknown>>,
  rest: {
    env?: Record<string, string>;
    helpers?: Record<string, (server: string) => Partial<HelperRun> | object>;
  } = {},
) {
  const read: string[] = [];
  const asked: string[] = [];
  const credentials = createCredentialSource({
    env: { ...rest.env },
    home: '/home/u',
    readFile: async (path) => {
      read.push(path);
      const content = files[path];
      return content === undefined || typeof content === 'string' ? content : JSON.stringify(content);
    },
    runHelper: async (program, server) => {
      asked.push(`${program} ${server}`);
      const answer = rest.helpers?.[program]?.(server);
      if (answer === undefined) return { kind: 'failed', why: 'is not on PATH' };
      if ('kind' in answer) return { code: 0, stdout: '', stderr: '', ...answer } as HelperRun;
      return { kind: 'ended', code: 0, stdout: JSON.stringify(answer), stderr: '' };
    },
  });
  const user = async (host: string, repository = 'x/y') =>
    describeCredential(await credentials.lookup(host, repository));
  return { ...credentials, user, read, asked };
}

function describeCredential(credential: Credential): string {
  switch (credential.kind) {
    case 'none':
      return 'none';
    case 'basic':
      return `${credential.username}/${credential.password.reveal()}`;
    case 'identity-token':
      return `token ${credential.token.reveal()}`;
  }
}

const CONFIG = '/home/u/.docker/config.json';
const NOT_FOUND = { kind: 'ended', code: 1, stdout: 'credentials not found in native keychain\n' } as const;

describe('keys', () => {
  it.each([
    ['a.example.test', 'a.example.test'],
    ['https://b.example.test', 'b.example.test'],
    ['https://c.example.test/v2/', 'c.example.test'],
    ['d.example.test:5000', 'd.example.test:5000'],
    ['http://e.example.test:8080/', 'e.example.test:8080'],
    ['https://f.example.test/v1/', 'f.example.test'],
    ['HTTPS://G.Example.Test:443/', 'g.example.test'],
    ['https://index.docker.io/v1/', 'docker.io'],
    ['index.docker.io', 'docker.io'],
    ['registry-1.docker.io', 'docker.io'],
    ['docker.io/library', 'docker.io/library'],
    ['h.example.test/team/app', 'h.example.test/team/app'],
    ['[::1]:5000', '[::1]:5000'],
  ])('%s is %s', (key, normal) => {
    expect(normaliseKey(key)).toBe(normal);
  });

  it('are tried from the most particular on', () => {
    expect(keysFor('r.test', 'a/b/c')).toEqual(['r.test/a/b/c', 'r.test/a/b', 'r.test/a', 'r.test']);
    expect(keysFor('docker.io', 'library/debian')).toEqual([
      'docker.io/library/debian',
      'docker.io/library',
      'docker.io',
    ]);
    expect(keysFor('r.test', '')).toEqual(['r.test']);
  });
});

describe('logins in files', () => {
  it('AUT-01: one key serves all names of Docker Hub', async () => {
    const { user } = source({
      [CONFIG]: { auths: { 'https://index.docker.io/v1/': { auth: base64('hubuser:hub-pass') } } },
    });
    for (const host of ['docker.io', 'index.docker.io', 'registry-1.docker.io']) {
      expect(await user(host, 'library/debian')).toBe('hubuser/hub-pass');
    }
    expect(await user('quay.io')).toBe('none');
  });

  it('AUT-02: all spellings of a host are found', async () => {
    const keys = {
      'a.example.test': 'a',
      'https://b.example.test': 'b',
      'https://c.example.test/v2/': 'c',
      'd.example.test:5000': 'd',
      'http://e.example.test:8080/': 'e',
      'https://f.example.test/v1/': 'f',
    };
    const auths = Object.fromEntries(Object.entries(keys).map(([key, name]) => [key, { auth: base64(`${name}:x`) }]));
    const { user } = source({ [CONFIG]: { auths } });
    for (const [key, name] of Object.entries(keys)) expect(await user(normaliseKey(key))).toBe(`${name}/x`);
  });

  it('AUT-04: user and password are split at the first colon, in UTF-8', async () => {
    const { user } = source({
      [CONFIG]: { auths: { 'i.example.test': { auth: base64('robot$ci+push:p:ss:wörd \0\0') } } },
    });
    expect(await user('i.example.test')).toBe('robot$ci+push/p:ss:wörd ');
  });

  it('AUT-05: username and password are as good as auth', async () => {
    const entry = { username: 'u', password: 'p' };
    const { user } = source({ [CONFIG]: { auths: { 'j.test': entry, 'k.test': { ...entry, auth: '' } } } });
    expect(await user('j.test')).toBe('u/p');
    expect(await user('k.test')).toBe('u/p');
  });

  it('AUT-06: an identity token comes before the placeholder beside it', async () => {
    const auth = base64('00000000-0000-0000-0000-000000000000:');
    const { user } = source({ [CONFIG]: { auths: { 'l.test': { auth, identitytoken: 'REFRESH' } } } });
    expect(await user('l.test')).toBe('token REFRESH');
  });

  it('keep the two robots of a host apart, with $ and + in their names', async () => {
    const auths = {
      'harbor.test/one': { auth: base64('robot$one+ci:p$1+/=') },
      'harbor.test/two': { username: 'robot$two+ci', password: 'p:2' },
      'quay.test/org': { auth: base64('org+robot:x') },
    };
    const { user } = source({ [CONFIG]: { auths } });
    expect(await user('harbor.test', 'one/app')).toBe('robot$one+ci/p$1+/=');
    expect(await user('harbor.test', 'two/app')).toBe('robot$two+ci/p:2');
    expect(await user('harbor.test', 'three/app')).toBe('none');
    expect(await user('quay.test', 'org/app')).toBe('org+robot/x');
  });

  it('decide by the longest path', async () => {
    const auths = {
      'r.test': { auth: base64('host:x') },
      'r.test/team': { auth: base64('team:x') },
      'r.test/team/app': { auth: base64('app:x') },
    };
    const { user } = source({ [CONFIG]: { auths } });
    expect(await user('r.test', 'team/app')).toBe('app/x');
    expect(await user('r.test', 'team/app/deep')).toBe('app/x');
    expect(await user('r.test', 'team/other')).toBe('team/x');
    expect(await user('r.test', 'team-b/app')).toBe('host/x');
  });

  it.each([
    ['no JSON', 'not json {"auth":"c2VjcmV0"'],
    ['no object', '[]'],
    ['auth that is not base64', { auths: { 'r.test': { auth: 'sécret' } } }],
    ['auth without a colon', { auths: { 'r.test': { auth: base64('secret') } } }],
  ])('stop the program when there is %s, and are not quoted', async (_name, content) => {
    const error = await failure(source({ [CONFIG]: content }).user('r.test'));
    expect(error).toMatchObject({ code: 'CREDENTIALS_FAILED', exitCode: 3 });
    expect(error.message).toContain(CONFIG);
    expect(`${error.message}${error.hint}${inspect(error)}`).not.toMatch(/c2VjcmV0|s.cret/);
  });

  it('stop the program when they cannot be read', async () => {
    const credentials = createCredentialSource({
      env: {},
      home: '/home/u',
      readFile: () => Promise.reject(Object.assign(new Error('no'), { code: 'EACCES' })),
      runHelper: () => Promise.reject(new Error('unused')),
    });
    const error = await failure(credentials.lookup('r.test', 'a'));
    expect(error.code).toBe('CREDENTIALS_FAILED');
    expect(error.message).toContain('EACCES');
  });

  it('may be a variable, which is then to be mended', async () => {
    const error = await failure(source({}, { env: { DOCKER_AUTH_CONFIG: 'x' } }).user('r.test'));
    expect(error.message).toBe('cannot read the logins in DOCKER_AUTH_CONFIG: it is not JSON');
    expect(error.hint).toBe('Mend or unset DOCKER_AUTH_CONFIG.');
  });

  it('are remembered with their logins', async () => {
    const auths = { 'r.test': { auth: base64('u:x') } };
    const helpers = { 'docker-credential-h': () => ({ ServerURL: '', Username: 'u', Secret: 's' }) };
    const env = { DOCKER_AUTH_CONFIG: JSON.stringify({ auths: { 'i.test': { auth: base64('i:x') } } }) };
    const here = source({ [CONFIG]: { auths, credHelpers: { 'h.test': 'h' } } }, { env, helpers });
    const originOf = async (host: string) => here.originOf?.(await here.lookup(host, 'a'));
    expect(await originOf('i.test')).toBe('DOCKER_AUTH_CONFIG');
    expect(await originOf('r.test')).toBe(CONFIG);
    expect(await originOf('h.test')).toBe('docker-credential-h');
    expect(await originOf('none.test')).toBeUndefined();
  });

  it('are not needed', async () => {
    expect(await source({}).user('r.test')).toBe('none');
    expect(await source({ [CONFIG]: '' }).user('r.test')).toBe('none');
    expect(await source({ [CONFIG]: {} }).user('r.test')).toBe('none');
  });
});

describe('places of files', () => {
  const entry = (name: string) => ({ auths: { 'r.test': { auth: base64(`${name}:x`) } } });
  const RUN = '/run/u/containers/auth.json';
  const PODMAN = '/home/u/.config/containers/auth.json';

  it('are looked at in order, and only when needed, and once', async () => {
    const files = {
      '/auth.json': entry('file'),
      [CONFIG]: entry('docker'),
      [RUN]: entry('run'),
      [PODMAN]: entry('podman'),
    };
    const env = {
      DOCKER_AUTH_CONFIG: JSON.stringify(entry('inline')),
      REGISTRY_AUTH_FILE: '/auth.json',
      XDG_RUNTIME_DIR: '/run/u',
    };
    const all = source(files, { env });
    expect(all.read).toEqual([]);
    expect(await all.user('r.test')).toBe('inline/x');
    expect(await all.user('r.test', 'other')).toBe('inline/x');
    expect(all.read).toEqual(['/auth.json', CONFIG, RUN, PODMAN]);
    const { DOCKER_AUTH_CONFIG: _, ...withoutInline } = env;
    expect(await source(files, { env: withoutInline }).user('r.test')).toBe('file/x');
    expect(await source(files, { env: { XDG_RUNTIME_DIR: '/run/u' } }).user('r.test')).toBe('docker/x');
    expect(
      await source({ [RUN]: entry('run'), [PODMAN]: entry('podman') }, { env: { XDG_RUNTIME_DIR: '/run/u' } }).user(
        'r.test',
      ),
    ).toBe('run/x');
    expect(await source({ [PODMAN]: entry('podman') }).user('r.test')).toBe('podman/x');
  });

  it('follow DOCKER_CONFIG and XDG_CONFIG_HOME', async () => {
    const env = { DOCKER_CONFIG: '/d', XDG_CONFIG_HOME: '/c' };
    const here = source({ '/d/config.json': entry('docker') }, { env });
    expect(await here.user('r.test')).toBe('docker/x');
    expect(here.read).toEqual(['/d/config.json', '/c/containers/auth.json']);
  });

  it('may name no programs in the environment', async () => {
    const inline = JSON.stringify({ credHelpers: { 'r.test': 'evil' }, credsStore: 'evil' });
    const here = source({}, { env: { DOCKER_AUTH_CONFIG: inline } });
    expect(await here.user('r.test')).toBe('none');
    expect(here.asked).toEqual([]);
  });
});

describe('helpers', () => {
  const login = (name: string) => ({ ServerURL: 'x', Username: name, Secret: 's' });

  it('AUT-03: an empty entry sends the look-up to the store', async () => {
    const config = { auths: { 'h.example.test': {}, 'https://index.docker.io/v1/': {} }, credsStore: 'fake' };
    const store = (server: string) => (/^(https:\/\/)?h\.example\.test$/.test(server) ? login('fromstore') : NOT_FOUND);
    const here = source({ [CONFIG]: config }, { helpers: { 'docker-credential-fake': store } });
    expect(await here.user('h.example.test')).toBe('fromstore/s');
    expect(await here.user('docker.io')).toBe('none');
    expect(here.asked).toEqual([
      'docker-credential-fake h.example.test',
      'docker-credential-fake https://index.docker.io/v1/',
    ]);
  });

  it('are asked under the name that the file has for the host', async () => {
    const config = { auths: { 'https://h.test/v2/': {} }, credsStore: 'fake' };
    const store = (server: string) => (server === 'https://h.test/v2/' ? login('u') : NOT_FOUND);
    expect(await source({ [CONFIG]: config }, { helpers: { 'docker-credential-fake': store } }).user('h.test')).toBe(
      'u/s',
    );
  });

  it('AUT-08: the helper of the host comes before the store, and has the only word', async () => {
    const config = {
      credHelpers: { 'r.test': 'own' },
      credsStore: 'store',
      auths: { 'r.test': { auth: base64('file:x') } },
    };
    const helpers = { 'docker-credential-own': () => login('own'), 'docker-credential-store': () => login('store') };
    const here = source({ [CONFIG]: config }, { helpers });
    expect(await here.user('r.test')).toBe('own/s');
    expect(await here.user('other.test')).toBe('store/s');
    const without = source({ [CONFIG]: config }, { helpers: { ...helpers, 'docker-credential-own': () => NOT_FOUND } });
    expect(await without.user('r.test')).toBe('none');
    expect(without.asked).toEqual(['docker-credential-own r.test']);
  });

  it('have a login for each path of a host, the longest first, and the host’s for the rest', async () => {
    const config = { auths: { 'quay.test': {}, 'quay.test/a': {}, 'quay.test/a/b': {} }, credsStore: 'fake' };
    const names = ['quay.test', 'quay.test/a'];
    const store = (server: string) => (names.includes(server) ? login(server) : NOT_FOUND);
    const here = source({ [CONFIG]: config }, { helpers: { 'docker-credential-fake': store } });
    expect(await here.user('quay.test', 'a/b/x')).toBe('quay.test/a/s');
    expect(await here.user('quay.test', 'a/x')).toBe('quay.test/a/s');
    expect(await here.user('quay.test', 'c/x')).toBe('quay.test/s');
    expect(here.asked.map((line) => line.split(' ')[1])).toEqual(['quay.test/a/b', 'quay.test/a', 'quay.test']);
  });

  it('that are named for a longer path come before the login of the host in the file', async () => {
    const auths = { 'quay.test': { auth: base64('host:x') }, 'quay.test/a': {} };
    const store = (server: string) => (server === 'quay.test/a' ? login('robot') : NOT_FOUND);
    const helpers = { 'docker-credential-fake': store };
    const here = source({ [CONFIG]: { auths, credsStore: 'fake' } }, { helpers });
    expect(await here.user('quay.test', 'a/x')).toBe('robot/s');
    expect(await here.user('quay.test', 'b/x')).toBe('host/x');
    expect(await source({ [CONFIG]: { auths } }).user('quay.test', 'a/x')).toBe('host/x');
  });

  it('may be named by path, are asked for it, and then for the host', async () => {
    const config = { credHelpers: { 'quay.test/a': 'one', 'quay.test/b': 'one', 'quay.test': 'two' } };
    const one = (server: string) => (server === 'quay.test/b' ? NOT_FOUND : login(`one ${server}`));
    const helpers = { 'docker-credential-one': one, 'docker-credential-two': () => login('two') };
    const here = source({ [CONFIG]: config }, { helpers });
    expect(await here.user('quay.test', 'a/x')).toBe('one quay.test/a/s');
    expect(await here.user('quay.test', 'b/x')).toBe('one quay.test/s');
    expect(await here.user('quay.test', 'c/x')).toBe('two/s');
  });

  it('come after a login that stands in the file', async () => {
    const config = { auths: { 'r.test': { auth: base64('file:x') } }, credsStore: 'store' };
    const here = source({ [CONFIG]: config }, { helpers: { 'docker-credential-store': () => login('store') } });
    expect(await here.user('r.test')).toBe('file/x');
    expect(here.asked).toEqual([]);
  });

  it('are asked once for a host, however many repositories it has', async () => {
    const here = source({ [CONFIG]: { credsStore: 's' } }, { helpers: { 'docker-credential-s': () => login('u') } });
    const [one, two] = await Promise.all([here.lookup('r.test', 'a'), here.lookup('r.test', 'b')]);
    expect(one).toBe(two);
    expect(here.asked).toHaveLength(1);
  });

  it('call an identity token <token>', async () => {
    const here = source(
      { [CONFIG]: { credsStore: 's' } },
      { helpers: { 'docker-credential-s': () => login('<token>') } },
    );
    expect(await here.user('r.test')).toBe('token s');
  });

  it.each<[string, Partial<HelperRun> | undefined, string]>([
    ['is missing', undefined, 'is not on PATH'],
    [
      'fails with words on stderr',
      { kind: 'ended', code: 2, stderr: 'token\x1b[31m expired\n::error::x' },
      'token expired ::error::x',
    ],
    ['fails with words on stdout', { kind: 'ended', code: 1, stdout: 'no session' }, 'no session'],
    ['fails silently', { kind: 'ended', code: 1 }, 'it gave no reason'],
    ['prints nonsense', { kind: 'ended', code: 0, stdout: 'secret' }, 'not a login'],
    ['prints half a login', { kind: 'ended', code: 0, stdout: '{"Username":"secret"}' }, 'not a login'],
    ['takes too long', { kind: 'failed', why: 'did not answer within 30 s' }, 'within 30 s'],
  ])('stop the program when one %s', async (_name, run, words) => {
    const helpers = run === undefined ? {} : { 'docker-credential-s': () => run };
    const error = await failure(source({ [CONFIG]: { credsStore: 's' } }, { helpers }).user('r.test'));
    expect(error).toMatchObject({ code: 'CREDENTIALS_FAILED', exitCode: 3, registry: 'r.test' });
    expect(error.message).toContain('docker-credential-s');
    expect(error.message).toContain(words);
    expect(error.message).not.toContain('secret');
  });

  it('are to be installed or given up where they are missing', async () => {
    const error = await failure(source({ [CONFIG]: { credsStore: 's' } }).user('r.test'));
    expect(error.hint).toBe("Install docker-credential-s, or take it out of docker's config.json and log in again.");
  });

  it('do not have a login repeated that they print as they fail', async () => {
    const run = { kind: 'ended', code: 1, stdout: '{"Username":"u","Secret":"hunter2"}' } as const;
    const helpers = { 'docker-credential-s': () => run };
    const error = await failure(source({ [CONFIG]: { credsStore: 's' } }, { helpers }).user('r.test'));
    expect(error.message).not.toContain('hunter2');
  });

  it.each(['../evil', 'a b', 'a;b', 'ä', '$(x)', 'a/b'])('are not run under the name %j', async (name) => {
    const here = source({ [CONFIG]: { credsStore: name } });
    expect((await failure(here.user('r.test'))).code).toBe('CREDENTIALS_FAILED');
    expect(here.asked).toEqual([]);
  });

  it('are not asked for a host that could smuggle a line', async () => {
    const here = source({ [CONFIG]: { credsStore: 's' } });
    expect((await failure(here.user('r.test\nhost=evil'))).code).toBe('CREDENTIALS_FAILED');
    expect(here.asked).toEqual([]);
  });
});

/** Whether the process does something; one that has ended may wait for its parent to notice. */
function isRunning(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false;
    throw error;
  }
}

describe('running a helper', () => {
  const folders: string[] = [];
  afterAll(async () => {
    for (const folder of folders) await rm(folder, { recursive: true, force: true });
  });

  async function helper(script: string, name = 'docker-credential-test'): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'helper-'));
    folders.push(folder);
    await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`);
    await chmod(join(folder, name), 0o755);
    return folder;
  }
  const runner = (path: string, timeLimit = 5000) =>
    createHelperRunner({ env: { PATH: path }, platform: 'linux', timeLimit });

  it('gives it the server on stdin and "get" as its only argument', async () => {
    const path = await helper('read -r server; echo "$# $1 $server"; echo words >&2; exit 3');
    expect(await runner(`${path}:/usr/bin:/bin`)('docker-credential-test', 'r.test')).toEqual({
      kind: 'ended',
      code: 3,
      stdout: '1 get r.test\n',
      stderr: 'words\n',
    });
  });

  it('works when it does not read its input', async () => {
    const path = await helper('exit 0');
    expect(await runner(path)('docker-credential-test', 'x'.repeat(200_000))).toMatchObject({ kind: 'ended', code: 0 });
  });

  it('ends it after its time, with what it has started', async () => {
    const path = await helper('sleep 30 & sleep 30');
    const pipes = () => process.getActiveResourcesInfo().filter((name) => name === 'PipeWrap').length;
    const before = pipes();
    const start = performance.now();
    const run = await runner(`${path}:/usr/bin:/bin`, 200)('docker-credential-test', 'r.test');
    expect(run).toEqual({ kind: 'failed', why: 'did not answer within 0.2 s' });
    expect(performance.now() - start).toBeLessThan(5000);
    // What it started lives on, but holds nothing of ours open.
    await expect.poll(pipes).toBeLessThanOrEqual(before);
  });

  it('ends it with the run, and what it has started with it', async () => {
    const ending = new AbortController();
    const folder = await helper('sleep 30 & echo $! > "$0.child"; sleep 30');
    const killGroup = (leader: number) => void process.kill(-leader, 'SIGKILL');
    const run = createHelperRunner({
      env: { PATH: `${folder}:/usr/bin:/bin` },
      platform: 'linux',
      signal: ending.signal,
      killGroup,
    });
    const answer = run('docker-credential-test', 'r.test');
    let child = 0;
    await expect
      .poll(async () => {
        child = Number(await readFile(join(folder, 'docker-credential-test.child'), 'utf8').catch(() => ''));
        return child;
      })
      .toBeGreaterThan(0);
    ending.abort();
    expect(await answer).toEqual({ kind: 'failed', why: 'was ended with the run' });
    await expect.poll(() => isRunning(child)).toBe(false);
    expect(await run('docker-credential-test', 'r.test')).toEqual({ kind: 'failed', why: 'was ended with the run' });
  });

  it('does not wait for what it leaves running', async () => {
    const path = await helper('sleep 30 & head -c 60000 /dev/zero | tr "\\0" x');
    const start = performance.now();
    const run = await runner(`${path}:/usr/bin:/bin`)('docker-credential-test', 'r.test');
    expect(run).toEqual({ kind: 'ended', code: 0, stdout: 'x'.repeat(60_000), stderr: '' });
    expect(performance.now() - start).toBeLessThan(4000);
  });

  it('ends it after 64 KiB', async () => {
    const path = await helper('while :; do echo 0123456789012345678901234567890123456789; done');
    expect(await runner(path)('docker-credential-test', 'r.test')).toMatchObject({
      kind: 'failed',
      why: 'printed more than 65536 bytes',
    });
  });

  // A thread, as mutation tests run in, cannot change its folder.
  it.runIf(isMainThread)('looks for it on PATH alone, never in the current folder', async () => {
    const path = await helper('exit 0');
    const before = process.cwd();
    const missing = { kind: 'failed', why: 'is not on PATH' };
    for (const nowhere of ['', ':', '.', '.:/nonexistent']) {
      process.chdir(path);
      try {
        expect(await runner(nowhere)('docker-credential-test', 'r.test')).toEqual(missing);
      } finally {
        process.chdir(before);
      }
    }
  });

  it('says when it cannot be run', async () => {
    const path = await helper('exit 0');
    await writeFile(join(path, 'docker-credential-test'), '#!/nonexistent\n');
    expect(await runner(path)('docker-credential-test', 'r.test')).toMatchObject({ kind: 'failed' });
    expect(await readFile(join(path, 'docker-credential-test'), 'utf8')).toContain('nonexistent');
  });
});

describe('a secret', () => {
  it('is never printed', () => {
    const secret = new Secret('hunter2');
    const credential: Credential = { kind: 'basic', username: 'u', password: secret };
    const printed = [
      String(secret),
      `${secret}`,
      JSON.stringify({ secret, credential }),
      inspect(credential, { depth: 9, showHidden: true }),
      inspect([secret]),
    ];
    for (const text of printed) {
      expect(text).toContain('***');
      expect(text).not.toContain('hunter2');
    }
    expect(secret.reveal()).toBe('hunter2');
  });
});
