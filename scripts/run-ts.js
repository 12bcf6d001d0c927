// Runs a TypeScript file of this repository on Node 20, which cannot: `node scripts/run-ts.js FILE [ARG...]`.
// Packages stay outside of the bundle, so that they are found in node_modules as usual.
import { mkdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { argv } from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';

const [file, ...rest] = argv.slice(2);
if (file === undefined) throw new Error('usage: node scripts/run-ts.js FILE [ARG...]');
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(root, 'node_modules', '.cache', 'run-ts', file.replaceAll(/[^\w]+/g, '-'));
await mkdir(folder, { recursive: true });
const bundle = await rolldown({
  input: resolve(file),
  platform: 'node',
  external: (id) => !id.startsWith('.') && !id.startsWith('/') && !/^[A-Za-z]:/.test(id),
  logLevel: 'warn',
});
const { output } = await bundle.write({
  dir: folder,
  format: 'esm',
  entryFileNames: '[name].mjs',
  sourcemap: 'inline',
});
await bundle.close();
argv.splice(1, argv.length - 1, resolve(file), ...rest);
await import(pathToFileURL(join(folder, output[0].fileName)).href);
