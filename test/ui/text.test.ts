import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cut, cutStart, redact, textWidth, untrusted } from '../../src/ui/text.ts';
import { danger, hostileText } from './hostile.ts';

describe('untrusted text', () => {
  test('is one harmless line of at most the columns asked for, whatever it was', () => {
    fc.assert(
      fc.property(hostileText, fc.integer({ min: 1, max: 100 }), (text, limit) => {
        const shown = untrusted(text, limit);
        expect(danger(shown)).toBeUndefined();
        expect(shown).not.toContain('\n');
        expect(textWidth(shown)).toBeLessThanOrEqual(limit);
      }),
      { numRuns: 2000 },
    );
  });

  test('stays harmless where a line is broken at any of its spaces', () => {
    fc.assert(
      fc.property(hostileText, (text) => {
        for (const line of untrusted(text).split(' ')) expect(danger(line)).toBeUndefined();
      }),
      { numRuns: 1000 },
    );
  });

  test('is left as it is when it is plain', () => {
    const plain = 'denied: see https://docs.example.test/a#b, or connect to ::1 and [::1]:5000 — naïve 漢字 😀';
    expect(untrusted(plain)).toBe(plain);
  });

  test.each([
    ['::error file=a::gone', '|::error file=a::gone'],
    ['fine\n::set-output name=x::y', 'fine |::set-output name=x::y'],
    ['say ##[error]x', 'say #|#[error]x'],
    ['##vso[task.complete]', '#|#vso[task.complete]'],
    ['\u001b[31mred\u001b[0m \u001b]0;title\u0007end', 'red end'],
    ['a\u202eb\u200bc\u0000d', 'abcd'],
    ['#\u200b#\u200b[x]', '#|#[x]'],
    ['see https:/\u200b/user:password@x.test/1', 'see https://***@x.test/1'],
    ['see https://x.test/a\u0007?token=secret', 'see https://x.test/a?***'],
  ])('%j is shown as %j', (text, shown) => {
    expect(untrusted(text)).toBe(shown);
  });

  test('takes time in proportion to its length', () => {
    const shapes = ['::', '##', '#', '//', '\u001b[', 'Bearer ', 'https://?', '\u0301', '##a'];
    for (const shape of shapes) {
      const start = process.hrtime.bigint();
      untrusted(shape.repeat(1_000_000 / shape.length));
      expect(Number(process.hrtime.bigint() - start) / 1e6, shape).toBeLessThan(1000);
    }
  });
});

describe('secrets', () => {
  test.each([
    ['GET https://user:pa55@host.test/v2/ failed', 'GET https://***@host.test/v2/ failed'],
    ['see https://cdn.test/b?X-Amz-Signature=abc&x=1 now', 'see https://cdn.test/b?*** now'],
    ['sent Bearer eyJhbGciOi.J9.x-y_z to it', 'sent Bearer *** to it'],
    ['Authorization: Basic dXNlcjpwYXNz', 'Authorization: Basic ***'],
  ])('in %j are taken out', (text, shown) => {
    expect(redact(text)).toBe(shown);
    expect(untrusted(text)).toBe(shown);
  });

  test('are not seen in words that only sound like them', () => {
    for (const text of ['Basic Authentication', 'basic credentials were refused', 'use a bearer token instead']) {
      expect(redact(text)).toBe(text);
    }
  });
});

describe('widths', () => {
  test.each([
    ['abc', 3],
    ['漢字', 4],
    ['한글', 4],
    ['ｆｕ', 4],
    ['😀', 2],
    ['e\u0301', 1],
    ['…·✔', 3],
    ['├─', 2],
  ])('of %s is %i columns', (text, width) => {
    expect(textWidth(text)).toBe(width);
  });

  test('are kept when cut', () => {
    expect(cut('abcdef', 6, '…')).toBe('abcdef');
    expect(cut('abcdefg', 6, '…')).toBe('abcde…');
    expect(cut('漢字漢字', 6, '…')).toBe('漢字…');
    expect(cut('abcdefg', 6, '...')).toBe('abc...');
    expect(cut('abcdefg', 2, '...')).toBe('ab');
    expect(cutStart('abcdef', 6, '…')).toBe('abcdef');
    expect(cutStart('abcdefg', 6, '…')).toBe('…cdefg');
    expect(cutStart('漢字漢字', 6, '…')).toBe('…漢字');
    expect(cutStart('abcdefg', 2, '...')).toBe('fg');
  });

  test('that end inside an address leave no command', () => {
    expect(untrusted('::0;x', 3)).toBe(':…');
    expect(cut('dial ::1 failed', 8, '…')).toBe('dial :…');
  });
});
