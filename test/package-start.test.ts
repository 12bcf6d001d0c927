import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import nodeModule from 'node:module';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seedDebian, startRegistry } from '../src/registry-server/index.ts';
import { run } from './helpers/processes.ts';

// What a start costs, in what can be counted: `npm run bench:start` has the milliseconds, which no busy machine can
// promise. More files, more bytes or more of Node's own modules is what made it slow before.

const PROGRAM = fileURLToPath(new URL('../bin/run.js', import.meta.url));
const DONE = { exitCode: 0, stderr: '' };

let folder: string;
let hook: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'start-'));
  hook = join(folder, 'hook.cjs');
  writeFileSync(
    hook,
    `const { cachedDataVersionTag } = require('node:v8');
     const flags = cachedDataVersionTag();
     const before = new Set(process.moduleLoadList);
     process.on('exit', () => {
       const node = process.moduleLoadList.filter((name) => name.startsWith('NativeModule ') && !before.has(name));
       const loaded = {
         files: Object.keys(require.cache).slice(1),
         node: node.map((name) => name.slice(13)),
         sameFlags: cachedDataVersionTag() === flags,
       };
       require('node:fs').writeFileSync(process.env.LOADED, JSON.stringify(loaded));
     });`,
  );
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Started = {
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
  /** Names of the files of the program that were loaded, without what the bundler puts behind them. */
  readonly files: readonly string[];
  readonly bytes: number;
  /** Modules of Node that were loaded besides. */
  readonly node: readonly string[];
  /** Those of V8 are as they were: they are a part of the key of compiled code that is kept. */
  readonly sameFlags: boolean;
};

async function start(args: readonly string[], program: string = PROGRAM): Promise<Started> {
  const list = join(folder, 'loaded.json');
  const home = join(folder, 'home');
  mkdirSync(home, { recursive: true });
  const { exitCode, stdout, stderr } = await run(process.execPath, ['--require', hook, program, ...args], {
    cwd: home,
    env: { HOME: home, LOADED: list },
  });
  const loaded: Pick<Started, 'files' | 'node' | 'sameFlags'> = JSON.parse(readFileSync(list, 'utf8'));
  return {
    ...{ exitCode, stdout, stderr },
    files: loaded.files.map((file) => basename(file).replace(/-[\w-]{8}(?=\.cjs$)/, '')).sort(),
    bytes: loaded.files.reduce((sum, file) => sum + statSync(file).size, 0),
    node: loaded.node,
    sameFlags: loaded.sameFlags,
  };
}

describe('what is answered without the program', () => {
  it.each([
    [['--version']],
    [['--help']],
    [['publish', '--help']],
    [['docker-cli-plugin-metadata']],
    [['completion', 'bash']],
    [['mpublish', 'help', 'push']],
  ])('%j loads one file, and nothing more of Node', async (args) => {
    const { exitCode, stderr, files, node } = await start(args);
    expect({ exitCode, stderr, files, node }).toEqual({ ...DONE, files: ['run.js'], node: [] });
  });
});

describe('a publish', () => {
  const PARTS = ['cli.cjs', 'core.cjs', 'engine.cjs', 'program.cjs', 'rolldown-runtime.cjs', 'run.js'];

  it('is loaded in six files, and opens no layout, spec, helper or proxy that it does not need', async () => {
    const registry = await startRegistry({ changes: { mount: { mode: 'ignore' } } });
    try {
      const sources = seedDebian(registry).map((image) => `${registry.host}/${image.repository}:${image.tag}`);
      const { exitCode, stderr, stdout, files, bytes, node, sameFlags } = await start([
        'publish',
        '--quiet',
        `${registry.host}/debian/debian:bullseye`,
        ...sources,
      ]);
      expect({ exitCode, stderr, stdout }).toEqual({
        ...DONE,
        stdout: `${registry.tagOf('debian/debian', 'bullseye')}\n`,
      });
      expect(files).toEqual(PARTS);
      expect(bytes).toBeLessThan(620_000);
      expect(node.filter((name) => /^(?:child_process|http2|https|worker_threads|zlib)$/.test(name))).toEqual([]);
      expect(node.length).toBeLessThan(100);
      expect(sameFlags).toBe(true);
    } finally {
      await registry.close();
    }
  });

  it('that is written wrongly loads no network', async () => {
    const { exitCode, files, node } = await start(['publish', '--nosuch']);
    expect({ exitCode, files }).toEqual({ exitCode: 2, files: PARTS.filter((file) => file !== 'engine.cjs') });
    expect(node).not.toContain('http');
  });
});

describe('what comes after a -- is no command, so that', () => {
  it('nobody is told that all is well for something that was not done', async () => {
    const { exitCode, stdout, stderr } = await start(['--', 'publish', 'localhost:1/a:v1', 'localhost:1/b:v1']);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toContain('USAGE_INVALID');
  });
});

/** Only root can make a folder of somebody else's. */
const isRoot = process.getuid?.() === 0;
describe.runIf('enableCompileCache' in nodeModule && isRoot)('compiled code, which runs with our rights,', () => {
  const LOGIN_OF_ANOTHER = 12_345;
  const inHome = (name: string): string => {
    const home = join(folder, name);
    mkdirSync(home, { recursive: true });
    return home;
  };
  const startIn = (home: string) => run(process.execPath, [PROGRAM, 'ls'], { cwd: home, env: { HOME: home } });

  it('is kept in a folder of ours', async () => {
    const home = inHome('own');
    await startIn(home);
    expect(readdirSync(join(home, '.cache', 'manifest-publish'))).not.toEqual([]);
  });

  it.each([
    ['belongs to another user', (kept: string) => chownSync(kept, LOGIN_OF_ANOTHER, LOGIN_OF_ANOTHER)],
    ['others may write to', (kept: string) => chmodSync(kept, 0o777)],
  ])('is neither kept nor taken where the folder %s', async (_what, change) => {
    const home = inHome(_what);
    const kept = join(home, '.cache', 'manifest-publish');
    mkdirSync(kept, { recursive: true });
    change(kept);
    expect((await startIn(home)).exitCode).toBe(0);
    expect(readdirSync(kept)).toEqual([]);
  });

  it('makes no folder in the home of another user', async () => {
    const home = inHome('sudo');
    chownSync(home, LOGIN_OF_ANOTHER, LOGIN_OF_ANOTHER);
    await startIn(home);
    expect(existsSync(join(home, '.cache'))).toBe(false);
  });
});

describe('flags of V8', () => {
  const HTTP = "require('node:http').createServer((_, answer) => answer.end()).listen(0, '127.0.0.1', ";
  const NOTE = "const set = []; require('node:v8').setFlagsFromString = (flag) => set.push(flag);";
  const LIBRARY = fileURLToPath(new URL('../lib/index.cjs', import.meta.url));

  it('are not touched in the process of whoever uses the library', async () => {
    const script = `${NOTE} const { inspect } = require(${JSON.stringify(LIBRARY)});
      const server = ${HTTP} async () => {
        const { code } = await inspect('127.0.0.1:' + server.address().port + '/acme/app:v1').catch((error) => error);
        console.log(JSON.stringify({ code, set }));
        server.close();
      });`;
    const { stdout, stderr } = await run(process.execPath, ['-e', script], { cwd: folder, env: { HOME: folder } });
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual({ code: expect.stringMatching(/^[A-Z_]+$/), set: [] });
  });

  it('are set for the parser in our own, and put back', async () => {
    const noting = join(folder, 'noting.cjs');
    writeFileSync(noting, `${NOTE} process.on('exit', () => process.stdout.write(JSON.stringify(set)));`);
    const registry = await startRegistry();
    const words = ['--require', noting, PROGRAM, 'verify', '-q', `${registry.host}/acme/app:v1`];
    const { stdout } = await run(process.execPath, words, { cwd: folder, env: { HOME: folder } });
    await registry.close();
    expect(JSON.parse(stdout)).toEqual([
      '--wasm-tiering-budget=1000000000',
      expect.stringMatching(/^--wasm-tiering-budget=\d+$/),
    ]);
  });
});

describe('as a plugin of docker', () => {
  it('it says what docker asks of one', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
    const { stdout } = await start(['docker-cli-plugin-metadata']);
    expect(JSON.parse(stdout)).toMatchObject({
      SchemaVersion: '0.1.0',
      Vendor: 'manifest-publish',
      Version: version,
      ShortDescription: expect.stringMatching(/^[A-Z].{20,79}$/),
    });
  });

  it.each([
    [
      ['mpublish', 'push', '--help'],
      ['push', '--help'],
    ],
    [
      ['help', 'mpublish', 'push'],
      ['help', 'push'],
    ],
    [['mpublish', '--help'], ['--help']],
    [['mpublish'], []],
    [
      ['--context', 'far', '-H=tcp://far', '--tls', 'mpublish', 'push', '-h'],
      ['push', '-h'],
    ],
  ])('%j is %j, under the name that docker has for it', async (called, own) => {
    const plugin = await start(called);
    const alone = await start(own);
    expect(plugin.stdout).toMatch(/^ {2}\$ docker mpublish (?:push|\[COMMAND\])/m);
    expect(plugin.stdout).not.toMatch(/\$ manifest-publish/);
    expect(plugin.stdout.replaceAll('docker mpublish', 'manifest-publish')).toBe(
      alone.stdout.replaceAll('docker mpublish', 'manifest-publish'),
    );
    expect(plugin.exitCode).toBe(0);
  });

  it('it runs commands, and takes the folder of docker and its --debug as docker means them', async () => {
    const docker = join(folder, 'docker');
    const words = ['mpublish', 'docker-plugin', 'install'];
    const link = join(docker, 'cli-plugins', 'docker-mpublish');
    for (const config of [['--config', docker], [`--config=${docker}`]]) {
      expect(await start([...config, '--debug', ...words])).toMatchObject({ exitCode: 0, stdout: `${link}\n` });
    }
    expect((await start(['push', '--help'], link)).stdout).toContain('$ docker mpublish push');
  });

  it('a word mpublish that is no name of a plugin stays what it is', async () => {
    const { stderr } = await start(['rm', 'mpublish']);
    expect(stderr).toContain('mpublish');
  });
});
