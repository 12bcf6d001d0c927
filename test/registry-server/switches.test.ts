import { request } from 'node:https';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { findProfile, type ProfileChanges, type RunningRegistry } from '../../src/registry-server/index.ts';
import { makeImage, makeIndex, seedImage } from '../helpers/images.ts';
import { withRegistry } from '../helpers/registry.ts';
import { selfSigned } from '../http/certificate.ts';
import { octets, openUpload, send, upload, withQuery } from './http.ts';

// Switches that came with the imitations of Harbor's, GHCR's, ACR's and crane's habits; the others have files of their noun.

const bytes = Buffer.from('0123456789');
const digest = digestOf(bytes);

const basic = (name: string) => ({ authorization: `Basic ${Buffer.from(`${name}:secret`).toString('base64')}` });

type TokenAnswer = { readonly token?: string; readonly access_token?: string };

async function tokenFor(registry: RunningRegistry, query: string, headers: Readonly<Record<string, string>> = {}) {
  const answer = await send(registry, 'GET', `/token?${query}`, { headers });
  const document = JSON.parse(answer.bytes.toString()) as TokenAnswer;
  return { status: answer.status, token: document.token ?? document.access_token ?? '' };
}

describe('upload.commit slow', () => {
  const put = async (registry: RunningRegistry) => withQuery(await openUpload(registry, 'a/b'), `digest=${digest}`);

  it('a PUT that repeats a commit under way is 404 BLOB_UPLOAD_UNKNOWN, and the first one succeeds', () =>
    withRegistry({ upload: { commit: 'slow(60)' } }, async (registry) => {
      const there = await put(registry);
      const first = send(registry, 'PUT', there, { body: bytes, headers: octets });
      await new Promise((resolve) => setTimeout(resolve, 20));
      const again = await send(registry, 'PUT', there, { body: bytes, headers: octets });
      expect(again).toMatchObject({ status: 404, codes: ['BLOB_UPLOAD_UNKNOWN'] });
      expect((await first).status).toBe(201);
    }));

  it.each([
    ['slow+retry404present(5)', 'BLOB_UPLOAD_UNKNOWN', true],
    ['slow+retry404lost(5)', 'BLOB_UNKNOWN', false],
  ] as const)('%s: no answer, then 404 %s; the blob is there: %s', (commit, code, present) =>
    withRegistry({ upload: { commit } }, async (registry) => {
      const there = await put(registry);
      await expect(send(registry, 'PUT', there, { body: bytes, headers: octets })).rejects.toThrow();
      const again = await send(registry, 'PUT', there, { body: bytes, headers: octets });
      expect(again).toMatchObject({ status: 404, codes: [code] });
      expect(registry.hasBlob('a/b', digest)).toBe(present);
    }),
  );
});

describe('upload.location dropPort443', () => {
  it.each([
    ['registry.test:443', 'http://registry.test/v2/'],
    ['registry.test:4430', 'http://registry.test:4430/v2/'],
  ])('a client that says Host: %s is sent to %s', (host, start) =>
    withRegistry({ upload: { location: 'dropPort443' } }, async (registry) => {
      expect((await openUpload(registry, 'a/b', { host })).startsWith(start)).toBe(true);
    }),
  );
});

describe('mount.fromNeedsSlash', () => {
  it('refuses a source without a project with 400, and takes another', () =>
    withRegistry({ mount: { fromNeedsSlash: true } }, async (registry) => {
      registry.putBlob('bare', bytes);
      registry.putBlob('project/image', bytes);
      const mount = (from: string) => send(registry, 'POST', `/v2/a/b/blobs/uploads/?mount=${digest}&from=${from}`);
      expect((await mount('bare')).status).toBe(400);
      expect((await mount('project/image')).status).toBe(201);
    }));
});

describe('repo.push', () => {
  it.each([
    ['403', ['DENIED']],
    ['405', ['UNSUPPORTED']],
  ] as const)('%s refuses every write and no read', (push, codes) =>
    withRegistry({ repo: { push } }, async (registry) => {
      seedImage(registry, 'a/b', '1');
      const image = makeImage('x');
      const uploads = '/v2/a/b/blobs/uploads/';
      const answers = [
        await send(registry, 'POST', uploads),
        await send(registry, 'POST', `${uploads}?mount=${digest}&from=a/c`),
        await send(registry, 'PUT', '/v2/a/b/manifests/2', { body: image.bytes }),
      ];
      for (const answer of answers) expect(answer).toMatchObject({ status: Number(push), codes });
      expect((await send(registry, 'GET', '/v2/a/b/manifests/1')).status).toBe(200);
    }),
  );
});

describe('blob.shared', () => {
  it('shows a repository what another one has, and then it has it too', () =>
    withRegistry({ blob: { shared: true } }, async (registry) => {
      registry.putBlob('a/b', bytes);
      expect((await send(registry, 'HEAD', `/v2/a/c/blobs/${digest}`)).status).toBe(200);
      expect(registry.hasBlob('a/c', digest)).toBe(true);
      expect((await send(registry, 'HEAD', `/v2/a/d/blobs/${digestOf(Buffer.from('other'))}`)).status).toBe(404);
    }));
});

describe('manifest.blobs', () => {
  it('false takes an image whose layers are nowhere, and still refuses an index whose child is', () =>
    withRegistry({ manifest: { blobs: false, childError: '404 MANIFEST_UNKNOWN' } }, async (registry) => {
      const image = makeImage('x');
      const index = makeIndex([{ manifest: image, platform: { os: 'linux', architecture: 'amd64' } }]);
      const put = (body: Uint8Array, mediaType: string) =>
        send(registry, 'PUT', '/v2/a/b/manifests/1', { body, headers: { 'content-type': mediaType } });
      const refused = await put(index.bytes, index.descriptor.mediaType);
      expect(refused).toMatchObject({ status: 404, codes: ['MANIFEST_UNKNOWN'] });
      expect((await put(image.bytes, image.descriptor.mediaType)).status).toBe(201);
    }));
});

describe('auth', () => {
  const users = [
    { name: 'robot', password: 'secret' },
    { name: 'narrow', password: 'secret', access: { 'one/*': 'push', 'two/*': 'push' } },
  ] as const;
  const withAuth = (auth: ProfileChanges['auth'], use: (registry: RunningRegistry) => Promise<void>) =>
    withRegistry({ options: { profile: { auth: auth ?? {} }, users } }, use);

  it('anonymousPull with bearer: a read without a token is challenged, and anybody gets a token for it', () =>
    withAuth({ scheme: 'bearer' }, async (registry) => {
      seedImage(registry, 'a/b', '1');
      const bare = await send(registry, 'GET', '/v2/a/b/manifests/1');
      expect(bare.status).toBe(401);
      expect(bare.headers['www-authenticate']).toContain('scope="repository:a/b:pull"');
      const { token } = await tokenFor(registry, 'scope=repository:a/b:pull,push');
      const headers = { authorization: `Bearer ${token}` };
      expect((await send(registry, 'GET', '/v2/a/b/manifests/1', { headers })).status).toBe(200);
      expect((await send(registry, 'POST', '/v2/a/b/blobs/uploads/', { headers })).status).toBe(401);
    }));

  it('token.opaque: nothing in it can be decoded; else it is a JWT that names the grants', () =>
    withAuth({ scheme: 'bearer' }, async (registry) => {
      const { token } = await tokenFor(registry, 'scope=repository:a/b:pull', basic('robot'));
      const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as object;
      expect(claims).toMatchObject({ access: [{ type: 'repository', name: 'a/b', actions: ['pull'] }] });
      registry.configure({ auth: { token: { opaque: true } } });
      expect((await tokenFor(registry, 'scope=repository:a/b:pull', basic('robot'))).token).not.toContain('.');
    }));

  it('token.password false answers the password grant with postStatus, and no other', () =>
    withAuth({ scheme: 'bearer', token: { password: false, postStatus: 400 } }, async (registry) => {
      const post = async (body: string) => (await send(registry, 'POST', '/token', { body })).status;
      expect(await post('grant_type=password&username=robot&password=secret')).toBe(400);
      expect(await post('grant_type=refresh_token&refresh_token=x')).toBe(401);
      expect((await tokenFor(registry, 'scope=repository:a/b:pull', basic('robot'))).status).toBe(200);
    }));

  it.each([
    ['ignored', 200],
    ['400', 400],
  ] as const)('badName %s: a scope that can be no repository gives %d', (badName, status) =>
    withAuth({ scheme: 'bearer', badName }, async (registry) => {
      const query = 'scope=repository:a/b:pull&scope=repository:A//b:pull';
      expect((await send(registry, 'GET', `/token?${query}`, { headers: basic('robot') })).status).toBe(status);
    }),
  );

  it.each([
    [false, 202, 403],
    [true, 401, 401],
  ] as const)('perRepoUser %s: the second pattern gives %d, what no pattern names %d', (perRepoUser, second, other) =>
    withAuth({ scheme: 'basic', perRepoUser }, async (registry) => {
      const post = async (repository: string) =>
        (await send(registry, 'POST', `/v2/${repository}/blobs/uploads/`, { headers: basic('narrow') })).status;
      expect([await post('one/a'), await post('two/a'), await post('three/a')]).toEqual([202, second, other]);
    }),
  );
});

describe('limit.pull headers', () => {
  it('tells limit, what is left, and who is counted', () =>
    withRegistry({ limit: { pull: { perWindow: 100, headers: true } } }, async (registry) => {
      seedImage(registry, 'a/b', '1');
      expect((await send(registry, 'GET', '/v2/a/b/manifests/1')).headers).toMatchObject({
        'ratelimit-limit': '100;w=21600',
        'ratelimit-remaining': '99;w=21600',
        'docker-ratelimit-source': '127.0.0.1',
      });
    }));
});

describe('proxy.redirect301', () => {
  const profile = findProfile('distribution-badproxy');
  const put = (location: string) => withQuery(location, `digest=${digest}`);

  it('without TLS: the PUT to the session is sent to https, and everything else is answered', () =>
    withRegistry({ options: { profile } }, async (registry) => {
      const location = await openUpload(registry, 'a/b');
      const answer = await send(registry, 'PUT', put(location), { body: bytes, headers: octets });
      expect(answer.status).toBe(301);
      expect(answer.headers['location']).toBe(put(location).replace('http:', 'https:'));
      expect((await send(registry, 'GET', '/v2/')).status).toBe(200);
    }));

  it('with TLS: one port speaks both, and whatever comes in clear is sent to https', async () => {
    const tls = selfSigned(['127.0.0.1']);
    await withRegistry({ options: { profile, tls } }, async (registry) => {
      const secure = (method: string, path: string, body = Buffer.alloc(0)) =>
        new Promise<{ readonly status: number; readonly location: string }>((resolve, reject) => {
          const headers = { 'content-length': body.length };
          request(new URL(path, registry.url), { method, ca: tls.cert, headers }, (answer) => {
            answer.resume().on('end', () => {
              resolve({ status: answer.statusCode ?? 0, location: answer.headers.location ?? '' });
            });
          })
            .on('error', reject)
            .end(body);
        });
      const { status, location } = await secure('POST', '/v2/a/b/blobs/uploads/');
      expect(status).toBe(202);
      expect(location).toContain(`http://${registry.host}/`);
      const clear = await send(registry, 'PUT', put(location), { body: bytes });
      expect(clear).toMatchObject({ status: 301, headers: { location: put(location).replace('http:', 'https:') } });
      expect((await secure('PUT', clear.headers['location'] ?? '', bytes)).status).toBe(201);
      expect((await send({ url: `http://${registry.host}` }, 'GET', '/v2/')).status).toBe(301);
    });
  });
});

describe('crane registry serve, as it was asked by hand (2026-11-30)', () => {
  it('the session that cannot be cancelled or asked for (400) is still good for a PUT', () =>
    withRegistry('crane', async (registry) => {
      const location = await openUpload(registry, 'a/b');
      expect(await send(registry, 'DELETE', location)).toMatchObject({ status: 400, codes: ['NAME_INVALID'] });
      expect(await send(registry, 'GET', location)).toMatchObject({ status: 400, codes: ['NAME_INVALID'] });
      expect((await send(registry, 'PUT', withQuery(location, `digest=${digest}`), { body: bytes })).status).toBe(201);
    }));

  it('no mount, HEAD in any repository, any image, any size of index', () =>
    withRegistry('crane', async (registry) => {
      await upload(registry, 'a/b', bytes);
      const mount = await send(registry, 'POST', `/v2/a/c/blobs/uploads/?mount=${digest}&from=a/b`);
      expect(mount.status).toBe(202);
      expect((await send(registry, 'HEAD', `/v2/a/c/blobs/${digest}`)).status).toBe(200);
      const image = makeImage('x');
      const headers = { 'content-type': image.descriptor.mediaType };
      expect((await send(registry, 'PUT', '/v2/a/c/manifests/1', { body: image.bytes, headers })).status).toBe(201);
      const large = Buffer.concat([image.bytes, Buffer.alloc(5 * 1024 * 1024, ' ')]);
      expect((await send(registry, 'PUT', '/v2/a/c/manifests/2', { body: large, headers })).status).toBe(201);
      expect((await send(registry, 'GET', '/v2/a/c/referrers/sha256:0')).status).toBe(404);
    }));
});
