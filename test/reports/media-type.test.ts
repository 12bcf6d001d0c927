import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MEDIA_TYPES } from '../../src/model/descriptor.ts';
import { seedDebian } from '../../src/registry-server/index.ts';
import { sourcesOf } from '../helpers/publishing.ts';
import { requests, withRegistry, writes } from '../helpers/registry.ts';
import { expectWords, manifestPuts, publishAt, published, timesEach, uploads, withCase } from './report.ts';

describe('media types and repeated content', () => {
  it('MED-01: a registry that refuses OCI and Docker children together: each child’s type and what to do are said', () =>
    withCase('MED-01', async ({ registry, run, expect: wanted }) => {
      const finished = await run();
      expectWords(finished.stderr, wanted['stderrContains']);
      expect(finished.stderr).toMatch(/hint: .+/);
      expect({ stdout: finished.stdout, exitCode: finished.exitCode }).toEqual({ stdout: '', exitCode: 5 });
      expect(registry.tagMoves).toEqual([]);
    }));

  it('MED-01: on a registry that takes them the same is an OCI index over unchanged children', () =>
    withCase('MED-01', async ({ registry, run }) => {
      registry.configure({ manifest: { mixed: 'accept' } });
      const { mediaType, entries } = published(registry, await run());
      expect(mediaType).toBe(MEDIA_TYPES.ociIndex);
      expect(entries.map(({ digest }) => digest)).toEqual(['t/a', 't/b'].map((name) => registry.tagOf(name, '1')));
      expect(entries.map(({ mediaType: type }) => type)).toEqual([MEDIA_TYPES.ociManifest, MEDIA_TYPES.dockerManifest]);
    }));

  it('MED-02: Docker children make a Docker list, tried once; --type oci is the user’s to force', () =>
    withRegistry({ manifest: { mixed: '400' } }, async (registry) => {
      const sources = sourcesOf(seedDebian(registry, { docker: true }));
      const list = published(registry, await publishAt(registry, 'debian/debian:1', sources));
      expect(list.mediaType).toBe(MEDIA_TYPES.dockerList);
      expect(manifestPuts(registry).tags.map(({ status }) => status)).toEqual([201]);
      const forced = await publishAt(registry, 'debian/forced:1', sources, { flags: ['--type', 'oci'] });
      expect({ stdout: forced.stdout, exitCode: forced.exitCode }).toEqual({ stdout: '', exitCode: 5 });
      // The registry's words once, not once for each type that was tried.
      expect(forced.stderr.match(/MANIFEST_INVALID/g)).toHaveLength(1);
      registry.configure({ manifest: { mixed: 'accept' } });
      const index = published(registry, await publishAt(registry, 'debian/oci:1', sources, { flags: ['--type=oci'] }));
      expect(index.mediaType).toBe(MEDIA_TYPES.ociIndex);
      expect(index.entries.map(({ digest }) => digest)).toEqual(list.entries.map(({ digest }) => digest));
    }));

  it('MED-02: OCI children make an OCI index, which a registry that knows no Docker types takes', () =>
    withRegistry('zot', async (registry) => {
      const sources = sourcesOf(seedDebian(registry));
      const { mediaType } = published(registry, await publishAt(registry, 'debian/debian:1', sources));
      expect(mediaType).toBe(MEDIA_TYPES.ociIndex);
    }));

  it('MED-03: a Docker manifest over OCI layers is copied as it is', () =>
    withCase('MED-03', async ({ registry, run, directory, expect: wanted }) => {
      const { repository, entries } = published(registry, await run());
      const digest = String(wanted['childDigest']);
      expect(entries[0]).toMatchObject({ digest, mediaType: MEDIA_TYPES.dockerManifest });
      const bytes = await readFile(join(directory, 'manifests', `${digest.replace(':', '_')}.json`));
      expect(registry.manifestOf(repository, digest)?.bytes).toEqual(bytes);
    }));

  it.each(['strict404', 'lenient'] as const)(
    'MED-05: an image of schema 1 is refused by name and nothing is written, on a registry that heeds Accept in the way %s',
    (accept) =>
      withCase('MED-05', async ({ registry, run, script, expect: wanted }) => {
        registry.configure({ manifest: { accept } });
        const finished = await run(script.replace(' create ', ' publish '));
        expectWords(finished.stderr, wanted['stderrContains']);
        expect({ stdout: finished.stdout, exitCode: finished.exitCode }).toEqual({ stdout: '', exitCode: 2 });
        expect(writes(registry)).toHaveLength(Number(wanted['writes']));
      }),
  );

  it('IDX-03: a layer that stands in several places is transferred once, never twice at a time', () =>
    withCase('IDX-03', async ({ registry, run, expect: wanted }) => {
      published(registry, await run());
      const sent = uploads(registry);
      expect(sent).toEqual(timesEach(Object.keys(sent), Number(wanted['uploadsPerDigest'])));
      expect(Object.keys(sent).length).toBeGreaterThan(0);
      const read = requests(registry, 'blobGet').map(({ reference }) => reference);
      expect(new Set(read).size).toBe(read.length);
    }));
});
