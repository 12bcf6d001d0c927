import { createPrivateKey, type KeyObject, randomUUID, sign, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { makeCertificate } from './certificate.ts';

/** A repository and what may be done there. */
export type Access = { readonly repository: string; readonly actions: readonly string[] };

/** One request for a token, whatever was answered. */
export type TokenRequest = {
  readonly method: string;
  /** Undefined when it carried no readable Basic credentials. */
  readonly user: string | undefined;
  /** Every `scope` parameter as written. */
  readonly scopes: readonly string[];
  readonly status: number;
};

export type TokenServer = {
  /** What a registry names in its challenge. */
  readonly realm: string;
  readonly service: string;
  readonly issuer: string;
  /** PEM file with the certificate that the registry must trust. */
  readonly certificateFile: string;
  readonly requests: readonly TokenRequest[];
  stop(): Promise<void>;
};

/** `password` of the user, and what a token for it may allow. */
export type TokenUser = { readonly password: string; readonly may: readonly Access[] };

const SERVICE = 'registry.example.test';
const ISSUER = 'token.example.test';
const SECONDS_VALID = 300;

/** One repository a parameter, as the strictest service (Quay) reads it; a joined list is an error there. */
const SCOPE = /^repository:([a-z0-9]+(?:[._/-]+[a-z0-9]+)*):((?:pull|push|delete)(?:,(?:pull|push|delete))*)$/;

/**
 * A token service as the Docker token specification describes it, strict: GET only, Basic credentials of a known user,
 * exactly one repository in each `scope`, none twice. A token allows what was asked for and the user may do; asking
 * for more is no error, as in Docker's and GitLab's.
 *
 * The key and its certificate are made with openssl in `folder` and are worth nothing after the test.
 *
 * @see distribution docs/spec/auth/token.md and jwt.md (v2.8)
 */
export async function startTokenServer(
  folder: string,
  users: Readonly<Record<string, TokenUser>>,
): Promise<TokenServer> {
  const { key, certificate, certificateFile } = await makeKey(folder);
  const requests: TokenRequest[] = [];
  const server = createServer((incoming, outgoing) => {
    const url = new URL(incoming.url ?? '/', 'http://token.example.test');
    const [user, password] = basicCredentials(incoming.headers.authorization);
    const scopes = url.searchParams.getAll('scope');
    const answer = (status: number, body: object) => {
      requests.push({ method: incoming.method ?? '', user, scopes, status });
      outgoing.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    incoming.resume();
    if (incoming.method !== 'GET') return answer(405, { details: 'only GET is understood' });
    if (url.pathname !== '/token') return answer(404, { details: 'not here' });
    if (url.searchParams.get('service') !== SERVICE) return answer(400, { details: 'another service' });
    const known = user === undefined ? undefined : users[user];
    if (known === undefined || known.password !== password) return answer(401, { details: 'incorrect credentials' });
    const wanted = readScopes(scopes);
    if (wanted === undefined) return answer(400, { details: 'scope is not one repository a parameter' });
    return answer(200, { token: makeToken(user ?? '', granted(wanted, known.may), key, certificate) });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    realm: `http://127.0.0.1:${port}/token`,
    service: SERVICE,
    issuer: ISSUER,
    certificateFile,
    requests,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

type Key = { readonly key: KeyObject; readonly certificate: string; readonly certificateFile: string };

async function makeKey(folder: string): Promise<Key> {
  const { file, keyFile } = await makeCertificate(folder, ISSUER);
  const certificate = new X509Certificate(await readFile(file));
  return {
    key: createPrivateKey(await readFile(keyFile)),
    certificate: certificate.raw.toString('base64'),
    certificateFile: file,
  };
}

function basicCredentials(header: string | undefined): readonly [string | undefined, string | undefined] {
  const [, encoded] = /^Basic ([A-Za-z0-9+/=]+)$/.exec(header ?? '') ?? [];
  if (encoded === undefined) return [undefined, undefined];
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon < 0 ? [undefined, undefined] : [text.slice(0, colon), text.slice(colon + 1)];
}

/** Undefined when one of them is not in order. */
function readScopes(scopes: readonly string[]): readonly Access[] | undefined {
  const wanted: Access[] = [];
  for (const scope of scopes) {
    const [, repository, actions] = SCOPE.exec(scope) ?? [];
    if (repository === undefined || actions === undefined) return undefined;
    if (wanted.some((access) => access.repository === repository)) return undefined;
    wanted.push({ repository, actions: actions.split(',') });
  }
  return wanted;
}

function granted(wanted: readonly Access[], may: readonly Access[]): readonly Access[] {
  return wanted.map(({ repository, actions }) => {
    const allowed = may.filter((access) => access.repository === repository).flatMap((access) => access.actions);
    return { repository, actions: actions.filter((action) => allowed.includes(action)) };
  });
}

function makeToken(user: string, access: readonly Access[], key: KeyObject, certificate: string): string {
  const now = Math.floor(Date.now() / 1000);
  const header = { typ: 'JWT', alg: 'ES256', x5c: [certificate] };
  const claims = {
    iss: ISSUER,
    sub: user,
    aud: SERVICE,
    // A registry's clock that is a little behind would refuse a token that is valid from this very second.
    nbf: now - 10,
    iat: now,
    exp: now + SECONDS_VALID,
    jti: randomUUID(),
    access: access.map(({ repository, actions }) => ({ type: 'repository', name: repository, actions })),
  };
  const signed = `${base64url(header)}.${base64url(claims)}`;
  // RFC 7518, section 3.4: ES256 is the two numbers side by side, not DER.
  const signature = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' });
  return `${signed}.${signature.toString('base64url')}`;
}

function base64url(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
