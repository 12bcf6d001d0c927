import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import type { ProfileChanges, RunningRegistry } from '../../src/registry-server/index.ts';
import { makeImage } from '../helpers/images.ts';
import { withRegistry } from '../helpers/registry.ts';
import { octets, openUpload, send, withQuery } from '../registry-server/http.ts';
import { lessonProblems, lessonsOf, logProblems } from './registry-log.ts';

// The matrix is only worth as much as its reading of the log: each promise is broken here once.

const bytes = Buffer.from('0123456789');
const digest = digestOf(bytes);
const POST = '/v2/a/b/blobs/uploads/';

async function problemsAfter(
  profile: ProfileChanges,
  use: (registry: RunningRegistry) => Promise<unknown>,
): Promise<string> {
  return withRegistry(profile, async (registry) => {
    await use(registry);
    return logProblems(registry).join('\n');
  });
}

/** POST and PUT as they should be. */
async function upload(registry: RunningRegistry, change: (location: string) => string = (location) => location) {
  const location = change(await openUpload(registry, 'a/b'));
  await send(registry, 'PUT', withQuery(location, `digest=${digest}`), { body: bytes, headers: octets });
}

describe('reading the log', () => {
  it('finds nothing where nothing is wrong', async () => {
    expect(await problemsAfter({ upload: { state: '_state' } }, (registry) => upload(registry))).toBe('');
  });

  it('finds a body without a length', async () => {
    const found = await problemsAfter({}, async (registry) => {
      const location = await openUpload(registry, 'a/b');
      await send(registry, 'PUT', withQuery(location, `digest=${digest}`), { body: bytes, chunked: true });
    });
    expect(found).toContain('Transfer-Encoding: chunked');
    expect(found).toContain('no Content-Length');
  });

  it('finds a cookie', async () => {
    const found = await problemsAfter({}, (registry) =>
      send(registry, 'GET', '/v2/', { headers: { cookie: 'sid=1' } }),
    );
    expect(found).toContain('a cookie');
  });

  it('finds a login that went to another host', async () => {
    const found = await problemsAfter({ upload: { location: 'otherHost' } }, async (registry) => {
      const there = new URL(await openUpload(registry, 'a/b'));
      const headers = { authorization: 'Basic x' };
      await send({ url: there.origin }, 'PUT', `${there.pathname}${there.search}&digest=${digest}`, {
        body: bytes,
        headers,
      });
    });
    expect(found).toContain('Authorization to another host');
  });

  it('finds a Location whose query was changed', async () => {
    const found = await problemsAfter({ upload: { state: '_state' } }, (registry) =>
      upload(registry, (location) => location.replace('_state=', 'extra=1&_state=')),
    );
    expect(found).toContain('not a Location that was given');
  });

  it('finds a session that was neither used nor cancelled', async () => {
    const found = await problemsAfter({}, (registry) => send(registry, 'POST', POST));
    expect(found).toContain('its session was neither used nor cancelled');
    expect(found).toContain('1 sessions were left open');
  });

  it('asks for no cancellation where none is taken, and finds the third that is tried', async () => {
    const cancel = async (registry: RunningRegistry, times: number) => {
      for (let time = 0; time < times; time += 1) await send(registry, 'DELETE', await openUpload(registry, 'a/b'));
    };
    const barred = { upload: { cancel: '405' } } as const;
    expect(await problemsAfter(barred, (registry) => cancel(registry, 2))).toBe('');
    expect(await problemsAfter(barred, (registry) => cancel(registry, 3))).toContain('3 cancellations');
  });

  it('finds children that were put by tag, and a tag that moved to something incomplete', async () => {
    const put = (registry: RunningRegistry, tag: string, seed: string) => {
      const image = makeImage(seed);
      const headers = { 'content-type': image.descriptor.mediaType };
      return send(registry, 'PUT', `/v2/a/b/manifests/${tag}`, { body: image.bytes, headers });
    };
    const found = await problemsAfter({ manifest: { blobs: false } }, async (registry) => {
      await put(registry, '1', 'x');
      await put(registry, '1-amd64', 'y');
    });
    expect(found).toContain('several tags: 1, 1-amd64');
    expect(found).toContain('moved to something incomplete');
    expect(found).toContain('moved more than once');
  });

  it('finds what was learnt twice, small bodies aside', () =>
    withRegistry({ upload: { put: '413over(5)' } }, async (registry) => {
      await upload(registry);
      expect(lessonsOf(registry)).toEqual([{ request: 'PUT', bytes: 10, answer: '413' }]);
      expect(lessonProblems(lessonsOf(registry), 0)).toEqual([]);
      await upload(registry);
      expect(lessonProblems(lessonsOf(registry), 0)).toEqual(['learnt 2 times: PUT of 10 bytes, 413']);
      expect(lessonProblems(lessonsOf(registry), 10)).toEqual([]);
    }));
});
