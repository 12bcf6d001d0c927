import { describe, expect, test } from 'vitest';
import type { AnswerFacts } from '../../src/registry/client.ts';
import { answerFacts } from '../../src/registry/probe-facts.ts';
import { blobOf, clientOf, errors, script, verb } from './fixture.ts';
import { withTokens } from './fixture-tokens.ts';

const { digest: DIGEST } = blobOf(10);
const SESSION = { status: 202, headers: { location: '/v2/a/blobs/uploads/1?_state=secret' } };

describe('a mount without a source', () => {
  test('names the blob alone, with a length of 0', async () => {
    const server = await script({ status: 201, headers: { location: `/v2/a/blobs/${DIGEST}` } });
    expect(await clientOf(server).mountAnyBlob('a', DIGEST, verb())).toEqual({ kind: 'mounted' });
    const [post] = server.seen;
    expect(post?.method).toBe('POST');
    expect(post?.url).toBe(`/v2/a/blobs/uploads/?mount=${encodeURIComponent(DIGEST)}`);
    expect(post?.headers['content-length']).toBe('0');
  });

  test('takes a 202 for a session, and an error for a refusal, as one with a source does', async () => {
    const opened = await script(SESSION);
    expect(await clientOf(opened).mountAnyBlob('a', DIGEST, verb())).toMatchObject({
      kind: 'session',
      session: { url: `http://${opened.host}/v2/a/blobs/uploads/1?_state=secret` },
    });
    const old = await script({ status: 400, body: errors('NAME_INVALID', 'from is required') });
    expect(await clientOf(old).mountAnyBlob('a', DIGEST, verb())).toMatchObject({
      kind: 'refused',
      why: 'mount answered 400 NAME_INVALID',
    });
  });

  test('takes a right on the target alone', async () => {
    const { host, scopes } = await withTokens(() => true);
    expect(await clientOf({ host }).mountAnyBlob('a', DIGEST, verb())).toMatchObject({ kind: 'session' });
    expect(scopes).toEqual([['repository:a:pull,push']]);
  });
});

describe('what an answer looked like', () => {
  test('is told of every verb, with its status', async () => {
    const server = await script(SESSION, { status: 404 }, { status: 405 });
    const told: AnswerFacts[] = [];
    const options = { ...verb(), onAnswer: (facts: AnswerFacts) => told.push(facts) };
    const client = clientOf(server);
    await client.mountBlob('a', DIGEST, 'b', options);
    await client.hasBlob('a', DIGEST, options);
    await client.deleteBlob('a', DIGEST, options);
    expect(told.map(({ status }) => status)).toEqual([202, 404, 405]);
  });

  test('holds no address, which may be signed, and no id', () => {
    const url = new URL('https://reg.test/v2/a/blobs/uploads/');
    const facts = answerFacts({
      status: 202,
      url,
      headers: {
        location: '/v2/a/blobs/uploads/1?_state=secret',
        'x-artifactory-id': 'secret',
        'docker-upload-uuid': 'secret',
        'set-cookie': 'sid=secret',
        'docker-distribution-api-version': 'registry/2.0',
        server: `nginx ${'x'.repeat(500)}`,
      },
    });
    expect(JSON.stringify(facts)).not.toContain('secret');
    expect(facts.headers['x-artifactory-id']).toBe('present');
    expect(facts.headers['docker-distribution-api-version']).toBe('registry/2.0');
    expect(facts.headers['server']).toHaveLength(80);
    expect(facts.location).toBe('relative');
  });

  test.each([
    ['https://reg.test/v2/a/blobs/uploads/1', 'absolute'],
    ['//reg.test/v2/a', 'absolute'],
    ['/v2/a', 'relative'],
    ['uploads/1', 'relative'],
    ['https://store.test/1', 'on another host'],
    ['', undefined],
    ['http://', undefined],
  ])('a location %j is %s', (location, form) => {
    const url = new URL('https://reg.test/v2/a/blobs/uploads/');
    expect(answerFacts({ status: 202, url, headers: { location } }).location).toBe(form);
  });
});
