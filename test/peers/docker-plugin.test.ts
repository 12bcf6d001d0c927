import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seedDebian, startRegistry } from '../../src/registry-server/index.ts';
import { type ExternalRegistry, makeFolder, PEER_USER, startDebianRegistry } from '../helpers/external-registry.ts';
import { type Finished, needProgram, run } from '../helpers/processes.ts';
import { BIN, judged } from '../helpers/program.ts';
import { debianSources, makeIndex } from './images.ts';
import { withPeers } from './lane.ts';
import { DOCKER } from './manifest-clients.ts';
import { lastWords, makeHome } from './publish-command.ts';
import { digestOfTag, missingIn, pushSource } from './registry-access.ts';

const SOURCES = debianSources();
const IMAGES = SOURCES.flatMap((source) => source.images);
const INDEX = makeIndex(IMAGES.map(({ entry }) => entry)).digest;

/** What a user types after `docker`, with the real client and Debian's registry, which wants a login. */
withPeers([DOCKER, 'docker-registry'], 'docker mpublish', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  let inside: ExternalRegistry;
  let registry: ExternalRegistry;
  let home: string;
  let references: readonly string[];

  beforeAll(async () => {
    folder = await makeFolder();
    inside = await startDebianRegistry(folder.path);
    for (const source of SOURCES) await pushSource(inside.host, source);
    registry = await startDebianRegistry(folder.path, { auth: { kind: 'basic', user: PEER_USER } });
    references = SOURCES.map(({ repository, tag }) => `${registry.host}/${repository}:${tag}`);
    home = await makeHome(folder.path, [{ host: registry.host, ...PEER_USER }]);
    const installed = await run(process.execPath, [BIN, 'docker-plugin', 'install'], { cwd: home, env: environment() });
    expect(installed, lastWords(installed)).toMatchObject({ exitCode: 0, stdout: `${pluginAt(home)}\n` });
  });
  afterAll(async () => {
    await registry?.stop();
    await inside?.stop();
    await folder.remove();
  });

  const pluginAt = (at: string) => join(at, '.docker/cli-plugins/docker-mpublish');
  const environment = () => ({ HOME: home, DOCKER_CONFIG: join(home, '.docker') });

  function docker(words: readonly string[], env: Readonly<Record<string, string>> = environment()): Promise<Finished> {
    const work = () => run(needProgram('docker'), words, { cwd: home, env });
    return judged(work, { words, folder: home });
  }

  async function did(...words: readonly string[]): Promise<string> {
    const done = await docker(words);
    expect(done.exitCode, lastWords(done)).toBe(0);
    return done.stdout;
  }

  it('is a link to the program, and one of the commands that docker lists', async () => {
    expect(readlinkSync(pluginAt(home))).toBe(BIN);
    expect(await did('--help')).toMatch(
      /^ {2}mpublish\* +Publish multi-arch images from per-architecture repositories$/m,
    );
  });

  it.each([
    ['mpublish', 'publish', '--help'],
    ['help', 'mpublish', 'publish'],
  ])('%s %s %s tells how to type it', async (...words) => {
    const help = await did(...words);
    expect(help).toContain('$ docker mpublish publish');
    expect(help).not.toContain('$ manifest-publish');
  });

  it('publishes with the login of docker', async () => {
    const target = `${registry.host}/debian/plugin`;
    expect(await did('mpublish', 'publish', `${target}:bullseye`, ...references)).toBe(`${INDEX}\n`);
    expect(await digestOfTag(inside.host, 'debian/plugin', 'bullseye')).toBe(INDEX);
    expect(await missingIn(inside.host, 'debian/plugin', IMAGES)).toEqual([]);
    expect(await did('mpublish', 'inspect', '--digest', `${target}:bullseye`)).toBe(`${INDEX}\n`);
  });

  it('does what docker manifest does: create, annotate, inspect, push, rm', async () => {
    const list = `${registry.host}/debian/steps:bullseye`;
    expect(await did('mpublish', 'create', list, ...references.slice(0, 2))).toBe(`Created manifest list ${list}\n`);
    await did('mpublish', 'annotate', list, references[0] ?? '', '--os-version', '11');
    expect(JSON.parse(await did('mpublish', 'inspect', list))).toMatchObject({
      manifests: [{ platform: { 'os.version': '11' } }, {}],
    });
    const pushed = await did('mpublish', 'push', '--purge', list);
    expect(await digestOfTag(inside.host, 'debian/steps', 'bullseye')).toBe(pushed.trim().split('\n').at(-1));
    expect(await docker(['mpublish', 'rm', list])).toMatchObject({ exitCode: 4 });
  });

  it('ends with our exit codes, and hints at what can be typed', async () => {
    const done = await docker(['mpublish', 'push', `${registry.host}/debian/none:1`]);
    expect(done).toMatchObject({ exitCode: 4, stdout: '' });
    expect(done.stderr).toContain('hint: Make it with docker mpublish create ');
  });

  it("takes docker's own flags: --config is the folder of its settings, --debug shows the requests", async () => {
    const other = await makeHome(folder.path);
    const env = { HOME: other };
    const words = ['mpublish', 'inspect', '--digest', references[0] ?? ''];
    expect((await docker(['--config', join(home, '.docker'), ...words], env)).exitCode).toBe(0);
    await run(process.execPath, [BIN, 'docker-plugin', 'install'], { cwd: other, env });
    expect((await docker(words, env)).exitCode).toBe(3);
    expect((await docker(['--debug', '-l', 'error', ...words])).stderr).toMatch(/^GET http:\/\/\S+ 200 /m);
  });

  describe('that is stopped', () => {
    it.each([
      ['docker alone, with SIGTERM', 'SIGTERM', false, 143],
      ['docker alone, with SIGINT', 'SIGINT', false, 143],
      ['both, as a terminal does on Ctrl-C', 'SIGINT', true, 130],
    ] as const)('%s, cancels its sessions and moves no tag', async (_, signal, group, exitCode) => {
      const slow = await startRegistry({ changes: { mount: { mode: 'ignore' }, upload: { commit: 'slow(60000)' } } });
      try {
        const sources = seedDebian(slow).map((image) => `${slow.host}/${image.repository}:${image.tag}`);
        const words = ['mpublish', 'publish', `${slow.host}/debian/debian:bullseye`, ...sources];
        const env = { PATH: process.env['PATH'] ?? '', ...environment() };
        const child = spawn(needProgram('docker'), words, {
          cwd: home,
          env,
          detached: true,
          stdio: ['ignore', 'pipe', 'pipe'],
        });
        let told = '';
        child.stderr.on('data', (piece) => {
          told += piece;
        });
        const closed = once(child, 'close');
        while (!slow.journal.some(({ method }) => method === 'PUT')) await sleep(10);
        process.kill(group ? -(child.pid ?? 0) : (child.pid ?? 0), signal);
        const [code] = await closed;
        expect({ code, told }).toEqual({ code: exitCode, told: expect.stringContaining('no tag was moved') });
        expect(slow.openSessions('debian/debian')).toBe(0);
        expect(slow.tagOf('debian/debian', 'bullseye')).toBeUndefined();
      } finally {
        await slow.close();
      }
    });
  });
});
