import { join } from 'node:path';
import { type OutputChunk, type Plugin, rolldown } from 'rolldown';
import { ROOT } from './root.ts';

/**
 * Modules that are never run, so that they are not shipped: compilers that oclif and cosmiconfig would load for
 * TypeScript, cosmiconfig's own loaders (ours read data only), oclif's searches for commands, plugins and its own
 * configuration (all are given to it) and its help templates (help is rendered at build time).
 */
const STUBBED: ReadonlySet<string> = new Set([
  'typescript',
  'ts-node',
  'tsx',
  'pnpapi',
  'js-yaml',
  'import-fresh',
  'parse-json',
  'env-paths',
  'tinyglobby',
  'lilconfig',
  'minimatch',
  'ejs',
]);

/**
 * `import 'undici'` loads fetch, websockets, caches and mocks: 50 ms of CPU instead of 20. The parts that we use are
 * taken by their paths, which is why the version is pinned and `test/package.slow.test.ts` publishes with the result.
 */
const UNDICI = `
export { default as Pool } from 'undici/lib/dispatcher/pool.js';
export { default as buildConnector } from 'undici/lib/core/connect.js';
`;

const VIRTUAL = '\0virtual:';

function replacements(): Plugin {
  return {
    name: 'replacements',
    resolveId(id, importer) {
      if (id === 'undici') return `${VIRTUAL}undici.mjs`;
      if (STUBBED.has(id)) return `${VIRTUAL}stub.cjs`;
      // Virtual modules have no folder to look from.
      return importer?.startsWith(VIRTUAL) ? this.resolve(id, join(ROOT, 'package.json')) : undefined;
    },
    load(id) {
      if (id === `${VIRTUAL}undici.mjs`) return UNDICI;
      if (id === `${VIRTUAL}stub.cjs`) return 'module.exports = {};';
      return undefined;
    },
  };
}

/** Makes the bundle and, with a folder, writes it; yields its chunks, which name the modules inside. */
export async function bundle(folder?: string): Promise<readonly OutputChunk[]> {
  const build = await rolldown({
    input: {
      main: join(ROOT, 'src/cli/main.ts'),
      commands: join(ROOT, 'src/commands/index.ts'),
      index: join(ROOT, 'src/index.ts'),
    },
    platform: 'node',
    plugins: [replacements()],
    logLevel: 'warn',
  });
  try {
    const options = {
      format: 'cjs',
      entryFileNames: '[name].cjs',
      chunkFileNames: '[name]-[hash].cjs',
      minify: true,
      keepNames: true,
    } as const;
    const { output } = await (folder === undefined
      ? build.generate(options)
      : build.write({ ...options, dir: folder }));
    return output.filter((file) => file.type === 'chunk');
  } finally {
    await build.close();
  }
}
