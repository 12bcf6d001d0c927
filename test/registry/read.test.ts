import { describe, expect, test } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { digestOf } from '../../src/model/digest.ts';
import { type Answer, blobOf, clientOf, errors, failure, script, serve, verb, world } from './fixture.ts';

const OCI = 'application/vnd.oci.image.manifest.v1+json';
const MANIFEST = Buffer.from('{"schemaVersion":2}');
const DIGEST = digestOf(MANIFEST);
const SHA512 = digestOf(MANIFEST, 'sha512');
const OTHER = digestOf(Buffer.from('other'));
const found = (headers: Record<string, string> = {}, body: Uint8Array | string = MANIFEST) => ({
  status: 200,
  headers: { 'content-type': OCI, ...headers },
  body,
});

async function manifestOf(answer: Answer, reference: string = 'v1') {
  const server = await script(answer);
  return clientOf(server).getManifest('acme/app', reference, verb());
}

describe('getManifest', () => {
  test('accepts all four types and keeps the bytes as they came', async () => {
    const odd = Buffer.from('{\r\n\t"schemaVersion" : 2, "x": "\\u0026" }\n\n');
    const server = await script(found({ 'content-type': `${OCI}; charset=utf-8` }, odd));
    const answer = await clientOf(server).getManifest('acme/app', 'v1', verb());
    expect(answer).toEqual({ kind: 'found', manifest: { bytes: odd, digest: digestOf(odd), contentType: OCI } });
    const [request] = server.seen;
    expect(request?.url).toBe('/v2/acme/app/manifests/v1');
    expect(request?.headers.accept?.split(', ').sort()).toEqual([
      'application/vnd.docker.distribution.manifest.list.v2+json',
      // Only to be told of it: schema 1 is refused by name.
      'application/vnd.docker.distribution.manifest.v1+prettyjws',
      'application/vnd.docker.distribution.manifest.v2+json',
      'application/vnd.oci.image.index.v1+json',
      OCI,
    ]);
  });

  test('needs no digest header (ECR)', async () => {
    expect(await manifestOf(found())).toMatchObject({ kind: 'found', manifest: { digest: DIGEST } });
  });

  test('computes the digest in the algorithm that was asked for, or that the header uses', async () => {
    expect(await manifestOf(found(), SHA512)).toMatchObject({ manifest: { digest: SHA512 } });
    expect(await manifestOf(found({ 'docker-content-digest': SHA512 }))).toMatchObject({
      manifest: { digest: SHA512 },
    });
    const both = await manifestOf(found({ 'docker-content-digest': DIGEST }), SHA512);
    expect(both).toMatchObject({ manifest: { digest: SHA512 } });
  });

  test('a header in an algorithm that we do not know proves nothing', async () => {
    expect(await manifestOf(found({ 'docker-content-digest': 'blake3:abc' }))).toMatchObject({ kind: 'found' });
  });

  test('bytes that are not the asked ones are read once more, then it ends', async () => {
    const server = await script(found({}, 'garbled'), found());
    expect(await clientOf(server).getManifest('a', DIGEST, verb())).toMatchObject({ kind: 'found' });
    expect(server.seen).toHaveLength(2);

    const bad = await script(found({}, 'garbled'));
    const error = await failure(clientOf(bad).getManifest('a', DIGEST, verb()));
    expect(error).toMatchObject({ code: 'DIGEST_MISMATCH', exitCode: 6, repository: 'a', side: 'source' });
    expect(error.message).toContain(DIGEST);
    expect(error.message).toContain(digestOf(Buffer.from('garbled')));
    expect(bad.seen).toHaveLength(2);
  });

  test.each([DIGEST, 'v1', SHA512])('a header that says other than the bytes ends it too: %s', async (reference) => {
    const server = await script(found({ 'docker-content-digest': OTHER }));
    const error = await failure(clientOf(server).getManifest('a', reference, verb()));
    expect(error).toMatchObject({ code: 'DIGEST_MISMATCH', exitCode: 6 });
    expect(server.seen).toHaveLength(2);
  });

  test('404 is absent, with full name, host asked, status, code and what to do', async () => {
    const server = await script({ status: 404, body: errors('MANIFEST_UNKNOWN', 'manifest unknown') });
    const answer = await clientOf(server).getManifest('acme/app', 'v1', verb());
    if (answer.kind !== 'absent') throw new Error(answer.kind);
    const name = `${server.host}/acme/app:v1`;
    expect(answer.error).toMatchObject({ code: 'MANIFEST_NOT_FOUND', exitCode: 4, status: 404, registry: server.host });
    expect(answer.error.message).toBe(
      `${name} is not there: ${server.host} answered 404 MANIFEST_UNKNOWN: "manifest unknown"`,
    );
    expect(answer.error.hint).toBe(`Push it first (some registries show a new tag late), or check the name: ${name}`);
  });

  test.each([404, 401])(
    'Docker Hub is named as users know it, and the host that was asked beside it: %i',
    async (status) => {
      const server = await script({ status });
      const [address = '', port = ''] = server.host.split(':');
      const { client } = world(
        { kind: 'none' },
        {
          hosts: { 'docker.io': { plainHttp: true } },
          lookup: (_name, _options, found) => found(null, [{ address: '127.0.0.1', family: 4 }]),
          connectTo: () => ({ host: address, port }),
        },
      );
      const reading = client('docker.io').getManifest('acme/app', '1', verb());
      const error =
        status === 401 ? await failure(reading) : await reading.then((answer) => 'error' in answer && answer.error);
      if (error === false) throw new Error('it was found');
      expect(error.message).toContain('docker.io/acme/app:1');
      expect(error.message).toContain(`registry-1.docker.io answered ${status}`);
      if (status === 401) expect(error.message).toContain('no login was found for docker.io/acme/app');
      else expect(error.hint).toMatch(/^Push it first .*, or check the name: docker\.io\/acme\/app:1$/);
    },
  );

  test.each([
    [403, 'DENIED', 3],
    [500, 'REGISTRY_FAILED', 5],
    [400, 'REGISTRY_FAILED', 5],
  ])('%i leaves open whether it is there', async (status, code, exitCode) => {
    const answer = await manifestOf({ status, body: errors('SOME_CODE', 'some words') });
    if (answer.kind !== 'unknown') throw new Error(answer.kind);
    expect(answer.error).toMatchObject({ code, exitCode, status });
    expect(answer.error.message).toContain('SOME_CODE');
    expect(answer.error.message).toContain('"some words"');
  });

  test('a 5xx is asked again as often as the run allows, and the tries are told', async () => {
    const server = await script({ status: 503 });
    const answer = await clientOf(server, { retries: 3 }).getManifest('a', 'v1', verb());
    expect(server.seen).toHaveLength(4);
    expect(answer.kind === 'unknown' && answer.error.message).toContain('answered 503 (4 tries)');
  });

  test('401 ends it with the name, the need, the login, the status and the registry’s words', async () => {
    const server = await script({ status: 401, body: errors('UNAUTHORIZED', 'authentication required') });
    const error = await failure(clientOf(server).getManifest('acme/app', 'v1', verb()));
    expect(error).toMatchObject({ code: 'UNAUTHORIZED', exitCode: 3, status: 401 });
    expect(error.message).toContain(`reading ${server.host}/acme/app:v1 needs pull`);
    expect(error.message).toContain('no login was found');
    expect(error.message).toContain('401 UNAUTHORIZED: "authentication required"');
    expect(server.seen).toHaveLength(1);
  });

  test('a 429 that lasts ends it, with its plain text', async () => {
    const server = await script({ status: 429, body: 'You have reached your pull rate limit.\nhttps://…' });
    const error = await failure(clientOf(server, { retries: 1 }).getManifest('a', 'v1', verb()));
    expect(error).toMatchObject({ code: 'RATE_LIMITED', exitCode: 5, status: 429 });
    expect(error.message).toContain('"You have reached your pull rate limit."');
  });

  test('a login page with 200 is no manifest', async () => {
    const server = await script({
      status: 200,
      headers: { 'content-type': 'text/html' },
      body: '<html>Sign in</html>',
    });
    const error = await failure(clientOf(server).getManifest('a', 'v1', verb()));
    expect(error).toMatchObject({ code: 'PROTOCOL_VIOLATED', exitCode: 6, status: 200 });
    expect(error.message).toContain('HTML page');
  });

  test.each([true, false])('4 MiB and no byte more, length announced: %s', async (announced) => {
    const limit = 4 * 1024 * 1024;
    const server = await serve(async ({ request, response, whole }) => {
      await whole;
      const size = request.url?.endsWith('/fits') ? limit : limit + 1;
      response.writeHead(200, { 'content-type': OCI, ...(announced ? { 'content-length': size } : {}) });
      response.write(Buffer.alloc(1024));
      response.end(Buffer.alloc(size - 1024));
    });
    expect(await clientOf(server).getManifest('a', 'fits', verb())).toMatchObject({ kind: 'found' });
    const error = await failure(clientOf(server).getManifest('a', 'over', verb()));
    expect(error).toMatchObject({ code: 'MANIFEST_INVALID', exitCode: 6 });
  });

  test('a body that breaks off is asked for again as often as the run retries', async () => {
    let breaks = 2;
    const server = await serve(async ({ response, whole }) => {
      await whole;
      response.writeHead(200, { 'content-type': OCI, 'content-length': MANIFEST.length });
      if (breaks-- > 0) response.write(MANIFEST.subarray(0, 5), () => response.destroy());
      else response.end(MANIFEST);
    });
    expect(await clientOf(server).getManifest('a', DIGEST, verb())).toMatchObject({ kind: 'found' });
    expect(server.seen).toHaveLength(3);
    breaks = Number.POSITIVE_INFINITY;
    const read = (retries: number) =>
      world().client(server.host, undefined, { retries }).getManifest('a', DIGEST, verb());
    expect((await failure(read(0))).code).toBe('NETWORK_FAILED');
    expect(server.seen).toHaveLength(4);
    expect((await failure(read(4))).code).toBe('NETWORK_FAILED');
    expect(server.seen).toHaveLength(9);
  });

  test('a registry that nobody answers for ends it, after the tries of one request', async () => {
    const server = await script(found());
    await server.close();
    const { transport, client, events } = world({ kind: 'none' }, { retries: 2 });
    expect((await failure(client(server.host).getManifest('a', 'v1', verb()))).code).toBe('NETWORK_FAILED');
    expect(events.filter((event) => event.kind === 'retry')).toHaveLength(2);
    await transport.close();
  });

  test('the end of the run is not mistaken for a broken body', async () => {
    const run = new AbortController();
    const reason = new PublishError('INTERRUPTED', 'stopped', 'Run it again.');
    const server = await serve(({ response }) => {
      response.writeHead(200, { 'content-type': OCI, 'content-length': 100 });
      response.write('{', () => setTimeout(() => run.abort(reason), 20));
    });
    const reading = clientOf(server).getManifest('a', 'v1', { signal: run.signal });
    await expect(reading).rejects.toBe(reason);
    expect(server.seen).toHaveLength(1);
  });
});

describe('hasBlob and hasManifest', () => {
  test('only 200 is present, only 404 is absent', async () => {
    for (const [status, kind] of [
      [200, 'present'],
      [404, 'absent'],
      [204, 'unknown'],
      [403, 'unknown'],
      [405, 'unknown'],
      [500, 'unknown'],
    ] as const) {
      const client = clientOf(await script({ status }), { retries: 0 });
      expect(await client.hasBlob('a', DIGEST, verb())).toMatchObject({ kind });
      expect(await client.hasManifest('a', DIGEST, verb())).toMatchObject({ kind });
    }
  });

  test('a manifest is asked for with all four types, a blob with none of them', async () => {
    const server = await script({ status: 200, headers: { 'content-length': '7' } });
    const client = clientOf(server);
    expect(await client.hasManifest('a', DIGEST, verb())).toEqual({ kind: 'present', size: 7 });
    expect(await client.hasBlob('a', DIGEST, verb())).toEqual({ kind: 'present', size: 7 });
    expect(server.seen.map(({ method, url }) => `${method} ${url}`)).toEqual([
      `HEAD /v2/a/manifests/${DIGEST}`,
      `HEAD /v2/a/blobs/${DIGEST}`,
    ]);
    expect(server.seen[0]?.headers.accept).toContain('manifest.list.v2+json');
    expect(server.seen[1]?.headers.accept).toBeUndefined();
  });

  test('what HEAD says of digest and length is not held against it (serverless-registry)', async () => {
    const server = await script({ status: 200, headers: { 'content-length': '83', 'docker-content-digest': OTHER } });
    expect(await clientOf(server).hasBlob('a', DIGEST, verb())).toEqual({ kind: 'present', size: 83 });
  });

  test('a page is not the blob', async () => {
    const server = await script({ status: 200, headers: { 'content-type': 'text/html; charset=utf-8' } });
    expect(await clientOf(server).hasBlob('a', DIGEST, verb())).toMatchObject({ kind: 'unknown' });
  });

  test('401 and a lasting 429 end the run: neither is an answer about the blob', async () => {
    const unauthorized = clientOf(await script({ status: 401 }));
    expect((await failure(unauthorized.hasBlob('a', DIGEST, verb()))).code).toBe('UNAUTHORIZED');
    const limited = clientOf(await script({ status: 429 }), { retries: 0 });
    expect((await failure(limited.hasBlob('a', DIGEST, verb()))).code).toBe('RATE_LIMITED');
  });
});

describe('readBlob', () => {
  const blob = blobOf(1000);

  test('gives the bytes that digest and size name', async () => {
    const server = await script({ status: 200, body: blob.bytes });
    expect(await clientOf(server).readBlob('a', blob, verb())).toEqual(blob.bytes);
    expect(server.seen[0]?.url).toBe(`/v2/a/blobs/${blob.digest}`);
  });

  test('wrong bytes are read once more, then it ends', async () => {
    const garbled = Buffer.from(blob.bytes).fill(0, 10, 20);
    const heals = await script({ status: 200, body: garbled }, { status: 200, body: blob.bytes });
    expect(await clientOf(heals).readBlob('a', blob, verb())).toEqual(blob.bytes);
    const bad = await script({ status: 200, body: garbled });
    expect(await failure(clientOf(bad).readBlob('a', blob, verb()))).toMatchObject({
      code: 'DIGEST_MISMATCH',
      exitCode: 6,
    });
    expect(bad.seen).toHaveLength(2);
  });

  test.each([
    ['shorter', 999],
    ['longer', 1001],
  ])('a %s blob is a size error, with a length or without', async (_name, size) => {
    const server = await script({ status: 200, body: blobOf(size).bytes });
    expect((await failure(clientOf(server).readBlob('a', blob, verb()))).code).toBe('SIZE_MISMATCH');
    const chunked = await serve(async ({ response, whole }) => {
      await whole;
      response.writeHead(200);
      response.write(blobOf(size).bytes);
      response.end();
    });
    expect((await failure(clientOf(chunked).readBlob('a', blob, verb()))).code).toBe('SIZE_MISMATCH');
    expect(chunked.seen).toHaveLength(2);
  });

  test('one over 4 MiB is not read into memory', async () => {
    const server = await script({ status: 200 });
    const error = await failure(clientOf(server).readBlob('a', { ...blob, size: 4 * 1024 * 1024 + 1 }, verb()));
    expect(error.code).toBe('MANIFEST_INVALID');
    expect(server.seen).toHaveLength(0);
  });

  test.each([
    [404, 'BLOB_NOT_FOUND'],
    [403, 'DENIED'],
    [401, 'UNAUTHORIZED'],
    [500, 'REGISTRY_FAILED'],
  ])('%i is %s', async (status, code) => {
    const server = await script({ status });
    const error = await failure(clientOf(server, { retries: 0 }).readBlob('a', blob, verb()));
    expect(error.code).toBe(code);
    expect(error.message).toContain(`${server.host}/a@${blob.digest}`);
  });
});

describe('openBlob', () => {
  const blob = blobOf(100_000);

  test('gives the body as it arrives', async () => {
    const server = await script({ status: 200, body: blob.bytes });
    const stream = await clientOf(server).openBlob('a', blob, verb());
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    expect(Buffer.concat(chunks)).toEqual(blob.bytes);
  });

  test('an answer that announces another size is refused before a byte of it is used', async () => {
    const server = await script({ status: 200, body: blob.bytes });
    const error = await failure(clientOf(server).openBlob('a', { ...blob, size: 99_999 }, verb()));
    expect(error).toMatchObject({ code: 'SIZE_MISMATCH', exitCode: 6, side: 'source' });
    expect(error.message).toContain('100000 bytes where the manifest says 99999');
    expect(server.seen).toHaveLength(1);
  });

  test('a stream that nobody reads yet may break without ending the process', async () => {
    const server = await serve(({ response }) => {
      response.writeHead(200, { 'content-length': blob.size });
      response.write(blob.bytes.subarray(0, 1000), () => setTimeout(() => response.destroy(), 10));
    });
    const stream = await clientOf(server).openBlob('a', blob, verb());
    await new Promise((resolve) => stream.once('close', resolve));
    expect(stream.errored).toMatchObject({ code: 'NETWORK_FAILED' });
  });
});

describe('a refusal by a place that the registry sends us to', () => {
  test.each([
    [401, 'UNAUTHORIZED'],
    [403, 'DENIED'],
  ])('%i names that place, blames no login and advises none', async (status, code) => {
    const elsewhere = await script({ status });
    const server = await script({ status: 307, headers: { location: `http://${elsewhere.host}/blob` } });
    const blob = blobOf(10);
    const error = await failure(clientOf(server).readBlob('acme/app', blob, verb()));
    expect(error).toMatchObject({ code, exitCode: 3, status });
    expect(error.message).toContain(`${server.host} sends us to ${elsewhere.host}, where no login is sent`);
    expect(error.message).toContain(`${elsewhere.host} answered ${status}`);
    expect(`${error.message} ${error.hint}`).not.toMatch(/docker login|was refused|no login was found/);
    expect(elsewhere.seen[0]?.headers.authorization).toBeUndefined();
  });
});
