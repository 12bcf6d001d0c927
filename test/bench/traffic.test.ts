import { describe, expect, it } from 'vitest';
import { classify, type Exchange, summarize } from '../../bench/traffic.ts';

function exchange(start: number, end: number, more: Partial<Exchange> = {}): Exchange {
  return { method: 'GET', target: '/v2/', status: 200, start, end, up: 0, down: 0, connection: 1, ...more };
}

describe('classify', () => {
  it.each([
    ['GET', '/v2/', 200, 'ping'],
    ['GET', '/token?scope=x', 200, 'token GET'],
    ['GET', '/v2/debian/amd64/manifests/bullseye', 200, 'manifest GET'],
    ['HEAD', '/v2/debian/amd64/manifests/bullseye', 404, 'manifest HEAD 404'],
    ['PUT', '/v2/debian/debian/manifests/sha256:ab', 201, 'manifest PUT'],
    ['HEAD', '/v2/debian/debian/blobs/sha256:ab', 404, 'blob HEAD 404'],
    ['POST', '/v2/debian/debian/blobs/uploads/?mount=sha256:ab&from=debian/amd64', 201, 'mount POST 201'],
    ['POST', '/v2/debian/debian/blobs/uploads/?from=debian/amd64&mount=sha256%3Aab', 202, 'mount POST 202'],
    ['POST', '/v2/debian/debian/blobs/uploads/', 202, 'upload POST'],
    ['PUT', '/v2/debian/debian/blobs/uploads/0000?_state=x&digest=sha256:ab', 201, 'upload PUT'],
    ['DELETE', '/v2/debian/debian/blobs/uploads/0000', 204, 'upload DELETE'],
    ['GET', '/v2/debian/debian/blobs/sha256:ab', 0, 'blob GET 0'],
  ])('calls %s %s answered %i "%s"', (method, target, status, name) => {
    expect(classify({ method, target, status })).toBe(name);
  });
});

describe('summarize', () => {
  it('finds the longest chain among requests that overlap', () => {
    // Taking the one that starts first would end with a chain of 1.
    const exchanges = [exchange(0, 100), exchange(1, 10), exchange(10, 20), exchange(15, 30), exchange(21, 40)];
    expect(summarize({ exchanges, tlsHellos: 0 }).longestChain).toBe(3);
  });

  it('does not count a request that starts when another ends as overlapping', () => {
    const exchanges = [exchange(0, 10), exchange(10, 20), exchange(10, 20)];
    expect(summarize({ exchanges, tlsHellos: 0 })).toMatchObject({ mostInFlight: 2, longestChain: 2 });
  });

  it('counts connections that carried a request, bytes and classes', () => {
    const exchanges = [exchange(0, 1, { up: 2, down: 3 }), exchange(1, 2, { up: 5, connection: 2 }), exchange(2, 3)];
    expect(summarize({ exchanges, tlsHellos: 4 })).toMatchObject({
      requests: 3,
      connections: 2,
      tlsHellos: 4,
      bytesUp: 7,
      bytesDown: 3,
      calls: { ping: 3 },
    });
  });

  it('is zero when nothing passed', () => {
    expect(summarize({ exchanges: [], tlsHellos: 0 })).toMatchObject({ requests: 0, longestChain: 0, mostInFlight: 0 });
  });
});
