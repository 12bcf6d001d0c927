import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seedDebian, startRegistry } from '../src/registry-server/index.ts';
import { needProgram, run } from './helpers/processes.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TARBALL_MOST = 500_000;

let folder: string;
let installed: string;
let tarball: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'package-'));
  const env = { HOME: folder, npm_config_cache: join(folder, 'cache') };
  const packed = await run(needProgram('npm'), ['pack', '--json', '--pack-destination', folder], { cwd: ROOT, env });
  if (packed.exitCode !== 0) throw new Error(packed.stderr);
  const [name = ''] = readdirSync(folder).filter((file) => file.endsWith('.tgz'));
  tarball = join(folder, name);
  // What npm install would do for a package without dependencies, and no more.
  await run(needProgram('tar'), ['-xzf', tarball, '-C', folder]);
  installed = join(folder, 'package');
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What only those read who work on the program: in the repository, not in the package. */
const FOR_MAINTAINERS = [
  ...['architecture', 'bench', 'commands', 'compare', 'conformance', 'mutation', 'performance', 'reliability'].map(
    (name) => `docs/${name}.md`,
  ),
  'docs/decisions',
  'docs/recordings/publish.svg',
  'examples/README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
];

const manifest = (): Record<string, unknown> => JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));

describe('the package', () => {
  it(`is at most ${TARBALL_MOST} bytes`, () => {
    expect(statSync(tarball).size).toBeLessThanOrEqual(TARBALL_MOST);
  });

  it('has no runtime dependencies and no install scripts', () => {
    const { dependencies = {}, optionalDependencies = {}, peerDependencies = {}, scripts } = manifest();
    expect({ dependencies, optionalDependencies, peerDependencies }).toEqual({
      dependencies: {},
      optionalDependencies: {},
      peerDependencies: {},
    });
    expect(
      Object.keys(scripts as object).filter((name) => /^(?:pre|post)?install$|^(?:pre|post)?prepare$/.test(name)),
    ).toEqual([]);
  });

  it('holds what it needs and nothing else', () => {
    expect(readdirSync(installed).sort()).toEqual(
      ['LICENSE', 'README.md', 'SECURITY.md', 'THIRD_PARTY_NOTICES', 'bin', 'docs', 'lib', 'package.json'].filter(
        (name) => name !== 'README.md' || readdirSync(ROOT).includes(name),
      ),
    );
    const readme = readFileSync(join(installed, 'README.md'), 'utf8');
    for (const [, link = ''] of readme.matchAll(/\]\(([^):#]+)[^)]*\)/g)) {
      expect(existsSync(join(ROOT, link)), link).toBe(true);
      expect(existsSync(join(installed, link)), link).toBe(!FOR_MAINTAINERS.includes(link));
    }
    expect(readme).toContain(`./manifest-publish-${manifest()['version']}.tgz`);
    expect(readFileSync(join(installed, 'LICENSE'), 'utf8')).toContain('Apache License');
  });

  it('names the licence of every package in the bundle', () => {
    const notices = readFileSync(join(installed, 'THIRD_PARTY_NOTICES'), 'utf8');
    for (const name of ['@oclif/core', 'undici', 'listr2', 'ora', 'cosmiconfig', 'valibot', 'yaml']) {
      expect(notices).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\((?:MIT|ISC)\\)$`, 'm'));
    }
  });

  it('bundles no compiler and no parser that is not used', () => {
    for (const file of readdirSync(join(installed, 'lib'), { recursive: true, encoding: 'utf8' })) {
      const path = join(installed, 'lib', file);
      if (!statSync(path).isFile()) continue;
      expect(statSync(path).size, file).toBeLessThan(600_000);
      expect(readFileSync(path, 'utf8'), file).not.toMatch(/createSourceFile|safeLoadAll|parseJsonWithComments/);
    }
  });
});

describe('bin/run.js', () => {
  it('answers version and help without the program', async () => {
    const bare = join(folder, 'bare');
    mkdirSync(join(bare, 'lib'), { recursive: true });
    cpSync(join(installed, 'bin'), join(bare, 'bin'), { recursive: true });
    cpSync(join(installed, 'lib/help.json'), join(bare, 'lib/help.json'));
    for (const args of [['--version'], ['--help'], [], ['publish', '--help'], ['registry', 'serve', '-h']]) {
      const { exitCode, stderr } = await run(process.execPath, [join(bare, 'bin/run.js'), ...args]);
      expect({ exitCode, stderr }, args.join(' ')).toEqual({ exitCode: 0, stderr: '' });
    }
  });

  it('says how to build what is not built', async () => {
    const bare = join(folder, 'unbuilt');
    cpSync(join(installed, 'bin'), join(bare, 'bin'), { recursive: true });
    const { exitCode, stdout, stderr } = await run(process.execPath, [join(bare, 'bin/run.js'), '--version']);
    expect(stderr).toContain('manifest-publish is not built');
    expect(stderr).toContain('npm ci && npm run build');
    expect({ exitCode, stdout }).toEqual({ exitCode: 8, stdout: '' });
  });

  it('publishes from the package alone: the parts of undici that are bundled by their paths work', async () => {
    const registry = await startRegistry({ changes: { mount: { mode: 'ignore' } } });
    try {
      const sources = seedDebian(registry).map((image) => `${registry.host}/${image.repository}:${image.tag}`);
      const args = ['publish', `${registry.host}/debian/debian:bullseye`, ...sources];
      const home = join(folder, 'home');
      mkdirSync(home, { recursive: true });
      const { exitCode, stdout, stderr } = await run(process.execPath, [join(installed, 'bin/run.js'), ...args], {
        cwd: home,
        env: { HOME: home },
      });
      expect(exitCode, stderr).toBe(0);
      expect(stdout).toBe(`${registry.tagOf('debian/debian', 'bullseye')}\n`);
      expect(registry.missingFrom('debian/debian', 'bullseye')).toEqual([]);
    } finally {
      await registry.close();
    }
  });
});

describe('the library door', () => {
  it('can be imported and required', async () => {
    const home = join(folder, 'consumer');
    mkdirSync(join(home, 'node_modules'), { recursive: true });
    cpSync(installed, join(home, 'node_modules/manifest-publish'), { recursive: true });
    const names = '["PublishError","inspect","planPublish","publish","verify"]';
    const imported = await run(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        'console.log(JSON.stringify(Object.keys(await import("manifest-publish")).filter((n) => n !== "default" && n !== "module.exports").sort()))',
      ],
      { cwd: home },
    );
    expect(imported.stdout.trim()).toBe(names);
    const required = await run(
      process.execPath,
      ['-e', 'console.log(JSON.stringify(Object.keys(require("manifest-publish")).sort()))'],
      { cwd: home },
    );
    expect(required.stdout.trim()).toBe(names);
  });

  it('does what the README shows', async () => {
    const [, example = ''] = /```js\n(.*?)```/s.exec(readFileSync(join(installed, 'README.md'), 'utf8')) ?? [];
    const home = join(folder, 'consumer');
    const registry = await startRegistry();
    const shown = () =>
      run(process.execPath, ['--input-type=module', '-e', example.replaceAll('localhost:5000', registry.host)], {
        cwd: home,
        env: { HOME: home },
      });
    try {
      expect((await shown()).stderr).toMatch(/^SOURCE_NOT_FOUND: /);
      seedDebian(registry);
      const { stdout, stderr } = await shown();
      expect(stdout, stderr).toBe(`${registry.tagOf('debian/debian', 'bullseye')}\n`);
    } finally {
      await registry.close();
    }
  });

  it('has types that hold without our sources', async () => {
    const home = join(folder, 'consumer');
    writeFileSync(
      join(home, 'use.ts'),
      `import { type PublishReport, publish } from 'manifest-publish';
       export const ok: Promise<PublishReport> = publish({ target: 'a/b:1', sources: ['c/d:1'] });
       // @ts-expect-error a target is needed
       export const bad = publish({ sources: [] });`,
    );
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const flags = [
      '--noEmit',
      '--strict',
      '--module',
      'nodenext',
      '--typeRoots',
      join(ROOT, 'node_modules/@types'),
      '--types',
      'node',
    ];
    const { exitCode, stdout } = await run(process.execPath, [tsc, ...flags, join(home, 'use.ts')], { cwd: home });
    expect(stdout).toBe('');
    expect(exitCode).toBe(0);
  });
});

describe('the bill of materials', () => {
  it('names our version and every package that the notices name', async () => {
    const { stdout } = await run(needProgram('node'), ['scripts/run-ts.js', 'scripts/sbom.ts'], { cwd: ROOT });
    const { packages, relationships } = JSON.parse(stdout) as {
      readonly packages: readonly { readonly name: string; readonly versionInfo: string }[];
      readonly relationships: readonly unknown[];
    };
    const notices = readFileSync(join(ROOT, 'THIRD_PARTY_NOTICES'), 'utf8');
    const named = [...notices.matchAll(/^-{80}\n(\S+ \S+) \(/gm)].map(([, title]) => title);
    const { name, version } = manifest();
    expect(packages.map((each) => `${each.name} ${each.versionInfo}`)).toEqual([`${name} ${version}`, ...named]);
    expect(relationships).toHaveLength(packages.length);
  });
});
