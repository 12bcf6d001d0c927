import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { type Digest, parseDigest } from '../../src/model/digest.ts';
import {
  formatReference,
  isTag,
  parseReference,
  type Reference,
  requestTarget,
  withDigest,
  withTag,
} from '../../src/model/reference.ts';
import { CONTROLS, failure } from './failure.ts';

const F64 = 'f'.repeat(64);
const SHA256 = parseDigest(`sha256:${F64}`);
const SHA512 = parseDigest(`sha512:${'0'.repeat(128)}`);

const refusal = (text: string): PublishError => failure(() => parseReference(text));

describe('reports of users', () => {
  type Case = {
    readonly in: string;
    readonly host?: string;
    readonly repo?: string;
    readonly tag?: string;
    readonly digest?: string;
    readonly requestUses?: string;
    readonly error?: string;
  };
  const cases = ['REF-01', 'REF-02', 'REF-03', 'NET-07'].flatMap((id) => {
    const file = new URL(`../cases/${id}/refs.json`, import.meta.url);
    return (JSON.parse(readFileSync(file, 'utf8')) as readonly Case[]).map((one) => [id, one.in, one] as const);
  });

  it.each(cases.filter(([, , one]) => one.error === undefined))('%s: %s is read', (_id, text, expected) => {
    const reference = parseReference(text);
    expect(expected.host?.split(' or ')).toContain(reference.host);
    expect({ ...reference, host: '' }).toEqual({
      host: '',
      repository: expected.repo,
      ...(expected.tag === undefined ? {} : { tag: expected.tag }),
      ...(expected.digest === undefined ? {} : { digest: expected.digest }),
    });
    if (expected.requestUses === 'digest') expect(requestTarget(reference)).toBe(expected.digest);
  });

  it.each(cases.filter(([, , one]) => one.error !== undefined))('%s: %s is refused', (_id, text, expected) => {
    const error = refusal(text);
    expect(error.code).toBe('REFERENCE_INVALID');
    expect(error.exitCode).toBe(2);
    expect(error.message).toContain(expected.error);
  });
});

// The inputs of distribution/reference's own tests (reference_test.go, normalize_test.go, regexp_test.go), with what
// they come to after normalisation.
describe('the grammar of Docker', () => {
  const long = 'a/'.repeat(127);
  it.each([
    ['test_com', 'docker.io/library/test_com:latest'],
    ['test.com:tag', 'docker.io/library/test.com:tag'],
    ['test.com:5000', 'docker.io/library/test.com:5000'],
    ['test.com/repo:tag', 'test.com/repo:tag'],
    ['test:5000/repo', 'test:5000/repo:latest'],
    ['test:5000/repo:tag', 'test:5000/repo:tag'],
    [`test:5000/repo@${SHA256}`, `test:5000/repo@${SHA256}`],
    [`test:5000/repo:tag@${SHA256}`, `test:5000/repo:tag@${SHA256}`],
    [`validname@${SHA512}`, `docker.io/library/validname@${SHA512}`],
    ['lowercase:Uppercase', 'docker.io/library/lowercase:Uppercase'],
    [`${long}a:tag-puts-this-over-max`, `docker.io/${long}a:tag-puts-this-over-max`],
    ['sub-dom1.foo.com/bar/baz/quux', 'sub-dom1.foo.com/bar/baz/quux:latest'],
    ['sub-dom1.foo.com/bar/baz/quux:some-long-tag', 'sub-dom1.foo.com/bar/baz/quux:some-long-tag'],
    ['b.gcr.io/test.example.com/my-app:test.example.com', 'b.gcr.io/test.example.com/my-app:test.example.com'],
    ['xn--n3h.com/myimage:xn--n3h.com', 'xn--n3h.com/myimage:xn--n3h.com'],
    [`xn--7o8h.com/myimage:xn--7o8h.com@${SHA256}`, `xn--7o8h.com/myimage:xn--7o8h.com@${SHA256}`],
    ['foo_bar.com:8080', 'docker.io/library/foo_bar.com:8080'],
    ['foo/foo_bar.com:8080', 'docker.io/foo/foo_bar.com:8080'],
    ['192.168.1.1', 'docker.io/library/192.168.1.1:latest'],
    ['192.168.1.1:tag', 'docker.io/library/192.168.1.1:tag'],
    ['192.168.1.1:5000', 'docker.io/library/192.168.1.1:5000'],
    ['192.168.1.1/repo', '192.168.1.1/repo:latest'],
    ['192.168.1.1:5000/repo', '192.168.1.1:5000/repo:latest'],
    ['192.168.1.1:5000/repo:5050', '192.168.1.1:5000/repo:5050'],
    ['192.168.0.1:8/debian', '192.168.0.1:8/debian:latest'],
    ['192.168.0.2:25000/debian', '192.168.0.2:25000/debian:latest'],
    ['[2001:db8::1]/repo', '[2001:db8::1]/repo:latest'],
    ['[2001:db8:1:2:3:4:5:6]/repo:tag', '[2001:db8:1:2:3:4:5:6]/repo:tag'],
    ['[2001:db8::1]:5000/repo', '[2001:db8::1]:5000/repo:latest'],
    [`[2001:db8::1]:5000/repo:tag@${SHA256}`, `[2001:db8::1]:5000/repo:tag@${SHA256}`],
    ['[2001:db8::]:5000/repo', '[2001:db8::]:5000/repo:latest'],
    ['[::1]:5000/repo', '[::1]:5000/repo:latest'],
    ['[fc00:1:2:3:4:5:6:7]:5000/library/debian', '[fc00:1:2:3:4:5:6:7]:5000/library/debian:latest'],
    ['[2001:0DB8:85a3:0000:0000:8a2e:0370:7334]:443/a', '[2001:0db8:85a3:0000:0000:8a2e:0370:7334]:443/a:latest'],
    [`example.com/${'a'.repeat(255)}:tag`, `example.com/${'a'.repeat(255)}:tag`],
    ['docker/docker', 'docker.io/docker/docker:latest'],
    ['library/debian', 'docker.io/library/debian:latest'],
    ['debian', 'docker.io/library/debian:latest'],
    ['localhost/library/debian', 'localhost/library/debian:latest'],
    ['localhost/debian', 'localhost/debian:latest'],
    ['LOCALHOST/debian', 'localhost/debian:latest'],
    ['LOCALDOMAIN/debian', 'LOCALDOMAIN/debian:latest'],
    ['LOCALDOMAIN/fooo/bar', 'LOCALDOMAIN/fooo/bar:latest'],
    ['Docker/docker', 'Docker/docker:latest'],
    ['FOO/bar', 'FOO/bar:latest'],
    ['Asdf.com/foo/bar', 'asdf.com/foo/bar:latest'],
    ['docker.io/docker/docker', 'docker.io/docker/docker:latest'],
    ['docker.io/library/debian', 'docker.io/library/debian:latest'],
    ['docker.io/debian', 'docker.io/library/debian:latest'],
    ['index.docker.io/docker/docker', 'docker.io/docker/docker:latest'],
    ['index.docker.io/debian', 'docker.io/library/debian:latest'],
    ['registry-1.docker.io/debian', 'docker.io/library/debian:latest'],
    ['Index.Docker.io/debian', 'docker.io/library/debian:latest'],
    ['127.0.0.1:5000/library/debian', '127.0.0.1:5000/library/debian:latest'],
    [`docker.io/${F64}`, `docker.io/library/${F64}:latest`],
    ['dbcc1c35ac38df41fd2f5e4130b32ff', 'docker.io/library/dbcc1c35ac38df41fd2f5e4130b32ff:latest'],
    ['docker---rules/docker', 'docker.io/docker---rules/docker:latest'],
    ['d/docker', 'docker.io/d/docker:latest'],
    ['dock__er/docker', 'docker.io/dock__er/docker:latest'],
    ['test_com/foo', 'docker.io/test_com/foo:latest'],
    ['test-com:8080/foo', 'test-com:8080/foo:latest'],
    ['xn--n3h.com:18080/foo', 'xn--n3h.com:18080/foo:latest'],
    ['docker.io/library/foo/bar', 'docker.io/library/foo/bar:latest'],
    ['store/foo/bar', 'docker.io/store/foo/bar:latest'],
    ['library/ubuntu-12.04-base', 'docker.io/library/ubuntu-12.04-base:latest'],
    ['gcr.io/library/busybox', 'gcr.io/library/busybox:latest'],
    ['example.com/some_separator__underscore/myimage', 'example.com/some_separator__underscore/myimage:latest'],
    [
      'registry.io/foo/project--id.module--name.ver---sion--name',
      'registry.io/foo/project--id.module--name.ver---sion--name:latest',
    ],
    [`localhost:8080@${SHA256}`, `docker.io/library/localhost:8080@${SHA256}`],
    [`localhost@${SHA256}`, `docker.io/library/localhost@${SHA256}`],
    ['thisisthesongthatneverendsitgoesonandonandonthisisthesongthatnev', expect.stringContaining('docker.io/library/')],
  ])('%s is %s', (text, full) => {
    expect(formatReference(parseReference(text))).toEqual(full);
  });

  it.each([
    '',
    ':justtag',
    `@${SHA256}`,
    'repo@sha256:ffffffffffffffffffffffffffffffffff',
    `validname@invaliddigest:${F64}`,
    'registry.com:8080/myapp@bad',
    'registry.com:8080/myapp@sha256:badbadbadbad',
    `repo@SHA256:${F64}`,
    `repo@sha256:${F64.toUpperCase()}`,
    `repo@sha384:${'f'.repeat(96)}`,
    `repo@${SHA256}x`,
    'Uppercase:tag',
    'test:5000/Uppercase/lowercase:tag',
    `domain/${'a'.repeat(256)}:tag`,
    `example.com/${'a'.repeat(256)}`,
    'a'.repeat(256 - 'library/'.length),
    'aa/asdf$$^/aa',
    'asdf$$^/aa',
    'a^a',
    '[2001:db8::1]',
    '[2001:db8::1]:5000',
    '[2001:db8::1]:tag',
    '[fe80::1%eth0]:5000/repo',
    '[fe80::1%@invalidzone]:5000/repo',
    '[2001:db8:3:4::192.0.2.33]:5000/debian',
    '[fd00123123123]:5000/a',
    '[fd00:1:2::3]75050/a',
    '[fd00:1:2::3]::75050/a',
    'https://github.com/docker/docker',
    'docker/Docker',
    '-docker',
    '-docker/docker',
    '-docker.io/docker/docker',
    'docker///docker',
    'docker.io/docker/Docker',
    'docker.io/docker///docker',
    'fc00::1:5000/debian',
    F64,
    SHA256,
    'docker-/docker',
    '-docker-/docker',
    '____/____',
    '_docker/_docker',
    'docker_/docker_',
    'dock..er/docker',
    'dock_.er/docker',
    'dock-.er/docker',
    'docker/',
    'foo.com/',
    'a//a/a',
    'a/a/a/a/',
    'foo.com:http/bar',
    'localhost:http/name',
    'foo_bar.com:8080/app',
    'do__cker:8080/docker',
    'ab-.com/x',
    'ab.-com/x',
    'docker./docker',
    '.docker/docker',
    'do..cker/docker',
    'foo/bar-',
    'foo/-bar',
    'example.com/__underscore/myimage',
    'example.com/..dots/myimage',
    'registry.com:8080/myapp:invalid~tag',
    'app:',
    'app:-foo',
    'app:.foo',
    `app:${'t'.repeat(129)}`,
    'app:a:b',
    'app:tag\n',
    'app\n',
    ' app',
    'app@',
    'user@host.com/app',
    'héllo/wörld',
    'a.com/K',
    `a.com/${'a'.repeat(100_000)}`,
  ])('%s is refused', (text) => {
    const error = refusal(text);
    expect(error.code).toBe('REFERENCE_INVALID');
    expect(error.message).toMatch(/^[^\n]+$/);
    expect(error.message.length).toBeLessThan(600);
    expect(error.hint).toMatch(/^[A-Z][^\n]+$/);
  });
});

describe('hosts', () => {
  it.each(['host:65536/app', 'host:99999999999/app', '[::1]:75050/app', '256.0.0.1/app', 'a.1.2.3.4.5/app'])(
    '%s has a host that no URL can hold, and is refused',
    (text) => {
      expect(refusal(text).message).toContain('not a host name');
    },
  );

  it.each(['192.168.1/app', '0x7f.1/app', '127.1/app', '0177.0.0.1/app'])(
    '%s has a host that a URL takes for another address, and is refused',
    (text) => {
      expect(refusal(text).message).toContain('not a host name');
    },
  );

  it('keeps a port that is the default of its scheme', () => {
    expect(parseReference('reg.example.test:443/app').host).toBe('reg.example.test:443');
  });

  it.each(['fd2e:6f44::1:5000/a/b', '::1/app', 'fe80::1%eth0/app', '::ffff:127.0.0.1/app'])(
    '%s is told to use brackets',
    (text) => {
      expect(refusal(text).message).toContain('IPv6 hosts need square brackets');
    },
  );
});

describe('capitals in a repository', () => {
  it.each([
    ['ghcr.io/AcmeOrg/App:1', 'ghcr.io/acmeorg/app:1'],
    ['AcmeOrg/App:V1', 'acmeorg/app:V1'],
    ['App', 'app'],
    [`GHCR.io/Acme/app:V1@${SHA256}`, `ghcr.io/acme/app:V1@${SHA256}`],
  ])('%s is answered with %s, which can be pasted', (text, proposal) => {
    const error = refusal(text);
    expect(error.message).toContain(`repository name must be lowercase; did you mean ${proposal}`);
    expect(error.hint).toBe(`Write ${proposal}`);
    expect(() => parseReference(proposal)).not.toThrow();
  });

  it('offers nothing that would be refused as well', () => {
    expect(refusal('ghcr.io/Acme//App').message).not.toContain('did you mean');
    expect(refusal('ghcr.io/App:\u001b[2J').message).toBe(
      '"ghcr.io/App:\\u001b[2J": repository name must be lowercase',
    );
  });
});

describe('text that cannot be shown as it is', () => {
  it('reaches messages escaped and cut', () => {
    const error = refusal(`evil\u001b[31m\u009b\u202e\r\n::error::x${'a'.repeat(500)}`);
    expect(error.message).toContain('\\u001b[31m\\u009b\\u202e\\r\\n::error::x');
    expect(error.message).not.toMatch(CONTROLS);
    expect(error.message.length).toBeLessThan(500);
  });
});

describe('tags and digests of a repository', () => {
  const reference = parseReference(`reg.example.test/a/b:1@${SHA256}`);

  it('a request asks for the digest where there is one, else for the tag', () => {
    expect(requestTarget(reference)).toBe(SHA256);
    expect(requestTarget(parseReference('debian:bullseye'))).toBe('bullseye');
  });

  it('withTag drops the digest, withDigest drops the tag', () => {
    expect(withTag(reference, '2')).toEqual({ host: 'reg.example.test', repository: 'a/b', tag: '2' });
    expect(withDigest(reference, SHA512)).toEqual({ host: 'reg.example.test', repository: 'a/b', digest: SHA512 });
  });

  it('withTag refuses what is no tag', () => {
    expect(() => withTag(reference, 'a/b')).toThrow(PublishError);
  });

  it('a tag has 1 to 128 characters of a fixed set', () => {
    for (const good of ['a', '_', '1.2-3', 'V1', 'x'.repeat(128)]) expect(isTag(good)).toBe(true);
    for (const bad of ['', '.a', '-a', 'a/b', 'a:b', 'a@b', 'a b', 'é', 'a\n', 'x'.repeat(129)]) {
      expect(isTag(bad)).toBe(false);
    }
  });
});

describe('properties', () => {
  const letters = (alphabet: string, minLength: number, maxLength: number) =>
    fc.string({ unit: fc.constantFrom(...alphabet), minLength, maxLength });
  const lower = 'abcdefghijklmnopqrstuvwxyz0123456789';
  const label = letters(lower, 1, 8);
  const component = fc
    .array(label, { minLength: 1, maxLength: 4 })
    .chain((words) =>
      fc
        .array(fc.constantFrom('.', '_', '__', '-', '---'), { minLength: words.length, maxLength: words.length })
        .map((separators) => words.map((word, index) => (index === 0 ? word : separators[index] + word)).join('')),
    );
  const port = fc.option(fc.integer({ min: 0, max: 65535 }), { nil: undefined });
  const domain = fc.array(label, { minLength: 1, maxLength: 3 }).map((labels) => [...labels, 'test'].join('.'));
  const host = fc
    .tuple(fc.oneof(domain, fc.ipV4(), fc.constantFrom('[::1]', '[2001:db8::1]', 'localhost', 'docker.io')), port)
    .map(([name, number]) => (number === undefined ? name : `${name}:${number}`));
  const digest: fc.Arbitrary<Digest> = fc.oneof(
    letters('0123456789abcdef', 64, 64).map((hex) => parseDigest(`sha256:${hex}`)),
    letters('0123456789abcdef', 128, 128).map((hex) => parseDigest(`sha512:${hex}`)),
  );
  const tag = fc.tuple(letters(`${lower}_ABC`, 1, 1), letters(`${lower}_ABC.-`, 0, 20)).map((parts) => parts.join(''));
  const reference: fc.Arbitrary<Reference> = fc
    .record({
      host,
      path: fc.array(component, { minLength: 2, maxLength: 4 }),
      tagged: fc.oneof(
        tag.map((value) => ({ tag: value })),
        digest.map((value) => ({ digest: value })),
        fc.record({ tag, digest }),
      ),
    })
    .map(({ host: at, path, tagged }) => ({ host: at, repository: path.join('/'), ...tagged }));

  it('what is formatted is read back as it was', () => {
    fc.assert(
      fc.property(reference, (value) => {
        expect(parseReference(formatReference(value))).toEqual(value);
      }),
    );
  });

  it('whatever is taken, its full form is taken and means the same', () => {
    const pieces = fc.constantFrom(...'abz019AZ./:@_-[]%', 'localhost', 'docker.io', '::1', ':5000', SHA256, 'sha256:');
    const text = fc.oneof(
      fc.string(),
      fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(text, (value) => {
        let first: Reference;
        try {
          first = parseReference(value);
        } catch (error) {
          expect(error).toBeInstanceOf(PublishError);
          return;
        }
        const full = formatReference(first);
        expect(parseReference(full)).toEqual(first);
        expect(URL.canParse(`https://${first.host}/v2/${first.repository}/manifests/${requestTarget(first)}`)).toBe(
          true,
        );
      }),
      { numRuns: 2000 },
    );
  });
});
