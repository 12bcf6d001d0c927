import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { startRegistry } from '../../src/registry-server/index.ts';
import { MEDIA_TYPES, makeImage } from '../helpers/images.ts';
import { withDirectory, withRegistry } from '../helpers/registry.ts';
import { openUpload, send, upload, withQuery } from './http.ts';

const image = makeImage('x');
const bytes = Buffer.from('0123456789');

describe('a place that cannot be made', () => {
  // Node's own recursive mkdir never comes back from there.
  it.skipIf(process.platform !== 'linux')('ends the start', async () => {
    await expect(startRegistry({ disk: '/proc/no/such/folder' })).rejects.toThrow('ENOENT');
  });

  it('may be a file, or below one', () =>
    withDirectory(async (folder) => {
      await writeFile(join(folder, 'file'), '');
      await expect(startRegistry({ disk: join(folder, 'file') })).rejects.toThrow('EEXIST');
      await expect(startRegistry({ disk: join(folder, 'file', 'a', 'b') })).rejects.toThrow('ENOTDIR');
    }));
});

describe('disk', () => {
  it('links stay links, and a manifest is kept by its own digest alone', () =>
    withDirectory(async (disk) => {
      const changes = { mount: { mode: 'symlink' }, manifest: { digestCheck: false, blobs: false } } as const;
      const digest = digestOf(bytes);
      await withRegistry({ options: { disk, changes } }, async (registry) => {
        await upload(registry, 'source', bytes);
        await send(registry, 'POST', `/v2/target/blobs/uploads/?mount=${digest}&from=source`);
        const headers = { 'content-type': MEDIA_TYPES.ociManifest };
        const put = await send(registry, 'PUT', `/v2/target/manifests/${digest}`, { body: image.bytes, headers });
        expect(put.status).toBe(201);
      });
      await withRegistry({ options: { disk, changes } }, async (registry) => {
        expect(registry.manifestOf('target', digest)).toBeUndefined();
        expect(registry.manifestOf('target', image.descriptor.digest)?.bytes).toEqual(image.bytes);
        expect(registry.hasBlob('target', digest)).toBe(true);
        registry.deleteBlob('source', digest);
        expect(registry.hasBlob('target', digest)).toBe(false);
      });
    }));

  it('what was pushed is there after a restart', () =>
    withDirectory(async (disk) => {
      await withRegistry({ options: { disk } }, async (registry) => {
        for (const { content } of image.blobs) if ('bytes' in content) await upload(registry, 'a/b', content.bytes);
        const headers = { 'content-type': MEDIA_TYPES.ociManifest };
        expect((await send(registry, 'PUT', '/v2/a/b/manifests/1', { body: image.bytes, headers })).status).toBe(201);
      });
      await withRegistry({ options: { disk } }, async (registry) => {
        const answer = await send(registry, 'GET', '/v2/a/b/manifests/1');
        expect(answer.bytes).toEqual(image.bytes);
        expect(answer.headers['content-type']).toBe(MEDIA_TYPES.ociManifest);
        expect(registry.missingFrom('a/b', '1')).toEqual([]);
        const layer = image.blobs.at(-1);
        const blob = await send(registry, 'GET', `/v2/a/b/blobs/${layer?.descriptor.digest}`, {
          headers: { range: 'bytes=5-9' },
        });
        expect(layer !== undefined && 'bytes' in layer.content && layer.content.bytes.subarray(5, 10)).toEqual(
          blob.bytes,
        );
      });
    }));

  it('it is on disk before the answer, so that a killed server has lost nothing it confirmed', () =>
    withDirectory((disk) =>
      withRegistry({ options: { disk } }, async (registry) => {
        await upload(registry, 'a/b', bytes);
        await withRegistry({ options: { disk } }, async (other) => {
          expect((await send(other, 'GET', `/v2/a/b/blobs/${digestOf(bytes)}`)).bytes).toEqual(bytes);
        });
      }),
    ));

  it('what was seeded in memory is written, too, and deletions stay', () =>
    withDirectory(async (disk) => {
      await withRegistry({ options: { disk } }, async (registry) => {
        registry.putBlob('a/b', bytes);
        registry.putManifest('a/b', Buffer.from('{}'), 'text/plain', '1');
        registry.setTag('a/b', '2', digestOf(Buffer.from('{}')));
        expect((await send(registry, 'DELETE', '/v2/a/b/manifests/2')).status).toBe(202);
      });
      await withRegistry({ options: { disk } }, async (registry) => {
        expect(registry.hasBlob('a/b', digestOf(bytes))).toBe(true);
        expect(registry.tags('a/b')).toEqual(['1']);
      });
    }));

  it('uploads in chunks, sha512 and cancelled ones leave no file behind', () =>
    withDirectory((disk) =>
      withRegistry({ options: { disk } }, async (registry) => {
        const first = await send(registry, 'PATCH', await openUpload(registry, 'a/b'), { body: bytes.subarray(0, 4) });
        const put = withQuery(first.headers['location'] ?? '', `digest=${digestOf(bytes, 'sha512')}`);
        expect((await send(registry, 'PUT', put, { body: bytes.subarray(4) })).status).toBe(201);
        const cancelled = await openUpload(registry, 'a/b');
        await send(registry, 'PATCH', cancelled, { body: bytes });
        expect((await send(registry, 'DELETE', cancelled)).status).toBe(204);
        expect(await readdir(join(disk, 'uploads'))).toEqual([]);
        expect(await readdir(join(disk, 'blobs'))).toEqual(['sha512']);
      }),
    ));

  it('many uploads at once are all kept', () =>
    withDirectory(async (disk) => {
      const all = Array.from({ length: 20 }, (_, index) => Buffer.from(`blob ${index}`));
      await withRegistry({ options: { disk } }, async (registry) => {
        const answers = await Promise.all(all.map((one) => upload(registry, 'a/b', one)));
        expect(answers.map((answer) => answer.status)).toEqual(all.map(() => 201));
      });
      await withRegistry({ options: { disk } }, async (registry) => {
        expect(all.every((one) => registry.hasBlob('a/b', digestOf(one)))).toBe(true);
      });
    }));

  it('a directory that lost a file, or that somebody else wrote, is refused', () =>
    withDirectory(async (disk) => {
      await withRegistry({ options: { disk } }, (registry) => upload(registry, 'a/b', bytes));
      await rm(join(disk, 'blobs'), { recursive: true });
      await expect(withRegistry({ options: { disk } }, () => undefined)).rejects.toThrow(/ENOENT/);
      await mkdir(join(disk, 'blobs'));
      await writeFile(join(disk, 'registry.json'), '{"version":9}');
      await expect(withRegistry({ options: { disk } }, () => undefined)).rejects.toThrow(/not written by this version/);
    }));
});
