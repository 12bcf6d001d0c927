import { join } from 'node:path';
import { type ChunkingContext, type CodeSplittingGroup, type OutputChunk, type Plugin, rolldown } from 'rolldown';
import { ROOT } from './root.ts';

/**
 * Modules that are never run, so that they are not shipped: compilers that cosmiconfig would load for TypeScript, and
 * its own loaders (ours read data only).
 */
const STUBBED: ReadonlySet<string> = new Set(['typescript', 'js-yaml', 'import-fresh', 'parse-json', 'env-paths']);

/**
 * `import 'undici'` loads fetch, websockets, caches and mocks: 50 ms of CPU instead of 20. The parts that we use are
 * taken by their paths, which is why the version is pinned and `test/package.slow.test.ts` publishes with the result.
 */
const UNDICI = `
export { default as Pool } from 'undici/lib/dispatcher/pool.js';
export { default as buildConnector } from 'undici/lib/core/connect.js';
`;

/**
 * undici's HTTP parser: the build for every processor, as what SIMD speeds up is the reading of very long headers. V8
 * would find it busy after a few dozen answers and spend 90 ms of CPU, a quarter of a publish, on optimizing it for
 * work that takes 1 ms. How long it waits is read when the parser is made, right after this; then V8's own figure is
 * put back, since caches of compiled code are for one set of flags only. Flags are the whole process's, other threads
 * included, so that this is done in a process of our own alone: what was started is the program or the action.
 */
const PARSER = `
const { main } = require;
if (main && [__filename, require('node:path').join(__dirname, '..', 'bin', 'run.js')].includes(main.filename)) {
  const { setFlagsFromString } = require('node:v8');
  const standard = Number.parseInt(process.versions.node, 10) < 22 ? 1_800_000 : 13_000_000;
  setFlagsFromString('--wasm-tiering-budget=1000000000');
  queueMicrotask(() => setFlagsFromString('--wasm-tiering-budget=' + standard));
}
module.exports = require('./llhttp-wasm.js');
`;

/**
 * Modules of packages that the program has in the bundle for another one's sake. oclif's `Command` and parser are
 * used, but neither its configuration (commands are found by `src/cli/main.ts`), nor its help (made at build time),
 * nor its own ways of printing errors and colours (ours are in `src/ui`). Of undici's client only HTTP/1.1 is: HTTP/2
 * is never offered to a server, and no body is a form of `fetch`.
 */
const REPLACED: Readonly<Record<string, string>> = {
  '@oclif/core/lib/config/index.js': 'exports.Config = class Config {};',
  '@oclif/core/lib/help/util.js': 'exports.normalizeArgv = () => [];',
  '@oclif/core/lib/help/index.js': '',
  '@oclif/core/lib/logger.js': 'exports.makeDebug = () => () => {};',
  '@oclif/core/lib/ux/index.js': 'exports.ux = {}; exports.colorize = (style, text) => text;',
  '@oclif/core/lib/ux/theme.js': 'exports.colorize = (style, text) => text;',
  '@oclif/core/lib/util/fs.js': '',
  '@oclif/core/lib/errors/error.js': '',
  '@oclif/core/lib/errors/handle.js': '',
  '@oclif/core/lib/errors/warn.js': '',
  'indent-string/index.js': 'module.exports = (text) => text;',
  'wrap-ansi/index.js': 'module.exports = (text) => text;',
  'clean-stack/index.js': 'module.exports = (text) => text;',
  '@oclif/core/package.json': '{}',
  // 20 kB of animations; ora is given ours.
  'ora/node_modules/cli-spinners/spinners.json': '{}',
  'undici/lib/llhttp/llhttp_simd-wasm.js': PARSER,
  'undici/lib/dispatcher/client-h2.js': '',
  'undici/lib/web/fetch/body.js': '',
};

const VIRTUAL = '\0virtual:';

/** Puts what is never run, or run in our way, in the place of packages. */
export function replacements(): Plugin {
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
      return REPLACED[id.replaceAll('\\', '/').replace(/^.*?\/node_modules\//, '')];
    },
  };
}

/** A group of modules: those that `roots` need as soon as they are loaded, but for what an earlier group has. */
const GROUPS: readonly { readonly name: string; readonly roots: readonly string[] }[] = [
  { name: 'core', roots: ['src/index.ts', 'src/cli/runtime.ts'] },
  { name: 'cli', roots: ['src/commands/run.ts', 'src/commands/publish.ts'] },
  { name: 'engine', roots: ['src/cli/network.ts', 'src/publish/publish-lists.ts'] },
];

/**
 * Puts what a command needs into few files: opening and compiling a file costs a third of a millisecond, and a publish
 * would open forty. What is not named here lies in files of its own, which are opened when somebody asks for them.
 */
function grouping(): CodeSplittingGroup[] {
  const found = new Map<string, string>();
  const nameFor = (group: string) => (id: string, context: ChunkingContext) => {
    if (found.size === 0) findGroups(found, context);
    return found.get(id) === group ? group : null;
  };
  return GROUPS.map(({ name }, index) => ({ name: nameFor(name), priority: GROUPS.length - index }));
}

function findGroups(found: Map<string, string>, context: ChunkingContext): void {
  for (const { name, roots } of GROUPS) {
    const open = roots.map((root) => join(ROOT, root));
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      const module = found.has(id) ? null : context.getModuleInfo(id);
      if (module === null) continue;
      found.set(id, name);
      open.push(...module.importedIds);
    }
  }
}

/** Makes the bundle and, with a folder, writes it; yields its chunks, which name the modules inside. */
export async function bundle(folder?: string): Promise<readonly OutputChunk[]> {
  const build = await rolldown({
    input: {
      program: join(ROOT, 'src/commands/run.ts'),
      commands: join(ROOT, 'src/commands/index.ts'),
      index: join(ROOT, 'src/index.ts'),
    },
    platform: 'node',
    plugins: [replacements()],
    logLevel: 'warn',
    // Of the two tables of commands the one for oclif's tools names them all at once.
    checks: { ineffectiveDynamicImport: false, pluginTimings: false },
  });
  try {
    const options = {
      format: 'cjs',
      entryFileNames: '[name].cjs',
      chunkFileNames: '[name]-[hash].cjs',
      dynamicImportInCjs: false,
      codeSplitting: { groups: grouping() },
      minify: { mangle: { keepNames: true }, compress: { keepNames: { function: true, class: true } } },
    } as const;
    const { output } = await (folder === undefined
      ? build.generate(options)
      : build.write({ ...options, dir: folder }));
    return output.filter((file) => file.type === 'chunk');
  } finally {
    await build.close();
  }
}
