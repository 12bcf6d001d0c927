import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { makeFolder, startDebianRegistry } from '../helpers/external-registry.ts';
import { startProxy } from '../helpers/proxy.ts';
import { imageAround, makeIndex, noise } from './images.ts';
import { withPeers } from './lane.ts';
import { lastWords, publish } from './publish-command.ts';
import { ask, digestOfTag, pushBlob, pushManifest } from './registry-access.ts';

const SIZE = 1024 ** 3;
const LIMIT = 180_000_000;
const PLATFORM = { architecture: 'amd64', os: 'linux' };
/** One core makes, hashes and moves about half a GiB a second, four times over, beside a registry that does the same. */
const TIMEOUT = 180_000;

withPeers(['docker-registry'], 'a layer of 1 GiB whose mount is refused', () => {
  it('is streamed in less than 180 MB of memory', { timeout: TIMEOUT }, async () => {
    const folder = await makeFolder();
    const registry = await startDebianRegistry(folder.path);
    const proxy = await startProxy(registry.host, { refuseMounts: true });
    try {
      const digest = await pushLayer(registry.host, 'big/amd64');
      const image = imageAround(PLATFORM, { digest, size: SIZE });
      for (const { digest, bytes } of image.blobs) await pushBlob(registry.host, 'big/amd64', digest, bytes);
      const { mediaType } = image.entry;
      await pushManifest(registry.host, 'big/amd64', '1', mediaType, image.manifest.bytes);

      const args = [`${proxy.host}/big/all:1`, `${proxy.host}/big/amd64:1`];
      const done = await publish(folder.path, args, { timeout: TIMEOUT });
      const index = makeIndex([image.entry]);
      expect(done, lastWords(done)).toMatchObject({ exitCode: 0, stdout: `${index.digest}\n` });
      expect(await digestOfTag(registry.host, 'big/all', '1')).toBe(index.digest);
      const head = await ask(registry.host, 'HEAD', `/v2/big/all/blobs/${digest}`);
      expect([head.status, head.headers['content-length']]).toEqual([200, String(SIZE)]);
      const sent = proxy.exchanges.filter((exchange) => exchange.sent >= SIZE);
      expect(sent).toHaveLength(1);

      expect(done.peakMemory).toBeGreaterThan(0);
      expect(done.peakMemory).toBeLessThan(LIMIT);
    } finally {
      await proxy.stop();
      await registry.stop();
      await folder.remove();
    }
  });
});

/** Made twice, once for its digest and once for the wire, so that this process holds none of it either. */
async function pushLayer(host: string, repository: string): Promise<string> {
  const hash = createHash('sha256');
  for (const piece of noise('layer', SIZE)) hash.update(piece);
  const digest = `sha256:${hash.digest('hex')}`;
  await pushBlob(host, repository, digest, { pieces: noise('layer', SIZE), size: SIZE });
  return digest;
}
