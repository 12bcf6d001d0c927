import { describe, expect, test } from 'vitest';
import { type Digest, digestOf } from '../../src/model/digest.ts';
import { cosignTags, describeReferrer, fallbackTag } from '../../src/model/referrers.ts';
import { type Answer, clientOf, errors, failure, reply, type Server, script, serve, verb } from './fixture.ts';

const INDEX = 'application/vnd.oci.image.index.v1+json';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const SUBJECT = digestOf(Buffer.from('subject'));
const SHA512 = digestOf(Buffer.from('subject'), 'sha512');
const TAG = `sha256-${SUBJECT.slice('sha256:'.length)}`;
const API = `/v2/acme/app/referrers/${SUBJECT}`;

const entry = (name: string) => ({
  mediaType: MANIFEST,
  digest: digestOf(Buffer.from(name)),
  size: name.length,
  artifactType: `application/x-${name}`,
  annotations: { name },
});
const listOf = (...names: readonly string[]): string =>
  JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests: names.map(entry) });
const listed = (body: string, headers: Record<string, string> = {}): Answer => ({
  status: 200,
  headers: { 'content-type': INDEX, ...headers },
  body,
});
const NO_API: Answer = { status: 404, body: '404 page not found\n' };
const NO_TAG: Answer = { status: 404, body: errors('MANIFEST_UNKNOWN') };

const ask = (server: Server, subject: Digest = SUBJECT) => clientOf(server).listReferrers('acme/app', subject, verb());
const urls = (server: Server) => server.seen.map(({ url }) => url);

describe('the API', () => {
  test('is asked once, and its descriptors kept', async () => {
    const server = await script(listed(listOf('sbom', 'sig')));
    expect(await ask(server)).toEqual({ kind: 'listed', via: 'api', referrers: [entry('sbom'), entry('sig')] });
    expect(urls(server)).toEqual([API]);
    expect(server.seen[0]?.headers.accept).toBe(INDEX);
  });

  test('that lists nobody is believed: no tag is asked for', async () => {
    const server = await script(listed(listOf()));
    expect(await ask(server)).toEqual({ kind: 'listed', via: 'api', referrers: [] });
    expect(urls(server)).toEqual([API]);
  });

  test('null for nobody is what Go writes', async () => {
    const server = await script(listed(`{"schemaVersion":2,"mediaType":"${INDEX}","manifests":null}`));
    expect(await ask(server)).toMatchObject({ via: 'api', referrers: [] });
  });

  test('a generic type leaves the word to the body', async () => {
    const server = await script(listed(listOf('sig'), { 'content-type': 'application/json; charset=utf-8' }));
    expect(await ask(server)).toMatchObject({ via: 'api', referrers: [entry('sig')] });
  });

  test('all pages are read, and a referrer on two of them is one', async () => {
    const server = await script(
      listed(listOf('a', 'b'), { link: `<${API}?n=2&last=b>; rel="next"` }),
      listed(listOf('b', 'c'), { link: '<?n=2&last=c>; rel=next; title="x"' }),
      listed(listOf('d')),
    );
    const answer = await ask(server);
    expect(answer).toEqual({ kind: 'listed', via: 'api', referrers: ['a', 'b', 'c', 'd'].map(entry) });
    expect(urls(server)).toEqual([API, `${API}?n=2&last=b`, `${API}?n=2&last=c`]);
  });

  test('other links are no next page', async () => {
    const server = await script(listed(listOf('a'), { link: `<${API}?x>; rel="prev", <${API}?y>; rel="first"` }));
    expect(await ask(server)).toMatchObject({ referrers: [entry('a')] });
  });

  test('a page that is missing is not the end of the list, and no reason to look elsewhere', async () => {
    const server = await script(listed(listOf('a'), { link: `<${API}?last=a>; rel="next"` }), NO_API);
    expect(await ask(server)).toMatchObject({ kind: 'unknown', error: { code: 'REGISTRY_FAILED', status: 404 } });
    expect(urls(server)).toHaveLength(2);
  });

  test('a next page on another host is not asked for', async () => {
    const other = await script(listed(listOf('evil')));
    const server = await script(listed(listOf('a'), { link: `<http://${other.host}${API}>; rel="next"` }));
    expect(await failure(ask(server))).toMatchObject({ code: 'PROTOCOL_VIOLATED', exitCode: 6 });
    expect(other.seen).toEqual([]);
  });

  test('pages that lead back to themselves end the list as an error', async () => {
    const server = await script(listed(listOf('a'), { link: `<${API}?last=a>; rel="next"` }));
    expect(await failure(ask(server))).toMatchObject({ code: 'MANIFEST_INVALID', exitCode: 6 });
    expect(urls(server)).toHaveLength(2);
  });

  test('more than 1,000 on all pages together are too many', async () => {
    let page = 0;
    const server = await serve(({ response }) => {
      page += 1;
      const names = Array.from({ length: 400 }, (_, index) => `r${page}-${index}`);
      reply(response, listed(listOf(...names), { link: `<${API}?page=${page}>; rel="next"` }));
    });
    expect(await failure(ask(server))).toMatchObject({ code: 'MANIFEST_INVALID', exitCode: 6 });
    expect(urls(server)).toHaveLength(3);
  });

  test('a list of 5 MiB is refused', async () => {
    const server = await script(listed(`${listOf('a')}${' '.repeat(5 * 1024 * 1024)}`));
    expect(await failure(ask(server))).toMatchObject({ code: 'MANIFEST_INVALID', exitCode: 6 });
  });

  test('an index of its type that is none is an error, not an empty list', async () => {
    const server = await script(listed('{"schemaVersion":2}'));
    expect(await failure(ask(server))).toMatchObject({ code: 'MANIFEST_INVALID' });
    expect(urls(server)).toEqual([API]);
  });

  test('a body that breaks off is read again', async () => {
    let times = 0;
    const server = await serve(({ request, response }) => {
      times += 1;
      if (times > 1) return reply(response, listed(listOf('a')));
      response.writeHead(200, { 'content-type': INDEX, 'content-length': 1000 });
      response.write('{', () => request.socket.destroy());
    });
    expect(await ask(server)).toMatchObject({ referrers: [entry('a')] });
  });

  test.each([
    [403, 'DENIED', 3],
    [500, 'REGISTRY_FAILED', 5],
    [503, 'REGISTRY_FAILED', 5],
  ])('%i does not say that there are none', async (status, code, exitCode) => {
    const server = await script({ status, body: errors('X') });
    expect(await ask(server)).toMatchObject({ kind: 'unknown', error: { code, exitCode, status } });
    expect(urls(server).every((url) => url === API)).toBe(true);
  });

  test('401 after a login is thrown', async () => {
    const server = await script({ status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } });
    expect(await failure(ask(server))).toMatchObject({ code: 'UNAUTHORIZED', exitCode: 3 });
  });
});

describe('without an API', () => {
  const absences: readonly [string, Answer][] = [
    ['404', NO_API],
    ['400', { status: 400, body: errors('UNSUPPORTED') }],
    ['405', { status: 405, body: errors('UNSUPPORTED') }],
    ['406', { status: 406 }],
    ['501', { status: 501 }],
    ['a page with 200', { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>' }],
    ['something else with 200', { status: 200, headers: { 'content-type': 'application/json' }, body: '{}' }],
  ];
  test.each(absences)('%s: the fallback tag is read', async (_, answer) => {
    const server = await script(answer, listed(listOf('sig')));
    expect(await ask(server)).toEqual({ kind: 'listed', via: 'tag', tag: TAG, referrers: [entry('sig')] });
    expect(urls(server)).toEqual([API, `/v2/acme/app/manifests/${TAG}`]);
  });

  test('no tag: no referrers', async () => {
    expect(await ask(await script(NO_API, NO_TAG))).toEqual({ kind: 'listed', via: 'tag', tag: TAG, referrers: [] });
  });

  test('annotations of its index are kept, for whoever writes it again', async () => {
    const body = JSON.stringify({ ...JSON.parse(listOf('a')), annotations: { x: 'y' } });
    expect(await ask(await script(NO_API, listed(body)))).toMatchObject({ annotations: { x: 'y' } });
  });

  test('a tag that holds an image lists nobody, and that is told', async () => {
    const config = { mediaType: 'application/vnd.oci.image.config.v1+json', digest: SUBJECT, size: 7 };
    const body = JSON.stringify({ schemaVersion: 2, mediaType: MANIFEST, config, layers: [] });
    const answer = await ask(await script(NO_API, listed(body, { 'content-type': MANIFEST })));
    expect(answer).toMatchObject({ via: 'tag', referrers: [], odd: { code: 'MANIFEST_INVALID' } });
  });

  test('403 on the tag does not say that there are none', async () => {
    const answer = await ask(await script(NO_API, { status: 403, body: errors('DENIED') }));
    expect(answer).toMatchObject({ kind: 'unknown', error: { code: 'DENIED' } });
  });

  test('a tag of 5 MiB is refused', async () => {
    const server = await script(NO_API, listed(`${listOf('a')}${' '.repeat(5 * 1024 * 1024)}`));
    expect(await failure(ask(server))).toMatchObject({ code: 'MANIFEST_INVALID', exitCode: 6 });
  });

  test('the hash of a sha512 is cut to 64 characters in the tag', async () => {
    const server = await script(NO_API, NO_TAG);
    await ask(server, SHA512);
    const tag = `sha512-${SHA512.slice('sha512:'.length).slice(0, 64)}`;
    expect(urls(server)).toEqual([`/v2/acme/app/referrers/${SHA512}`, `/v2/acme/app/manifests/${tag}`]);
  });
});

describe('names', () => {
  test("cosign's tags are the digest's with a suffix, and a sha512 has none", () => {
    expect(cosignTags(SUBJECT)).toEqual([`${TAG}.sig`, `${TAG}.att`, `${TAG}.sbom`]);
    expect(cosignTags(SHA512)).toEqual([]);
    expect(fallbackTag(SUBJECT)).toBe(TAG);
  });

  test('an image without artifactType is described by the type of its config, an index by none', () => {
    const common = { digest: SUBJECT, size: 3, annotations: { a: 'b' } };
    const config = { mediaType: 'application/x-config', digest: SUBJECT, size: 2 };
    const image = { kind: 'image', ...common, mediaType: MANIFEST, config, layers: [] } as const;
    const seen = { mediaType: MANIFEST, digest: SUBJECT, size: 3, annotations: { a: 'b' } };
    expect(describeReferrer(image)).toEqual({ ...seen, artifactType: 'application/x-config' });
    expect(describeReferrer({ ...image, artifactType: 'x/y' })).toEqual({ ...seen, artifactType: 'x/y' });
    const index = { kind: 'index', ...common, mediaType: INDEX, manifests: [] } as const;
    expect(describeReferrer(index)).toEqual({ ...seen, mediaType: INDEX });
    expect(describeReferrer({ ...index, artifactType: 'x/y' })).toMatchObject({ artifactType: 'x/y' });
  });
});

describe('putManifest', () => {
  test.each([
    [SUBJECT, { kind: 'stored', listed: true }],
    [undefined, { kind: 'stored' }],
    ['yes', { kind: 'stored' }],
  ])('OCI-Subject %s', async (subject, expected) => {
    const server = await script({ status: 201, headers: subject === undefined ? {} : { 'oci-subject': subject } });
    const bytes = Buffer.from('{}');
    const manifest = { bytes, digest: digestOf(bytes), mediaType: MANIFEST };
    const answer = await clientOf(server).putManifest('acme/app', manifest.digest, manifest, verb());
    expect(answer).toEqual(expected);
  });
});
