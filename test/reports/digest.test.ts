import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MEDIA_TYPES } from '../../src/model/descriptor.ts';
import { seedAttested, seedImage } from '../helpers/images.ts';
import { requests, withRegistry } from '../helpers/registry.ts';
import { publishAt, published, withCase } from './report.ts';

describe('digests and bytes', () => {
  it('DIG-01: children are put with exactly the bytes that were fetched, however they are written', () =>
    withCase('DIG-01', async ({ registry, run, directory, expect: wanted }) => {
      const { repository, entries } = published(registry, await run());
      expect(entries.map(({ digest }) => digest)).toEqual(wanted['childDigests']);
      for (const { digest, size } of entries) {
        const bytes = await readFile(join(directory, 'manifests', `${digest.replace(':', '_')}.json`));
        expect(registry.manifestOf(repository, digest)?.bytes).toEqual(bytes);
        expect(size).toBe(bytes.length);
      }
    }));

  it('DIG-02: without Docker-Content-Digest from the registry every digest is computed from the bytes', () =>
    withCase('DIG-02', async ({ registry, run, directory }) => {
      const { repository, entries } = published(registry, await run());
      for (const { digest } of entries) {
        const bytes = await readFile(join(directory, 'manifests', `${digest.replace(':', '_')}.json`));
        expect(registry.manifestOf(repository, digest)?.bytes).toEqual(bytes);
      }
      // The second run also asks by HEAD, whose answers carry no digest either.
      registry.clearJournal();
      published(registry, await run());
      expect(requests(registry, 'manifestHead').map(({ status }) => status)).toEqual([200, 200]);
      expect(requests(registry, 'manifestPut')).toEqual([]);
    }));

  it('DIG-03: every manifest is asked for with both index types and both image types in Accept', () =>
    withRegistry({ manifest: { accept: 'explicit404' } }, async (registry) => {
      const platform = (architecture: string) => ({ os: 'linux', architecture });
      seedImage(registry, 't/docker', '1', { docker: true, platform: platform('s390x') });
      seedImage(registry, 't/oci', '1', { platform: platform('arm64') });
      seedAttested(registry, 't/index', '1', platform('amd64'));
      const sources = ['t/docker:1', 't/oci:1', 't/index:1'];
      published(registry, await publishAt(registry, 't/all:1', sources));
      published(registry, await publishAt(registry, 't/all:1', sources));
      const reads = requests(registry, 'manifestGet', 'manifestHead');
      expect(new Set(reads.map(({ method }) => method))).toEqual(new Set(['GET', 'HEAD']));
      const { ociIndex, ociManifest, dockerList, dockerManifest } = MEDIA_TYPES;
      for (const { method, path, headers } of reads) {
        const types = (headers['accept'] ?? '').split(',').map((type) => type.trim());
        expect(types, `${method} ${path}`).toEqual(
          expect.arrayContaining([ociIndex, ociManifest, dockerList, dockerManifest]),
        );
      }
    }));
});
