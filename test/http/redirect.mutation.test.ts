import { describe, expect, it } from 'vitest';
import { createEndpoints } from '../../src/http/endpoint.ts';
import { followRedirect, isRedirect, isUpgrade, MOST_HOPS, type Redirect } from '../../src/http/redirect.ts';

const HOST = 'registry.example.test';

/** A 307 of a read by https, but for what the test says; nothing is sent. */
function redirect(location: string | undefined, more: Partial<Omit<Redirect, 'from'>> & { from?: string } = {}): URL {
  const { from = `https://${HOST}/v2/a/blobs/1`, ...rest } = more;
  return followRedirect({
    method: 'GET',
    status: 307,
    endpoint: createEndpoints({}).of(HOST),
    canResend: true,
    hops: 0,
    ...rest,
    location,
    from: new URL(from),
  });
}

const plain = (host = HOST) => createEndpoints({ [host]: { plainHttp: true } }).of(host);

describe('a redirect', () => {
  it('is what sends elsewhere, and nothing else', () => {
    const statuses = Array.from({ length: 500 }, (_, index) => index + 100);
    expect(statuses.filter(isRedirect)).toEqual([300, 301, 302, 303, 305, 307, 308]);
  });

  it.each([undefined, '', ' ', '\t', 'https://['])('that names no address is refused: %j', (location) => {
    expect(() => redirect(location)).toThrow('not followed: it names no address');
  });

  it('is resolved against what was asked', () => {
    expect(redirect('2?x=y').href).toBe(`https://${HOST}/v2/a/blobs/2?x=y`);
    expect(redirect('//cdn.example.test/x').href).toBe('https://cdn.example.test/x');
  });

  it('is followed five times', () => {
    expect(redirect('/x', { hops: MOST_HOPS - 1 }).pathname).toBe('/x');
    expect(() => redirect('/x', { hops: MOST_HOPS })).toThrow('more than 5 in a row');
  });

  it.each([
    ['GET', 300, /leaves the choice to the client/],
    ['HEAD', 305, /leaves the choice to the client/],
    ['PUT', 302, /does not promise to keep method and body/],
    ['POST', 300, /does not promise to keep method and body/],
  ] as const)('of %s by %i is refused with its reason', (method, status, why) => {
    expect(() => redirect('/x', { method, status })).toThrow(why);
  });

  it('tells who writes what the proxy has to change, and who reads what to check', () => {
    const thrown = (method: Redirect['method']) => {
      try {
        return redirect('', { method });
      } catch (error) {
        return error;
      }
    };
    expect(thrown('PATCH')).toMatchObject({
      code: 'ORIGIN_REFUSED',
      registry: HOST,
      status: 307,
      hint: expect.stringMatching(/proxy in front of registry\.example\.test pass PATCH on/),
    });
    expect(thrown('HEAD')).toMatchObject({ hint: expect.stringMatching(/^Check the address.*proxy/) });
  });

  it('of a write never leads to another origin, be it another port or scheme', () => {
    for (const next of ['https://cdn.example.test/x', `https://${HOST}:8443/x`]) {
      expect(() => redirect(next, { method: 'PUT' })).toThrow(`it leads to another origin, ${new URL(next).origin}`);
    }
    expect(redirect(`https://${HOST}/x`, { method: 'PUT' }).pathname).toBe('/x');
    expect(() => redirect('/x', { method: 'PUT', canResend: false })).toThrow('cannot be sent twice');
    expect(redirect('/x', { canResend: false }).pathname).toBe('/x');
  });

  it('never leads from https to http, not even back to a registry that is spoken to by http', () => {
    const home = { from: 'https://cdn.example.test/x', endpoint: plain() };
    expect(() => redirect(`http://${HOST}/y`, home)).toThrow('refused: it leads from https to http');
    expect(redirect(`http://${HOST}/y`, { ...home, from: 'http://cdn.example.test/x' }).host).toBe(HOST);
  });

  it.each(['user@', ':password@', 'user:password@'])('never carries a login: %s', (login) => {
    const why = 'refused: it carries a user name';
    expect(() => redirect(`https://${login}${HOST}/x`)).toThrow(why);
    expect(() => redirect(`https://${login}cdn.example.test/x`)).toThrow(why);
    const upgraded = { from: `http://${HOST}/`, endpoint: plain(), method: 'PUT', status: 308 } as const;
    expect(() => redirect(`https://${login}${HOST}/x`, upgraded)).toThrow(why);
  });

  it('within the place that the user named is never refused for where that is', () => {
    const host = '169.254.7.7';
    const endpoint = createEndpoints({}).of(host);
    expect(redirect('/x', { from: `https://${host}/`, endpoint }).href).toBe(`https://${host}/x`);
    const upgraded = redirect(`https://${host}/x`, { from: `http://${host}/`, endpoint: plain(host) });
    expect(upgraded.href).toBe(`https://${host}/x`);
    expect(() => redirect('https://169.254.7.8/x', { from: `https://${host}/`, endpoint })).toThrow('link-local');
  });
});

describe('an upgrade', () => {
  const leads = (from: string, next: string) => isUpgrade(plain(), new URL(from), new URL(next));

  it.each([
    [`http://${HOST}/a`, `https://${HOST}/b`, true],
    [`http://${HOST}/a`, `http://${HOST}/b`, false],
    [`https://${HOST}/a`, `https://${HOST}/b`, false],
    [`https://${HOST}/a`, `http://${HOST}/b`, false],
    [`http://${HOST}/a`, 'https://cdn.example.test/b', false],
    [`http://${HOST}/a`, `https://${HOST}:8443/b`, false],
    ['http://cdn.example.test/a', `https://${HOST}/b`, false],
  ])('leads from http to https at the own place: %s to %s, %s', (from, next, upgrade) => {
    expect(leads(from, next)).toBe(upgrade);
  });

  it.each([301, 302, 307, 308])('is followed by a write for %i', (status) => {
    const upgrade = { method: 'PUT', status, from: `http://${HOST}/a`, endpoint: plain() } as const;
    expect(redirect(`https://${HOST}/a`, upgrade).protocol).toBe('https:');
  });

  it.each([300, 303, 305])('is not followed by a write for %i', (status) => {
    const upgrade = { method: 'PUT', status, from: `http://${HOST}/a`, endpoint: plain() } as const;
    expect(() => redirect(`https://${HOST}/a`, upgrade)).toThrow('not followed');
  });

  it('from somewhere else than the registry is a redirect of a write to another origin', () => {
    const elsewhere = { method: 'PUT', from: 'http://cdn.example.test/a', endpoint: plain() } as const;
    expect(() => redirect(`https://${HOST}/a`, elsewhere)).toThrow('another origin');
  });
});
