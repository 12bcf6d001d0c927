import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { parseChallenges } from '../../src/auth/challenge.ts';
import { createCredentialSource } from '../../src/auth/credentials.ts';
import type { HelperRun } from '../../src/auth/helper.ts';
import { createLoginFinder } from '../../src/auth/login.ts';
import { mergeScopes, type Scope } from '../../src/auth/scope.ts';
import type { Secrets } from '../../src/auth/secrets.ts';
import { createTokenCache, type TokenWish } from '../../src/auth/token-cache.ts';
import type { HttpRequest, HttpResponse, Transport } from '../../src/http/message.ts';
import { type Credential, Secret } from '../../src/http/origin.ts';
import { basic } from './fixture.ts';

const NONE: Credential = { kind: 'none' };
const SECRETS: Secrets = { addLogin: () => undefined, add: () => undefined, conceal: (text) => text };
const pull = (repository: string): Scope => ({ repository, actions: 'pull' });
const push = (repository: string): Scope => ({ repository, actions: 'pull,push' });

describe('scopes', () => {
  it('name each repository once, in the order of the first mention, with the widest of its actions', () => {
    expect(mergeScopes([])).toEqual([]);
    expect(mergeScopes([pull('b'), push('a'), push('b'), pull('a'), pull('c')])).toEqual([
      push('b'),
      push('a'),
      pull('c'),
    ]);
    const all: Scope = { repository: 'a', actions: 'pull,push,delete' };
    expect(mergeScopes([pull('a'), all, push('a')])).toEqual([all]);
    expect(mergeScopes([all])).toEqual([all]);
  });
});

describe('challenges', () => {
  const read = (header: string) =>
    parseChallenges(header).map(({ scheme, parameters }) => [scheme, Object.fromEntries(parameters)]);

  it.each<[string, unknown]>([
    // Tabs are white space as well.
    ['\tBearer\trealm\t=\t"r"\t,\tservice="s"', [['bearer', { realm: 'r', service: 's' }]]],
    // One word in place of parameters ends at a comma or with the header, and else it was a parameter.
    [
      'Negotiate abc , Basic realm="a"',
      [
        ['negotiate', {}],
        ['basic', { realm: 'a' }],
      ],
    ],
    ['Negotiate abc\t', [['negotiate', {}]]],
    ['Negotiate a=b', [['negotiate', { a: 'b' }]]],
    // Equals signs end such a word; one that goes on behind them is nothing at all, and no parameter either.
    ['Negotiate a==b=c', [['negotiate', {}]]],
    [
      'Negotiate a==b=c, Bearer realm="r"',
      [
        ['negotiate', {}],
        ['bearer', { realm: 'r' }],
      ],
    ],
    ['Negotiate a==b', [['negotiate', {}]]],
    ['Negotiate =a', []],
    ['Negotiate a=, b=c', [['negotiate', { b: 'c' }]]],
    ['Negotiate -._~+/0aZ== , b=c', [['negotiate', { b: 'c' }]]],
    ['Negotiate a=b, c=d', [['negotiate', { a: 'b', c: 'd' }]]],
    [
      'Basic Bearer realm="r"',
      [
        ['basic', {}],
        ['bearer', { realm: 'r' }],
      ],
    ],
    ['Bearer realm=abc', [['bearer', { realm: 'abc' }]]],
    // A value without quotes ends at white space, a comma or a quote.
    ['Bearer realm=r service=s', [['bearer', { realm: 'r', service: 's' }]]],
    ['Bearer realm=r"x", service=s', [['bearer', { realm: 'r', service: 's' }]]],
    ['Bearer realm="", service=s', [['bearer', { realm: '', service: 's' }]]],
    // Names are no matter of case, values are.
    ['Bearer Realm="R", REALM="x"', [['bearer', { realm: 'R' }]]],
    // A parameter that belongs to nothing is dropped, and so is what is no word.
    ['realm="r", Basic realm="a"', [['basic', { realm: 'a' }]]],
    ['(x) Bearer realm="r"', []],
    ['(x), Bearer realm="r"', [['bearer', { realm: 'r' }]]],
  ])('%j is read', (header, challenges) => {
    expect(read(header)).toEqual(challenges);
  });

  it('are looked for in the first 16 KiB', () => {
    const at = (length: number) => read(`${' '.repeat(length)}Basic`);
    expect(at(16 * 1024 - 5)).toEqual([['basic', {}]]);
    expect(at(16 * 1024 - 4)).toEqual([['basi', {}]]);
    expect(at(16 * 1024)).toEqual([]);
  });
});

describe('the login of a request', () => {
  const finder = (logins: Readonly<Record<string, Credential>>) => {
    const asked: string[] = [];
    const hidden: Credential[] = [];
    const find = createLoginFinder(
      {
        lookup: async (host, repository) => {
          asked.push(`${host}/${repository}`);
          return logins[repository] ?? NONE;
        },
      },
      { ...SECRETS, addLogin: (login) => void hidden.push(login) },
    );
    return { find, asked, hidden };
  };
  const [one, two] = [basic('one', 'p'), basic('two', 'p')];

  it('is that of its first scope, and every login that was looked up is hidden', async () => {
    const { find, asked, hidden } = finder({ a: one, b: two });
    expect(await find('r.test', [push('a'), pull('b')])).toEqual({ credential: one, barred: 'b' });
    expect(asked).toEqual(['r.test/a', 'r.test/b']);
    expect(hidden).toEqual([one, two]);
  });

  it('is that of the host where it has no scope', async () => {
    const { find, asked } = finder({ '': one });
    expect(await find('r.test', [])).toEqual({ credential: one, barred: undefined });
    expect(asked).toEqual(['r.test/']);
  });

  it.each<[string, Credential, Credential, string | undefined]>([
    ['a source without a login', one, NONE, undefined],
    ['the same login under another name', one, basic('one', 'p'), undefined],
    ['the same object', one, one, undefined],
    ['another password', one, basic('one', 'q'), 'b'],
    ['a login where the target has none', NONE, two, 'b'],
    ['a token where the target has a password', one, { kind: 'identity-token', token: new Secret('t') }, 'b'],
  ])('bars a repository by its login alone: %s', async (_what, target, source, barred) => {
    const { find } = finder({ a: target, b: source });
    expect(await find('r.test', [push('a'), pull('b')])).toEqual({ credential: target, barred });
  });
});

describe('tokens', () => {
  /** A token server that answers what the test says, when it says so. */
  function server(answer: (request: HttpRequest, count: number) => Promise<{ status: number; body: unknown }>) {
    const requests: HttpRequest[] = [];
    const respond = async (request: HttpRequest): Promise<HttpResponse> => {
      requests.push(request);
      const { status, body } = await answer(request, requests.length);
      const bytes = Buffer.from(JSON.stringify(body));
      return {
        status,
        headers: { 'content-type': 'application/json' },
        url: request.url,
        sends: 1,
        bytes: async () => bytes,
        stream: () => Readable.from([bytes]),
        discard: async () => undefined,
      };
    };
    const transport: Transport = {
      baseUrl: (host) => new URL(`https://${host}/`),
      send: respond,
      close: async () => undefined,
    };
    let time = 0;
    const clock = { now: () => time, epoch: () => time, sleep: async () => undefined };
    const cache = createTokenCache(transport, clock, SECRETS);
    const advance = (milliseconds: number) => {
      time += milliseconds;
    };
    return { cache, requests, advance };
  }

  const token = async (_request: HttpRequest, count: number) => ({ status: 200, body: { token: `t${count}` } });
  const login = basic('u', 'p');
  const wish = (more: Partial<TokenWish> = {}): TokenWish => ({
    host: 'r.test',
    service: { realm: 'https://auth.test/token', service: 'r.test' },
    scopes: [pull('a')],
    credential: login,
    signal: new AbortController().signal,
    lasting: 0,
    ...more,
  });
  const text = (answer: Awaited<ReturnType<ReturnType<typeof server>['cache']['get']>>) =>
    'value' in answer ? answer.value.reveal() : answer.status;

  it('serve again whatever has the same realm, service, scopes and login, and nothing else', async () => {
    const { cache } = server(token);
    const wishes: readonly Partial<TokenWish>[] = [
      {},
      { scopes: [push('a')] },
      { scopes: [pull('b')] },
      { scopes: [pull('a'), pull('b')] },
      { service: { realm: 'https://auth.test/other', service: 'r.test' } },
      { service: { realm: 'https://auth.test/token', service: 'other' } },
      { service: { realm: 'https://auth.test/token', service: undefined } },
      { credential: basic('u', 'p') },
      { credential: NONE },
    ];
    const first = [];
    for (const one of wishes) first.push(text(await cache.get(wish(one))));
    expect(first).toEqual(wishes.map((_, index) => `t${index + 1}`));
    for (const [index, one] of wishes.entries()) expect(text(await cache.get(wish(one)))).toBe(first[index]);
  });

  it('are renewed when turned down, but only for one who was turned down with the newest', async () => {
    const { cache } = server(token);
    const old = await cache.get(wish());
    if (!('value' in old)) throw new Error('no token');
    expect(text(await cache.get(wish(), old))).toBe('t2');
    expect(text(await cache.get(wish(), old))).toBe('t2');
    expect(text(await cache.get(wish()))).toBe('t2');
  });

  it('are renewed when they run out, or would while the request is under way', async () => {
    const { cache, advance } = server(token);
    await cache.get(wish());
    advance(30_000);
    expect(text(await cache.get(wish({ lasting: 30_000 })))).toBe('t1');
    expect(text(await cache.get(wish({ lasting: 30_001 })))).toBe('t2');
    advance(48_000);
    expect(text(await cache.get(wish()))).toBe('t3');
  });

  it.each([
    ['two repositories for good', [push('a'), pull('b')], 403, 1],
    ['two repositories for a while', [push('a'), pull('b')], 503, 2],
    ['one repository', [pull('a')], 403, 2],
  ] as const)('that are refused are remembered so for pairs alone: %s', async (_what, scopes, status, requests) => {
    const told = server(async () => ({ status, body: {} }));
    for (let count = 0; count < 2; count += 1) expect(text(await told.cache.get(wish({ scopes })))).toBe(status);
    expect(told.requests).toHaveLength(requests);
  });

  it('are asked for once by all who wait, and given up when the last has left', async () => {
    // Its end is heard of a moment after it was given up.
    const { cache, requests } = server(
      ({ signal }) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => setImmediate(() => reject(signal.reason))),
        ),
    );
    const [first, second] = [new AbortController(), new AbortController()];
    const waiting = [first, second].map(({ signal }) => cache.get(wish({ signal })).catch((error: unknown) => error));
    await new Promise(setImmediate);
    expect(requests).toHaveLength(1);
    first.abort(new Error('first leaves'));
    expect(await waiting[0]).toMatchObject({ message: 'first leaves' });
    expect(requests[0]?.signal.aborted).toBe(false);
    second.abort(new Error('second leaves'));
    expect(await waiting[1]).toMatchObject({ message: 'second leaves' });
    expect(requests[0]?.signal).toMatchObject({
      aborted: true,
      reason: { message: expect.stringMatching(/nobody waits/) },
    });
    // Whoever comes now does not wait for what was given up.
    const third = new AbortController();
    const late = cache.get(wish({ signal: third.signal })).catch(() => undefined);
    expect(requests).toHaveLength(2);
    await new Promise((resolve) => setTimeout(resolve, 5));
    const last = cache.get(wish({ signal: third.signal })).catch(() => undefined);
    await new Promise(setImmediate);
    expect(requests).toHaveLength(2);
    third.abort();
    await last;
    await late;
  });

  it('are shared by all who ask anew, at whatever moment the one that was turned down had come', async () => {
    const newest = { value: new Secret('t1') } as Parameters<ReturnType<typeof server>['cache']['get']>[1];
    for (let moments = 0; moments < 16; moments += 1) {
      let land = (): void => undefined;
      const { cache, requests } = server((_request, count) =>
        count > 1
          ? new Promise(() => undefined)
          : new Promise((resolve) => {
              land = () => resolve({ status: 200, body: { token: 't1' } });
            }),
      );
      const run = new AbortController();
      const given = wish({ signal: run.signal });
      const first = cache.get(given);
      land();
      for (let moment = 0; moment < moments; moment += 1) await null;
      const waiting = [cache.get(given, newest)];
      await first;
      await new Promise(setImmediate);
      for (let count = 0; count < 2; count += 1) waiting.push(cache.get(given, newest));
      await new Promise(setImmediate);
      expect(requests, `after ${moments}`).toHaveLength(2);
      run.abort(new Error('the test is over'));
      await Promise.allSettled(waiting);
    }
  });

  it('are asked for anew after a failure, of which each who waited is told', async () => {
    let fails = true;
    const { cache, requests } = server(async (_request, count) => {
      if (fails) throw new Error('no network');
      return { status: 200, body: { token: `t${count}` } };
    });
    const failed = await Promise.allSettled([cache.get(wish()), cache.get(wish())]);
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(requests).toHaveLength(1);
    fails = false;
    expect(text(await cache.get(wish()))).toBe('t2');
  });
});

describe('the places of logins', () => {
  const CONFIG = '/home/u/.docker/config.json';
  const PODMAN = '/home/u/.config/containers/auth.json';
  const entry = (name: string) => JSON.stringify({ auths: { 'r.test': { username: name, password: 'p' } } });

  function source(
    files: Readonly<Record<string, string | Error>>,
    env: Readonly<Record<string, string>> = {},
    helper: (program: string, server: string) => string | undefined = () => undefined,
  ) {
    const read: string[] = [];
    const asked: string[] = [];
    const credentials = createCredentialSource({
      env,
      home: '/home/u',
      readFile: async (path) => {
        read.push(path);
        const content = files[path];
        if (content instanceof Error) throw content;
        return content;
      },
      runHelper: async (program, server): Promise<HelperRun> => {
        asked.push(`${program} ${server}`);
        const name = helper(program, server);
        if (name === undefined) {
          return { kind: 'ended', code: 1, stdout: 'credentials not found in native keychain', stderr: '' };
        }
        return { kind: 'ended', code: 0, stdout: JSON.stringify({ Username: name, Secret: 's' }), stderr: '' };
      },
    });
    const user = async (host: string, repository = 'x/y') => {
      const login = await credentials.lookup(host, repository);
      return login.kind === 'basic' ? login.username : login.kind;
    };
    return { credentials, user, read, asked };
  }

  it('that are set to nothing are not set', async () => {
    const names = ['REGISTRY_AUTH_FILE', 'DOCKER_CONFIG', 'XDG_RUNTIME_DIR', 'XDG_CONFIG_HOME', 'DOCKER_AUTH_CONFIG'];
    const here = source({ [CONFIG]: entry('docker') }, Object.fromEntries(names.map((name) => [name, ''])));
    expect(await here.user('r.test')).toBe('docker');
    expect(here.read).toEqual([CONFIG, PODMAN]);
  });

  it('are read once where two variables name one', async () => {
    const here = source({ [CONFIG]: entry('docker') }, { REGISTRY_AUTH_FILE: CONFIG, XDG_RUNTIME_DIR: '/run' });
    expect(await here.user('r.test')).toBe('docker');
    expect(here.read).toEqual([CONFIG, '/run/containers/auth.json', PODMAN]);
  });

  it('may be empty, as a file is that was only touched', async () => {
    for (const nothing of ['', ' \n\t']) {
      expect(await source({ [CONFIG]: nothing, [PODMAN]: entry('podman') }).user('r.test')).toBe('podman');
    }
  });

  it.each([
    [Object.assign(new Error('permission denied'), { code: 'EACCES' }), 'EACCES'],
    [new Error('with a secret in it'), 'it failed'],
  ])('that cannot be read end the run, and what to do is told: %s', async (cause, why) => {
    const error = await source({ [PODMAN]: cause })
      .user('r.test')
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'CREDENTIALS_FAILED',
      message: `cannot read the logins in ${PODMAN}: ${why}`,
      hint: expect.stringMatching(/right to read it.*DOCKER_CONFIG=FOLDER/),
      cause,
    });
  });

  it('of a repository are looked up once, however many ask', async () => {
    const here = source({ [CONFIG]: JSON.stringify({ credsStore: 's' }) }, {}, () => 'u');
    const [one, two] = await Promise.all([1, 2].map(() => here.credentials.lookup('r.test', 'a')));
    expect(one).toBe(two);
    expect(await here.credentials.lookup('r.test', 'a')).toBe(one);
    expect(await here.credentials.lookup('r.test', 'b')).toBe(one);
    expect(here.asked).toEqual(['docker-credential-s r.test']);
    expect(here.read).toEqual([CONFIG, PODMAN]);
  });

  it('are told of a login: the file, the variable, the helper; of no login none', async () => {
    const originOf = async (here: ReturnType<typeof source>, host = 'r.test') =>
      here.credentials.originOf?.(await here.credentials.lookup(host, 'a'));
    expect(await originOf(source({ [CONFIG]: entry('docker') }))).toBe(CONFIG);
    expect(await originOf(source({}, { DOCKER_AUTH_CONFIG: entry('inline') }))).toBe('DOCKER_AUTH_CONFIG');
    const stored = { [CONFIG]: JSON.stringify({ credsStore: 's' }) };
    expect(await originOf(source(stored, {}, () => 'u'))).toBe('docker-credential-s');
    expect(await originOf(source(stored))).toBeUndefined();
    expect(await originOf(source({}))).toBeUndefined();
  });

  it('go on in the next file when a store has none, and end at a helper that is named for the host', async () => {
    const next = { [PODMAN]: entry('podman') };
    expect(await source({ ...next, [CONFIG]: JSON.stringify({ credsStore: 's' }) }).user('r.test')).toBe('podman');
    const named = { [CONFIG]: JSON.stringify({ credHelpers: { 'r.test': 'h' } }) };
    expect(await source({ ...next, ...named }).user('r.test')).toBe('none');
  });

  it('of Docker Hub are asked for under the name that docker login gives it', async () => {
    for (const host of ['docker.io', 'index.docker.io', 'registry-1.docker.io']) {
      const store = source({ [CONFIG]: JSON.stringify({ credsStore: 's' }) });
      expect(await store.user(host)).toBe('none');
      expect(store.asked).toEqual(['docker-credential-s https://index.docker.io/v1/']);
    }
  });

  it('in a store come by the longest path, then a login in the file, then the host', async () => {
    const auths = (own: object) => ({ 'r.test': own, 'r.test/x': {}, 'r.test/x/y': {}, 'r.test/z': {} });
    const file = (own: object) => ({ [CONFIG]: JSON.stringify({ credsStore: 's', auths: auths(own) }) });
    const own = { username: 'file', password: 'p' };
    const paths = source(file(own), {}, (_program, server) => (server === 'r.test/x' ? 'path' : undefined));
    expect(await paths.user('r.test')).toBe('path');
    expect(paths.asked).toEqual(['r.test/x/y', 'r.test/x'].map((name) => `docker-credential-s ${name}`));
    const none = source(file(own));
    expect(await none.user('r.test')).toBe('file');
    expect(none.asked).toHaveLength(2);
    const store = source(file({}), {}, (_program, server) => (server === 'r.test' ? 'store' : undefined));
    expect(await store.user('r.test')).toBe('store');
    expect(store.asked).toEqual(['r.test/x/y', 'r.test/x', 'r.test'].map((name) => `docker-credential-s ${name}`));
  });

  it('in a store come after a login in the file that has a longer path', async () => {
    const auths = { 'r.test/x/y': { username: 'file', password: 'p' }, 'r.test/x': {}, 'r.test': {} };
    const here = source({ [CONFIG]: JSON.stringify({ credsStore: 's', auths }) }, {}, () => 'store');
    expect(await here.user('r.test')).toBe('file');
    expect(here.asked).toEqual([]);
    expect(await here.user('r.test', 'other')).toBe('store');
  });

  it('of Docker Hub are asked for as docker login writes them before any other spelling', async () => {
    const names = ['https://index.docker.io/v1/', 'docker.io'];
    const store = source({ [CONFIG]: JSON.stringify({ credsStore: 's', auths: { 'docker.io': {} } }) });
    expect(await store.user('docker.io')).toBe('none');
    expect(store.asked).toEqual(names.map((name) => `docker-credential-s ${name}`));
    const helper = source({ [CONFIG]: JSON.stringify({ credHelpers: { 'docker.io': 'h' } }) });
    expect(await helper.user('docker.io')).toBe('none');
    expect(helper.asked).toEqual([`docker-credential-h ${names[0]}`]);
  });

  it('under which a helper is named are asked for before the host, each once', async () => {
    const file = { [CONFIG]: JSON.stringify({ credHelpers: { 'r.test/x': 'h', 'r.test': 'host' } }) };
    const here = source(file, {}, (_program, server) => (server === 'r.test' ? 'u' : undefined));
    expect(await here.user('r.test', 'x/y')).toBe('u');
    expect(here.asked).toEqual(['docker-credential-h r.test/x', 'docker-credential-h r.test']);
    expect(await here.user('r.test', 'other')).toBe('u');
    expect(here.asked.slice(2)).toEqual(['docker-credential-host r.test']);
  });
});
