import { describe, expect, it } from 'vitest';
import { type Digest, isDigest } from '../../src/model/digest.ts';
import { parseReference } from '../../src/model/reference.ts';
import type { Verification } from '../../src/publish/findings.ts';
import { verify } from '../../src/publish/verify.ts';
import { type RunningRegistry, type SeededImage, seedDebian } from '../../src/registry-server/index.ts';
import { type PublishOptions, publishTo, sourcesOf, withPorts } from '../helpers/publishing.ts';
import { withRegistry, writes } from '../helpers/registry.ts';
import { upload } from '../registry-server/http.ts';

// What becomes of a list when blobs are lost below manifests that stay, and what brings them back. On
// serverless-registry a mounted blob is a link: it is lost with the blob in the repository it was mounted from.

const TARGET = 'debian/debian';

type World = {
  readonly registry: RunningRegistry;
  readonly images: readonly SeededImage[];
  /** A layer of the first image, and its bytes. */
  readonly layer: Digest;
  readonly bytes: Buffer;
};

/** Two images in their own repositories; the target holds one layer already, as its own, and no manifest. */
function withImages(profile: string, use: (world: World) => Promise<void>): Promise<void> {
  const options = { profile, changes: { auth: { scheme: 'none' } } } as const;
  return withRegistry({ options }, async (registry) => {
    const images = seedDebian(registry, { layers: 2 }).slice(0, 2);
    const layer = images[0]?.layers[0] ?? '';
    const bytes = registry.blobOf('debian/amd64', layer);
    if (!isDigest(layer) || bytes === undefined) throw new Error('nothing was seeded');
    registry.putBlob(TARGET, bytes);
    await use({ registry, images, layer, bytes });
  });
}

const run = ({ registry, images }: World, options: PublishOptions = {}) =>
  publishTo(registry, `${TARGET}:bullseye`, sourcesOf(images), options);

function check({ registry }: World, deep: boolean): Promise<Verification> {
  const reference = parseReference(`${registry.host}/${TARGET}:bullseye`);
  return withPorts({}, (ports, signal) => verify(reference, { deep }, ports, signal), [registry]);
}

const broken = async (world: World, deep: boolean): Promise<readonly string[]> =>
  (await check(world, deep)).problems.map(({ digest }) => digest);

describe('serverless-registry: a mounted blob is a link', () => {
  it('also over bytes that the target had; when the source loses them verify passes with a warning, --deep fails', () =>
    withImages('serverless', async (world) => {
      await run(world);
      expect(await broken(world, true)).toEqual([]);
      world.registry.deleteBlob('debian/amd64', world.layer);
      const look = await check(world, false);
      expect(look.problems).toEqual([]);
      expect(look.warnings.join('\n')).toContain(world.layer);
      expect(await broken(world, true)).toEqual([world.layer]);
    }));

  it('publishing again brings nothing back, and says that nothing was to be done', () =>
    withImages('serverless', async (world) => {
      await run(world);
      world.registry.deleteBlob('debian/amd64', world.layer);
      world.registry.clearJournal();
      const report = await run(world);
      expect(report.lists[0]?.targets[0]?.action).toBe('unchanged');
      expect(writes(world.registry)).toEqual([]);
      expect(await broken(world, true)).toEqual([world.layer]);
    }));

  it('pushing the image to its own repository again brings it back', () =>
    withImages('serverless', async (world) => {
      await run(world);
      world.registry.deleteBlob('debian/amd64', world.layer);
      expect((await upload(world.registry, 'debian/amd64', world.bytes)).status).toBe(201);
      expect(await broken(world, true)).toEqual([]);
    }));

  it('so does deleting manifest and link, and publishing from a source that has the bytes', () =>
    withImages('serverless', async (world) => {
      const { registry, layer, images, bytes } = world;
      await run(world);
      registry.deleteBlob('debian/amd64', layer);
      registry.deleteManifest(TARGET, images[0]?.image ?? '');
      registry.deleteBlob(TARGET, layer);
      registry.putBlob('debian/amd64', bytes);
      await run(world, { network: { hosts: { [registry.host]: { mount: 'never' } } } });
      expect(registry.missingFrom(TARGET, 'bullseye')).toEqual([]);
      registry.deleteBlob('debian/amd64', layer);
      expect(await broken(world, true)).toEqual([]);
    }));

  it('mount: never keeps what the target had, and makes it independent of the source', () =>
    withImages('serverless', async (world) => {
      const { host } = world.registry;
      await run(world, { network: { hosts: { [host]: { mount: 'never' } } } });
      for (const { repository, config, layers } of world.images) {
        for (const digest of [config, ...layers]) world.registry.deleteBlob(repository, digest);
      }
      expect(await check(world, true)).toMatchObject({ problems: [], warnings: [] });
    }));
});

describe('a registry that keeps what was mounted', () => {
  it('a blob that is lost below a manifest is not put back by publishing again, but by pushing its image there', () =>
    withImages('spec', async (world) => {
      await run(world);
      world.registry.deleteBlob(TARGET, world.layer);
      expect(await broken(world, false)).toEqual([world.layer]);
      await run(world);
      expect(await broken(world, false)).toEqual([world.layer]);
      await upload(world.registry, TARGET, world.bytes);
      expect(await broken(world, true)).toEqual([]);
    }));

  it('a manifest that is lost is put back by publishing again, with its blobs', () =>
    withImages('spec', async (world) => {
      await run(world);
      const child = world.images[0]?.image ?? '';
      world.registry.deleteManifest(TARGET, child);
      world.registry.deleteBlob(TARGET, world.layer);
      expect(await broken(world, false)).toEqual([child]);
      await run(world);
      expect(await broken(world, true)).toEqual([]);
    }));
});
