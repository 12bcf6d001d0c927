import { stripVTControlCharacters } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withoutEndless } from '../../src/model/escapes.ts';

const words = ['\x1b', ']', '\x1b]', '\x9b', '[', '\x07', '\x9c', '\\', '\x1b\\', '8;;http://x', '31', 'm', 'a', ';'];

describe('a text that is stripped of escape sequences', () => {
  it('is what Node leaves of it by itself, but for control characters', () => {
    const visible = (text: string) => stripVTControlCharacters(text).replace(/\p{Cc}/gu, '');
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...words), { maxLength: 12 }), (parts) => {
        const text = parts.join('');
        expect(visible(withoutEndless(text))).toBe(visible(text));
      }),
      { numRuns: 2000 },
    );
  });

  it.each(['\x1b]', '\x1b]\x1b', '\x07\x1b]', '\x1b]8;;'])('comes at once from many of %j', (piece) => {
    const text = piece.repeat((64 * 1024) / piece.length);
    const before = process.cpuUsage();
    stripVTControlCharacters(withoutEndless(text));
    const { user, system } = process.cpuUsage(before);
    // In μs; the search for an end that is not there takes seconds.
    expect(user + system).toBeLessThan(500_000);
  });
});
