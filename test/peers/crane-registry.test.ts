import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type ExternalRegistry,
  makeFolder,
  startCraneRegistry,
  startDebianRegistry,
} from '../helpers/external-registry.ts';
import { isMount, type RecordingProxy, startProxy } from '../helpers/proxy.ts';
import { debianSources, makeIndex } from './images.ts';
import { withPeers } from './lane.ts';
import { lastWords, publish } from './publish-command.ts';
import { digestOfTag, missingIn, pushSource } from './registry-access.ts';

const SOURCES = debianSources();
const IMAGES = SOURCES.flatMap((source) => source.images);
const INDEX = makeIndex(IMAGES.map(({ entry }) => entry));
const LAYERS = IMAGES.flatMap(({ blobs }) => blobs.slice(1));

withPeers(['crane'], 'crane registry serve', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  let crane: ExternalRegistry;
  let proxy: RecordingProxy;
  beforeAll(async () => {
    folder = await makeFolder();
    crane = await startCraneRegistry();
    proxy = await startProxy(crane.host);
    for (const source of SOURCES) await pushSource(crane.host, source);
  });
  afterAll(async () => {
    for (const part of [proxy, crane]) await part?.stop();
    await folder.remove();
  });

  withPeers(['docker-registry'], "to Debian's docker-registry", () => {
    let debian: ExternalRegistry;
    beforeAll(async () => {
      debian = await startDebianRegistry(folder.path);
    });
    afterAll(() => debian?.stop());

    it('streams every blob across, each once, and asks for no mount', async () => {
      const target = await startProxy(debian.host);
      const done = await publish(folder.path, [`${target.host}/debian/debian:bullseye`, ...references(proxy.host)]);
      await target.stop();
      expect(done, lastWords(done)).toMatchObject({ exitCode: 0, stdout: `${INDEX.digest}\n` });
      expect(await digestOfTag(debian.host, 'debian/debian', 'bullseye')).toBe(INDEX.digest);
      expect(await missingIn(debian.host, 'debian/debian', IMAGES)).toEqual([]);

      expect(target.exchanges.filter(isMount)).toEqual([]);
      const bodies = target.exchanges.filter(({ path, sent }) => path.includes('/blobs/uploads/') && sent > 0);
      const digests = bodies.map(({ query }) => query.get('digest'));
      expect(digests.sort()).toEqual(IMAGES.flatMap(({ blobs }) => blobs.map(({ digest }) => digest)).sort());
      const layers = proxy.exchanges.filter(({ method, path }) => method === 'GET' && path.includes('/blobs/'));
      expect(layers).toHaveLength(LAYERS.length + IMAGES.length);
      expect(done.report?.totals.blobs).toEqual({ present: 0, mounted: 0, copied: 40, skipped: 0 });
    });
  });
});

function references(host: string): readonly string[] {
  return SOURCES.map((source) => `${host}/${source.repository}:${source.tag}`);
}
