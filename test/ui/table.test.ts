import { Writable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonText, page, renderTable, showsUnicode, tableLines, themeFor } from '../../src/ui/render.ts';
import { textWidth } from '../../src/ui/text.ts';
import { danger, hostileText } from './hostile.ts';
import { ASCII, COLOR, PLAIN } from './samples.ts';

const COLUMNS = [
  { title: 'NAME', shrink: true },
  { title: 'DIGEST' },
  { title: 'SIZE', align: 'right' as const },
  { title: 'NOTE', drop: 1 },
  { title: 'MORE', drop: 2 },
];
const ROWS = [
  ['a long name of a thing', { text: 'sha256:0123456789', short: 'sha256:01' }, '1 B', 'note', 'more'],
  ['漢字', { text: 'sha256:9876543210', short: 'sha256:98' }, '10 kB', '', 'more'],
];

function widths(width: number): string[] {
  return tableLines(COLUMNS, ROWS, { ...PLAIN, width }, '');
}

describe('a table', () => {
  test('is aligned by columns of the terminal, not by characters', () => {
    expect(widths(100)).toEqual([
      'NAME                    DIGEST              SIZE  NOTE  MORE',
      'a long name of a thing  sha256:0123456789    1 B  note  more',
      '漢字                    sha256:9876543210  10 kB        more',
    ]);
  });

  test('takes short forms first, then leaves out, then cuts', () => {
    expect(widths(59)[1]).toBe('a long name of a thing  sha256:01    1 B  note  more');
    expect(widths(51)[1]).toBe('a long name of a thing  sha256:01    1 B  note');
    expect(widths(45)[1]).toBe('a long name of a thing  sha256:01    1 B');
    expect(widths(35)[1]).toBe('a long name of a…  sha256:01    1 B');
    expect(widths(5)[1]).toBe('a long …  sha256:01    1 B');
  });

  test('cuts at the beginning where the end tells apart, and last of all leaves out what has drop 0', () => {
    const columns = [{ title: '', shrink: 'start' as const }, { title: '' }, { title: '', drop: 0 }];
    const at = (width: number) =>
      tableLines(columns, [['r.example/team/app', 'keep', '12 kB']], { ...PLAIN, width }, '');
    expect(at(31)).toEqual(['r.example/team/app  keep  12 kB']);
    expect(at(25)).toEqual(['…le/team/app  keep  12 kB']);
    expect(at(21)).toEqual(['…eam/app  keep  12 kB']);
    expect(at(20)).toEqual(['…eam/app  keep']);
  });

  test('leaves out columns without content and a head without titles', () => {
    expect(tableLines([{ title: '' }, { title: '' }, { title: '' }], [['a', '', 'b']], PLAIN)).toEqual(['  a  b']);
    expect(tableLines(COLUMNS, [], PLAIN)).toEqual([]);
  });

  test('has no spaces at the ends of lines and paints text only', () => {
    const lines = tableLines(
      [{ title: 'A' }, { title: 'B' }],
      [
        [{ text: 'x', style: 'good' }, 'y'],
        ['long', ''],
      ],
      COLOR,
    );
    expect(lines).toEqual([
      '  \u001b[2mA\u001b[22m     \u001b[2mB\u001b[22m',
      '  \u001b[32mx\u001b[39m     y',
      '  long',
    ]);
  });

  test('is a document of its own, whatever its cells hold', () => {
    expect(renderTable([{ title: 'A' }], [['::error::\nx'], [{ text: '\u001b[2Jy', style: 'good' }]], PLAIN)).toBe(
      'A\n|::error:: x\ny\n',
    );
  });

  test('fits whenever cutting can make it fit', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 5 }),
        fc.integer({ min: 14, max: 60 }),
        (names, width) => {
          const rows = names.map((name) => [name, 'b', 'c']);
          const columns = [{ title: 'A', shrink: true }, { title: 'B' }, { title: 'C', drop: 1 }];
          for (const line of tableLines(columns, rows, { ...PLAIN, width }, '')) {
            expect(textWidth(line)).toBeLessThanOrEqual(width);
          }
        },
      ),
    );
  });
});

describe('a page', () => {
  test('guards every line, whatever its parts make together', () => {
    expect(page(['  ::error::x', 'a ##[b]', 'fine'], PLAIN)).toBe('  |::error::x\na #|#[b]\nfine\n');
  });

  test('replaces what an ASCII stream cannot show', () => {
    expect(page(['naïve… 漢'], ASCII)).toBe('na?ve... ?\n');
  });
});

describe('a theme', () => {
  const terminal = (columns?: number) =>
    Object.assign(new Writable(), {
      isTTY: true,
      getColorDepth: () => 8,
      ...(columns === undefined ? {} : { columns }),
    });
  const flags = { noColor: false, unicode: true };

  test('has the width of the terminal, 80 when it tells none, and no width elsewhere', () => {
    expect(themeFor(terminal(120), flags).width).toBe(120);
    expect(themeFor(terminal(0), flags).width).toBe(80);
    expect(themeFor(terminal(), flags).width).toBe(80);
    expect(themeFor(new Writable(), flags).width).toBe(Number.POSITIVE_INFINITY);
  });

  test('has no colour with --no-color', () => {
    expect(themeFor(terminal(80), { ...flags, noColor: true }).color).toBe(false);
  });

  test.each([
    [{ LANG: 'en_US.UTF-8' }, 'linux', true],
    [{ LC_ALL: 'C', LANG: 'en_US.UTF-8' }, 'linux', false],
    [{ LC_ALL: '', LANG: 'de_DE.utf8' }, 'darwin', true],
    [{}, 'linux', true],
    [{}, 'win32', false],
    [{ WT_SESSION: '1' }, 'win32', true],
  ])('of %j on %s shows more than ASCII: %s', (env, platform, shows) => {
    expect(showsUnicode(env, platform)).toBe(shows);
  });
});

test('JSON is the same data and holds nothing that a terminal or a runner acts on', () => {
  fc.assert(
    fc.property(fc.dictionary(hostileText, hostileText), (value) => {
      const text = jsonText(value, 2);
      expect(JSON.parse(text)).toEqual(value);
      expect(danger(text)).toBeUndefined();
    }),
    { numRuns: 1000 },
  );
});
