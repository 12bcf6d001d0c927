import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import type { ProfileChanges, RunningRegistry } from '../../src/registry-server/index.ts';
import { MEDIA_TYPES } from '../helpers/images.ts';
import { withRegistry } from '../helpers/registry.ts';
import { octets, send, upload, withQuery } from './http.ts';

const bytes = Buffer.from('layer');
const digest = digestOf(bytes);
const mount = (registry: RunningRegistry, query: string) =>
  send(registry, 'POST', `/v2/target/blobs/uploads/?${query}`);
const both = `mount=${digest}&from=source`;

describe('mounting (distribution-spec v1.1.1, "Mounting a blob from another repository")', () => {
  it('answers 201 with the Location of a pullable blob, though no manifest names it', () =>
    withRegistry({}, async (registry) => {
      registry.putBlob('source', bytes);
      const answer = await mount(registry, both);
      expect(answer).toMatchObject({ status: 201, headers: { 'docker-content-digest': digest } });
      expect((await send(registry, 'GET', answer.headers['location'] ?? '')).bytes).toEqual(bytes);
      expect(registry.openSessions()).toBe(0);
    }));

  it('answers 202 and opens a session when the source has no such blob', () =>
    withRegistry({}, async (registry) => {
      registry.putBlob('source', Buffer.from('other'));
      const answer = await mount(registry, both);
      expect(answer.status).toBe(202);
      const put = withQuery(answer.headers['location'] ?? '', `digest=${digest}`);
      expect((await send(registry, 'PUT', put, { body: bytes, headers: octets })).status).toBe(201);
      expect(registry.hasBlob('target', digest)).toBe(true);
    }));

  it('answers 202 when the source repository does not exist', () =>
    withRegistry({}, async (registry) => {
      expect((await mount(registry, both)).status).toBe(202);
    }));

  it('refuses what is not a digest with 400', () =>
    withRegistry({}, async (registry) => {
      expect(await mount(registry, 'mount=latest&from=source')).toMatchObject({
        status: 400,
        codes: ['DIGEST_INVALID'],
      });
    }));

  it('a mounted blob stays when the source loses it', () =>
    withRegistry({}, async (registry) => {
      registry.putBlob('source', bytes);
      await mount(registry, both);
      registry.deleteBlob('source', digest);
      expect((await send(registry, 'GET', `/v2/target/blobs/${digest}`)).status).toBe(200);
    }));
});

describe('mount.mode', () => {
  const answers: readonly (readonly [string, ProfileChanges['mount'], number, boolean])[] = [
    ['ignore drops the parameters', { mode: 'ignore' }, 202, false],
    ['referenced refuses a blob that no manifest names', { mode: 'referenced' }, 202, false],
    ['anywhere', { mode: 'anywhere' }, 201, true],
    ['symlink', { mode: 'symlink' }, 201, true],
    ['lie201 says yes and links nothing', { mode: 'lie201' }, 201, false],
    ['off(404)', { mode: 'off(404)' }, 404, false],
    ['off(403)', { mode: 'off(403)' }, 403, false],
    ['off(500)', { mode: 'off(500)' }, 500, false],
    ['byDigest goes first', { mode: 'off(404)', byDigest: { [digest]: 'exists' } }, 201, true],
  ];

  it.each(answers)('%s', (_, changes, status, linked) =>
    withRegistry({ mount: changes ?? {} }, async (registry) => {
      registry.putBlob('source', bytes);
      expect((await mount(registry, both)).status).toBe(status);
      expect(registry.hasBlob('target', digest)).toBe(linked);
    }),
  );

  it('referenced mounts what a manifest of the source names', () =>
    withRegistry({ mount: { mode: 'referenced' } }, async (registry) => {
      registry.putBlob('source', bytes);
      const layers = [{ mediaType: 'x', digest, size: bytes.length }];
      registry.putManifest('source', Buffer.from(JSON.stringify({ layers })), 'application/json');
      expect((await mount(registry, both)).status).toBe(201);
    }));

  it('anywhere does not read from', () =>
    withRegistry({ mount: { mode: 'anywhere' } }, async (registry) => {
      registry.putBlob('elsewhere', bytes);
      expect((await mount(registry, `mount=${digest}&from=nowhere`)).status).toBe(201);
      expect((await mount(registry, `mount=${digest}`)).status).toBe(201);
    }));

  it('symlink: HEAD of a mounted blob tells the size and digest of a text, GET the bytes', () =>
    withRegistry({ mount: { mode: 'symlink' } }, async (registry) => {
      registry.putBlob('source', bytes);
      await mount(registry, both);
      const text = Buffer.from(`source/blobs/${digest}`);
      const head = await send(registry, 'HEAD', `/v2/target/blobs/${digest}`);
      expect(head).toMatchObject({
        status: 200,
        headers: { 'content-length': String(text.length), 'docker-content-digest': digestOf(text) },
      });
      expect((await send(registry, 'GET', `/v2/target/blobs/${digest}`)).bytes).toEqual(bytes);
      expect((await send(registry, 'HEAD', `/v2/source/blobs/${digest}`)).headers['content-length']).toBe('5');
    }));

  it('symlink does not mount a repository into itself', () =>
    withRegistry({ mount: { mode: 'symlink' } }, async (registry) => {
      registry.putBlob('target', bytes);
      expect((await mount(registry, `mount=${digest}&from=target`)).status).toBe(202);
    }));

  describe('symlink, as serverless-registry was seen to do it (2026-11-30)', () => {
    const linked = (use: (registry: RunningRegistry) => Promise<void>) =>
      withRegistry({ mount: { mode: 'symlink' } }, async (registry) => {
        registry.putBlob('source', bytes);
        registry.putBlob('target', bytes);
        expect((await mount(registry, both)).status).toBe(201);
        await use(registry);
      });
    const path = `/v2/target/blobs/${digest}`;

    it('the target loses the bytes that it had, and shows nothing once the source has none', () =>
      linked(async (registry) => {
        expect((await send(registry, 'HEAD', path)).headers['content-length']).not.toBe(String(bytes.length));
        await send(registry, 'DELETE', `/v2/source/blobs/${digest}`);
        expect((await send(registry, 'HEAD', path)).status).toBe(200);
        expect(await send(registry, 'GET', path)).toMatchObject({ status: 404, codes: ['BLOB_UNKNOWN'] });
        expect(registry.hasBlob('target', digest)).toBe(false);
        expect(registry.blobOf('target', digest)).toBeUndefined();
      }));

    it('a manifest that names a blob behind a dead link is taken', () =>
      linked(async (registry) => {
        registry.deleteBlob('source', digest);
        const mediaType = MEDIA_TYPES.ociManifest;
        const body = JSON.stringify({ mediaType, layers: [{ mediaType: 'x', digest, size: bytes.length }] });
        const headers = { 'content-type': mediaType };
        expect((await send(registry, 'PUT', '/v2/target/manifests/1', { body, headers })).status).toBe(201);
        expect(registry.missingFrom('target', '1')).toEqual([digest]);
      }));

    it('the bytes are back when the source has them again, or when they are uploaded over the link', () =>
      linked(async (registry) => {
        registry.deleteBlob('source', digest);
        registry.putBlob('source', bytes);
        expect((await send(registry, 'GET', path)).bytes).toEqual(bytes);
        registry.deleteBlob('source', digest);
        expect((await upload(registry, 'target', bytes)).status).toBe(201);
        expect((await send(registry, 'HEAD', path)).headers['content-length']).toBe(String(bytes.length));
        expect((await send(registry, 'GET', path)).bytes).toEqual(bytes);
      }));

    it('a link of a link names the repository with the bytes, which never becomes a link to itself', () =>
      linked(async (registry) => {
        expect((await mount(registry, `mount=${digest}&from=source`)).status).toBe(201);
        const post = (to: string, from: string) =>
          send(registry, 'POST', `/v2/${to}/blobs/uploads/?mount=${digest}&from=${from}`);
        expect((await post('source', 'target')).status).toBe(202);
        expect((await post('third', 'target')).status).toBe(201);
        registry.deleteBlob('target', digest);
        expect((await send(registry, 'GET', `/v2/third/blobs/${digest}`)).bytes).toEqual(bytes);
        registry.deleteBlob('source', digest);
        expect((await post('fourth', 'third')).status).toBe(202);
      }));
  });
});

describe('half a mount', () => {
  const halves: readonly (readonly [string, ProfileChanges['mount'], string, number])[] = [
    ['mount alone opens a session', {}, `mount=${digest}`, 202],
    ['withoutFrom anywhere201', { withoutFrom: 'anywhere201' }, `mount=${digest}`, 201],
    ['withoutFrom error400', { withoutFrom: 'error400' }, `mount=${digest}`, 400],
    ['from alone opens a session', {}, 'from=source', 202],
    ['fromWithoutMount 405', { fromWithoutMount: '405' }, 'from=source', 405],
    ['noSourceRepo 401empty', { noSourceRepo: '401empty' }, `mount=${digest}&from=nowhere`, 401],
    ['noSourceRepo 404', { noSourceRepo: '404' }, `mount=${digest}&from=nowhere`, 404],
    ['noSourceRepo 400', { noSourceRepo: '400' }, `mount=${digest}&from=nowhere`, 400],
    ['malformed 202', { malformed: '202' }, 'mount=sha256:1&from=source', 202],
    ['twice first', {}, `${both}&mount=sha256:1`, 201],
    ['twice 202', { twice: '202' }, `${both}&mount=${digest}`, 202],
    ['twice 400', { twice: '400' }, `${both}&mount=${digest}`, 400],
  ];

  it.each(halves)('%s', (_, changes, query, status) =>
    withRegistry({ mount: changes ?? {} }, async (registry) => {
      registry.putBlob('source', bytes);
      expect((await mount(registry, query)).status).toBe(status);
    }),
  );

  it('withoutFrom anywhere201 opens a session for what is nowhere', () =>
    withRegistry({ mount: { withoutFrom: 'anywhere201' } }, async (registry) => {
      expect((await mount(registry, `mount=${digest}`)).status).toBe(202);
    }));

  it('digestHeader false leaves the header out', () =>
    withRegistry({ mount: { digestHeader: false } }, async (registry) => {
      registry.putBlob('source', bytes);
      expect((await mount(registry, both)).headers['docker-content-digest']).toBeUndefined();
    }));

  it('shareAfterManifest shows a blob everywhere once a manifest names it', () =>
    withRegistry({ mount: { shareAfterManifest: true } }, async (registry) => {
      registry.putBlob('source', bytes);
      expect((await send(registry, 'HEAD', `/v2/target/blobs/${digest}`)).status).toBe(404);
      const layers = [{ mediaType: 'x', digest, size: bytes.length }];
      registry.putManifest('source', Buffer.from(JSON.stringify({ layers })), 'application/json');
      expect((await send(registry, 'HEAD', `/v2/target/blobs/${digest}`)).status).toBe(200);
    }));
});
