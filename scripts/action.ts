import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import process, { argv, stderr } from 'node:process';
import { bundleAction } from './action-bundle.ts';
import { ROOT } from './root.ts';

// Makes dist/index.cjs, which GitHub runs as it is committed. With --check nothing is written, and a bundle that is not
// what the sources make is an error.

const NAME = 'dist/index.cjs';

const { code } = await bundleAction();
const path = join(ROOT, NAME);
const current = await readFile(path, 'utf8').catch(() => undefined);
if (current !== code && argv.includes('--check')) {
  stderr.write(`${NAME} is not up to date: run npm run action\n`);
  process.exitCode = 1;
} else if (current !== code) {
  await writeFile(path, code);
  stderr.write(`${NAME} written\n`);
}
