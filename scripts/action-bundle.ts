import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type OutputChunk, type Plugin, rolldown } from 'rolldown';
import { replacements } from './bundle.ts';
import { ROOT } from './root.ts';

/** Rooms and packages that the action has no use for; that one of them comes in is a mistake. */
const REFUSED = /[\\/](?:src[\\/](?:commands|registry-server)[\\/]|node_modules[\\/]@oclif[\\/])/;

/** Drawing on a terminal, which no job has. */
const UNUSED: ReadonlySet<string> = new Set(['listr2', 'ora']);

const OWN_COMMENTS_OUT = { legal: true, annotation: false, jsdoc: false } as const;

/**
 * The action as one file, which whoever reviews a release can read: not minified, with the names of its modules. The same
 * sources and packages make the same bytes.
 */
export async function bundleAction(): Promise<OutputChunk> {
  const build = await rolldown({
    input: join(ROOT, 'src/action/main.ts'),
    // Names of modules stand in the bundle, from here on.
    cwd: ROOT,
    platform: 'node',
    plugins: [await ownName(), withoutTerminal(), replacements()],
    logLevel: 'warn',
  });
  try {
    const { output } = await build.generate({ format: 'cjs', codeSplitting: false, comments: OWN_COMMENTS_OUT });
    const [chunk, ...more] = output;
    if (more.length > 0) throw new Error(`the action is more than one file: ${more.map((file) => file.fileName)}`);
    const wrong = chunk.moduleIds.find((id) => REFUSED.test(id));
    if (wrong !== undefined) throw new Error(`the action must not hold ${wrong}`);
    return chunk;
  } finally {
    await build.close();
  }
}

/** Of package.json the program uses name and version: a script that changes there must not make the bundle stale. */
async function ownName(): Promise<Plugin> {
  const path = join(ROOT, 'package.json');
  const { name, version } = JSON.parse(await readFile(path, 'utf8')) as { name: string; version: string };
  return {
    name: 'own-name',
    load: (id) => (id === path ? { code: JSON.stringify({ name, version }), moduleType: 'json' } : undefined),
  };
}

function withoutTerminal(): Plugin {
  const stub = '\0no-terminal.cjs';
  return {
    name: 'without-terminal',
    resolveId: (id) => (UNUSED.has(id) ? stub : undefined),
    load: (id) => (id === stub ? 'module.exports = {};' : undefined),
  };
}
