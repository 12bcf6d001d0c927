import { describe, expect, test } from 'vitest';
import { blobOf, clientOf, errors, failure, script, verb } from './fixture.ts';
import { withTokens } from './fixture-tokens.ts';

const { digest: DIGEST } = blobOf(10);

describe.each(['manifest', 'blob'] as const)('deleting a %s', (what) => {
  const ask = (server: { readonly host: string }) => {
    const client = clientOf(server, { retries: 0 });
    return what === 'manifest'
      ? client.deleteManifest('a/b', DIGEST, verb())
      : client.deleteBlob('a/b', DIGEST, verb());
  };

  test('names it by its digest', async () => {
    const server = await script({ status: 202 });
    expect(await ask(server)).toBe('deleted');
    expect(server.seen.map(({ method, url }) => `${method} ${url}`)).toEqual([`DELETE /v2/a/b/${what}s/${DIGEST}`]);
  });

  test.each([200, 202, 204])('%i: it is gone', async (status) => {
    expect(await ask(await script({ status }))).toBe('deleted');
  });

  test.each([400, 401, 403, 405, 409, 500, 501, 503])('%i is a refusal, no error', async (status) => {
    expect(await ask(await script({ status }))).toBe('refused');
  });

  test('404 means gone only with the code for it: registries without the endpoint say 404 too', async () => {
    const code = what === 'manifest' ? 'MANIFEST_UNKNOWN' : 'BLOB_UNKNOWN';
    expect(await ask(await script({ status: 404, body: errors(code) }))).toBe('deleted');
    expect(await ask(await script({ status: 404, body: errors('NAME_UNKNOWN') }))).toBe('refused');
    expect(await ask(await script({ status: 404, body: '404 page not found' }))).toBe('refused');
  });

  test('takes the right to delete, and where that is not known, the one to push', async () => {
    const knows = await withTokens(() => true);
    expect(await ask(knows)).toBe('deleted');
    expect(knows.scopes).toEqual([['repository:a/b:pull,push,delete']]);
    const not = await withTokens((scopes) => !scopes.join().includes('delete'));
    expect(await ask(not)).toBe('deleted');
    expect(not.scopes.at(-1)).toEqual(['repository:a/b:pull,push']);
    expect(await ask(await withTokens(() => false))).toBe('refused');
  });

  test('a broken connection is an error', async () => {
    expect((await failure(ask(await script('reset')))).code).toBe('NETWORK_FAILED');
  });
});
