import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { MEDIA_TYPES, makeImage, makeIndex, putBuilt, seedImage } from '../helpers/images.ts';
import { withRegistry } from '../helpers/registry.ts';
import { send } from './http.ts';

const all = { accept: Object.values(MEDIA_TYPES).join(', ') };

describe('pulling manifests (distribution-spec v1.1.1, "Pulling manifests")', () => {
  it.each(['1', 'digest'])(
    'serves the exact bytes with 200, the type it was pushed with, and its digest, by %s',
    (by) =>
      withRegistry({}, async (registry) => {
        const image = seedImage(registry, 'a/b', '1', { indent: '\t' });
        const reference = by === 'digest' ? image.descriptor.digest : by;
        const answer = await send(registry, 'GET', `/v2/a/b/manifests/${reference}`, { headers: all });
        expect(answer.status).toBe(200);
        expect(answer.bytes).toEqual(image.bytes);
        expect(answer.headers['content-type']).toBe(MEDIA_TYPES.ociManifest);
        expect(answer.headers['docker-content-digest']).toBe(image.descriptor.digest);
      }),
  );

  it('answers HEAD with 200, size and digest, and no body', () =>
    withRegistry({}, async (registry) => {
      const image = seedImage(registry, 'a/b', '1');
      const answer = await send(registry, 'HEAD', '/v2/a/b/manifests/1', { headers: all });
      expect(answer).toMatchObject({
        status: 200,
        headers: { 'content-length': String(image.bytes.length), 'docker-content-digest': image.descriptor.digest },
      });
      expect(answer.bytes).toHaveLength(0);
    }));

  it.each(['missing', '.INVALID', `sha256:${'0'.repeat(64)}`, 'sha256:1'])(
    'answers %s with 404 MANIFEST_UNKNOWN',
    (reference) =>
      withRegistry({}, async (registry) => {
        seedImage(registry, 'a/b', '1');
        const answer = await send(registry, 'GET', `/v2/a/b/manifests/${reference}`, { headers: all });
        expect(answer).toMatchObject({ status: 404, codes: ['MANIFEST_UNKNOWN'] });
        expect((await send(registry, 'HEAD', `/v2/a/b/manifests/${reference}`)).status).toBe(404);
      }),
  );

  it('answers a repository that does not exist with 404', () =>
    withRegistry({}, async (registry) => {
      expect(await send(registry, 'GET', '/v2/no/such/manifests/1')).toMatchObject({
        status: 404,
        codes: ['NAME_UNKNOWN'],
      });
    }));

  it.each([
    ['application/json', 404],
    [MEDIA_TYPES.ociIndex, 404],
    [`${MEDIA_TYPES.ociManifest};q=0`, 404],
    [`${MEDIA_TYPES.ociIndex}, ${MEDIA_TYPES.ociManifest};q=0.5`, 200],
    ['*/*', 200],
    ['application/*', 200],
    ['', 200],
  ])('answers Accept "%s" for an OCI manifest with %d', (accept, status) =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 'a/b', '1');
      const headers: Readonly<Record<string, string>> = accept === '' ? {} : { accept };
      expect((await send(registry, 'GET', '/v2/a/b/manifests/1', { headers })).status).toBe(status);
    }),
  );

  it('manifest.accept lenient serves anything, explicit404 only what is named', () =>
    withRegistry({ manifest: { accept: 'lenient' } }, async (registry) => {
      seedImage(registry, 'a/b', '1');
      const headers = { accept: 'application/json' };
      expect((await send(registry, 'GET', '/v2/a/b/manifests/1', { headers })).status).toBe(200);
      registry.configure({ manifest: { accept: 'explicit404' } });
      expect((await send(registry, 'GET', '/v2/a/b/manifests/1', { headers: { accept: '*/*' } })).status).toBe(404);
      expect((await send(registry, 'GET', '/v2/a/b/manifests/1', { headers: all })).status).toBe(200);
    }));

  it('manifest.accept swapAmd64 gives the image of linux/amd64 to who cannot read lists', () =>
    withRegistry({ manifest: { accept: 'swapAmd64' } }, async (registry) => {
      const [amd64, arm64] = [makeImage('one', { docker: true }), makeImage('two', { docker: true })];
      const list = makeIndex(
        [
          { manifest: arm64, platform: { os: 'linux', architecture: 'arm64' } },
          { manifest: amd64, platform: { os: 'linux', architecture: 'amd64' } },
        ],
        { docker: true },
      );
      putBuilt(registry, 'a/b', list, '1');
      const headers = { accept: MEDIA_TYPES.dockerManifest };
      expect((await send(registry, 'GET', '/v2/a/b/manifests/1', { headers })).bytes).toEqual(amd64.bytes);
      expect((await send(registry, 'GET', `/v2/a/b/manifests/${list.descriptor.digest}`, { headers })).status).toBe(
        404,
      );
    }));

  it.each(['403', '500'] as const)('manifest.headMissing %s concerns HEAD alone', (headMissing) =>
    withRegistry({ manifest: { headMissing } }, async (registry) => {
      expect((await send(registry, 'HEAD', '/v2/a/b/manifests/1')).status).toBe(Number(headMissing));
      expect((await send(registry, 'GET', '/v2/a/b/manifests/1')).status).toBe(404);
    }),
  );

  it('manifest.digestHeader false leaves the header out', () =>
    withRegistry({ manifest: { digestHeader: false } }, async (registry) => {
      seedImage(registry, 'a/b', '1');
      expect((await send(registry, 'GET', '/v2/a/b/manifests/1')).headers['docker-content-digest']).toBeUndefined();
    }));

  it('answer.omitHeaders removes a header in any case', () =>
    withRegistry({ answer: { omitHeaders: ['docker-content-DIGEST'] } }, async (registry) => {
      const image = seedImage(registry, 'a/b', '1');
      const layer = image.blobs.at(-1)?.descriptor.digest;
      for (const path of ['/v2/a/b/manifests/1', `/v2/a/b/blobs/${layer}`]) {
        expect((await send(registry, 'GET', path)).headers['docker-content-digest']).toBeUndefined();
      }
    }));
});

describe('deleting (distribution-spec v1.1.1, "Deleting tags" and "Deleting Manifests")', () => {
  it('a tag: 202, then 404, and the manifest stays', () =>
    withRegistry({}, async (registry) => {
      const image = seedImage(registry, 'a/b', '1');
      expect((await send(registry, 'DELETE', '/v2/a/b/manifests/1')).status).toBe(202);
      expect((await send(registry, 'GET', '/v2/a/b/manifests/1')).status).toBe(404);
      expect((await send(registry, 'GET', `/v2/a/b/manifests/${image.descriptor.digest}`)).status).toBe(200);
    }));

  it('a manifest: 202, then 404 for it and every tag that pointed at it', () =>
    withRegistry({}, async (registry) => {
      const { digest } = seedImage(registry, 'a/b', '1').descriptor;
      registry.setTag('a/b', '2', digest);
      expect((await send(registry, 'DELETE', `/v2/a/b/manifests/${digest}`)).status).toBe(202);
      for (const reference of ['1', '2', digest]) {
        expect((await send(registry, 'GET', `/v2/a/b/manifests/${reference}`)).status).toBe(404);
      }
    }));

  it.each(['1', digestOf(Buffer.from('x'))])('what is not there: 404 (%s)', (reference) =>
    withRegistry({}, async (registry) => {
      expect((await send(registry, 'DELETE', `/v2/no/such/manifests/${reference}`)).status).toBe(404);
      registry.createRepository('a/b');
      expect((await send(registry, 'DELETE', `/v2/a/b/manifests/${reference}`)).status).toBe(404);
    }),
  );

  it('disabled: 400 or 405, and nothing is deleted', () =>
    withRegistry({ delete: { tag: '400', manifest: '405' } }, async (registry) => {
      const { digest } = seedImage(registry, 'a/b', '1').descriptor;
      expect((await send(registry, 'DELETE', '/v2/a/b/manifests/1')).status).toBe(400);
      expect((await send(registry, 'DELETE', `/v2/a/b/manifests/${digest}`)).status).toBe(405);
      expect(registry.tagOf('a/b', '1')).toBe(digest);
    }));
});
