import { request } from 'node:https';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { startRegistry } from '../../src/registry-server/index.ts';
import { requests, withRegistry } from '../helpers/registry.ts';
import { selfSigned } from '../http/certificate.ts';
import { send, upload } from './http.ts';

describe('startRegistry', () => {
  it('listens on a free port of 127.0.0.1 and says which', () =>
    withRegistry({}, async (registry) => {
      expect(registry.host).toMatch(/^127\.0\.0\.1:\d+$/);
      expect(registry.url).toBe(`http://${registry.host}`);
    }));

  it('listens where it is told, IPv6 in brackets', () =>
    withRegistry({ options: { address: '::1' } }, async (registry) => {
      expect(registry.host).toMatch(/^\[::1\]:\d+$/);
      expect((await send(registry, 'GET', '/v2/')).status).toBe(200);
    }));

  it('fails when the port is taken', () =>
    withRegistry({}, async (registry) => {
      const port = Number(registry.host.split(':')[1]);
      await expect(startRegistry({ port })).rejects.toThrow(/EADDRINUSE/);
    }));

  it('speaks TLS with the certificate it is given, and names https in its Locations', async () => {
    const tls = selfSigned(['127.0.0.1']);
    await withRegistry({ options: { tls } }, async (registry) => {
      expect(registry.url).toBe(`https://${registry.host}`);
      const location = await new Promise((resolve, reject) => {
        const headers = { 'content-length': '0' };
        const sent = request(
          `${registry.url}/v2/a/b/blobs/uploads/`,
          { method: 'POST', ca: tls.cert, headers },
          (answer) => {
            answer.resume();
            resolve(answer.headers.location);
          },
        );
        sent.on('error', reject);
        sent.end();
      });
      expect(location).toMatch(/^https:\/\/127\.0\.0\.1:/);
      registry.configure({ upload: { location: 'httpScheme' } });
      expect(requests(registry, 'uploadPost')).toHaveLength(1);
    });
  });

  it('cuts a connection that speaks TLS, which cannot be reset', async () => {
    const tls = selfSigned(['127.0.0.1']);
    await withRegistry({ options: { tls } }, async (registry) => {
      registry.addFault({ operation: 'ping', action: { kind: 'reset', when: 'before' } });
      const ping = () =>
        new Promise((resolve) => {
          request(`${registry.url}/v2/`, { ca: tls.cert }, (answer) => {
            answer.resume();
            resolve(answer.statusCode);
          })
            .on('error', (error) => resolve(error.name))
            .end();
        });
      expect(await ping()).toBe('Error');
      expect(await ping()).toBe(200);
    });
  });

  it('closes at once, open connections and stalled answers included', async () => {
    const registry = await startRegistry({ profile: { blob: { redirect: '307otherHost' } } });
    const digest = registry.putBlob('a/b', Buffer.from('x'));
    await send(registry, 'GET', `/v2/a/b/blobs/${digest}`);
    registry.addFault({ operation: 'ping', action: { kind: 'stall' } });
    const stalled = send(registry, 'GET', '/v2/').then(
      () => 'answered',
      () => 'broken',
    );
    while (requests(registry, 'ping').length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    await registry.close();
    expect(await stalled).toBe('broken');
  });

  it('answers what is not HTTP with 400, as a server of another language would', () =>
    withRegistry({}, async (registry) => {
      const text = await new Promise<string>((resolve, reject) => {
        const socket = connect(Number(registry.host.split(':')[1]), '127.0.0.1', () =>
          socket.write('\x16\x03\x01\x00\xa5\r\n\r\n'),
        );
        socket.once('data', (piece) => resolve(piece.toString()));
        socket.once('error', reject);
      });
      expect(text).toMatch(/^HTTP\/1\.1 400 /);
    }));
});

describe('the journal', () => {
  it('tells what was sent and answered', () =>
    withRegistry({}, async (registry) => {
      const answer = await upload(registry, 'a/b', Buffer.from('12345'));
      const [post, put] = registry.journal;
      expect(answer.status).toBe(201);
      expect(post).toMatchObject({
        operation: 'uploadPost',
        method: 'POST',
        path: '/v2/a/b/blobs/uploads/',
        repository: 'a/b',
        status: 202,
        bytesIn: 0,
        authorization: 'none',
        listener: 'registry',
      });
      expect(put).toMatchObject({ operation: 'uploadPut', status: 201, bytesIn: 5 });
      expect(put?.query).toMatch(/^digest=sha256:/);
      expect(put?.headers['content-length']).toBe('5');
    }));

  it('numbers starts and ends in the order in which they happened', () =>
    withRegistry({}, async (registry) => {
      registry.addFault({ path: /slow/, action: { kind: 'delay', milliseconds: 40 } });
      const slow = send(registry, 'GET', '/v2/slow/tags/list');
      while (registry.journal.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      await send(registry, 'GET', '/v2/quick/tags/list');
      await slow;
      const [first, second] = registry.journal;
      expect([first?.start, second?.start, second?.end, first?.end]).toEqual([1, 2, 3, 4]);
      expect(first?.connection).not.toBe(second?.connection);
    }));

  it('tells the scheme of a credential, and forgets when it is told to', () =>
    withRegistry({}, async (registry) => {
      for (const authorization of ['Basic eA==', 'bearer x', 'Negotiate x']) {
        await send(registry, 'GET', '/v2/', { headers: { authorization } });
      }
      expect(registry.journal.map((entry) => entry.authorization)).toEqual(['basic', 'bearer', 'other']);
      registry.clearJournal();
      expect(registry.journal).toEqual([]);
    }));

  it('keeps the newest entries when there are too many', () =>
    withRegistry({ options: { journalLimit: 2 } }, async (registry) => {
      for (const name of ['a', 'b', 'c']) await send(registry, 'GET', `/v2/${name}/tags/list`);
      expect(registry.journal.map((entry) => entry.repository)).toEqual(['b', 'c']);
    }));

  it('tells a bug of the registry as 500 and why', () => {
    const newId = (): string => {
      throw new Error('out of ids');
    };
    return withRegistry({ options: { newId } }, async (registry) => {
      expect((await send(registry, 'POST', '/v2/a/b/blobs/uploads/')).status).toBe(500);
      expect(registry.journal.at(-1)).toMatchObject({ status: 500, failure: 'out of ids' });
      expect((await send(registry, 'GET', '/v2/')).status).toBe(200);
    });
  });
});

describe('setting and reading without HTTP', () => {
  it('manifests, tags and blobs', () =>
    withRegistry({}, async (registry) => {
      const digest = registry.putBlob('a/b', Buffer.from('x'));
      const manifest = registry.putManifest(
        'a/b',
        Buffer.from(`{"layers":[{"digest":"${digest}"}]}`),
        'text/plain',
        '1',
      );
      expect(registry.tagOf('a/b', '1')).toBe(manifest);
      expect(registry.manifestOf('a/b', '1')).toMatchObject({ digest: manifest, mediaType: 'text/plain' });
      expect(registry.missingFrom('a/b', '1')).toEqual([]);
      expect(registry.deleteBlob('a/b', digest)).toBe(true);
      expect(registry.missingFrom('a/b', '1')).toEqual([digest]);
      expect(registry.deleteManifest('a/b', manifest)).toBe(true);
      expect(registry.tags('a/b')).toEqual([]);
      expect(registry.deleteManifest('a/b', manifest)).toBe(false);
    }));

  it('putManifest takes what no registry would', () =>
    withRegistry({}, async (registry) => {
      const digest = registry.putManifest('a/b', Buffer.from('not json'), 'text/plain', '1');
      expect((await send(registry, 'GET', `/v2/a/b/manifests/${digest}`)).bytes.toString()).toBe('not json');
    }));
});
