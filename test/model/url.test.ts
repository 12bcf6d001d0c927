import { describe, expect, it } from 'vitest';
import { parseUrl } from '../../src/model/url.ts';

describe('a URL', () => {
  it.each(['https://x.test/a?b', 'http://127.0.0.1:5000/'])('%s is read', (text) => {
    expect(parseUrl(text)?.href).toBe(text);
  });

  it('is read against another one', () => {
    expect(parseUrl('c?d', new URL('https://x.test/a/b'))?.href).toBe('https://x.test/a/c?d');
  });

  it.each(['', 'x', '//a', 'https://', 'https://a b/'])('%j is none', (text) => {
    expect(parseUrl(text)).toBeUndefined();
  });

  it('stays none when it is read often, where URL.canParse of node 20 changes its mind and the constructor throws', () => {
    const base = new URL('https://x.test/');
    const read = new Set(Array.from({ length: 20_000 }, () => parseUrl('//169\u00e3\u0080\u0082254/x', base)));
    expect([...read]).toEqual([undefined]);
  });
});
