import { describe, expect, it } from 'vitest';
import { commaList } from '../../src/cli/comma-list.ts';

describe('a list with commas', () => {
  it.each([
    ['', []],
    ['a', ['a']],
    ['a,b c', ['a', 'b c']],
    ['a,,b,', ['a', '', 'b', '']],
    [',', ['', '']],
    ['""', ['']],
    ['""""', ['"']],
    ['"a,b",c', ['a,b', 'c']],
    ['"a""b"', ['a"b']],
    ["it's,<a>&\\", ["it's", '<a>&\\']],
  ])('%j is %j', (text, items) => {
    expect(commaList(text, '--os-features')).toEqual(items);
  });

  it.each(['"', 'a"', 'a"b"', '"a"b', '"a",b"', '"""'])('%j has a quote out of place', (text) => {
    expect(() => commaList(text, '--os-features')).toThrow('--os-features has a quote out of place');
  });
});
