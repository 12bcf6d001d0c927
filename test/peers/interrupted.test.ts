import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type ExternalRegistry, makeFolder, startDebianRegistry } from '../helpers/external-registry.ts';
import { needProgram, run } from '../helpers/processes.ts';
import { type Exchange, type RecordingProxy, startProxy } from '../helpers/proxy.ts';
import { debianSources, makeIndex } from './images.ts';
import { withPeers } from './lane.ts';
import { lastWords, makeHome, publish } from './publish-command.ts';
import { digestOfTag, missingIn, pushSource } from './registry-access.ts';

const SOURCES = debianSources();
const IMAGES = SOURCES.flatMap((source) => source.images);
const INDEX = makeIndex(IMAGES.map(({ entry }) => entry));

/** What is half done is finished by the same command, whoever began it. */
withPeers(['docker-registry'], "Debian's docker-registry with mounts refused", () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  let registry: ExternalRegistry;
  let proxy: RecordingProxy;
  beforeAll(async () => {
    folder = await makeFolder();
    registry = await startDebianRegistry(folder.path);
    proxy = await startProxy(registry.host, { refuseMounts: true });
    for (const source of SOURCES) await pushSource(registry.host, source);
  });
  afterAll(async () => {
    for (const part of [proxy, registry]) await part?.stop();
    await folder.remove();
  });
  beforeEach(() => proxy.forget());

  const references = () => SOURCES.map((source) => `${proxy.host}/${source.repository}:${source.tag}`);
  const publishTo = (repository: string, options: Parameters<typeof publish>[2] = {}) =>
    publish(folder.path, [`${proxy.host}/${repository}:bullseye`, ...references()], options);

  it.each([
    ['SIGKILL', undefined],
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('a run that %s ended is finished by the next, which sends no blob again', async (kill, exitCode) => {
    const repository = `debian/${kill.toLowerCase()}`;
    const controller = new AbortController();
    const looking = setInterval(() => {
      if (committed(proxy.exchanges).length >= 5) controller.abort();
    }, 1);
    const cut = await publishTo(repository, { signal: controller.signal, kill });
    clearInterval(looking);
    expect(cut, lastWords(cut)).toMatchObject({ exitCode, stdout: '' });
    expect(await digestOfTag(registry.host, repository, 'bullseye')).toBeUndefined();
    const there = committed(proxy.exchanges);
    expect(there.length).toBeLessThan(40);

    proxy.forget();
    const done = await publishTo(repository);
    expect(done, lastWords(done)).toMatchObject({ exitCode: 0, stdout: `${INDEX.digest}\n` });
    expect(await missingIn(registry.host, repository, IMAGES)).toEqual([]);
    const sent = proxy.exchanges.filter((exchange) => exchange.sent > 0).map(({ query }) => query.get('digest'));
    expect(sent.filter((digest) => there.includes(digest))).toEqual([]);
  });

  withPeers(['docker'], 'and docker', () => {
    it('"error mounting" is how docker manifest push ends, and publish finishes what it left', async () => {
      const target = `${proxy.host}/debian/docker:bullseye`;
      const home = await makeHome(folder.path);
      const manifest = (...args: readonly string[]) =>
        run(needProgram('docker'), ['manifest', ...args], { env: { HOME: home } });
      const created = await manifest('create', '--insecure', target, ...references());
      expect(created, lastWords(created)).toMatchObject({ exitCode: 0 });
      const pushed = await manifest('push', '--insecure', target);
      expect(pushed).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('error mounting') });

      const done = await publishTo('debian/docker');
      expect(done, lastWords(done)).toMatchObject({ exitCode: 0, stdout: `${INDEX.digest}\n` });
      expect(await missingIn(registry.host, 'debian/docker', IMAGES)).toEqual([]);
    });
  });
});

/** Digests of the blobs that the registry has confirmed. */
function committed(exchanges: readonly Exchange[]): readonly (string | null)[] {
  return exchanges
    .filter(({ method, path, status }) => method === 'PUT' && path.includes('/blobs/uploads/') && status === 201)
    .map(({ query }) => query.get('digest'));
}
