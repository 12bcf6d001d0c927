import { describe, expect, it } from 'vitest';
import { type CredentialSource, createCredentialSource } from '../../src/auth/credentials.ts';
import type { ProfileChanges, RunningRegistry } from '../../src/registry-server/index.ts';
import { seedImage } from '../helpers/images.ts';
import { checkInvariants } from '../helpers/publishing.ts';
import { requests, withRegistry } from '../helpers/registry.ts';
import { failure, resolver } from '../http/fixture.ts';
import { basic, publishWith } from './fixture.ts';

const USER = { name: 'u', password: 'pass-of-u-1' };
const ROBOTS = [
  { name: 'robot$s+ci', password: 'p$1+/=', access: { 's/*': 'pull' } },
  { name: 'robot$t+ci', password: 'p:2', access: { 't/*': 'push' } },
] as const;

/** One login is one object, however often it is looked up. */
const LOGIN = basic(USER.name, USER.password);
const ROBOT_LOGINS = ROBOTS.map(({ name, password }) => basic(name, password));

const login: CredentialSource['lookup'] = async () => LOGIN;

/** Each robot for its own project, as a file with a key for each path has them. */
const byProject: CredentialSource['lookup'] = async (_host, repository) =>
  ROBOT_LOGINS[repository.startsWith('s/') ? 0 : 1] ?? { kind: 'none' };

/** Two images of three blobs each, as sources. */
function seed(registry: RunningRegistry): readonly string[] {
  return ['amd64', 'arm64'].map((architecture) => {
    seedImage(registry, `s/${architecture}`, '1', { platform: { os: 'linux', architecture }, layers: 2 });
    return `${registry.host}/s/${architecture}:1`;
  });
}

async function publishAll(registry: RunningRegistry, lookup: CredentialSource['lookup'] = login) {
  const report = await publishWith(lookup, `${registry.host}/t/all:1`, seed(registry));
  checkInvariants(registry);
  return report;
}

const scopesAsked = (registry: RunningRegistry) =>
  requests(registry, 'token').map(({ query }) => new URLSearchParams(query).getAll('scope'));

const bearer = (auth: ProfileChanges['auth'], rest: ProfileChanges = {}) => ({
  options: {
    profile: { ...rest, auth: { scheme: 'bearer' as const, anonymousPull: false, ...auth } },
    users: [USER],
  },
});

describe('token servers', () => {
  it.each([
    ['repeated+joined', 6],
    ['repeatedOnly400', 6],
    ['lastPerRepo', 6],
    ['firstOnly', 0],
  ] as const)('that read scopes as %s get one repository a parameter, the target first', (scopes, mounted) =>
    withRegistry(bearer({ scopes }), async (registry) => {
      const report = await publishAll(registry);
      expect(report.totals.blobs).toMatchObject({ mounted, copied: 6 - mounted });
      for (const asked of scopesAsked(registry)) {
        const names = asked.map((scope) => /^repository:([^ ]+):[a-z,]+$/.exec(scope)?.[1]);
        expect(names).not.toContain(undefined);
        expect(new Set(names).size).toBe(names.length);
        if (asked.length > 1) expect(asked[0]).toBe('repository:t/all:pull,push');
      }
      expect(requests(registry, 'token').every(({ status }) => status === 200)).toBe(true);
    }),
  );

  it.each([400, 403])('that answer %i to a pair of repositories are asked for the target alone', (status) =>
    withRegistry(bearer({}), async (registry) => {
      const action = { kind: 'answer', status, body: '{"details":"no"}' } as const;
      registry.addFault({ operation: 'token', query: /scope=.*&scope=/, times: Number.POSITIVE_INFINITY, action });
      const report = await publishAll(registry);
      expect(report.totals.blobs).toMatchObject({ mounted: 0, copied: 6 });
      expect(requests(registry, 'mount').filter(({ authorization }) => authorization === 'bearer')).toEqual([]);
      const pairs = scopesAsked(registry).filter((asked) => asked.length === 2);
      expect(pairs).toHaveLength(2);
    }),
  );

  it('whose token has run out when a body has been sent are asked for another, once', () =>
    withRegistry(bearer({}, { mount: { mode: 'ignore' } }), async (registry) => {
      const challenge = `Bearer realm="${registry.url}/token",service="${registry.host}",error="invalid_token"`;
      registry.addFault({
        operation: 'uploadPut',
        times: 1,
        action: { kind: 'answer', status: 401, headers: { 'WWW-Authenticate': challenge }, body: '{}' },
      });
      const report = await publishAll(registry);
      expect(report.totals.blobs.copied).toBe(6);
      const tokens = requests(registry, 'uploadPut').map(({ headers }) => headers['authorization']);
      expect(new Set(tokens).size).toBe(2);
      expect(requests(registry, 'uploadPut').filter(({ status }) => status === 401)).toHaveLength(1);
    }));
});

describe('two robots on one host', () => {
  it('are never shown in one request: the source is read with its own and streamed, without a mount', () =>
    withRegistry({ options: { profile: 'harbor', users: ROBOTS } }, async (registry) => {
      const report = await publishAll(registry, byProject);
      expect(report.totals.blobs).toMatchObject({ mounted: 0, copied: 6 });
      // The one that learns the scheme is sent without a login.
      const mounts = requests(registry, 'mount').filter(({ authorization }) => authorization !== 'none');
      expect(mounts).toEqual([]);
      expect(scopesAsked(registry).filter((asked) => asked.length > 1)).toEqual([]);
      for (const { query, headers } of requests(registry, 'token')) {
        const user = Buffer.from(headers['authorization']?.slice(6) ?? '', 'base64')
          .toString()
          .split(':', 1)[0];
        expect(user).toBe(query.includes('repository%3At%2F') ? 'robot$t+ci' : 'robot$s+ci');
      }
    }));

  it('get no cookie back, as Harbor wants a CSRF token from whoever has one', () =>
    withRegistry({ options: { profile: 'harbor', users: [USER] } }, async (registry) => {
      const report = await publishAll(registry);
      expect(report.totals.blobs.mounted).toBe(6);
      expect(registry.profile.auth.cookieCsrf).toBe(true);
      expect(registry.journal.filter(({ headers }) => 'cookie' in headers)).toEqual([]);
    }));
});

describe('another host', () => {
  const elsewhere = (registry: RunningRegistry) => registry.journal.filter(({ listener }) => listener === 'storage');

  it('that sessions and blobs are sent to is shown no login', () =>
    withRegistry(
      bearer({}, { mount: { mode: 'ignore' }, upload: { location: 'otherHost' }, blob: { redirect: '307otherHost' } }),
      async (registry) => {
        const report = await publishAll(registry);
        expect(report.totals.blobs.copied).toBe(6);
        expect(elsewhere(registry).length).toBeGreaterThanOrEqual(12);
        expect(elsewhere(registry).filter(({ authorization }) => authorization !== 'none')).toEqual([]);
      },
    ));

  it.each(['Basic realm="x"', 'Bearer realm="REALM",service="SERVICE"'])(
    'that asks for one with %s gets none, and no token is fetched for it',
    (challenge) =>
      withRegistry(bearer({}, { mount: { mode: 'ignore' }, upload: { location: 'otherHost' } }), async (registry) => {
        const header = challenge.replace('REALM', `${registry.url}/token`).replace('SERVICE', registry.host);
        registry.addFault({
          operation: 'uploadPut',
          times: Number.POSITIVE_INFINITY,
          action: { kind: 'answer', status: 401, headers: { 'WWW-Authenticate': header }, body: '{}' },
        });
        expect(await failure(publishAll(registry))).toMatchObject({ code: 'UNAUTHORIZED', exitCode: 3 });
        expect(elsewhere(registry).length).toBeGreaterThanOrEqual(1);
        expect(elsewhere(registry).filter(({ authorization }) => authorization !== 'none')).toEqual([]);
        // One for the target, one for each source, one for each pair.
        expect(requests(registry, 'token').length).toBeLessThanOrEqual(5);
      }),
  );
});

describe('a Basic challenge after a token (Harbor)', () => {
  it('means too little scope, not another scheme: the blobs are streamed with tokens', () =>
    withRegistry(bearer({ scopes: 'firstOnly' }, { mount: { noSourceScope: '401basic' } }), async (registry) => {
      const report = await publishAll(registry);
      expect(report.totals.blobs).toMatchObject({ mounted: 0, copied: 6 });
      const shown = requests(registry).filter(({ operation }) => operation !== 'token');
      expect(shown.filter(({ authorization }) => authorization === 'basic')).toEqual([]);
    }));
});

describe('ECR', () => {
  const HOST = '123456789012.dkr.ecr.eu-west-1.amazonaws.com';
  const AWS = { name: 'AWS', password: 'eyJwYXlsb2FkIjoi-of-12-hours' };
  const asked: string[] = [];

  /** The name leads to the embedded registry and nowhere else. */
  async function publishToEcr(registry: RunningRegistry, target: string) {
    const [, port = ''] = registry.host.split(':');
    const credentials = createCredentialSource({
      env: {},
      home: '/home/u',
      readFile: async (path) =>
        path.endsWith('.docker/config.json') ? JSON.stringify({ credHelpers: { [HOST]: 'ecr-login' } }) : undefined,
      runHelper: async (program, server) => {
        asked.push(`${program} ${server}`);
        const stdout = JSON.stringify({ ServerURL: server, Username: AWS.name, Secret: AWS.password });
        return { kind: 'ended', code: 0, stdout, stderr: '' };
      },
    });
    const sources = seed(registry).map((source) => source.replace(registry.host, HOST));
    return publishWith(credentials.lookup, `${HOST}/${target}`, sources, {
      hosts: { [HOST]: { plainHttp: true } },
      lookup: resolver(() => ['127.0.0.1']),
      connectTo: () => ({ host: '127.0.0.1', port }),
    });
  }

  it('is shown what its helper says, by Basic', () =>
    withRegistry({ options: { profile: 'ecr-off', users: [AWS] } }, async (registry) => {
      registry.createRepository('t/all');
      const report = await publishToEcr(registry, 't/all:1');
      expect(report.totals.blobs.copied).toBe(6);
      expect(new Set(asked)).toEqual(new Set([`docker-credential-ecr-login ${HOST}`]));
      expect(requests(registry).filter(({ authorization }) => authorization !== 'basic')).toHaveLength(1);
    }));

  it.each([
    ['404nameUnknown', 'REPOSITORY_NOT_FOUND', 4],
    ['reset', 'NETWORK_FAILED', 5],
  ] as const)('without the repository (%s) says that it has to be created', (missing, code, exitCode) =>
    withRegistry(
      { options: { profile: 'ecr-off', changes: { repo: { missing } }, users: [AWS] } },
      async (registry) => {
        const error = await failure(publishToEcr(registry, 't/all:1'));
        expect(error).toMatchObject({ code, exitCode, side: 'target' });
        expect(error.hint).toContain('Create the repository first');
        expect(error.hint).toContain('CREATE_ON_PUSH');
        expect(error.message).toContain(`${HOST}/t/all`);
      },
    ),
  );
});
