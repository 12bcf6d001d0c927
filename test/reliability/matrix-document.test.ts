import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import type { Row } from './matrix-case.ts';
import { ELSEWHERE, type ToldRow } from './matrix-elsewhere.ts';
import { ROWS } from './matrix-rows.ts';

const FILE = fileURLToPath(new URL('../../docs/reliability.md', import.meta.url));
const [START, END] = ['<!-- matrix -->', '<!-- /matrix -->'];

/** The table of docs/reliability.md, from the suite's own data. */
function table(): string {
  const all = [...ROWS.map(told), ...ELSEWHERE].sort((one, other) => one.number - other.number);
  const lines = all.map(
    ({ number, fault, promise, exits, where }) => `| ${[number, fault, promise, exits, where].join(' | ')} |`,
  );
  return ['| # | what goes wrong | what is promised | exit code | tests |', '|---|---|---|---|---|', ...lines].join(
    '\n',
  );
}

function told({ number, fault, promise, cases, also }: Row): ToldRow {
  const exits = [...new Set(cases.map(({ exit }) => exit))].sort((one, other) => one - other).join(', ');
  return {
    number,
    fault,
    promise,
    exits,
    where: [`matrix.slow.test.ts (${cases.length})`, ...(also === undefined ? [] : [also])].join('; '),
  };
}

it('docs/reliability.md has the table of this suite (MP_WRITE_DOCS=1 writes it)', () => {
  const text = readFileSync(FILE, 'utf8');
  const [before = '', rest = ''] = text.split(START);
  const [, after = ''] = rest.split(END);
  const wanted = `${before}${START}\n${table()}\n${END}${after}`;
  if (process.env['MP_WRITE_DOCS'] === '1') writeFileSync(FILE, wanted);
  expect(process.env['MP_WRITE_DOCS'] === '1' ? wanted : text).toBe(wanted);
});

it('every row of the matrix is there, once', () => {
  const numbers = [...ROWS, ...ELSEWHERE].map(({ number }) => number).sort((one, other) => one - other);
  expect(numbers).toEqual(Array.from({ length: 56 }, (_, at) => at + 1));
});

it('no arrangement is there twice, or without an expectation', () => {
  for (const { number, cases } of ROWS) {
    const names = cases.map(({ name }) => name);
    expect(new Set(names).size, `row ${number}`).toBe(names.length);
    expect(names.length, `row ${number}`).toBeGreaterThan(0);
  }
});
