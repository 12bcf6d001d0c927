import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import {
  type BasicUser,
  makeFolder,
  PEER_USER,
  SECOND_USER,
  startDebianRegistry,
} from '../helpers/external-registry.ts';
import { countByKind, isWrite, type RecordingProxy, startProxy } from '../helpers/proxy.ts';
import { debianSources, makeIndex } from './images.ts';
import { withPeers } from './lane.ts';
import { lastWords, publish } from './publish-command.ts';
import { digestOfTag, missingIn, pushSource } from './registry-access.ts';

const SOURCES = debianSources();
const IMAGES = SOURCES.flatMap((source) => source.images);
const INDEX = makeIndex(IMAGES.map(({ entry }) => entry));
const BLOBS = IMAGES.flatMap(({ blobs }) => blobs);

/** docker manifest refuses this outright: "cannot use source images from a different registry" (case MNT-12). */
withPeers(['docker-registry'], 'from one registry to another, each with its own login', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  let from: Guarded;
  let to: Guarded;
  beforeAll(async () => {
    folder = await makeFolder();
    from = await startGuarded(`${folder.path}/from`, PEER_USER);
    to = await startGuarded(`${folder.path}/to`, SECOND_USER);
    for (const source of SOURCES) await pushSource(from.inside, source);
  });
  afterAll(async () => {
    await from?.stop();
    await to?.stop();
    await folder.remove();
  });
  beforeEach(() => {
    from.proxy.forget();
    to.proxy.forget();
  });

  const publishAcross = (logins: readonly Guarded[]) =>
    publish(
      folder.path,
      [
        `${to.proxy.host}/debian/debian:bullseye`,
        ...SOURCES.map(({ repository, tag }) => `${from.proxy.host}/${repository}:${tag}`),
      ],
      { logins: logins.map(({ proxy, user }) => ({ host: proxy.host, name: user.name, password: user.password })) },
    );

  it('ends with 3 and writes nothing when the login for the target is missing', async () => {
    const done = await publishAcross([from]);
    expect(done).toMatchObject({ exitCode: 3, stdout: '' });
    expect(to.proxy.exchanges.filter(isWrite)).toEqual([]);
  });

  it('streams every blob once and keeps every digest', async () => {
    const done = await publishAcross([from, to]);
    expect(done, lastWords(done)).toMatchObject({ exitCode: 0, stdout: `${INDEX.digest}\n` });
    expect(await digestOfTag(to.inside, 'debian/debian', 'bullseye')).toBe(INDEX.digest);
    expect(await missingIn(to.inside, 'debian/debian', IMAGES)).toEqual([]);
    // Another registry has nothing to mount from: each blob is looked for, then a plain session is opened.
    expect(countByKind(to.proxy.exchanges)).toEqual({
      'manifest GET 401': 1,
      'manifest GET 404': 1,
      'blob HEAD 404': BLOBS.length,
      'upload POST 202': BLOBS.length,
      'upload PUT 201': BLOBS.length,
      'manifest PUT 201': 9,
    });
    expect(from.proxy.exchanges.filter(isWrite)).toEqual([]);
    // Each registry knows another user alone: whoever is sent the other's login answers 401.
    expect(unauthorized(from.proxy)).toBeLessThanOrEqual(SOURCES.length);
    expect(
      from.proxy.exchanges.every(({ authorization }) => authorization === 'Basic' || authorization === undefined),
    ).toBe(true);
  });
});

type Guarded = {
  readonly user: BasicUser;
  readonly inside: string;
  readonly proxy: RecordingProxy;
  stop(): Promise<void>;
};

async function startGuarded(folder: string, user: BasicUser): Promise<Guarded> {
  const open = await startDebianRegistry(folder);
  const guarded = await startDebianRegistry(folder, { auth: { kind: 'basic', user } });
  const proxy = await startProxy(guarded.host);
  return {
    user,
    inside: open.host,
    proxy,
    async stop() {
      for (const part of [proxy, guarded, open]) await part.stop();
    },
  };
}

function unauthorized(proxy: RecordingProxy): number {
  return proxy.exchanges.filter(({ status }) => status === 401).length;
}
