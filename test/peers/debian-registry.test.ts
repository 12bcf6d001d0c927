import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type ExternalRegistry,
  makeFolder,
  PEER_USER,
  type RegistryAuth,
  startDebianRegistry,
} from '../helpers/external-registry.ts';
import { countByKind, type Exchange, isWrite, type RecordingProxy, startProxy } from '../helpers/proxy.ts';
import { startTokenServer, type TokenServer } from '../helpers/token-server.ts';
import { attestedSources, debianSources, type Image, makeIndex, type Source } from './images.ts';
import { withPeers } from './lane.ts';
import { type Login, lastWords, type Published, publish } from './publish-command.ts';
import { ask, digestOfTag, missingIn, pushSource } from './registry-access.ts';

const SOURCES = debianSources();
const IMAGES = SOURCES.flatMap((source) => source.images);
const INDEX = makeIndex(IMAGES.map(({ entry }) => entry));
const BLOBS = IMAGES.flatMap(({ blobs }) => blobs);
const ATTESTED = attestedSources();

/** Counts that the design promises for anonymous access; a login adds to them what {@link AUTH} says. */
const MOUNTED = {
  'manifest GET 200': 8,
  'manifest GET 404': 1,
  'blob GET 200': 8,
  'mount 201': 40,
  'blob HEAD 200': 40,
  'manifest PUT 201': 9,
};
const STREAMED = {
  'manifest GET 200': 8,
  'manifest GET 404': 1,
  // The eight configs are read once, for their platforms, and put from memory.
  'blob GET 200': 40,
  'mount 202': 40,
  'blob HEAD 404': 40,
  'upload PUT 201': 40,
  'manifest PUT 201': 9,
};
const NOTHING_TO_DO = { 'manifest GET 200': 9, 'blob GET 200': 8, 'manifest HEAD 200': 8 };

type Access = 'anonymous' | 'Basic' | 'token';

/** What the challenge costs at the registry: the tag is asked for alone, and learns the scheme. */
const CHALLENGE: Readonly<Record<Access, Readonly<Record<string, number>>>> = {
  anonymous: {},
  Basic: { 'manifest GET 401': 1 },
  token: { 'manifest GET 401': 1 },
};

withPeers(['docker-registry', 'openssl'], "Debian's docker-registry", () => {
  describe.each<Access>(['anonymous', 'Basic', 'token'])('%s', (access) => {
    let registry: Registry;
    beforeAll(async () => {
      registry = await startRegistry(access);
    });
    afterAll(() => registry.stop());
    beforeEach(() => registry.forget());

    it('mounts every blob, sends none, and moves the tag once, last', async () => {
      const { host, exchanges } = registry.accepting;
      const done = await publishTo(registry, host, 'debian/mounted');
      await expectPublished(registry, done, 'debian/mounted');
      expect(countByKind(exchanges())).toEqual({ ...MOUNTED, ...CHALLENGE[access] });
      expect(blobBytesSent(exchanges())).toBe(0);
      expectTagMovedLast(exchanges(), 'debian/mounted');
      expect(done.report?.totals).toMatchObject({ blobs: { present: 0, mounted: 40, copied: 0 }, bytesSent: 0 });
    });

    it('sends every blob once, into the session that the refused mount opened', async () => {
      const { host, exchanges } = registry.refusing;
      const done = await publishTo(registry, host, 'debian/streamed');
      await expectPublished(registry, done, 'debian/streamed');
      expect(countByKind(exchanges())).toEqual({ ...STREAMED, ...CHALLENGE[access] });
      expect(bodiesByDigest(exchanges())).toEqual(BLOBS.map(({ digest, bytes }) => [digest, bytes.length]).sort());
      expectTagMovedLast(exchanges(), 'debian/streamed');
      const bytesSent = BLOBS.reduce((sum, { bytes }) => sum + bytes.length, 0);
      expect(done.report?.totals).toMatchObject({ blobs: { present: 0, mounted: 0, copied: 40 }, bytesSent });
    });

    it('writes nothing the second time', async () => {
      const { host, exchanges } = registry.refusing;
      const done = await publishTo(registry, host, 'debian/streamed');
      await expectPublished(registry, done, 'debian/streamed');
      expect(exchanges().filter(isWrite)).toEqual([]);
      expect(countByKind(exchanges())).toEqual({ ...NOTHING_TO_DO, ...CHALLENGE[access] });
      expect(done.report?.lists[0]?.targets[0]?.action).toBe('unchanged');
    });

    it('brings back a child that was deleted, without a blob and without moving the tag', async () => {
      const { host, exchanges } = registry.refusing;
      const [{ manifest }] = IMAGES as [Image];
      const deleted = await ask(registry.inside, 'DELETE', `/v2/debian/streamed/manifests/${manifest.digest}`);
      expect(deleted.status).toBe(202);
      expect(await missingIn(registry.inside, 'debian/streamed', IMAGES)).toEqual([`manifest ${manifest.digest}`]);

      const done = await publishTo(registry, host, 'debian/streamed');
      await expectPublished(registry, done, 'debian/streamed');
      expect(blobBytesSent(exchanges())).toBe(0);
      const puts = exchanges().filter(({ method, path }) => method === 'PUT' && path.includes('/manifests/'));
      expect(puts.map(({ path }) => path)).toEqual([`/v2/debian/streamed/manifests/${manifest.digest}`]);
    });

    it('takes attested indexes apart and keeps each attestation beside its image', async () => {
      const { host } = registry.refusing;
      const done = await publishTo(registry, host, 'debian/attested', ATTESTED);
      const images = ATTESTED.flatMap((source) => source.images);
      const index = makeIndex(images.map(({ entry }) => entry));
      await expectPublished(registry, done, 'debian/attested', images, index);
      const kinds = done.report?.lists[0]?.images.map(({ kind }) => kind);
      expect(kinds).toEqual(ATTESTED.flatMap(() => ['image', 'attestation']));
    });

    it('never shows a tag that is not the old or the whole new index', async () => {
      const seen = await watchTag(registry.inside, 'debian/watched', async () => {
        const done = await publishTo(registry, registry.refusing.host, 'debian/watched', SOURCES.slice(0, 3));
        expect(done.exitCode).toBe(0);
        const more = await publishTo(registry, registry.refusing.host, 'debian/watched', SOURCES.slice(0, 5));
        expect(more.exitCode).toBe(0);
      });
      const [three, five] = [3, 5].map((count) => makeIndex(IMAGES.slice(0, count).map(({ entry }) => entry)).digest);
      expect(seen).toEqual([three, five]);
    });

    if (access === 'token') {
      it('asks for each token once, and for one repository in each scope', async () => {
        const done = await publishTo(registry, registry.accepting.host, 'debian/tokens');
        expect(done.exitCode).toBe(0);
        const asked = registry.tokens?.requests.slice(registry.tokensBefore()) ?? [];
        expect(asked.map(({ status }) => status)).toEqual(asked.map(() => 200));
        const scopes = asked.map((request) => [...request.scopes].sort().join(' '));
        expect(new Set(scopes).size).toBe(scopes.length);
        // One for each source, one for the target, and at most one more for each pair that mounts.
        expect(scopes.length).toBeLessThanOrEqual(17);
      });
    }

    if (access !== 'anonymous') {
      it('ends with 3 and writes nothing when the password is wrong', async () => {
        const login = { ...registry.login, password: 'not-the-password' };
        const done = await publishTo(registry, registry.accepting.host, 'debian/denied', SOURCES, login);
        expect(done).toMatchObject({ exitCode: 3, stdout: '' });
        expect(registry.accepting.exchanges().filter(isWrite)).toEqual([]);
      });
    }
  });
});

type Registry = {
  /** The same storage without credentials, to look behind the one that is published to. */
  readonly inside: string;
  readonly accepting: Recorder;
  readonly refusing: Recorder;
  readonly folder: string;
  readonly login: { readonly name: string; readonly password: string };
  readonly logins: boolean;
  readonly tokens: TokenServer | undefined;
  /** How many tokens had been asked for before this test. */
  tokensBefore(): number;
  forget(): void;
  stop(): Promise<void>;
};

type Recorder = { readonly host: string; readonly exchanges: () => readonly Exchange[] };

/** Seeds a storage through an open registry, then puts the one under test and two proxies before it. */
async function startRegistry(access: Access): Promise<Registry> {
  const folder = await makeFolder();
  const open = await startDebianRegistry(folder.path);
  for (const source of [...SOURCES, ...ATTESTED]) await pushSource(open.host, source);

  const tokens = access === 'token' ? await startTokenServer(folder.path, tokenUsers()) : undefined;
  const auth: RegistryAuth | undefined =
    tokens === undefined ? { kind: 'basic', user: PEER_USER } : { kind: 'token', server: tokens };
  const guarded = access === 'anonymous' ? undefined : await startDebianRegistry(folder.path, { auth });
  const target: ExternalRegistry = guarded ?? open;
  const accepting = await startProxy(target.host);
  const refusing = await startProxy(target.host, { refuseMounts: true });

  let tokensBefore = 0;
  return {
    inside: open.host,
    accepting: recorder(accepting),
    refusing: recorder(refusing),
    folder: folder.path,
    login: PEER_USER,
    logins: access !== 'anonymous',
    tokens,
    tokensBefore: () => tokensBefore,
    forget() {
      accepting.forget();
      refusing.forget();
      tokensBefore = tokens?.requests.length ?? 0;
    },
    async stop() {
      for (const part of [accepting, refusing, target, open, tokens]) await part?.stop();
      await folder.remove();
    },
  };
}

function recorder(proxy: RecordingProxy): Recorder {
  return { host: proxy.host, exchanges: () => proxy.exchanges };
}

function tokenUsers() {
  const sources = [...SOURCES, ...ATTESTED].map(({ repository }) => ({ repository, actions: ['pull'] }));
  const names = ['mounted', 'streamed', 'attested', 'watched', 'tokens'];
  const targets = names.map((name) => ({ repository: `debian/${name}`, actions: ['pull', 'push'] }));
  return { [PEER_USER.name]: { password: PEER_USER.password, may: [...sources, ...targets] } };
}

function publishTo(
  registry: Registry,
  host: string,
  repository: string,
  sources: readonly Source[] = SOURCES,
  login: { readonly name: string; readonly password: string } = registry.login,
): Promise<Published> {
  const references = sources.map((source) => `${host}/${source.repository}:${source.tag}`);
  const logins: readonly Login[] = registry.logins ? [{ host, ...login }] : [];
  return publish(registry.folder, [`${host}/${repository}:bullseye`, ...references], { logins });
}

async function expectPublished(
  registry: Registry,
  done: Published,
  repository: string,
  images: readonly Image[] = IMAGES,
  index = INDEX,
): Promise<void> {
  expect(done, lastWords(done)).toMatchObject({ exitCode: 0, stdout: `${index.digest}\n` });
  expect(await digestOfTag(registry.inside, repository, 'bullseye')).toBe(index.digest);
  expect(await missingIn(registry.inside, repository, images)).toEqual([]);
}

/** The tag is put once, after every other request has been sent. */
function expectTagMovedLast(exchanges: readonly Exchange[], repository: string): void {
  const path = `/v2/${repository}/manifests/bullseye`;
  const puts = exchanges.filter((exchange) => exchange.method === 'PUT' && exchange.path === path);
  expect(puts).toHaveLength(1);
  expect(exchanges.filter(isWrite).at(-1)).toBe(puts[0]);
}

function blobBytesSent(exchanges: readonly Exchange[]): number {
  return bodies(exchanges).reduce((sum, { sent }) => sum + sent, 0);
}

/** Digest and size of every blob body that was sent, in order of digests; one sent twice is there twice. */
function bodiesByDigest(exchanges: readonly Exchange[]): readonly (readonly [string | null, number])[] {
  return bodies(exchanges)
    .map(({ query, sent }) => [query.get('digest'), sent] as const)
    .sort();
}

function bodies(exchanges: readonly Exchange[]): readonly Exchange[] {
  return exchanges.filter(({ path, sent }) => path.includes('/blobs/uploads/') && sent > 0);
}

/**
 * The digests that the tag held, in order and without repetitions, while `work` went on. Answers without one do not
 * count: distribution 2.8 writes the link of a tag in place, and who reads in that moment is told that there is none.
 */
async function watchTag(host: string, repository: string, work: () => Promise<void>): Promise<readonly string[]> {
  const seen: string[] = [];
  let over = false;
  const look = async () => {
    const digest = await digestOfTag(host, repository, 'bullseye');
    if (digest !== undefined && seen.at(-1) !== digest) seen.push(digest);
  };
  const watching = (async () => {
    while (!over) await look();
  })();
  await work().finally(() => {
    over = true;
  });
  await watching;
  await look();
  return seen;
}
