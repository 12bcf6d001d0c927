import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { MEDIA_TYPES, makeImage, putBuilt, seedImage } from '../helpers/images.ts';
import { withRegistry } from '../helpers/registry.ts';
import { send } from './http.ts';

async function tagPage(registry: RunningRegistry, query = '') {
  const answer = await send(registry, 'GET', `/v2/a/b/tags/list${query}`);
  return { ...answer, document: JSON.parse(answer.bytes.toString()) as { name: string; tags: string[] } };
}

function seedTags(registry: RunningRegistry, ...tags: readonly string[]): void {
  const { digest } = seedImage(registry, 'a/b', 'x').descriptor;
  for (const tag of tags) registry.setTag('a/b', tag, digest);
}

describe('listing tags (distribution-spec v1.1.1, "Listing Tags")', () => {
  it('answers 200 with name and all tags in ASCII order', () =>
    withRegistry({}, async (registry) => {
      seedTags(registry, 'b', 'B', 'a10', 'a9', '_z');
      const { status, document } = await tagPage(registry);
      expect(status).toBe(200);
      expect(document).toEqual({ name: 'a/b', tags: ['B', '_z', 'a10', 'a9', 'b', 'x'] });
    }));

  it('answers an empty repository with an empty list, and an unknown one with 404', () =>
    withRegistry({}, async (registry) => {
      expect((await tagPage(registry)).status).toBe(404);
      registry.createRepository('a/b');
      expect((await tagPage(registry)).document.tags).toEqual([]);
    }));

  it('gives n tags and a Link to the next ones until there are no more', () =>
    withRegistry({}, async (registry) => {
      seedTags(registry, '1', '2', '3');
      const first = await tagPage(registry, '?n=2');
      expect(first.document.tags).toEqual(['1', '2']);
      expect(first.headers['link']).toBe('</v2/a/b/tags/list?n=2&last=2>; rel="next"');
      const second = await tagPage(registry, '?n=2&last=2');
      expect(second.document.tags).toEqual(['3', 'x']);
      expect(second.headers['link']).toBeUndefined();
    }));

  it('gives no tag and no Link for n=0', () =>
    withRegistry({}, async (registry) => {
      seedTags(registry, '1');
      const answer = await tagPage(registry, '?n=0');
      expect(answer.document.tags).toEqual([]);
      expect(answer.headers['link']).toBeUndefined();
    }));

  it('gives what comes after last, which need not exist, also without n', () =>
    withRegistry({}, async (registry) => {
      seedTags(registry, '1', '3');
      expect((await tagPage(registry, '?last=2')).document.tags).toEqual(['3', 'x']);
    }));

  it('refuses an n that is no number with 400', () =>
    withRegistry({}, async (registry) => {
      registry.createRepository('a/b');
      expect((await send(registry, 'GET', '/v2/a/b/tags/list?n=x')).status).toBe(400);
    }));
});

describe('listing referrers (distribution-spec v1.1.1, "Listing Referrers")', () => {
  const subject = makeImage('subject').descriptor;

  async function referrers(registry: RunningRegistry, query = '') {
    const answer = await send(registry, 'GET', `/v2/a/b/referrers/${subject.digest}${query}`);
    return { ...answer, document: JSON.parse(answer.bytes.toString()) as Record<string, unknown> };
  }

  function putReferrer(registry: RunningRegistry, document: object, mediaType: string = MEDIA_TYPES.ociManifest) {
    const bytes = Buffer.from(JSON.stringify({ mediaType, subject, ...document }));
    registry.putManifest('a/b', bytes, mediaType);
    return { mediaType, size: bytes.length, digest: digestOf(bytes) };
  }

  const config = { mediaType: 'application/vnd.example.config', digest: digestOf(Buffer.from('{}')), size: 2 };

  it('answers 200 with an empty index where there are none, even in an unknown repository', () =>
    withRegistry({}, async (registry) => {
      const answer = await referrers(registry);
      expect(answer).toMatchObject({ status: 200, headers: { 'content-type': MEDIA_TYPES.ociIndex } });
      expect(answer.document).toEqual({ schemaVersion: 2, mediaType: MEDIA_TYPES.ociIndex, manifests: [] });
    }));

  it('describes each with artifactType (else the type of its config, and none for an index) and annotations', () =>
    withRegistry({}, async (registry) => {
      const own = putReferrer(registry, { config, artifactType: 'application/sbom', annotations: { a: 'b' } });
      const fallback = putReferrer(registry, { config });
      const index = putReferrer(registry, { manifests: [], config }, MEDIA_TYPES.ociIndex);
      putBuilt(registry, 'a/b', makeImage('no referrer'));
      expect((await referrers(registry)).document['manifests']).toEqual([
        { ...own, artifactType: 'application/sbom', annotations: { a: 'b' } },
        { ...fallback, artifactType: 'application/vnd.example.config' },
        index,
      ]);
    }));

  it('filters by artifactType and says so in OCI-Filters-Applied', () =>
    withRegistry({}, async (registry) => {
      const own = putReferrer(registry, { config, artifactType: 'application/sbom' });
      putReferrer(registry, { config });
      const answer = await referrers(registry, '?artifactType=application/sbom');
      expect(answer.headers['oci-filters-applied']).toBe('artifactType');
      expect(answer.document['manifests']).toEqual([{ ...own, artifactType: 'application/sbom' }]);
      expect((await referrers(registry)).headers['oci-filters-applied']).toBeUndefined();
    }));

  it('forgets a referrer that was deleted', () =>
    withRegistry({}, async (registry) => {
      const { digest } = putReferrer(registry, { config });
      await send(registry, 'DELETE', `/v2/a/b/manifests/${digest}`);
      expect((await referrers(registry)).document['manifests']).toEqual([]);
    }));

  it('refuses what is not a digest with 400', () =>
    withRegistry({}, async (registry) => {
      expect((await send(registry, 'GET', '/v2/a/b/referrers/latest')).status).toBe(400);
    }));

  it('manifest.referrersPage: pages, each with a link to the next, and a filter that stays', () =>
    withRegistry({ manifest: { referrersPage: 2 } }, async (registry) => {
      const put = (name: string) => putReferrer(registry, { config, artifactType: name }).digest;
      const digests = ['a/a', 'b/b', 'a/a+x', 'c/c', 'd/d'].map(put);
      const seen: unknown[] = [];
      let query: string | undefined = '';
      for (let pages = 1; query !== undefined; pages += 1) {
        const { document, headers } = await referrers(registry, query);
        seen.push(...(document['manifests'] as readonly { digest: string }[]).map(({ digest }) => digest));
        query = /^<\/v2\/a\/b\/referrers\/[^?]+(\?.+)>; rel="next"$/.exec(String(headers['link'] ?? ''))?.[1];
        expect(query === undefined).toBe(pages === 3);
      }
      expect(seen).toEqual(digests);
      for (let same = 0; same < 3; same += 1)
        putReferrer(registry, { config, artifactType: 'z/z', annotations: { n: `${same}` } });
      const filtered = await referrers(registry, '?artifactType=z/z');
      expect(filtered.headers['link']).toContain('?artifactType=z%2Fz&last=sha256');
    }));

  it('manifest.referrers 404: there is no such API', () =>
    withRegistry({ manifest: { referrers: '404' } }, async (registry) => {
      expect((await send(registry, 'GET', `/v2/a/b/referrers/${subject.digest}`)).status).toBe(404);
    }));
});

describe('the API as a whole', () => {
  it('answers /v2/ with 200 (end-1)', () =>
    withRegistry({}, async (registry) => {
      expect((await send(registry, 'GET', '/v2/')).status).toBe(200);
    }));

  it('answers errors as JSON with upper-case codes', () =>
    withRegistry({}, async (registry) => {
      const answer = await send(registry, 'GET', '/v2/a/b/manifests/1');
      expect(answer.headers['content-type']).toBe('application/json');
      expect(JSON.parse(answer.bytes.toString())).toEqual({
        errors: [{ code: expect.stringMatching(/^[A-Z_]+$/), message: expect.any(String), detail: 'a/b' }],
      });
    }));

  it('answers a method that an endpoint does not have with 405, and another path with 404', () =>
    withRegistry({}, async (registry) => {
      expect((await send(registry, 'PATCH', '/v2/a/b/manifests/1')).status).toBe(405);
      expect((await send(registry, 'GET', '/v1/_ping')).status).toBe(404);
      expect((await send(registry, 'GET', '/v2/a/b/unknown/1')).status).toBe(404);
    }));

  it('warns with code 299, agent - and no date', () =>
    withRegistry({ warning: 'going away' }, async (registry) => {
      expect((await send(registry, 'GET', '/v2/')).headers['warning']).toBe('299 - "going away"');
    }));
});
