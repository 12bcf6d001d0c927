import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import type { ProfileChanges, RunningRegistry } from '../../src/registry-server/index.ts';
import { type BuiltManifest, MEDIA_TYPES, makeImage, makeIndex, putBuilt } from '../helpers/images.ts';
import { withRegistry } from '../helpers/registry.ts';
import { send, upload } from './http.ts';

const image = makeImage('one');
const docker = makeImage('two', { docker: true });
const platform = { os: 'linux', architecture: 'amd64' };

function put(registry: RunningRegistry, manifest: BuiltManifest, reference = '1') {
  const headers = { 'content-type': manifest.descriptor.mediaType };
  return send(registry, 'PUT', `/v2/a/b/manifests/${reference}`, { headers, body: manifest.bytes });
}

/** A repository that has everything below the manifest, but not the manifest. */
function prepare(registry: RunningRegistry, manifest: BuiltManifest): void {
  putBuilt(registry, 'a/b', manifest);
  registry.deleteManifest('a/b', manifest.descriptor.digest);
}

const putText = (registry: RunningRegistry, text: string, type: string = MEDIA_TYPES.ociManifest) =>
  send(registry, 'PUT', '/v2/a/b/manifests/1', { headers: { 'content-type': type }, body: text });

describe('pushing manifests (distribution-spec v1.1.1, "Pushing Manifests")', () => {
  it.each(['1', image.descriptor.digest])(
    'answers %s with 201, a pullable Location and the digest, and keeps the bytes',
    (reference) =>
      withRegistry({}, async (registry) => {
        prepare(registry, image);
        const answer = await put(registry, image, reference);
        expect(answer).toMatchObject({ status: 201, headers: { 'docker-content-digest': image.descriptor.digest } });
        expect((await send(registry, 'GET', answer.headers['location'] ?? '')).bytes).toEqual(image.bytes);
        expect(registry.tagOf('a/b', '1')).toBe(reference === '1' ? image.descriptor.digest : undefined);
      }),
  );

  it('the digest in the answer is the one the client gave, sha512 too', () =>
    withRegistry({}, async (registry) => {
      prepare(registry, image);
      const digest = digestOf(image.bytes, 'sha512');
      expect(await put(registry, image, digest)).toMatchObject({
        status: 201,
        headers: { 'docker-content-digest': digest },
      });
      expect((await send(registry, 'GET', `/v2/a/b/manifests/${digest}`)).bytes).toEqual(image.bytes);
    }));

  it('refuses bytes that do not hash to the digest with 400 DIGEST_INVALID', () =>
    withRegistry({}, async (registry) => {
      prepare(registry, image);
      expect(await put(registry, image, digestOf(Buffer.from('x')))).toMatchObject({
        status: 400,
        codes: ['DIGEST_INVALID'],
      });
    }));

  it.each([
    ['-bad', 400],
    ['a'.repeat(129), 400],
    ['sha256:12', 400],
    ['a'.repeat(128), 201],
  ])('answers the reference %s with %d', (reference, status) =>
    withRegistry({}, async (registry) => {
      prepare(registry, image);
      expect((await put(registry, image, reference)).status).toBe(status);
    }),
  );

  it('creates every tag of the query and names each in OCI-Tag', () =>
    withRegistry({}, async (registry) => {
      prepare(registry, image);
      const tags = Array.from({ length: 10 }, (_, index) => `t${index}`);
      const answer = await put(
        registry,
        image,
        `${image.descriptor.digest}?${tags.map((tag) => `tag=${tag}`).join('&')}`,
      );
      expect(answer.status).toBe(201);
      expect(answer.headers['oci-tag']?.split(/, */)).toEqual(tags);
      expect(registry.tags('a/b')).toEqual(tags);
    }));

  it('manifest.tagParam false ignores the query', () =>
    withRegistry({ manifest: { tagParam: false } }, async (registry) => {
      prepare(registry, image);
      const answer = await put(registry, image, `${image.descriptor.digest}?tag=x`);
      expect(answer).toMatchObject({ status: 201 });
      expect(answer.headers['oci-tag']).toBeUndefined();
      expect(registry.tags('a/b')).toEqual([]);
    }));

  it('refuses a Content-Type that is not the mediaType of the body with 400, parameters aside', () =>
    withRegistry({}, async (registry) => {
      prepare(registry, image);
      const text = image.bytes.toString();
      expect(await putText(registry, text, MEDIA_TYPES.ociIndex)).toMatchObject({
        status: 400,
        codes: ['MANIFEST_INVALID'],
      });
      expect((await putText(registry, text, `${MEDIA_TYPES.ociManifest}; charset=utf-8`)).status).toBe(201);
      expect(registry.manifestOf('a/b', '1')?.mediaType).toBe(MEDIA_TYPES.ociManifest);
    }));

  it.each([
    '',
    '[]',
    'null',
    '{',
    '\ufeff{}',
    '{"layers":{}}',
    '{"config":{"size":1}}',
    '{"layers":[{"digest":"sha256:1"}]}',
  ])('refuses the body %j with 400 MANIFEST_INVALID', (body) =>
    withRegistry({}, async (registry) => {
      expect(await putText(registry, body)).toMatchObject({ status: 400, codes: ['MANIFEST_INVALID'] });
    }),
  );

  it('refuses bytes that are not UTF-8', () =>
    withRegistry({}, async (registry) => {
      const body = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);
      const headers = { 'content-type': MEDIA_TYPES.ociManifest };
      expect((await send(registry, 'PUT', '/v2/a/b/manifests/1', { headers, body })).status).toBe(400);
    }));

  it('takes 4 MiB and refuses more with 413', () =>
    withRegistry({}, async (registry) => {
      const start = `{"mediaType":"${MEDIA_TYPES.ociManifest}","layers":[]}`;
      const full = start.padEnd(4 * 1024 * 1024, ' ');
      expect((await putText(registry, full)).status).toBe(201);
      expect((await putText(registry, `${full} `)).status).toBe(413);
      const type = { 'content-type': MEDIA_TYPES.ociManifest };
      const unannounced = { headers: type, body: `${full} `, chunked: true };
      expect((await send(registry, 'PUT', '/v2/a/b/manifests/1', unannounced)).status).toBe(413);
      registry.configure({ manifest: { max: '4MiB/400' } });
      expect((await putText(registry, `${full} `)).status).toBe(400);
      registry.configure({ manifest: { max: '10MiB/413' } });
      expect((await putText(registry, `${full} `)).status).toBe(201);
    }));
});

describe('what a manifest names (distribution-spec v1.1.1, "Push")', () => {
  it('absent blobs: MANIFEST_BLOB_UNKNOWN, one error for each, its digest as detail', () =>
    withRegistry({}, async (registry) => {
      const answer = await put(registry, image);
      const { errors } = JSON.parse(answer.bytes.toString()) as { readonly errors: readonly unknown[] };
      expect(answer.status).toBe(400);
      expect(errors).toEqual(
        image.blobs.map(({ descriptor }) =>
          expect.objectContaining({
            code: 'MANIFEST_BLOB_UNKNOWN',
            message: expect.any(String),
            detail: descriptor.digest,
          }),
        ),
      );
      expect(registry.tagOf('a/b', '1')).toBeUndefined();
    }));

  it('an absent child of an index is refused too', () =>
    withRegistry({}, async (registry) => {
      expect(await put(registry, makeIndex([{ manifest: image, platform }]))).toMatchObject({
        status: 400,
        codes: ['MANIFEST_BLOB_UNKNOWN'],
      });
    }));

  it('blobs of another repository do not count', () =>
    withRegistry({}, async (registry) => {
      putBuilt(registry, 'other', image);
      expect((await put(registry, image)).status).toBe(400);
    }));

  it('foreign layers need not be there', () =>
    withRegistry({}, async (registry) => {
      const windows = makeImage('win', { docker: true, foreignUrl: 'https://foreign.example.test/x' });
      prepare(registry, windows);
      expect((await put(registry, windows)).status).toBe(201);
      registry.configure({ manifest: { urls: '400' } });
      expect((await put(registry, windows)).status).toBe(400);
    }));

  it('urls alone make a layer foreign, whatever its type', () =>
    withRegistry({}, async (registry) => {
      const layer = {
        mediaType: 'application/vnd.oci.image.layer.v1.tar',
        digest: digestOf(Buffer.from('x')),
        size: 1,
      };
      const body = (urls: readonly string[]) => JSON.stringify({ layers: [{ ...layer, urls }] });
      expect((await putText(registry, body([]))).status).toBe(400);
      expect((await putText(registry, body(['https://foreign.example.test/x']))).status).toBe(201);
    }));

  it('an absent subject is accepted, and OCI-Subject says that it was processed', () =>
    withRegistry({}, async (registry) => {
      const subject = { mediaType: MEDIA_TYPES.ociManifest, digest: digestOf(Buffer.from('later')), size: 5 };
      const referrer = makeImage('sbom', { subject });
      prepare(registry, referrer);
      expect(await put(registry, referrer)).toMatchObject({ status: 201, headers: { 'oci-subject': subject.digest } });
      registry.configure({ manifest: { referrers: '404' } });
      expect((await put(registry, referrer)).headers['oci-subject']).toBeUndefined();
      registry.configure({ manifest: { subjectMustExist: true } });
      expect((await put(registry, referrer)).status).toBe(400);
    }));

  it.each(['404 MANIFEST_BLOB_UNKNOWN', '400 BLOB_UNKNOWN', '404 BLOB_UNKNOWN', '400 MANIFEST_INVALID'] as const)(
    'manifest.childError %s',
    (childError) =>
      withRegistry({ manifest: { childError } }, async (registry) => {
        const answer = await put(registry, makeImage('x', { layers: 0 }));
        expect(`${answer.status} ${answer.codes[0]}`).toBe(childError);
      }),
  );

  it('manifest.children none looks at nothing, platforms at the named ones', () =>
    withRegistry({ manifest: { children: 'none' } }, async (registry) => {
      expect((await put(registry, image)).status).toBe(201);
      registry.configure({ manifest: { children: { platforms: ['linux/amd64'] } } });
      const other = { os: 'linux', architecture: 's390x' };
      expect((await put(registry, makeIndex([{ manifest: docker, platform }]))).status).toBe(400);
      expect((await put(registry, makeIndex([{ manifest: docker, platform: other }]))).status).toBe(201);
    }));

  it('manifest.visibleAfterMs: what was just written is not there yet', () => {
    let now = 0;
    const options = { profile: { manifest: { visibleAfterMs: 2000 } }, now: () => now } as const;
    return withRegistry({ options }, async (registry) => {
      for (const { content } of image.blobs) if ('bytes' in content) await upload(registry, 'a/b', content.bytes);
      expect((await put(registry, image, image.descriptor.digest)).status).toBe(400);
      now = 2000;
      expect((await put(registry, image, image.descriptor.digest)).status).toBe(201);
      expect((await put(registry, makeIndex([{ manifest: image, platform }]))).status).toBe(400);
      expect((await send(registry, 'HEAD', `/v2/a/b/manifests/${image.descriptor.digest}`)).status).toBe(404);
      now = 4000;
      expect((await put(registry, makeIndex([{ manifest: image, platform }]))).status).toBe(201);
    });
  });
});

describe('other checks', () => {
  const index = makeIndex([{ manifest: image, platform }]);
  const bare = makeIndex([{ manifest: image }]);
  const checks: readonly (readonly [string, ProfileChanges['manifest'], BuiltManifest, number])[] = [
    ['types ociOnly415 refuses Docker types', { types: 'ociOnly415' }, docker, 415],
    ['types ociOnly415 takes OCI types', { types: 'ociOnly415' }, image, 201],
    ['an OCI index may hold Docker children', {}, makeIndex([{ manifest: docker, platform }]), 201],
    [
      'mixed 400 refuses an OCI index with a Docker child',
      { mixed: '400' },
      makeIndex([{ manifest: docker, platform }]),
      400,
    ],
    ['mixed 400 takes an OCI index with OCI children', { mixed: '400' }, index, 201],
    ['an index may hold an index', {}, makeIndex([{ manifest: index, platform }]), 201],
    ['nested false refuses an index in an index', { nested: false }, makeIndex([{ manifest: index, platform }]), 400],
    ['an entry may lack its platform', {}, bare, 201],
    ['needPlatform all wants it', { needPlatform: 'all' }, bare, 400],
    ['needPlatform dockerLists takes an OCI index without', { needPlatform: 'dockerLists' }, bare, 201],
    [
      'needPlatform dockerLists wants it in lists',
      { needPlatform: 'dockerLists' },
      makeIndex([{ manifest: docker }], { docker: true }),
      400,
    ],
  ];

  it.each(checks)('%s', (_, changes, manifest, status) =>
    withRegistry({ manifest: changes ?? {} }, async (registry) => {
      prepare(registry, manifest);
      expect((await put(registry, manifest)).status).toBe(status);
    }),
  );

  it('needMediaType wants the field in the body', () =>
    withRegistry({ manifest: { needMediaType: true } }, async (registry) => {
      expect((await putText(registry, '{"layers":[]}')).status).toBe(400);
      registry.configure({ manifest: { needMediaType: false } });
      expect((await putText(registry, '{"layers":[]}')).status).toBe(201);
    }));

  it('sizeCheck compares the sizes', () =>
    withRegistry({ manifest: { sizeCheck: true } }, async (registry) => {
      const digest = registry.putBlob('a/b', Buffer.from('12345'));
      const body = (size: number) => JSON.stringify({ layers: [{ mediaType: 'x', digest, size }] });
      expect(await putText(registry, body(4))).toMatchObject({ status: 400, codes: ['SIZE_INVALID'] });
      expect((await putText(registry, body(5))).status).toBe(201);
    }));

  it.each([
    ['off', 201, 201],
    ['400evenSame', 400, 400],
    ['409', 201, 409],
    ['412', 201, 412],
    ['400redeploy', 400, 400],
  ] as const)('manifest.immutable %s: the same digest %d, another %d', (immutable, same, other) =>
    withRegistry({ manifest: { immutable } }, async (registry) => {
      const next = makeImage('next');
      prepare(registry, image);
      prepare(registry, next);
      expect((await put(registry, image)).status).toBe(201);
      expect((await put(registry, image)).status).toBe(same);
      expect((await put(registry, next)).status).toBe(other);
      expect((await put(registry, next, next.descriptor.digest)).status).toBe(201);
    }),
  );

  it('tagMoves tells what a tag lacked at the moment it was put', () =>
    withRegistry({ manifest: { children: 'none' } }, async (registry) => {
      registry.createRepository('a/b');
      await put(registry, image);
      prepare(registry, docker);
      await put(registry, docker);
      await send(registry, 'DELETE', '/v2/a/b/manifests/1');
      const [first, second] = [image.descriptor.digest, docker.descriptor.digest];
      expect(registry.tagMoves).toEqual([
        {
          repository: 'a/b',
          tag: '1',
          from: undefined,
          to: first,
          missing: image.blobs.map((blob) => blob.descriptor.digest),
        },
        { repository: 'a/b', tag: '1', from: first, to: second, missing: [] },
        { repository: 'a/b', tag: '1', from: second, to: undefined, missing: [] },
      ]);
    }));
});
