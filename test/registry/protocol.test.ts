import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import {
  blobPath,
  commitTimeout,
  contentLength,
  contentType,
  contradictsBytes,
  contradictsDigest,
  digestHeader,
  isHtml,
  locationDigest,
  manifestPath,
  mountPath,
  resolveLocation,
  uploadPath,
  withDigestQuery,
} from '../../src/registry/protocol.ts';

const BYTES = Buffer.from('hello');
const SHA256 = digestOf(BYTES);
const SHA512 = digestOf(BYTES, 'sha512');
const OTHER = digestOf(Buffer.from('other'));

describe('paths', () => {
  test('a mount names digest and source, percent-encoded, and nothing else', () => {
    expect(mountPath('debian/debian', SHA256, 'debian/arm64')).toBe(
      `/v2/debian/debian/blobs/uploads/?mount=${SHA256.replace(':', '%3A')}&from=debian%2Farm64`,
    );
  });

  test('an upload announces its algorithm only when it is not sha256', () => {
    expect(uploadPath('a/b', SHA256)).toBe('/v2/a/b/blobs/uploads/');
    expect(uploadPath('a/b', SHA512)).toBe('/v2/a/b/blobs/uploads/?digest-algorithm=sha512');
  });

  test('manifests are asked for by tag or digest, blobs by digest', () => {
    expect(manifestPath('a', 'v1.0')).toBe('/v2/a/manifests/v1.0');
    expect(manifestPath('a', SHA256)).toBe(`/v2/a/manifests/${SHA256}`);
    expect(blobPath('a/b', SHA512)).toBe(`/v2/a/b/blobs/${SHA512}`);
  });

  test.each(['..', 'a/../b', 'a//b', '/a', 'a/', 'A/b', 'a b', 'a%2fb', 'a?b', 'a/..b', 'a\nb', ''])(
    'a repository that would leave its place in the path is a bug: %j',
    (repository) => {
      expect(() => blobPath(repository, SHA256)).toThrow('not a repository name');
      expect(() => mountPath('a', SHA256, repository)).toThrow('not a repository name');
    },
  );

  test.each(['../v2', 'a/b', '', 'a?b', 'sha256:12'])('so is a reference: %j', (reference) => {
    expect(() => manifestPath('a', reference)).toThrow('not a tag or digest');
  });
});

describe('Location', () => {
  const base = new URL('https://reg.example.test/');
  const asked = new URL('https://reg.example.test/v2/app/blobs/uploads/?mount=x&from=y');

  test.each([
    ['absolute', 'https://reg.example.test/v2/app/blobs/uploads/1?_state=a-_%3D', undefined],
    [
      'relative to the host',
      '/v2/app/blobs/uploads/1?_state=a',
      'https://reg.example.test/v2/app/blobs/uploads/1?_state=a',
    ],
    ['relative to the path', '1', 'https://reg.example.test/v2/app/blobs/uploads/1'],
    ['another path', '/artifacts-uploads/ns/1', 'https://reg.example.test/artifacts-uploads/ns/1'],
    ['another host', 'https://store.example.test/x?sig=a%2Fb+c', undefined],
    ['relative to the scheme', '//store.example.test/x', 'https://store.example.test/x'],
    ['its own host over http', 'http://reg.example.test/v2/app/1?q=1', 'https://reg.example.test/v2/app/1?q=1'],
    [
      'its own host over http, port of https',
      'http://reg.example.test:443/v2/app/1',
      'https://reg.example.test/v2/app/1',
    ],
    ['another port over http stays what it is', 'http://reg.example.test:8080/v2/app/1', undefined],
    ['another host over http stays what it is', 'http://store.example.test/x', undefined],
  ])('%s', (_name, location, expected) => {
    expect(resolveLocation(location, asked, base)).toBe(expected ?? location);
  });

  test('a registry on a port of its own is asked over https on that port', () => {
    const own = new URL('https://reg.example.test:5000/');
    expect(resolveLocation('http://reg.example.test:5000/u', own, own)).toBe('https://reg.example.test:5000/u');
  });

  test('a registry that is spoken to in plain http stays so', () => {
    const plain = new URL('http://127.0.0.1:5000/');
    expect(resolveLocation('http://127.0.0.1:5000/u', plain, plain)).toBe('http://127.0.0.1:5000/u');
  });

  test.each([undefined, '', '  ', 'https://', 'http://[::1', 'https://a b/'])('%j names no session', (location) => {
    expect(resolveLocation(location, asked, base)).toBeUndefined();
  });

  test('after a redirect it is relative to where the answer came from', () => {
    const elsewhere = new URL('https://eu.reg.example.test/x/uploads/');
    expect(resolveLocation('1', elsewhere, base)).toBe('https://eu.reg.example.test/x/uploads/1');
  });

  test('whatever it is, nothing but a URL or nothing comes out', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (location) => {
        const resolved = resolveLocation(location, asked, base);
        expect(resolved === undefined || URL.canParse(resolved)).toBe(true);
        if (resolved !== undefined) expect(URL.canParse(withDigestQuery(resolved, SHA256))).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  test('a query comes through byte for byte, whatever it holds', () => {
    const unit = fc.constantFrom(...'abcXYZ019-._~!$()*+,;=:@/?&%');
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 200 }), (query) => {
        const location = `/v2/app/blobs/uploads/1?${query}`;
        const resolved = resolveLocation(location, asked, base) ?? '';
        expect(resolved).toBe(`https://reg.example.test${location}`);
        const closing = withDigestQuery(resolved, SHA256);
        expect(closing.startsWith(resolved)).toBe(true);
        expect(new URL(closing).href).toBe(closing);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('the closing address', () => {
  const digest = `digest=${SHA256.replace(':', '%3A')}`;

  test.each([
    ['no query', 'https://r.test/u/1', `https://r.test/u/1?${digest}`],
    ['a query', 'https://r.test/u/1?_state=b&a=1', `https://r.test/u/1?_state=b&a=1&${digest}`],
    ['an empty query', 'https://r.test/u/1?', `https://r.test/u/1?${digest}`],
    ['a query that ends in &', 'https://r.test/u/1?a=1&', `https://r.test/u/1?a=1&${digest}`],
    ['a fragment', 'https://r.test/u/1?a=1#top', `https://r.test/u/1?a=1&${digest}`],
    ['encodings stay', 'https://r.test/u/1?s=%2b+%2F', `https://r.test/u/1?s=%2b+%2F&${digest}`],
  ])('%s', (_name, session, expected) => {
    expect(withDigestQuery(session, SHA256)).toBe(expected);
  });
});

describe('headers', () => {
  test('a digest header counts only in a form that can be computed', () => {
    expect(digestHeader({ 'docker-content-digest': SHA256 })).toBe(SHA256);
    expect(digestHeader({ 'docker-content-digest': 'md5:abc' })).toBeUndefined();
    expect(digestHeader({})).toBeUndefined();
  });

  test('bytes are held against the header in its own algorithm', () => {
    expect(contradictsBytes({ 'docker-content-digest': SHA512 }, BYTES)).toBeUndefined();
    expect(contradictsBytes({ 'docker-content-digest': OTHER }, BYTES)).toBe(OTHER);
    expect(contradictsBytes({}, BYTES)).toBeUndefined();
  });

  test('another algorithm does not contradict a digest', () => {
    expect(contradictsDigest(SHA512, SHA256)).toBe(false);
    expect(contradictsDigest(OTHER, SHA256)).toBe(true);
    expect(contradictsDigest(undefined, SHA256)).toBe(false);
  });

  test('the Location of a finished blob tells its digest', () => {
    expect(locationDigest(`/v2/a/blobs/${SHA256}`)).toBe(SHA256);
    expect(locationDigest(`https://h/v2/a/blobs/${SHA256.replace(':', '%3A')}?x=1`)).toBe(SHA256);
    expect(locationDigest('/v2/a/blobs/uploads/1')).toBeUndefined();
    expect(locationDigest(undefined)).toBeUndefined();
  });

  test('media types lose their parameters and their case', () => {
    expect(contentType({ 'content-type': 'Application/JSON; charset=utf-8' })).toBe('application/json');
    expect(contentType({ 'content-type': ' ' })).toBeUndefined();
    expect(isHtml({ 'content-type': 'text/html; charset=utf-8' })).toBe(true);
    expect(isHtml({ 'content-type': 'application/octet-stream' })).toBe(false);
  });

  test('a length is a number or nothing', () => {
    expect(contentLength({ 'content-length': '12' })).toBe(12);
    expect(contentLength({ 'content-length': '-1' })).toBeUndefined();
    expect(contentLength({ 'content-length': '99999999999999999999' })).toBeUndefined();
    expect(contentLength({})).toBeUndefined();
  });
});

test('a commit is given longer the larger the blob is', () => {
  expect(commitTimeout(0)).toBe(60_000);
  expect(commitTimeout(100_000_000)).toBe(70_000);
  expect(commitTimeout(100_000_001)).toBe(300_000);
  expect(commitTimeout(10_000_000_000)).toBe(1_060_000);
});
