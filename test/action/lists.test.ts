import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { listOf } from '../../src/action/lists.ts';

describe('a list of an input', () => {
  it.each<[string, string, readonly string[]]>([
    ['is empty without text', '', []],
    ['has items on lines', 'a\nb\r\nc', ['a', 'b', 'c']],
    ['has items between commas', 'a,b, c ,', ['a', 'b', 'c']],
    ['may have both', 'a,b\n\n  c\n', ['a', 'b', 'c']],
    ['keeps a comma in quotes', '"a,b",c', ['a,b', 'c']],
    ['takes a doubled quote for one', '"say ""a"""', ['say "a"']],
    ['keeps the end of a line in quotes', '"a\nb"\nc', ['a\nb', 'c']],
    ['passes comments over', '# a, b\nc\n  # d', ['c']],
    ['passes a comment behind an item over', 'a, # the first\nb', ['a', 'b']],
    ['passes a comment behind a word over', 'a # b, c\nd', ['a', 'd']],
    ['keeps a # within an item', 'dir/#1,b#c', ['dir/#1', 'b#c']],
    ['takes a quote within an item as it is', 'a"b",c', ['a"b"', 'c']],
    ['takes a quote that is never closed as it is', '"a,b', ['"a', 'b']],
    ['takes empty quotes for nothing', '"",a', ['a']],
  ])('%s', (_title, text, items) => {
    expect(listOf(text)).toEqual(items);
  });

  it('of lines keeps commas, and quotes that do not hold the whole line', () => {
    expect(listOf('a=1, 2\n# no\n\nb="x",y # z\n"c=3"', { commas: false })).toEqual(['a=1, 2', 'b="x",y # z', 'c=3']);
  });

  it('gives back what was written in quotes, whatever it is', () => {
    const word = fc.string().filter((text) => text.trim() === text && text !== '');
    fc.assert(
      fc.property(fc.array(word), fc.constantFrom(',', '\n', '\r\n'), (words, separator) => {
        const text = words.map((one) => `"${one.replaceAll('"', '""')}"`).join(separator);
        expect(listOf(text)).toEqual(words);
      }),
    );
  });

  it('ends for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('"', ',', '\n', '\r', '#', ' ', 'a') }), (text) => {
        for (const commas of [true, false]) expect(listOf(text, { commas }).every((item) => item !== '')).toBe(true);
      }),
    );
  });
});
