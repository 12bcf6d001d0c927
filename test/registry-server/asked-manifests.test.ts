import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import type { ProfileChanges, RunningRegistry } from '../../src/registry-server/index.ts';
import { MEDIA_TYPES, makeImage, makeIndex, putBuilt, seedImage } from '../helpers/images.ts';
import { withRegistry } from '../helpers/registry.ts';
import { send } from './http.ts';

// Switches for what zot, distribution, crane and serverless-registry were seen to do with manifests (2026-11-30).

const image = makeImage('one');
const platform = { os: 'linux', architecture: 'amd64' };

type Rules = NonNullable<ProfileChanges['manifest']>;

/** A registry with these rules, and everything below the image, but not the image. */
const withRules = (manifest: Rules, use: (registry: RunningRegistry) => Promise<void>) =>
  withRegistry({ manifest }, async (registry) => {
    putBuilt(registry, 'a/b', image);
    registry.deleteManifest('a/b', image.descriptor.digest);
    await use(registry);
  });

function put(registry: RunningRegistry, reference: string, body: string | Uint8Array, type?: string) {
  const headers: Readonly<Record<string, string>> = type === undefined ? {} : { 'content-type': type };
  return send(registry, 'PUT', `/v2/a/b/manifests/${reference}`, { body, headers });
}

const { ociManifest, ociIndex, dockerList, dockerManifest } = MEDIA_TYPES;

describe('what is not looked at', () => {
  it('bodyCheck false takes what is no JSON', () =>
    withRules({ bodyCheck: false }, async (registry) => {
      expect((await put(registry, '1', '{', ociManifest)).status).toBe(201);
      registry.configure({ manifest: { bodyCheck: true } });
      expect((await put(registry, '1', '{', ociManifest)).status).toBe(400);
    }));

  it('typeCheck false stores the type of the header, whatever the body says', () =>
    withRules({ typeCheck: false }, async (registry) => {
      expect((await put(registry, '1', image.bytes, ociIndex)).status).toBe(201);
      expect((await send(registry, 'GET', '/v2/a/b/manifests/1')).headers['content-type']).toBe(ociIndex);
      registry.configure({ manifest: { typeCheck: true } });
      expect((await put(registry, '1', image.bytes, ociIndex)).status).toBe(400);
    }));

  it('digestCheck false: a wrong digest is one more name, and no tag', () =>
    withRules({ digestCheck: false }, async (registry) => {
      const wrong = digestOf(Buffer.from('wrong'));
      const answer = await put(registry, wrong, image.bytes, ociManifest);
      expect(answer).toMatchObject({ status: 201, headers: { 'docker-content-digest': image.descriptor.digest } });
      for (const reference of [wrong, image.descriptor.digest]) {
        expect((await send(registry, 'GET', `/v2/a/b/manifests/${reference}`)).bytes).toEqual(image.bytes);
      }
      expect((await send(registry, 'GET', '/v2/a/b/tags/list')).bytes.toString()).toContain('"tags":[]');
    }));

  it.each([
    ['400', 400],
    ['404', 404],
    ['taken', 201],
  ] as const)('badTag %s answers a tag that cannot be one with %d', (badTag, status) =>
    withRules({ badTag }, async (registry) => {
      for (const tag of ['.bad', 'x'.repeat(129)]) {
        expect((await put(registry, tag, image.bytes, ociManifest)).status).toBe(status);
      }
    }),
  );

  it.each([
    ['400', 400],
    ['404', 404],
    ['taken', 202],
  ] as const)('repo.badName %s answers a name that cannot be one with %d', (badName, status) =>
    withRegistry({ repo: { badName } }, async (registry) => {
      expect((await send(registry, 'POST', '/v2/a/UPPER/blobs/uploads/')).status).toBe(status);
    }),
  );
});

describe('what is refused', () => {
  it.each([
    ['body', 201],
    ['400', 400],
    ['415', 415],
  ] as const)('noType %s: no Content-Type is %d', (noType, status) =>
    withRules({ noType }, async (registry) => {
      expect((await put(registry, '1', image.bytes)).status).toBe(status);
      expect((await put(registry, '1', image.bytes, ociManifest)).status).toBe(201);
    }),
  );

  it('shapeError 500: no JSON, no mediaType, no platform, an index in an index', () =>
    withRules(
      { shapeError: '500 INTERNAL_ERROR', needMediaType: true, needPlatform: 'all', nested: false },
      async (registry) => {
        const index = (entry: object) => JSON.stringify({ mediaType: ociIndex, manifests: [entry] });
        const { digest, size } = image.descriptor;
        for (const body of [
          '{',
          JSON.stringify({ manifests: [] }),
          index({ mediaType: ociManifest, digest, size }),
          index({ mediaType: ociIndex, digest, size, platform }),
        ]) {
          expect(await put(registry, '1', body, ociIndex)).toMatchObject({ status: 500, codes: ['INTERNAL_ERROR'] });
        }
      },
    ));

  it.each([
    [false, 3],
    [true, 1],
  ])('oneProblem %s: of three absent blobs %d are named', (oneProblem, count) =>
    withRegistry({ manifest: { oneProblem } }, async (registry) => {
      expect((await put(registry, '1', image.bytes, ociManifest)).codes).toHaveLength(count);
    }),
  );

  it.each([
    ['accept', 201, []],
    ['checked', 400, ['MANIFEST_BLOB_UNKNOWN']],
    ['400', 400, ['MANIFEST_INVALID']],
    ['500', 500, ['UNKNOWN', 'UNKNOWN', 'MANIFEST_BLOB_UNKNOWN']],
  ] as const)('urls %s: an absent layer with urls is %d %j', (urls, status, codes) =>
    withRegistry({ manifest: { urls } }, async (registry) => {
      const windows = makeImage('win', { docker: true, foreignUrl: 'https://foreign.example.test/x' });
      putBuilt(registry, 'a/b', windows);
      expect(await put(registry, '1', windows.bytes, dockerManifest)).toMatchObject({ status, codes });
    }),
  );
});

describe('what is read', () => {
  it.each([
    ['asAccept', undefined, 200],
    ['400', undefined, 400],
    ['400', dockerList, 200],
    ['400', dockerManifest, 200],
  ] as const)('bareList %s: a Docker list asked for with Accept %s is %d', (bareList, accept, status) =>
    withRegistry({ manifest: { bareList, accept: 'lenient' } }, async (registry) => {
      const list = makeIndex([{ manifest: makeImage('d', { docker: true }), platform }], { docker: true });
      const digest = putBuilt(registry, 'a/b', list, '1');
      const headers: Readonly<Record<string, string>> = accept === undefined ? {} : { accept };
      expect((await send(registry, 'GET', '/v2/a/b/manifests/1', { headers })).status).toBe(status);
      expect((await send(registry, 'GET', `/v2/a/b/manifests/${digest}`, { headers })).status).toBe(200);
    }),
  );

  it.each(['NAME_UNKNOWN', 'MANIFEST_UNKNOWN'] as const)('repo.manifestCode %s', (manifestCode) =>
    withRegistry({ repo: { manifestCode } }, async (registry) => {
      expect(await send(registry, 'GET', '/v2/a/b/manifests/1')).toMatchObject({ status: 404, codes: [manifestCode] });
    }),
  );

  it('repo.tags 200: an unknown repository has no tags', () =>
    withRegistry({ repo: { tags: '200' } }, async (registry) => {
      const answer = await send(registry, 'GET', '/v2/a/b/tags/list');
      expect([answer.status, answer.bytes.toString()]).toEqual([200, '{"name":"a/b","tags":[]}']);
    }));
});

describe('delete.manifest indexed405', () => {
  it('a child goes only after the index that names it', () =>
    withRegistry({ delete: { manifest: 'indexed405' } }, async (registry) => {
      const { digest } = seedImage(registry, 'a/b', '1').descriptor;
      const index = makeIndex([{ manifest: image, platform }]);
      const top = putBuilt(registry, 'a/b', index);
      const remove = (what: string) => send(registry, 'DELETE', `/v2/a/b/manifests/${what}`);
      expect(await remove(image.descriptor.digest)).toMatchObject({ status: 405, codes: ['DENIED'] });
      expect((await remove(digest)).status).toBe(202);
      expect((await remove(top)).status).toBe(202);
      expect((await remove(image.descriptor.digest)).status).toBe(202);
    }));
});

describe('auth.realm', () => {
  it.each([
    ['host', (url: string) => new URL(url).host],
    ['url', (url: string) => `${url}/v2/a/b/tags/list`],
  ] as const)('%s', (realm, expected) =>
    withRegistry({ auth: { scheme: 'basic', realm, anonymousPull: false } }, async (registry) => {
      const { headers } = await send(registry, 'GET', '/v2/a/b/tags/list?n=1');
      expect(headers['www-authenticate']).toBe(`Basic realm="${expected(registry.url)}"`);
    }),
  );
});
