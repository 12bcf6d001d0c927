import type { IncomingMessage, ServerResponse } from 'node:http';
import { createAuthorizer } from '../../src/auth/authorizer.ts';
import type { CredentialSource } from '../../src/auth/credentials.ts';
import type { Authorizer, Scope } from '../../src/auth/scope.ts';
import type { HttpRequest } from '../../src/http/message.ts';
import { type Credential, Secret } from '../../src/http/origin.ts';
import { type Client, client, type RunningServer, type Seen, serve } from '../http/fixture.ts';

export const LOGIN: Credential = { kind: 'basic', username: 'u', password: new Secret('p') };
export const BASIC = `Basic ${Buffer.from('u:p').toString('base64')}`;
export const IDENTITY: Credential = { kind: 'identity-token', token: new Secret('REFRESH') };
export const NONE: Credential = { kind: 'none' };
export const PULL: readonly Scope[] = [{ repository: 'a/b', actions: 'pull' }];
export const MOUNT: readonly Scope[] = [
  { repository: 't/x', actions: 'pull,push' },
  { repository: 's/x', actions: 'pull' },
];

export type Setup = {
  readonly credential?: Credential;
  readonly signal?: AbortSignal;
  readonly lookup?: CredentialSource['lookup'];
  /** What the registry answers; by default 200 with the right token, else a challenge. */
  readonly registry?: (request: IncomingMessage, response: ServerResponse, seen: Seen, challenge: string) => void;
  readonly token?: (request: IncomingMessage, response: ServerResponse, seen: Seen, count: number) => void;
};

export type World = {
  readonly registry: RunningServer;
  readonly tokens: RunningServer;
  readonly transport: Client;
  readonly authorizer: Authorizer;
  ask(scopes?: readonly Scope[], rest?: Partial<HttpRequest>): ReturnType<Authorizer['send']>;
};

/** A registry with a token server of its own, and an authorizer that asks them. */
export async function world(setup: Setup = {}): Promise<World> {
  let count = 0;
  const tokens = await serve((request, response, seen) => {
    count += 1;
    if (setup.token !== undefined) setup.token(request, response, seen, count);
    else response.end(JSON.stringify({ token: `t${count}`, expires_in: 300 }));
  });
  const challenge = `Bearer realm="http://${tokens.host}/token",service="r.test",scope="repository:user/image:pull"`;
  const registry = await serve((request, response, seen) => {
    if (setup.registry !== undefined) setup.registry(request, response, seen, challenge);
    else if (/^Bearer t\d+$/.test(request.headers.authorization ?? '')) response.end('ok');
    else response.writeHead(401, { 'www-authenticate': challenge }).end('{"errors":[{"code":"UNAUTHORIZED"}]}');
  });
  const transport = client({ retries: 1 });
  const lookup = setup.lookup ?? (() => Promise.resolve(setup.credential ?? NONE));
  const authorizer = createAuthorizer({
    transport,
    credentials: { lookup },
    clock: transport.clock,
    ...(setup.signal === undefined ? {} : { signal: setup.signal }),
  });
  return {
    registry,
    tokens,
    transport,
    authorizer,
    ask: (scopes = PULL, rest = {}) =>
      authorizer.send(
        {
          method: 'GET',
          url: new URL('/v2/a/b/manifests/1', transport.baseUrl(registry.host)),
          signal: AbortSignal.timeout(10_000),
          ...rest,
        },
        registry.host,
        scopes,
      ),
  };
}

/** What the token server was asked for. */
export const query = (seen: Seen | undefined) => new URL(seen?.url ?? '', 'http://x').searchParams;
/** What each request showed of who asks. */
export const proofs = (server: RunningServer) => server.requests.map(({ headers }) => headers.authorization);
