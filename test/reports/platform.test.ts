import { describe, expect, it } from 'vitest';
import { seedDebian, startRegistry } from '../../src/registry-server/index.ts';
import { blobDigests, seedImage } from '../helpers/images.ts';
import { sourcesOf } from '../helpers/publishing.ts';
import { requests, withRegistry } from '../helpers/registry.ts';
import { blobsNamed, program, publishAt, published, timesEach, uploads, withCase } from './report.ts';

describe('platforms', () => {
  it('PLT-07: os.version comes from the config, two Windows images are no duplicates, foreign layers are not asked for', () =>
    withCase('PLT-07', async ({ registry, run, expect: wanted }) => {
      const { repository, entries } = published(registry, await run());
      expect(entries.map(({ platform }) => platform?.['os.version'] ?? null)).toEqual(wanted['osVersions']);
      expect(entries.map(({ platform }) => platform?.os)).toEqual(['linux', 'windows', 'windows']);
      const { kept, foreign } = blobsNamed(
        registry,
        repository,
        entries.map(({ digest }) => digest),
      );
      expect(foreign.length, String(wanted['requestsForbidden'])).toBeGreaterThan(0);
      for (const digest of foreign) {
        const asked = registry.journal.filter(({ path, query }) => decodeURIComponent(path + query).includes(digest));
        expect(asked).toEqual([]);
      }
      expect(uploads(registry)).toEqual(timesEach(kept, 1));
    }));

  it('PLT-08: a foreign layer is skipped and not fetched from its urls, the manifest stays, other blobs are copied', async () => {
    const elsewhere = await startRegistry();
    try {
      await withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
        const platform = { os: 'windows', architecture: 'amd64', 'os.version': '10.0.17763.2300' };
        const foreignUrl = `${elsewhere.url}/v2/windows/blobs/layer`;
        const image = seedImage(registry, 't/win', '1', { docker: true, platform, foreignUrl });
        const finished = await publishAt(registry, 't/all:1', ['t/win:1']);
        const { entries } = published(registry, finished);
        expect(entries).toEqual([{ ...image.descriptor, platform }]);
        expect(registry.manifestOf('t/all', image.descriptor.digest)?.bytes).toEqual(image.bytes);
        expect(uploads(registry)).toEqual(timesEach(blobDigests(image), 1));
        const [foreign = ''] = blobsNamed(registry, 't/all', [image.descriptor.digest]).foreign;
        expect(registry.hasBlob('t/all', foreign)).toBe(false);
        expect(requests(registry, 'mount')).toHaveLength(image.blobs.length);
        expect(finished.stderr).toMatch(/1 skipped|foreign/);
        expect(elsewhere.journal).toEqual([]);
      });
    } finally {
      await elsewhere.close();
    }
  });

  it('PLT-10: platforms come from the configs and are Go’s, whatever Debian calls the repositories', () =>
    withRegistry({}, async (registry) => {
      const images = seedDebian(registry);
      const { entries } = published(registry, await publishAt(registry, 'debian/debian:bullseye', sourcesOf(images)));
      expect(entries.map(({ platform }) => platform)).toEqual(images.map(({ platform }) => platform));
    }));

  it('PLT-10: a repository’s name is no hint: an image of another platform is listed as what its config says', () =>
    withRegistry({}, async (registry) => {
      const platform = { architecture: 'riscv64', os: 'linux' };
      seedImage(registry, 'debian/armel', '1', { platform });
      const { entries } = published(registry, await publishAt(registry, 'debian/debian:1', ['debian/armel:1']));
      expect(entries.map((entry) => entry.platform)).toEqual([platform]);
    }));

  it('PLT-10: a config that names no architecture gets no guess; the user’s word fills it in', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 'debian/armhf', '1', { platform: { os: 'linux' } });
      const guessed = await publishAt(registry, 'debian/debian:1', ['debian/armhf:1']);
      expect(guessed.stderr).toContain(`${registry.host}/debian/armhf`);
      expect({ stdout: guessed.stdout, exitCode: guessed.exitCode }).toEqual({ stdout: '', exitCode: 2 });
      expect(registry.tagMoves).toEqual([]);
      expect(requests(registry, 'manifestPut')).toEqual([]);
      const words = ['publish', `${registry.host}/debian/debian:1`, `armhf=${registry.host}/debian/armhf:1`];
      const { entries } = published(registry, await program([registry], words));
      expect(entries.map(({ platform }) => platform)).toEqual([{ architecture: 'arm', os: 'linux', variant: 'v7' }]);
    }));
});
