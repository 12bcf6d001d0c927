import { execFile } from 'node:child_process';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { argv } from 'node:process';
import { promisify } from 'node:util';
import { bundle } from './bundle.ts';
import { keepReachable } from './declarations.ts';
import { renderHelp } from './help.ts';
import { ROOT } from './root.ts';

// Makes lib/: the program in a handful of CommonJS files without dependencies, the texts that bin/run.js answers
// from without loading any of them, and, with --types, the declarations of the library door.

const LIB = join(ROOT, 'lib');
const FRESH = join(ROOT, 'node_modules', '.cache', 'lib');
// A build that fails leaves the last good one.
await rm(FRESH, { recursive: true, force: true });
await bundle(FRESH);
await rm(LIB, { recursive: true, force: true });
await rename(FRESH, LIB);
await writeFile(join(LIB, 'help.json'), `${JSON.stringify(await renderHelp())}\n`);
if (argv.includes('--types')) {
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  await promisify(execFile)(process.execPath, [tsc, '-p', join(ROOT, 'scripts', 'tsconfig.types.json')]);
  await keepReachable(join(LIB, 'types'), 'index.d.ts');
}
