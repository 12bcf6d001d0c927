import { execFile } from 'node:child_process';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import process, { argv } from 'node:process';
import { promisify } from 'node:util';
import { bundle } from './bundle.ts';
import { type CommandManifest, completionScripts } from './completion.ts';
import { keepReachable } from './declarations.ts';
import { dockerPlugin, loadPlugin, renderHelp } from './help.ts';
import { ROOT } from './root.ts';

// Makes lib/: the program in a handful of CommonJS files without dependencies, the texts and completion scripts that
// bin/run.js answers with and loads none of them, and, with --types, the declarations of the library door.

const LIB = join(ROOT, 'lib');
// A build that fails leaves the last good one, and one that is under way is not seen.
const NEW = join('node_modules', '.cache', `lib-${process.pid}`);
const FRESH = join(ROOT, NEW);
await bundle(FRESH);
const texts = { ...(await renderHelp(NEW)), plugin: await dockerPlugin(NEW) };
await writeFile(join(FRESH, 'help.json'), `${JSON.stringify(texts)}\n`);
await mkdir(join(FRESH, 'completion'));
const manifest: CommandManifest = JSON.parse(JSON.stringify((await loadPlugin(NEW)).manifest));
for (const [shell, script] of Object.entries(completionScripts(manifest))) {
  await writeFile(join(FRESH, 'completion', shell), script);
}
await rm(LIB, { recursive: true, force: true });
await rename(FRESH, LIB);
if (argv.includes('--types')) {
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  await promisify(execFile)(process.execPath, [tsc, '-p', join(ROOT, 'scripts', 'tsconfig.types.json')]);
  await keepReachable(join(LIB, 'types'), 'index.d.ts');
}
