import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addProxyLogins, createSecrets, type Secrets } from '../../src/auth/secrets.ts';
import { Secret } from '../../src/http/origin.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');

function knowing(password: string, username = 'u'): Secrets {
  const secrets = createSecrets();
  secrets.addLogin({ kind: 'basic', username, password: new Secret(password) });
  return secrets;
}

const PASSWORD = 'p:ss "w&rd" <ö>/+ 9';

describe('a login', () => {
  it.each([
    ['as it is', PASSWORD],
    ['in base64 with its user', base64(`u:${PASSWORD}`)],
    ['in base64 without the padding', base64(`u:${PASSWORD}`).replace(/=+$/, '')],
    ['in base64 for addresses', Buffer.from(`u:${PASSWORD}`).toString('base64url')],
    ['in base64 by itself', base64(PASSWORD)],
    ['in an address', encodeURIComponent(PASSWORD)],
    ['in an address with small letters', encodeURIComponent(PASSWORD).replace(/%../g, (hex) => hex.toLowerCase())],
    ['in a form', new URLSearchParams({ p: PASSWORD }).toString().slice(2)],
    ['in JSON', JSON.stringify(PASSWORD).slice(1, -1)],
    ['in HTML', 'p:ss &quot;w&amp;rd&quot; &lt;ö&gt;/+ 9'],
  ])('is hidden %s', (_how, text) => {
    expect(knowing(PASSWORD).conceal(`before ${text} after ${text}`)).toBe('before *** after ***');
  });

  it('is hidden where line breaks and escapes were taken out of it', () => {
    expect(knowing('one\n two\u001b[31mX\u200b9z').conceal('got one twoX9z')).toBe('got ***');
  });

  it('is hidden as an identity token, also where it is sent as the password of nobody', () => {
    const secrets = createSecrets();
    secrets.addLogin({ kind: 'identity-token', token: new Secret('refresh-TOKEN-1') });
    expect(secrets.conceal(`refresh-TOKEN-1 ${base64(':refresh-TOKEN-1')}`)).toBe('*** ***');
  });

  it('is hidden where its end was cut off', () => {
    const token = `eyJhbGciOiJub25lIn0.${'Zm9v'.repeat(200)}`;
    const secrets = createSecrets();
    secrets.add(token);
    expect(secrets.conceal(`Bearer ${token.slice(0, 300)}`)).toBe('Bearer ***');
    expect(secrets.conceal(`Bearer ${token.slice(0, 9)}… and`)).toBe('Bearer ***… and');
    expect(secrets.conceal(`Bearer ${token.slice(0, 9)}... and`)).toBe('Bearer ***... and');
    expect(knowing('hunter22x').conceal('sent "hunte…"')).toBe('sent "***…"');
    expect(secrets.conceal('eyJhbGci is how all of them begin')).toBe('eyJhbGci is how all of them begin');
  });

  it('leaves the shorter of two that begin alike nothing to show', () => {
    const secrets = createSecrets();
    secrets.add('abcd1234');
    secrets.add('abcd1234efgh');
    expect(secrets.conceal('abcd1234efgh abcd1234')).toBe('*** ***');
  });

  it('of nobody hides nothing', () => {
    const secrets = createSecrets();
    secrets.addLogin({ kind: 'none' });
    secrets.add('');
    expect(secrets.conceal('any : text')).toBe('any : text');
  });
});

describe('a short or plain secret', () => {
  it.each(['a', 'ab', 'abc'])('of fewer than four characters turns no text into stars: %s', (password) => {
    const text = 'abc a b ab: cab, abacus a/b a:b';
    expect(knowing(password).conceal(text)).toBe(text);
    expect(knowing(password).conceal(`sent ${base64(`u:${password}`)}`)).toBe('sent ***');
  });

  it.each([
    ['the password is secret', 'the password is ***'],
    ['"secret"', '"***"'],
    ['secret.', '***.'],
    ['user=u&password=secret&x', 'user=u&password=***&x'],
    ['u:secret', '***'],
    ['sent "secr…"', 'sent "***…"'],
  ])('is hidden as a word: %s', (text, shown) => {
    expect(knowing('secret').conceal(text)).toBe(shown);
  });

  it.each([
    'r.test/secret/app:1',
    'r.test/team/secret:1',
    'secret.example.test',
    'secrets are kept',
    'top-secret',
    '{"kind":"secret"}',
    '{\n  "kind": "secret"\n}',
  ])('stays where it is part of a name or the value of a field: %s', (text) => {
    expect(knowing('secret').conceal(text)).toBe(text);
  });
});

describe('a plain secret in an address', () => {
  it.each([
    ['GET http://r.test/v2/a/blobs/uploads/secret/?x=1 202', 'GET http://r.test/v2/a/blobs/uploads/***/?x=1 202'],
    ['{"url":"https://r.test/secret"}', '{"url":"https://r.test/***"}'],
    ['see https://r.test/secret', 'see https://r.test/***'],
    ['https://r.test/secret/secret', 'https://r.test/***/***'],
  ])('is hidden as a whole part of its path: %s', (text, shown) => {
    expect(knowing('secret').conceal(text)).toBe(shown);
  });

  it.each([
    'https://r.test/secrets/a',
    'https://r.test/top-secret',
    'https://r.test/secret-1',
    'https://r.test/secret%20',
  ])('stays as a piece of a part: %s', (text) => expect(knowing('secret').conceal(text)).toBe(text));

  it('takes no time to speak of in a long row of them', () => {
    // Of our own: on a busy machine the clock on the wall tells little.
    const started = process.cpuUsage();
    knowing('aaaa').conceal('aaaa/'.repeat(20_000));
    expect(process.cpuUsage(started).user / 1000).toBeLessThan(3000);
  });
});

describe('a document', () => {
  it.each(['size', '1234', 'true'])('stays one, whatever the secret is: %s', (password) => {
    const document = JSON.stringify({ size: 1234, isTrue: true, inner: { size: 1234 } }, null, 2);
    expect(knowing(password).conceal(document)).toBe(document);
    expect(knowing(password).conceal(JSON.stringify(JSON.parse(document)))).toBe(JSON.stringify(JSON.parse(document)));
  });
});

describe('a digest', () => {
  const hex = '0123456789abcdef'.repeat(4);

  it('stays as it is, whatever a token looks like', () => {
    const secrets = createSecrets();
    for (const token of [hex, `sha256:${hex}`, hex.slice(0, 20), 'sha256', '256:']) secrets.add(token);
    const line = `r.test/a@sha256:${hex} done`;
    expect(secrets.conceal(line)).toBe(line);
    expect(secrets.conceal(`token ${hex}`)).toBe('token ***');
  });
});

describe('the logins of proxies', () => {
  it('are known in the forms in which they are written and sent', () => {
    const secrets = createSecrets();
    addProxyLogins(secrets, {
      HTTPS_PROXY: 'http://u:Pr%2Bxy-9x@127.0.0.1:3128',
      http_proxy: 'v:old%ZZpass1@proxy.test',
      ALL_PROXY: 'http://proxy.test:3128',
      OTHER: 'http://u:not-a-Proxy1@x',
    });
    expect(secrets.conceal(`Pr%2Bxy-9x Pr+xy-9x ${base64('u:Pr+xy-9x')}`)).toBe('*** *** ***');
    expect(secrets.conceal('old%ZZpass1')).toBe('***');
    expect(secrets.conceal('not-a-Proxy1 3128 proxy.test')).toBe('not-a-Proxy1 3128 proxy.test');
  });
});

describe('whatever the secrets and the text around them', () => {
  const secret = fc.string({ unit: 'binary', minLength: 16, maxLength: 60 });

  it('no random secret is left, in any spelling', () => {
    fc.assert(
      fc.property(fc.array(secret, { minLength: 1, maxLength: 5 }), fc.string(), (passwords, noise) => {
        const secrets = createSecrets();
        for (const password of passwords) {
          secrets.addLogin({ kind: 'basic', username: 'u', password: new Secret(password) });
        }
        for (const password of passwords) {
          for (const text of [password, base64(`u:${password}`), JSON.stringify(password).slice(1, -1)]) {
            expect(secrets.conceal(`${noise} ${text} ${noise}`).includes(text)).toBe(false);
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  it('what holds none stays as it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(knowing('Tr0ub4dor&3-not-there').conceal(text)).toBe(text);
      }),
      { numRuns: 300 },
    );
  });

  it('it takes time in proportion to the text, however many tokens there are', () => {
    const secrets = createSecrets();
    for (let count = 0; count < 2000; count += 1) secrets.add(`eyJhbGciOiJub25lIn0.${count}-${'x'.repeat(500)}`);
    const start = performance.now();
    secrets.conceal('eyJ reading docker.io/library/debian '.repeat(20_000));
    expect(performance.now() - start).toBeLessThan(2000);
  });
});
