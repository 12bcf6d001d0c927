import { describe, expect, test } from 'vitest';
import { Secret } from '../../src/http/origin.ts';
import { digestOf } from '../../src/model/digest.ts';
import { type Answer, clientOf, errors, failure, reply, script, serve, verb, world } from './fixture.ts';

const OCI_INDEX = 'application/vnd.oci.image.index.v1+json';
const BYTES = Buffer.from('{\r\n "schemaVersion": 2, "mediaType": "x", "é": "\\u0026" }\n\n');
const MANIFEST = { bytes: BYTES, digest: digestOf(BYTES), mediaType: OCI_INDEX };
const OTHER = digestOf(Buffer.from('other'));

async function put(answer: Answer | 'reset', reference: string = 'v1') {
  const server = await script(answer);
  const outcome = await clientOf(server, { retries: 1 }).putManifest('acme/app', reference, MANIFEST, verb());
  return { outcome, server };
}

describe('putManifest', () => {
  test.each([201, 200, 202, 204])(
    '%i is stored, but only 201 beyond doubt; the bytes went out as they are, under their type',
    async (status) => {
      const { outcome, server } = await put({ status }, MANIFEST.digest);
      const doubt =
        status === 201 ? undefined : expect.objectContaining({ code: 'PROTOCOL_VIOLATED', exitCode: 6, status });
      expect(outcome).toEqual({ kind: 'stored', ...(doubt === undefined ? {} : { doubt }) });
      const [request] = server.seen;
      expect(request).toMatchObject({ method: 'PUT', url: `/v2/acme/app/manifests/${MANIFEST.digest}` });
      expect(request?.headers['content-type']).toBe(OCI_INDEX);
      expect(request?.headers['content-length']).toBe(String(BYTES.length));
      expect(request?.body).toEqual(BYTES);
    },
  );

  const page = { headers: { 'content-type': 'text/html; charset=utf-8' }, body: '<html>please log in</html>' };

  test.each([200, 202])('a page with %i is no success: a login answered for the registry', async (status) => {
    const server = await script({ status, ...page });
    const error = await failure(clientOf(server).putManifest('acme/app', 'v1', MANIFEST, verb()));
    expect(error).toMatchObject({ code: 'PROTOCOL_VIOLATED', exitCode: 6, side: 'target', status });
    expect(error.message).toContain('HTML page');
  });

  test('Quay calls everything text/html, its 201 and the digest beside it count', async () => {
    const headers = { ...page.headers, 'docker-content-digest': MANIFEST.digest };
    expect((await put({ status: 201, headers, body: 'OK' })).outcome).toEqual({ kind: 'stored' });
    expect((await put({ status: 202, headers, body: 'OK' })).outcome).toMatchObject({ kind: 'stored', doubt: {} });
    expect((await put({ status: 201, ...page })).outcome).toMatchObject({ kind: 'stored', doubt: {} });
  });

  test('an answer that names another digest ends the run, in whatever algorithm', async () => {
    const server = await script({ status: 201, headers: { 'docker-content-digest': OTHER } });
    const error = await failure(clientOf(server).putManifest('a', 'v1', MANIFEST, verb()));
    expect(error).toMatchObject({ code: 'DIGEST_MISMATCH', exitCode: 6, side: 'target' });
    expect(error.message).toContain(OTHER);
    expect(error.message).toContain(MANIFEST.digest);
  });

  test('the same content named in another algorithm is the same content', async () => {
    const headers = { 'docker-content-digest': digestOf(BYTES, 'sha512') };
    expect((await put({ status: 201, headers })).outcome).toEqual({ kind: 'stored' });
  });

  test.each([
    [400, 'MANIFEST_BLOB_UNKNOWN'],
    [404, 'MANIFEST_BLOB_UNKNOWN'],
    [400, 'BLOB_UNKNOWN'],
    [404, 'BLOB_UNKNOWN'],
    [404, 'MANIFEST_UNKNOWN'],
    [400, 'MANIFEST_INVALID'],
  ])('%i %s may mean that something is missing', async (status, code) => {
    const { outcome } = await put({ status, body: errors(code, 'blob unknown', { digest: OTHER }) });
    if (outcome.kind !== 'incomplete') throw new Error(outcome.kind);
    expect(outcome.error).toMatchObject({ code: 'MANIFEST_REFUSED', exitCode: 5, status });
    expect(outcome.error.message).toContain(`${code}: "blob unknown", "digest: ${OTHER}"`);
  });

  test('any of several codes counts', async () => {
    const body = JSON.stringify({ errors: [{ code: 'UNKNOWN' }, { code: 'MANIFEST_BLOB_UNKNOWN' }] });
    expect((await put({ status: 400, body })).outcome.kind).toBe('incomplete');
  });

  test.each([
    [
      'ECR',
      400,
      'TAG_INVALID',
      "The image tag 'v1' already exists in the 'app' repository and cannot be overwritten because the repository is immutable.",
    ],
    ['Quay', 409, 'TAG_IMMUTABLE', 'tag is immutable'],
    ['Harbor', 412, 'PRECONDITION', "Failed to process request due to 'app:v1' configured as immutable."],
    ['Nexus', 400, 'BLOB_UPLOAD_INVALID', 'Repository does not allow updating assets: docker-hosted'],
    ['some', 403, 'DENIED', 'tag v1 is immutable'],
  ])('%s says %i for an immutable tag', async (_name, status, code, message) => {
    const { outcome } = await put({ status, body: errors(code, message) });
    if (outcome.kind !== 'immutable') throw new Error(outcome.kind);
    expect(outcome.error).toMatchObject({ code: 'TAG_IMMUTABLE', exitCode: 7, status });
    expect(outcome.error.message).toContain('/acme/app:v1: the tag may not be moved');
  });

  test.each([
    [415, 'MANIFEST_INVALID', 'MANIFEST_REFUSED', 5],
    [413, 'SIZE_INVALID', 'MANIFEST_REFUSED', 5],
    [400, 'NAME_INVALID', 'MANIFEST_REFUSED', 5],
    [405, 'UNSUPPORTED', 'MANIFEST_REFUSED', 5],
    [403, 'DENIED', 'DENIED', 3],
    [500, 'UNKNOWN', 'REGISTRY_FAILED', 5],
  ])('%i %s is the last word: %s', async (status, code, ours, exitCode) => {
    const { outcome } = await put({ status, body: errors(code, 'some words') });
    if (outcome.kind !== 'refused') throw new Error(outcome.kind);
    expect(outcome.error).toMatchObject({ code: ours, exitCode, status });
    expect(outcome.error.message).toContain(`${status} ${code}`);
    expect(outcome.error.message).toContain('"some words"');
  });

  const docker = 'application/vnd.docker.distribution';
  test.each([
    [OCI_INDEX, /--type docker.*--format v2s2/],
    [`${docker}.manifest.list.v2+json`, /--type oci.*--format oci/],
    [`${docker}.manifest.v2+json`, /Convert the image.*--format oci/],
    ['application/vnd.oci.image.manifest.v1+json', /Convert the image.*--format v2s2/],
  ])('a refused type is named, and what to convert: %s', async (mediaType, hint) => {
    const server = await script({ status: 415, body: errors('MANIFEST_INVALID') });
    const outcome = await clientOf(server).putManifest('a', 'v1', { ...MANIFEST, mediaType }, verb());
    if (outcome.kind !== 'refused') throw new Error(outcome.kind);
    expect(outcome.error.message).toContain(`as ${mediaType}`);
    expect(outcome.error.hint).toMatch(hint);
  });

  test('413 by a proxy is told as such, without its page', async () => {
    const page = '<html><head><title>413 Request Entity Too Large</title></head><body>nginx</body></html>';
    const { outcome } = await put({ status: 413, headers: { 'content-type': 'text/html' }, body: page });
    const message = outcome.kind === 'refused' ? outcome.error.message : '';
    expect(message).toContain('answered by a proxy');
    expect(message).toContain('"413 Request Entity Too Large"');
    expect(message).not.toContain('<');
  });

  test('401 and a lasting 429 end the run', async () => {
    const unauthorized = await script({ status: 401, body: errors('UNAUTHORIZED', 'no') });
    const error = await failure(clientOf(unauthorized).putManifest('acme/app', 'v1', MANIFEST, verb()));
    expect(error).toMatchObject({ code: 'UNAUTHORIZED', exitCode: 3 });
    expect(error.message).toContain('needs pull,push');
    expect(unauthorized.seen).toHaveLength(1);
    const limited = await script({ status: 429 });
    expect((await failure(clientOf(limited).putManifest('a', 'v1', MANIFEST, verb()))).code).toBe('RATE_LIMITED');
  });

  test('a lost answer is asked for again with the same bytes', async () => {
    const server = await script('reset', { status: 201 });
    expect(await clientOf(server).putManifest('a', 'v1', MANIFEST, verb())).toEqual({ kind: 'stored' });
    expect(server.seen.map(({ body }) => body)).toEqual([BYTES, BYTES]);
  });

  test('words of a registry come out on one line, without controls or commands', async () => {
    const { outcome } = await put({ status: 403, body: errors('DENIED', '::error::x\n\u001b[31mred\u202e ##[group]') });
    const message = outcome.kind === 'refused' ? outcome.error.message : '';
    for (const mark of ['\n', '\u001b', '\u202e']) expect(message).not.toContain(mark);
    expect(message).not.toContain('##[');
  });
});

describe('a PUT that may go out once', () => {
  const ask = (host: string, reference = 'v1') =>
    clientOf({ host }).putManifest('a', reference, MANIFEST, { ...verb(), once: true });

  test('is for the caller to try again after a status that may pass, and a 401, and after no other', async () => {
    const server = await serve(async ({ request, response, whole }) => {
      await whole;
      reply(response, { status: Number(request.url?.slice(-3)) });
    });
    const statuses = [...Array.from({ length: 200 }, (_, at) => 400 + at), 300, 304, 600].filter((one) => one !== 407);
    const passing: number[] = [];
    for (const status of statuses) {
      const answer = await ask(server.host, `s${status}`).catch((error: unknown) => error);
      if (answer !== null && typeof answer === 'object' && 'passing' in answer) passing.push(status);
    }
    expect(passing).toEqual([401, 408, 425, 429, 499, 500, 502, 503, 504, 520, 521, 522, 523, 524]);
    expect(server.seen).toHaveLength(statuses.length);
  });

  const SOON = new Date(Date.now() + 100_000).toUTCString();
  const NOON = 'Mon, 30 Nov 2026 12:00:00 GMT';
  test.each<[string, Record<string, string>, object]>([
    ['seconds', { 'retry-after': '7' }, { wait: 7000 }],
    ['seconds, whatever the date is', { 'retry-after': '7', date: NOON }, { wait: 7000 }],
    ['a date', { 'retry-after': 'Mon, 30 Nov 2026 12:00:09 GMT', date: NOON }, { wait: 9000 }],
    ['a date that is past', { 'retry-after': 'Mon, 30 Nov 2026 11:59:59 GMT', date: NOON }, {}],
    ['a date that nothing tells the distance to', { 'retry-after': SOON }, {}],
    ['a date beside one that cannot be read', { 'retry-after': SOON, date: 'noon' }, {}],
    ['no time at all', { 'retry-after': '0' }, {}],
    ['words', { 'retry-after': 'soon', date: NOON }, {}],
  ])('is told how long to wait by its refusal: %s', async (_what, headers, passing) => {
    const server = await serve(async ({ response, whole }) => {
      await whole;
      response.sendDate = false;
      reply(response, { status: 503, headers });
    });
    const answer = await ask(server.host);
    expect(answer).toMatchObject({ kind: 'refused', error: { code: 'REGISTRY_FAILED', status: 503 } });
    expect('passing' in answer && answer.passing).toEqual(passing);
  });

  test.each([
    [503, '3', { wait: 3000 }],
    [429, '2', { wait: 2000 }],
    [500, undefined, {}],
    [401, undefined, {}],
  ] as const)('%i is for the caller to try again', async (status, after, passing) => {
    const headers = after === undefined ? {} : { 'retry-after': after };
    const server = await script({ status, headers });
    const answer = await clientOf(server).putManifest('a', 'v1', MANIFEST, { ...verb(), once: true });
    expect(answer).toMatchObject({ kind: 'refused', error: { status }, passing });
    expect(server.seen).toHaveLength(1);
  });

  test('is not sent again when its login has to be shown first', async () => {
    const server = await script({ status: 401, headers: { 'www-authenticate': 'Basic realm="r"' } }, { status: 201 });
    const login = { kind: 'basic', username: 'u', password: new Secret('pw-12345') } as const;
    const client = world(login).client(server.host);
    expect(await client.putManifest('a', 'v1', MANIFEST, { ...verb(), once: true })).toMatchObject({ passing: {} });
    expect(server.seen).toHaveLength(1);
    expect(await client.putManifest('a', 'v1', MANIFEST, { ...verb(), once: true })).toEqual({ kind: 'stored' });
    expect(server.seen[1]?.headers.authorization).toMatch(/^Basic /);
  });

  test('nor when the connection is cut', async () => {
    const server = await script('reset', { status: 201 });
    const error = await failure(clientOf(server).putManifest('a', 'v1', MANIFEST, { ...verb(), once: true }));
    expect(error.code).toBe('NETWORK_FAILED');
    expect(server.seen).toHaveLength(1);
  });

  test('a refusal that will stay is one', async () => {
    const server = await script({ status: 413 });
    const answer = await clientOf(server).putManifest('a', 'v1', MANIFEST, { ...verb(), once: true });
    expect(answer).toMatchObject({ kind: 'refused', error: { code: 'MANIFEST_REFUSED' } });
    expect(answer).not.toHaveProperty('passing');
  });
});
