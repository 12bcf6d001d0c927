import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import {
  findProfile,
  PROFILES,
  type ProfileChanges,
  type RunningRegistry,
  SWITCHES,
  startRegistry,
} from '../../src/registry-server/index.ts';
import { MEDIA_TYPES, makeImage, makeIndex, putBuilt } from '../helpers/images.ts';
import { withRegistry } from '../helpers/registry.ts';
import { octets, openUpload, send, upload, withQuery } from './http.ts';

const bytes = Buffer.from('0123456789');
const digest = digestOf(bytes);
const AT_ONCE: ProfileChanges = { auth: { scheme: 'none' }, repo: { missing: 'create' } };

describe('switches', () => {
  it('a name that does not exist is refused by name', async () => {
    const wrong = { upload: { warp: '9' } } as unknown as ProfileChanges;
    await expect(startRegistry({ profile: wrong })).rejects.toThrow('profile switch "upload.warp" does not exist');
    const group = { teleport: {} } as unknown as ProfileChanges;
    await expect(startRegistry({ profile: group })).rejects.toThrow('profile switch "teleport" does not exist');
  });

  it.each([
    ['upload.location', { upload: { location: 'dropPort80' } }],
    ['upload.commit', { upload: { commit: 'slow+retry404present' } }],
    ['mount.mode', { mount: { mode: 'off(n)' } }],
    ['mount.mode', { mount: { mode: 'off' } }],
    ['mount.mode', { mount: { mode: 'exists(5)' } }],
    ['mount.byDigest', { mount: { byDigest: { x: 'sometimes' } } }],
    ['mount.digestHeader', { mount: { digestHeader: 'false' } }],
    ['upload.ttlSec', { upload: { ttlSec: -1 } }],
    ['upload.chunk', { upload: { chunk: { minimum: 5 } } }],
    ['upload.chunk', { upload: { chunk: { min: '5' } } }],
    ['limit.pull', { limit: { pull: { perMinute: 5 } } }],
    ['manifest.children', { manifest: { children: { platform: [] } } }],
    ['answer.omitHeaders', { answer: { omitHeaders: 'x' } }],
  ])('a value that %s does not have is refused by name: %j', async (name, changes) => {
    await expect(startRegistry({ profile: changes as unknown as ProfileChanges })).rejects.toThrow(
      `profile switch "${name}" has no value`,
    );
  });

  it('the default is the first value of each', () =>
    withRegistry({}, async (registry) => {
      expect(registry.profile.mount.mode).toBe('exists');
      expect(registry.profile.upload.location).toBe('absolute');
      expect(registry.profile.upload.chunk).toEqual({ min: 0, max: 0, equal: false, oneByte: true, maxStatus: 416 });
      expect(registry.profile.limit.pull).toBe('none');
      for (const group of Object.values(SWITCHES)) {
        for (const one of 'initial' in group ? [group] : Object.values(group)) {
          expect(one.values.split(', ')[0]).toBe(
            typeof one.initial === 'object' ? one.values.split(', ')[0] : String(one.initial),
          );
        }
      }
    }));

  it('configure changes what is given and keeps the rest', () =>
    withRegistry({ upload: { state: '_state' } }, async (registry) => {
      registry.configure({ upload: { location: 'relative' }, mount: { mode: 'ignore' } });
      expect(registry.profile.upload).toMatchObject({ state: '_state', location: 'relative' });
      expect(registry.profile.mount.mode).toBe('ignore');
      expect(() => registry.configure({ mount: { mode: 'never' } } as unknown as ProfileChanges)).toThrow(RangeError);
      expect(registry.profile.mount.mode).toBe('ignore');
    }));
});

describe('profiles', () => {
  it.each(PROFILES.map((profile) => [profile.name, profile] as const))(
    '%s: dated, sourced, every switch implemented',
    (name, profile) => {
      expect(() => findProfile(name)).not.toThrow();
      expect(profile.date).toMatch(/^20\d\d-\d\d-\d\d$/);
      expect(profile.sources.length).toBeGreaterThan(0);
      expect(profile.title).not.toBe('');
    },
  );

  it('have names of their own', () => {
    expect(new Set(PROFILES.map((profile) => profile.name)).size).toBe(PROFILES.length);
  });

  it('an unknown one is refused, with the names there are', async () => {
    await expect(startRegistry({ profile: 'nope' })).rejects.toThrow(/no profile "nope"; there are: spec, /);
  });

  it('changes come on top of a named one', () =>
    withRegistry({ options: { profile: 'ecr-mounting', changes: AT_ONCE } }, async (registry) => {
      expect(registry.profile.mount.mode).toBe('referenced');
      expect(registry.profile.auth.scheme).toBe('none');
    }));
});

/** Statuses of the mounts of section 3.7 of the facts: blob in source, no from, unknown from, unknown digest, no mount. */
async function mountRow(registry: RunningRegistry): Promise<readonly number[]> {
  registry.putBlob('source', bytes);
  const unknown = digestOf(Buffer.from('unknown'));
  const post = async (query: string) => (await send(registry, 'POST', `/v2/target/blobs/uploads/?${query}`)).status;
  return [
    await post(`mount=${digest}&from=source`),
    await post(`mount=${digest}`),
    await post(`mount=${digest}&from=nowhere`),
    await post(`mount=${unknown}&from=source`),
    await post('from=source'),
  ];
}

const run = (name: string, use: (registry: RunningRegistry) => Promise<void>) =>
  withRegistry({ options: { profile: name, changes: AT_ONCE, scale: 1 / 1024 } }, use);

describe('profiles answer what the registry answered when it was asked by hand (2026-11-30)', () => {
  it.each([
    ['spec', [201, 202, 202, 202, 202]],
    ['distribution-v2', [201, 202, 202, 202, 202]],
    ['distribution-v3', [201, 202, 202, 202, 202]],
    ['zot', [201, 201, 201, 202, 405]],
    ['serverless', [201, 202, 202, 202, 202]],
    ['serverless-2024', [202, 202, 202, 202, 202]],
    ['ecr-off', [202, 202, 202, 202, 202]],
    ['ecr-mounting', [202, 202, 202, 202, 202]],
    ['ecr-public', [202, 202, 202, 202, 202]],
  ])('%s: mounts', (name, statuses) =>
    run(name, async (registry) => {
      expect(await mountRow(registry)).toEqual(statuses);
    }),
  );

  it.each([
    ['distribution-v2', 404, 202, 404, 500],
    ['distribution-v3', 416, 416, 204, 500],
    ['zot', 202, 416, 204, 202],
  ])(
    '%s: PATCH on an old Location %d, out of order %d, GET there %d, another type %d',
    (name, old, disorder, state, type) =>
      run(name, async (registry) => {
        const first = await openUpload(registry, 'a/b');
        const next = (await send(registry, 'PATCH', first, { body: '01234' })).headers['location'] ?? '';
        expect((await send(registry, 'GET', first)).status).toBe(state);
        const headers = { ...octets, 'content-range': '7-9' };
        expect((await send(registry, 'PATCH', first, { body: '567' })).status).toBe(old);
        const fresh = old === 202 ? next : ((await send(registry, 'GET', next)).headers['location'] ?? '');
        expect((await send(registry, 'PATCH', fresh, { body: '789', headers })).status).toBe(disorder);
        const other = await openUpload(registry, 'a/b');
        expect(
          (await send(registry, 'PATCH', other, { body: 'x', headers: { 'content-type': 'text/plain' } })).status,
        ).toBe(type);
      }),
  );

  it.each([
    ['distribution-v3', 201, 202],
    ['zot', 400, 201],
    ['serverless', 500, 202],
  ])('%s: PUT without a length %d, single POST %d', (name, chunked, single) =>
    run(name, async (registry) => {
      const put = withQuery(await openUpload(registry, 'a/b'), `digest=${digest}`);
      expect((await send(registry, 'PUT', put, { body: bytes, chunked: true, headers: octets })).status).toBe(chunked);
      const answer = await send(registry, 'POST', `/v2/a/b/blobs/uploads/?digest=${digest}`, {
        body: bytes,
        headers: octets,
      });
      expect(answer.status).toBe(single);
    }),
  );

  it.each([
    ['distribution-v3', '400 MANIFEST_BLOB_UNKNOWN', 201],
    ['zot', '400 MANIFEST_INVALID', 415],
    ['serverless', '400 BLOB_UNKNOWN', 201],
  ])('%s: an index with an absent child %s, Docker types %d', (name, refusal, status) =>
    run(name, async (registry) => {
      const index = makeIndex([{ manifest: makeImage('x'), platform: { os: 'linux', architecture: 'amd64' } }]);
      const headers = { 'content-type': MEDIA_TYPES.ociIndex };
      const refused = await send(registry, 'PUT', '/v2/a/b/manifests/1', { body: index.bytes, headers });
      expect(`${refused.status} ${refused.codes[0]}`).toBe(refusal);
      const docker = makeImage('y', { docker: true });
      putBuilt(registry, 'a/b', docker);
      const answer = await send(registry, 'PUT', '/v2/a/b/manifests/2', {
        body: docker.bytes,
        headers: { 'content-type': MEDIA_TYPES.dockerManifest },
      });
      expect(answer.status).toBe(status);
    }),
  );

  it.each([
    ['distribution-v2', 404, 400, 400, 404, 206],
    ['distribution-v3', 416, 400, 400, 404, 206],
    ['zot', 416, 415, 400, 404, 206],
    ['crane', 201, 201, 201, 202, 206],
    ['serverless', 201, 400, 201, 202, 200],
    ['serverless-2024', 201, 400, 201, 202, 200],
  ])(
    '%s: PUT after a wrong digest %d, manifest without type %d, under a wrong digest %d, capitals %d, part of a blob %d',
    (name, again, untyped, misnamed, capitals, part) =>
      run(name, async (registry) => {
        const put = withQuery(await openUpload(registry, 'a/b'), `digest=${digest}`);
        await send(registry, 'PUT', put, { body: 'wrong', headers: octets });
        expect((await send(registry, 'PUT', put, { body: bytes, headers: octets })).status).toBe(again);
        const image = makeImage('x');
        putBuilt(registry, 'a/c', image);
        expect((await send(registry, 'PUT', '/v2/a/c/manifests/1', { body: image.bytes })).status).toBe(untyped);
        const headers = { 'content-type': MEDIA_TYPES.ociManifest };
        const other = `/v2/a/c/manifests/${digest}`;
        expect((await send(registry, 'PUT', other, { body: image.bytes, headers })).status).toBe(misnamed);
        expect((await send(registry, 'POST', '/v2/UPPER/blobs/uploads/')).status).toBe(capitals);
        registry.putBlob('a/b', bytes);
        const range = { range: 'bytes=1-2' };
        expect((await send(registry, 'GET', `/v2/a/b/blobs/${digest}`, { headers: range })).status).toBe(part);
      }),
  );

  it.each([
    ['serverless', 201, 400, 400, 200],
    ['serverless-2024', 500, 500, 201, 404],
  ])(
    '%s: index entry without platform %d, no mediaType %d, absent subject %d, referrers %d',
    (name, bare, untyped, orphan, referrers) =>
      run(name, async (registry) => {
        const image = makeImage('x');
        const mediaType = MEDIA_TYPES.ociIndex;
        putBuilt(registry, 'a/b', image);
        const put = async (document: object) => {
          const body = JSON.stringify(document);
          const headers = { 'content-type': mediaType };
          return (await send(registry, 'PUT', '/v2/a/b/manifests/1', { body, headers })).status;
        };
        expect(await put({ mediaType, manifests: [image.descriptor] })).toBe(bare);
        expect(await put({ manifests: [] })).toBe(untyped);
        expect(await put({ mediaType, manifests: [], subject: { ...image.descriptor, digest } })).toBe(orphan);
        expect((await send(registry, 'GET', `/v2/a/b/referrers/${digest}`)).status).toBe(referrers);
      }),
  );

  it('serverless: POST tells both chunk limits and a state', () =>
    run('serverless', async (registry) => {
      const { headers } = await send(registry, 'POST', '/v2/a/b/blobs/uploads/');
      expect(headers['location']).toMatch(/^\/v2\/a\/b\/blobs\/uploads\/[-\w]+\?_stateHash=[0-9a-f]+$/);
      expect(headers).toMatchObject({ range: '0-0', 'oci-chunk-min-length': '5120', 'oci-chunk-max-length': '97657' });
    }));

  const KIB = 1024;
  it.each([
    [
      [5 * KIB, 5 * KIB, 100],
      [202, 202, 202],
    ],
    [
      [4 * KIB, 4 * KIB],
      [202, 416],
    ],
    [
      [5 * KIB, 6 * KIB],
      [202, 416],
    ],
    [
      [6 * KIB, 5 * KIB, 5 * KIB],
      [202, 202, 416],
    ],
    [
      [5 * KIB, 1],
      [202, 416],
    ],
  ])('serverless: chunks of %j answer %j (sizes by 1/1024)', (sizes, statuses) =>
    run('serverless', async (registry) => {
      let location = await openUpload(registry, 'a/b');
      const answers: number[] = [];
      let sent = 0;
      for (const size of sizes) {
        const headers = { ...octets, 'content-range': `${sent}-${sent + size - 1}` };
        const answer = await send(registry, 'PATCH', location, { body: Buffer.alloc(size), headers });
        answers.push(answer.status);
        location = answer.headers['location'] ?? location;
        sent += size;
      }
      expect(answers).toEqual(statuses);
    }),
  );

  it('serverless: after a PATCH the body of the closing PUT is ignored, which ends in 500', () =>
    run('serverless', async (registry) => {
      const patched = await send(registry, 'PATCH', await openUpload(registry, 'a/b'), {
        body: '01234',
        headers: octets,
      });
      const put = withQuery(patched.headers['location'] ?? '', `digest=${digest}`);
      expect((await send(registry, 'PUT', put, { body: '56789' })).status).toBe(500);
    }));

  it('serverless: Basic, and Bearer is refused', () =>
    withRegistry('serverless', async (registry) => {
      expect((await send(registry, 'GET', '/v2/')).headers['www-authenticate']).toMatch(/^Basic /);
      expect((await send(registry, 'GET', '/v2/', { headers: { authorization: 'Bearer x' } })).status).toBe(401);
    }));

  it('ecr: the first PATCH is 201, the range sticks, a repository must exist', () =>
    withRegistry(
      { options: { profile: 'ecr-off', changes: { auth: { scheme: 'none' } }, scale: 1e-6 } },
      async (registry) => {
        expect(await send(registry, 'POST', '/v2/a/b/blobs/uploads/')).toMatchObject({
          status: 404,
          codes: ['NAME_UNKNOWN'],
        });
        registry.createRepository('a/b');
        const first = await send(registry, 'PATCH', await openUpload(registry, 'a/b'), {
          body: '012345',
          headers: { 'content-range': '0-5' },
        });
        expect(first).toMatchObject({ status: 201, headers: { range: '0-5' } });
        const headers = { 'content-range': '6-9' };
        const second = await send(registry, 'PATCH', first.headers['location'] ?? '', { body: '6789', headers });
        expect(second).toMatchObject({ status: 201, headers: { range: '0-5' } });
      },
    ));

  /** Profiles that exist to refuse this, or that take no manifest before it can be seen. */
  const OTHERWISE = [
    'nexus',
    'nexus-redeploy',
    'ghcr-slow',
    'artifactory-2019',
    'distribution-badproxy',
    'distribution-mirror',
    'harbor-proxy',
  ];

  it.each(PROFILES.filter((profile) => !OTHERWISE.includes(profile.name)).map((profile) => profile.name))(
    '%s: POST and one PUT, then an OCI image by tag',
    (name) =>
      withRegistry(
        { options: { profile: name, changes: { ...AT_ONCE, manifest: { visibleAfterMs: 0 } } } },
        async (registry) => {
          const image = makeImage('x');
          for (const { content } of image.blobs) {
            if ('bytes' in content) expect((await upload(registry, 'a/b', content.bytes)).status).toBe(201);
          }
          const headers = { 'content-type': MEDIA_TYPES.ociManifest };
          expect((await send(registry, 'PUT', '/v2/a/b/manifests/1', { body: image.bytes, headers })).status).toBe(201);
          expect(registry.missingFrom('a/b', '1')).toEqual([]);
        },
      ),
  );
});
