import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const text = readFileSync(new URL('docs/compare.md', ROOT), 'utf8');

/** The rows below a heading, without the two lines of the head. */
function tableBelow(heading: string): readonly (readonly string[])[] {
  const [, section = ''] = text.split(`\n## ${heading}\n`);
  const [table = ''] = section.split('\n## ');
  const lines = table.split('\n').filter((line) => line.startsWith('|'));
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split(' | ')
      .map((cell) => cell.trim()),
  );
}

const features = tableBelow('Features').map(([name = '', ours = '', ...others]) => ({ name, ours, others }));
const shown = tableBelow('What shows it').map(([name = '', how = '', tests = '']) => ({
  name,
  how,
  tests: [...tests.matchAll(/`(test\/[^`]+)`: ((?:(?!<br>).)+)/g)].map(([, file = '', title = '']) => ({
    file,
    title,
  })),
}));

/** Whether a test of that title stands in the file: `it('…'`, `test.each(…)('…'`. */
function hasTest(source: string, title: string): boolean {
  const written = title.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`(?:\\b(?:it|test)(?:\\.\\w+)*\\(|\\)\\()\\s*(['"\`])${written}\\1,`).test(source);
}

describe('docs/compare.md', () => {
  it('has every feature in both tables, in one order, with a cell for each tool', () => {
    expect(features).toHaveLength(52);
    expect(shown.map(({ name }) => name)).toEqual(features.map(({ name }) => name));
    for (const { name, ours, others } of features) {
      expect(ours, name).toMatch(/^\*\*[YNP]\*\*$/);
      expect(others, name).toHaveLength(7);
      for (const cell of others) expect(cell, name).not.toBe('');
    }
  });

  it.each(features.map(({ name, ours }, at) => ({ name, ours, ...shown[at] })))(
    '$name',
    ({ name, ours, how = '', tests = [] }) => {
      expect(how.length, `${name}: says nothing`).toBeGreaterThan(10);
      if (ours === '**Y**') expect(tests.length, `${name}: a Y without a test`).toBeGreaterThan(0);
      for (const { file, title } of tests) {
        const path = fileURLToPath(new URL(file, ROOT));
        expect(existsSync(path), `${name}: ${file} is not there`).toBe(true);
        expect(hasTest(readFileSync(path, 'utf8'), title), `${name}: ${file} has no test "${title}"`).toBe(true);
      }
    },
  );
});
