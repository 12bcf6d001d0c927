import { reply, serve } from './fixture.ts';

/**
 * A registry that answers whoever has a token with 202 and a session, and its token server, which refuses what `grants`
 * does not. `scopes` are those that tokens were asked for.
 */
export async function withTokens(
  grants: (scopes: readonly string[]) => boolean,
): Promise<{ readonly host: string; readonly scopes: readonly (readonly string[])[] }> {
  const scopes: string[][] = [];
  const { host } = await serve(async ({ request, response, whole }) => {
    await whole;
    const url = new URL(request.url ?? '', 'http://reg.test');
    if (url.pathname === '/token') {
      const asked = url.searchParams.getAll('scope');
      scopes.push(asked);
      return reply(response, grants(asked) ? { status: 200, body: '{"token":"good"}' } : { status: 403 });
    }
    if (request.headers.authorization !== undefined) {
      return reply(response, { status: 202, headers: { location: '/v2/a/blobs/uploads/1' } });
    }
    const challenge = `Bearer realm="http://${request.headers.host}/token",service="reg"`;
    return reply(response, { status: 401, headers: { 'www-authenticate': challenge } });
  });
  return { host, scopes };
}
