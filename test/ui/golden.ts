import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';

const FOLDER = join(import.meta.dirname, '../golden/ui');

/**
 * Compares with `test/golden/ui/NAME.txt`, where ESC is written as `␛`. `UPDATE_GOLDEN=1 npx vitest run test/ui`
 * writes the files anew; read the diff before it is committed.
 */
export function expectGolden(name: string, text: string): void {
  const file = join(FOLDER, `${name}.txt`);
  const shown = text.replaceAll('\u001b', '␛');
  if (process.env['UPDATE_GOLDEN'] === '1') {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, shown);
  }
  expect(existsSync(file), `${file} is missing: run with UPDATE_GOLDEN=1`).toBe(true);
  expect(shown).toBe(readFileSync(file, 'utf8'));
}
