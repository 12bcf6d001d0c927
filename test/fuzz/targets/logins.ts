import { normaliseKey, parseAuthFile } from '../../../src/auth/auth-file.ts';
import { askHelper } from '../../../src/auth/helper.ts';
import { createSecrets } from '../../../src/auth/secrets.ts';
import { fetchToken, type TokenRequest } from '../../../src/auth/token.ts';
import type { HttpRequest, HttpResponse, Transport } from '../../../src/http/message.ts';
import { Secret } from '../../../src/http/origin.ts';
import { attempt, attemptLater, bytesOf, must, type Target } from '../target.ts';
import { JSON_WORDS } from './documents.ts';

const AUTH = Buffer.from('user:password').toString('base64');

const authFile: Target = {
  name: 'login file',
  corpus: [
    `{"auths":{"https://index.docker.io/v1/":{"auth":"${AUTH}"},"ghcr.io":{}},"credsStore":"desktop"}`,
    '{"auths":{"x":{"identitytoken":"t"}},"credHelpers":{"x.test:443/a/":"ecr-login"}}',
    '{"auths":{"x":{"username":"u","password":"p"},"X/v2/":{"auth":"dTo="}}}',
    '{"auths":{"x":{"auth":"OnA="}}}',
    '\ufeff{}',
    '[]',
  ],
  words: [
    '"auths":{',
    '"auth":"',
    AUTH,
    '"credHelpers":{',
    '"credsStore":"',
    '"identitytoken":"',
    'https://',
    '/v1/',
    '"x":{',
    ...JSON_WORDS.slice(0, 7),
  ],
  shapes: (length) => [
    `{"auths":{"${'/'.repeat(length)}a":{}}}`,
    `{"auths":{"a${'/'.repeat(length)}b":{}}}`,
    `{"auths":{"a/${'b/'.repeat(length / 2)}":{}}}`,
    `{"auths":{"x":{"auth":"${'A'.repeat(length)}"}}}`,
    `{"auths":{"x":{"auth":"${'='.repeat(length)}"}}}`,
    `{"auths":{"x":{"auth":"${Buffer.from(`u:${'\0'.repeat(length / 2)}x`).toString('base64')}"}}}`,
  ],
  check(text) {
    const parsed = attempt(['CREDENTIALS_FAILED'], () => parseAuthFile(text, 'x'));
    if (parsed === undefined) return false;
    for (const [key, { credential }] of parsed.auths) {
      must(/^[^/]*$/.test(key) || !key.endsWith('/'), 'a key that no lookup finds', key);
      must(!JSON.stringify({ credential }).includes('password":"p'), 'a password in JSON');
    }
    must(!normaliseKey(text).endsWith('/'), 'a slash at the end of a key');
    return parsed.auths.size + parsed.credHelpers.size > 0;
  },
};

const helper: Target = {
  name: 'helper output',
  corpus: [
    '{"ServerURL":"x","Username":"u","Secret":"s"}',
    '{"Username":"<token>","Secret":"t"}',
    'credentials not found in native keychain\n',
    'error getting credentials: ::error::x\n',
    'null',
    '"x"',
    '',
  ],
  words: ['"Username":', '"Secret":', '{', '}', 'credentials not found in native keychain'],
  async check(text) {
    const found = await attemptLater(['CREDENTIALS_FAILED'], () =>
      askHelper('x', 'registry.test', async () => ({ kind: 'ended', code: 0, stdout: text, stderr: '' })),
    );
    await attemptLater(['CREDENTIALS_FAILED'], () =>
      askHelper('x', 'registry.test', async () => ({ kind: 'ended', code: 1, stdout: text, stderr: text.slice(0, 9) })),
    );
    must(found?.kind !== 'none', 'a login that is none');
    return found !== undefined;
  },
};

const SIGNAL = new AbortController().signal;
const CLOCK = { now: () => 1_000_000, epoch: () => 0, sleep: async () => undefined };

function tokenRequest(realm: string): TokenRequest {
  return {
    host: 'registry.test',
    service: { realm, service: realm },
    scopes: [{ repository: 'a/b', actions: 'pull,push' }],
    credential: { kind: 'basic', username: 'u', password: new Secret('p') },
    signal: SIGNAL,
    lasting: 0,
  };
}

function answering(body: Uint8Array, asked: (request: HttpRequest) => void): Transport {
  const response: Partial<HttpResponse> = { status: 200, headers: {}, bytes: async () => body };
  return {
    baseUrl: (host) => new URL(`https://${host}/`),
    send: async (request) => {
      asked(request);
      return response as HttpResponse;
    },
    close: async () => undefined,
  };
}

const DAY = 24 * 60 * 60 * 1000;

const tokenAnswer: Target = {
  name: 'token answer',
  corpus: [
    '{"token":"eyJhbGciOiJIUzI1NiJ9.e30.x","expires_in":300,"issued_at":"2026-11-30T00:00:00Z"}',
    '{"access_token":"x","expires_in":"60"}',
    '{"token":"","access_token":"y","refresh_token":"z","expires_in":-1}',
    '{"token":"a\\r\\nb"}',
    '{"token":"x","expires_in":1e12}',
    '{"token":null}',
    '<html>login</html>',
  ],
  words: ['"token":"', '"access_token":"', '"expires_in":', '1e400', '-1', '\\r\\n', '{', '}'],
  async check(text) {
    const transport = answering(bytesOf(text), () => undefined);
    const token = await attemptLater(['PROTOCOL_VIOLATED'], () =>
      fetchToken(tokenRequest('https://auth.test/token'), transport, CLOCK, createSecrets()),
    );
    if (token === undefined) return false;
    must('value' in token, 'a refusal of a good answer');
    must(/^[\x21-\x7e]+$/.test(token.value.reveal()), 'a token that no header can carry');
    const life = token.lapses - token.asked;
    must(life > 0 && life <= DAY, 'a life that is not to be believed', life);
    return true;
  },
};

const realm: Target = {
  name: 'realm',
  corpus: [
    'https://auth.docker.io/token',
    'http://127.0.0.1:5001/auth?x=y',
    '/token',
    'file:///x',
    '',
    'https://u:p@x/',
    'http:///:x@169\u00e3\u0080\u0082254/',
  ],
  words: ['https://', 'http://', '?', '#', '@', '%', '/token'],
  async check(text) {
    const sent: HttpRequest[] = [];
    const transport = answering(Buffer.from('{"token":"x"}'), (request) => sent.push(request));
    const token = await attemptLater(['PROTOCOL_VIOLATED'], () =>
      fetchToken(tokenRequest(text), transport, CLOCK, createSecrets()),
    );
    must(token === undefined || sent.length === 1, 'not one request', sent.length);
    for (const { url, namedBy } of sent) {
      // What makes the transport judge the address.
      must(namedBy === 'registry.test', 'an address of the registry that is not judged', url.href);
      must(url.origin === new URL(text).origin, 'another origin', url.href);
      must(
        url.searchParams.getAll('scope').at(-1) === 'repository:a/b:pull,push' || url.protocol === 'mailto:',
        'no scope',
        url.href,
      );
    }
    return token !== undefined;
  },
};

export const LOGIN_TARGETS: readonly Target[] = [authFile, helper, tokenAnswer, realm];
