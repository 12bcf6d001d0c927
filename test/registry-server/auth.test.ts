import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import type { ProfileChanges, RegistryOptions, RunningRegistry } from '../../src/registry-server/index.ts';
import { seedImage } from '../helpers/images.ts';
import { withRegistry } from '../helpers/registry.ts';
import { send } from './http.ts';

const bytes = Buffer.from('layer');
const digest = digestOf(bytes);
const basic = (user: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});
const robot = basic('robot', 'secret');
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

const users = [
  { name: 'robot', password: 'secret', identityToken: 'refresh' },
  { name: 'narrow', password: 'p:w', access: { target: 'push', 'open/*': 'pull' } },
] as const;

const options = (auth: ProfileChanges['auth'], more: ProfileChanges = {}): { readonly options: RegistryOptions } => ({
  options: { profile: { ...more, auth: auth ?? {} }, users },
});

type TokenAnswer = { readonly token?: string; readonly access_token?: string; readonly expires_in?: number };

async function token(
  registry: RunningRegistry,
  query: string,
  headers: Readonly<Record<string, string>> = robot,
): Promise<string> {
  const answer = await send(registry, 'GET', `/token?service=${registry.host}&${query}`, { headers });
  return (JSON.parse(answer.bytes.toString()) as TokenAnswer).token ?? '';
}

describe('auth.scheme basic', () => {
  it('challenges with 401 Basic and takes the right password only', () =>
    withRegistry(options({ scheme: 'basic' }), async (registry) => {
      const answer = await send(registry, 'GET', '/v2/');
      expect(answer).toMatchObject({ status: 401, codes: ['UNAUTHORIZED'] });
      expect(answer.headers['www-authenticate']).toBe(`Basic realm="${registry.host}"`);
      expect((await send(registry, 'GET', '/v2/', { headers: robot })).status).toBe(200);
      expect((await send(registry, 'GET', '/v2/', { headers: basic('robot', 'wrong') })).status).toBe(401);
      expect((await send(registry, 'GET', '/v2/', { headers: basic('narrow', 'p:w') })).status).toBe(200);
    }));

  it('lets everybody pull and nobody push without a login; anonymousPull false shuts that too', () =>
    withRegistry(options({ scheme: 'basic' }), async (registry) => {
      seedImage(registry, 'a/b', '1');
      expect((await send(registry, 'GET', '/v2/a/b/manifests/1')).status).toBe(200);
      expect((await send(registry, 'POST', '/v2/a/b/blobs/uploads/')).status).toBe(401);
      expect((await send(registry, 'POST', '/v2/a/b/blobs/uploads/', { headers: robot })).status).toBe(202);
      registry.configure({ auth: { anonymousPull: false } });
      expect((await send(registry, 'GET', '/v2/a/b/manifests/1')).status).toBe(401);
    }));

  it('answers somebody without the right with 403 DENIED', () =>
    withRegistry(options({ scheme: 'basic' }), async (registry) => {
      const headers = basic('narrow', 'p:w');
      registry.putBlob('open/x', bytes);
      expect((await send(registry, 'HEAD', `/v2/open/x/blobs/${digest}`, { headers })).status).toBe(200);
      expect(await send(registry, 'POST', '/v2/open/x/blobs/uploads/', { headers })).toMatchObject({
        status: 403,
        codes: ['DENIED'],
      });
      expect((await send(registry, 'POST', '/v2/target/blobs/uploads/', { headers })).status).toBe(202);
    }));
});

describe('auth.scheme bearer', () => {
  it('names realm, service and scope in the challenge of the failing request', () =>
    withRegistry(options({ scheme: 'bearer' }), async (registry) => {
      const answer = await send(registry, 'POST', '/v2/a/b/blobs/uploads/');
      expect(answer.status).toBe(401);
      expect(answer.headers['www-authenticate']).toBe(
        `Bearer realm="${registry.url}/token",service="${registry.host}",scope="repository:a/b:pull,push"`,
      );
    }));

  it.each([
    ['noScope', 401, ''],
    ['placeholderScope', 401, ',scope="repository:user/image:pull"'],
    ['200', 200, ''],
  ] as const)('auth.ping %s', (ping, status, scope) =>
    withRegistry(options({ scheme: 'bearer', ping }), async (registry) => {
      const answer = await send(registry, 'GET', '/v2/');
      expect(answer.status).toBe(status);
      if (status === 401) {
        expect(answer.headers['www-authenticate']).toBe(
          `Bearer realm="${registry.url}/token",service="${registry.host}"${scope}`,
        );
      }
    }),
  );

  it('a token is good for what was asked, and for nothing else', () =>
    withRegistry(options({ scheme: 'bearer', anonymousPull: false }), async (registry) => {
      seedImage(registry, 'a/b', '1');
      const headers = bearer(await token(registry, 'scope=repository:a/b:pull'));
      expect((await send(registry, 'GET', '/v2/a/b/manifests/1', { headers })).status).toBe(200);
      expect((await send(registry, 'GET', '/v2/a/c/manifests/1', { headers })).status).toBe(401);
      const push = await send(registry, 'POST', '/v2/a/b/blobs/uploads/', { headers });
      expect(push.status).toBe(401);
      expect(push.headers['www-authenticate']).toContain('error="insufficient_scope"');
    }));

  it('refuses a token that is unknown, has expired, or is a password', () => {
    let now = 0;
    const profile = { auth: { scheme: 'bearer', token: { ttl: 60 } } } as const;
    return withRegistry({ options: { profile, users, now: () => now } }, async (registry) => {
      const headers = bearer(await token(registry, 'scope=repository:a/b:pull,push'));
      now = 59_999;
      expect((await send(registry, 'POST', '/v2/a/b/blobs/uploads/', { headers })).status).toBe(202);
      now = 60_000;
      const late = await send(registry, 'POST', '/v2/a/b/blobs/uploads/', { headers });
      expect(late.status).toBe(401);
      expect(late.headers['www-authenticate']).toContain('error="invalid_token"');
      expect((await send(registry, 'POST', '/v2/a/b/blobs/uploads/', { headers: bearer('x') })).status).toBe(401);
      expect((await send(registry, 'POST', '/v2/a/b/blobs/uploads/', { headers: robot })).status).toBe(401);
    });
  });

  it('deleting needs the delete action', () =>
    withRegistry(options({ scheme: 'bearer' }), async (registry) => {
      registry.putBlob('a/b', bytes);
      const path = `/v2/a/b/blobs/${digest}`;
      const push = bearer(await token(registry, 'scope=repository:a/b:pull,push'));
      expect((await send(registry, 'DELETE', path, { headers: push })).status).toBe(401);
      const all = bearer(await token(registry, 'scope=repository:a/b:*'));
      expect((await send(registry, 'DELETE', path, { headers: all })).status).toBe(202);
    }));

  it('sessions at the second address need no credential', () =>
    withRegistry(options({ scheme: 'bearer' }, { upload: { location: 'otherHost' } }), async (registry) => {
      const headers = bearer(await token(registry, 'scope=repository:a/b:pull,push'));
      const there = new URL(
        (await send(registry, 'POST', '/v2/a/b/blobs/uploads/', { headers })).headers['location'] ?? '',
      );
      const put = `${there.pathname}${there.search}&digest=${digest}`;
      expect((await send({ url: there.origin }, 'PUT', put, { body: bytes })).status).toBe(201);
      expect(registry.journal.at(-1)).toMatchObject({ listener: 'storage', authorization: 'none' });
    }));
});

describe('the token endpoint', () => {
  it('answers a wrong password with 401, and nobody with a token for public pulls', () =>
    withRegistry(options({ scheme: 'bearer' }), async (registry) => {
      const wrong = await send(registry, 'GET', '/token?scope=repository:a/b:pull', { headers: basic('robot', 'x') });
      expect(wrong.status).toBe(401);
      seedImage(registry, 'a/b', '1');
      const headers = bearer(await token(registry, 'scope=repository:a/b:pull,push', {}));
      expect((await send(registry, 'GET', '/v2/a/b/manifests/1', { headers })).status).toBe(200);
      expect((await send(registry, 'POST', '/v2/a/b/blobs/uploads/', { headers })).status).toBe(401);
    }));

  it.each(['token', 'access_token'] as const)('puts the token in the field %s, with its life', (field) =>
    withRegistry(options({ scheme: 'bearer', token: { field, ttl: 7 } }), async (registry) => {
      const answer = await send(registry, 'GET', '/token', { headers: robot });
      expect(JSON.parse(answer.bytes.toString())).toEqual({
        [field]: expect.any(String),
        expires_in: 7,
        issued_at: expect.any(String),
      });
    }),
  );

  it.each([
    ['grant_type=refresh_token&refresh_token=refresh', 200],
    ['grant_type=refresh_token&refresh_token=wrong', 401],
    ['grant_type=password&username=robot&password=secret', 200],
    ['grant_type=password&username=robot&password=wrong', 401],
    ['', 401],
  ])('answers POST "%s" with %d', (form, status) =>
    withRegistry(options({ scheme: 'bearer' }), async (registry) => {
      const body = `${form}&service=x&scope=repository:a/b:pull,push`;
      const answer = await send(registry, 'POST', '/token', { body });
      expect(answer.status).toBe(status);
      if (status !== 200) return;
      const given = (JSON.parse(answer.bytes.toString()) as TokenAnswer).access_token ?? '';
      expect((await send(registry, 'POST', '/v2/a/b/blobs/uploads/', { headers: bearer(given) })).status).toBe(202);
    }),
  );

  it('auth.token post false answers POST with postStatus', () =>
    withRegistry(options({ scheme: 'bearer', token: { post: false, postStatus: 404 } }), async (registry) => {
      expect((await send(registry, 'POST', '/token', { body: 'grant_type=password' })).status).toBe(404);
    }));

  const one = 'repository:a/b:pull,push';
  const two = 'repository:a/c:pull';
  const scopes: readonly (readonly [
    NonNullable<ProfileChanges['auth']>['scopes'] & string,
    string,
    readonly (number | 'refused')[],
  ])[] = [
    ['repeated+joined', `scope=${one}&scope=${two}`, [202, 200]],
    ['repeated+joined', `scope=${one}%20${two}`, [202, 200]],
    ['repeatedOnly400', `scope=${one}&scope=${two}`, [202, 200]],
    ['repeatedOnly400', `scope=${one}%20${two}`, ['refused']],
    ['firstOnly', `scope=${one}&scope=${two}`, [202, 401]],
    ['lastPerRepo', `scope=${one}&scope=repository:a/b:pull&scope=${two}`, [401, 200]],
    ['repeated+joined', `scope=repository:a/b:push&scope=repository:a/b:pull&scope=${two}`, [202, 200]],
  ];

  it.each(scopes)('auth.scopes %s reads %s', (mode, query, expected) =>
    withRegistry(options({ scheme: 'bearer', anonymousPull: false, scopes: mode }), async (registry) => {
      seedImage(registry, 'a/c', '1');
      const answer = await send(registry, 'GET', `/token?${query}`, { headers: robot });
      if (expected[0] === 'refused') {
        expect(answer.status).toBe(400);
        return;
      }
      const headers = bearer((JSON.parse(answer.bytes.toString()) as TokenAnswer).token ?? '');
      const post = await send(registry, 'POST', '/v2/a/b/blobs/uploads/', { headers });
      const get = await send(registry, 'GET', '/v2/a/c/manifests/1', { headers });
      expect([post.status, get.status]).toEqual(expected);
    }),
  );

  it.each([
    ['downscope', 200],
    ['403', 403],
    ['400', 400],
  ] as const)('auth.denied %s: asking for more than one may have gives %d', (denied, status) =>
    withRegistry(options({ scheme: 'bearer', denied }), async (registry) => {
      const path = '/token?scope=repository:open/x:pull,push';
      expect((await send(registry, 'GET', path, { headers: basic('narrow', 'p:w') })).status).toBe(status);
      expect((await send(registry, 'GET', path, { headers: robot })).status).toBe(200);
    }),
  );

  it('repo.missing createOnPushToken creates the repository with the token', () =>
    withRegistry(options({ scheme: 'bearer' }, { repo: { missing: 'createOnPushToken' } }), async (registry) => {
      await token(registry, 'scope=repository:a/b:pull');
      expect(registry.repositories()).toEqual([]);
      await token(registry, 'scope=repository:a/b:pull,push');
      expect(registry.repositories()).toEqual(['a/b']);
    }));
});

describe('a mount needs pull on its source in the same token', () => {
  const mount = `/v2/target/blobs/uploads/?mount=${digest}&from=source`;
  const modes = [
    ['401bearer2', 401],
    ['202', 202],
    ['401basic', 401],
    ['401empty', 401],
    ['403', 403],
    ['ok', 201],
  ] as const;

  it.each(modes)('mount.noSourceScope %s answers a token without it with %d', (noSourceScope, status) =>
    withRegistry(options({ scheme: 'bearer' }, { mount: { noSourceScope } }), async (registry) => {
      registry.putBlob('source', bytes);
      const narrow = bearer(await token(registry, 'scope=repository:target:pull,push'));
      const answer = await send(registry, 'POST', mount, { headers: narrow });
      expect(answer.status).toBe(status);
      const challenge = answer.headers['www-authenticate'];
      if (noSourceScope === '401bearer2') {
        expect(challenge).toContain('scope="repository:target:pull,push repository:source:pull"');
      } else if (noSourceScope === '401basic') expect(challenge).toMatch(/^Basic /);
      else expect(challenge).toBeUndefined();
      const wide = bearer(await token(registry, 'scope=repository:target:pull,push&scope=repository:source:pull'));
      expect((await send(registry, 'POST', mount, { headers: wide })).status).toBe(201);
    }),
  );

  it('also with Basic, by the rights of the user', () =>
    withRegistry(options({ scheme: 'basic' }, { mount: { noSourceScope: '403' } }), async (registry) => {
      registry.putBlob('source', bytes);
      expect((await send(registry, 'POST', mount, { headers: basic('narrow', 'p:w') })).status).toBe(403);
      expect((await send(registry, 'POST', mount, { headers: robot })).status).toBe(201);
    }));

  it('but not where the parameters are dropped', () =>
    withRegistry(options({ scheme: 'bearer' }, { mount: { mode: 'ignore' } }), async (registry) => {
      const narrow = bearer(await token(registry, 'scope=repository:target:pull,push'));
      expect((await send(registry, 'POST', mount, { headers: narrow })).status).toBe(202);
    }));
});

describe('auth.cookieCsrf', () => {
  it('refuses a request that sends the cookie back without the header', () =>
    withRegistry({ auth: { cookieCsrf: true } }, async (registry) => {
      const cookie = (await send(registry, 'GET', '/v2/')).headers['set-cookie'] ?? '';
      expect(cookie).toMatch(/^sid=/);
      const carried = { cookie: cookie.split(';', 1)[0] ?? '' };
      expect((await send(registry, 'GET', '/v2/', { headers: carried })).status).toBe(403);
      expect(
        (await send(registry, 'GET', '/v2/', { headers: { ...carried, 'x-harbor-csrf-token': 'x' } })).status,
      ).toBe(200);
    }));
});
