import { readdir, readFile, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

/**
 * Deletes the declarations that no import leads to from `entry`: the compiler writes one for every module of the
 * program, and the library door shows a few of them.
 */
export async function keepReachable(folder: string, entry: string): Promise<void> {
  const reached = new Set<string>();
  const open = [resolve(folder, entry)];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (reached.has(file)) continue;
    reached.add(file);
    const text = await readFile(file, 'utf8');
    for (const [, name = ''] of text.matchAll(/(?:from|import\()\s*'(\.[^']*)\.(?:ts|js)'/g)) {
      open.push(resolve(dirname(file), `${name}.d.ts`));
    }
  }
  for (const name of await readdir(folder, { recursive: true })) {
    const file = join(folder, name);
    if (name.endsWith('.d.ts') && !reached.has(file)) await rm(file);
  }
}
