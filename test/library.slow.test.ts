import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type RunningRegistry, seedDebian } from '../src/registry-server/index.ts';
import { type Finished, needProgram, run } from './helpers/processes.ts';
import { startRegistry } from './helpers/registry.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DIGEST = /sha256:[0-9a-f]{64}/;

/** A project of somebody else: our package as npm would install it, a compiler, and the example. */
let project: string;

beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), 'library-'));
  const env = { HOME: project, npm_config_cache: join(project, 'cache') };
  const packed = await run(needProgram('npm'), ['pack', '--pack-destination', project], { cwd: ROOT, env });
  if (packed.exitCode !== 0) throw new Error(packed.stderr);
  const [tarball = ''] = readdirSync(project).filter((file) => file.endsWith('.tgz'));
  await run(needProgram('tar'), ['-xzf', join(project, tarball), '-C', project]);
  mkdirSync(join(project, 'node_modules'));
  renameSync(join(project, 'package'), join(project, 'node_modules/manifest-publish'));
  writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

/** Compiles as strictly as one can. */
function compile(name: string, text: string): Promise<Finished> {
  writeFileSync(join(project, name), text);
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const strict = [
    '--strict',
    '--exactOptionalPropertyTypes',
    '--noUncheckedIndexedAccess',
    '--noPropertyAccessFromIndexSignature',
  ];
  const types = ['--typeRoots', join(ROOT, 'node_modules/@types'), '--types', 'node'];
  const args = [tsc, '--module', 'nodenext', '--target', 'es2023', '--outDir', project, ...strict, ...types, name];
  return run(process.execPath, args, { cwd: project });
}

/** The blocks of code of a page; each goes on where the one before it has ended. */
function blocksOf(page: string): readonly string[] {
  return [...readFileSync(join(ROOT, page), 'utf8').matchAll(/```ts\n(.*?)```/gs)].map(([, block = '']) => block);
}

describe('the library', () => {
  let registry: RunningRegistry;
  let target: string;
  let sources: readonly string[];

  beforeEach(async () => {
    registry = await startRegistry({ changes: { mount: { mode: 'ignore' } } });
    target = `${registry.host}/debian/debian:bullseye`;
    sources = seedDebian(registry).map((image) => `${registry.host}/${image.repository}:${image.tag}`);
  });
  afterEach(() => registry.close());

  const node = (args: readonly string[], env = {}) =>
    run(process.execPath, [...args], { cwd: project, env: { HOME: project, ...env } });

  it('examples/library.ts is compiled against the types of the package, and publishes', async () => {
    const compiled = await compile('library.ts', readFileSync(join(ROOT, 'examples/library.ts'), 'utf8'));
    expect(compiled.stdout).toBe('');

    const missing = await node(['library.js', target, ...sources], { EXPECT_PLATFORMS: 'linux/amd64' });
    expect(missing).toMatchObject({ exitCode: 4, stdout: '' });
    expect(missing.stderr).toMatch(/^PLATFORM_NOT_FOUND: /m);
    expect(registry.tagOf('debian/debian', 'bullseye')).toBeUndefined();

    const done = await node(['library.js', target, ...sources]);
    expect(done.stdout, done.stderr).toBe(`${registry.tagOf('debian/debian', 'bullseye')} 8\n`);
    expect(done.exitCode).toBe(0);
    expect(done.stderr).toContain('mounted 0, copied 40; ');
    expect(done.stderr).toContain(`created ${target}\n`);
    expect(registry.missingFrom('debian/debian', 'bullseye')).toEqual([]);
  });

  it('docs/library.md shows what compiles and runs', async () => {
    const [imports = '', ...blocks] = blocksOf('docs/library.md');
    expect(blocks.length).toBeGreaterThan(3);
    const program = [imports, ...blocks.map((block) => `{\n${block}}\n`)].join('\n');
    const compiled = await compile('page.ts', program.replaceAll('localhost:5000', registry.host));
    expect(compiled.stdout).toBe('');
    const done = await node(['page.js']);
    expect(done.stderr).toMatch(/^SOURCE_NOT_FOUND: /m);
    expect(done.stdout.trim().split('\n'), done.stderr).toEqual([
      expect.stringMatching(DIGEST),
      expect.stringMatching(/^\d+$/),
      registry.tagOf('debian/debian', 'latest'),
      'linux/amd64 linux/arm64/v8',
      'good',
    ]);
    expect(done.exitCode).toBe(0);
  });
});
