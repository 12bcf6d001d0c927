import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { installPlugin, PLUGIN_NAME, uninstallPlugin } from '../../src/cli/docker-plugin.ts';
import { cli, emptyFolder } from './program.ts';

let home: string;
let folder: string;
let path: string;

beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), 'docker-plugin-')));
  folder = join(home, '.docker/cli-plugins');
  path = join(folder, PLUGIN_NAME);
});

afterEach(() => rmSync(home, { recursive: true }));

/** A package in `node_modules`, and the program in it. */
function program(below: string, name = 'manifest-publish'): string {
  const root = join(home, below, 'node_modules', name);
  mkdirSync(join(root, 'bin'), { recursive: true });
  writeFileSync(join(root, 'package.json'), JSON.stringify({ name }));
  const file = join(root, 'bin/run.js');
  writeFileSync(file, '#!/usr/bin/env node\n');
  chmodSync(file, 0o755);
  return file;
}

const install = (file: string, force = false, platform = 'linux') =>
  installPlugin(file, folder, { platform, force, token: 'token' });

describe('docker-plugin install', () => {
  it('makes the folder and the link, and leaves nothing else', async () => {
    const file = program('global');
    expect(await install(file)).toBe('installed');
    expect(readlinkSync(path)).toBe(file);
    expect(readdirSync(folder)).toEqual([PLUGIN_NAME]);
    expect(await install(file)).toBe('unchanged');
  });

  it('takes the place of a link of ours, also of one that has lost its package', async () => {
    const [old, now] = [program('v20'), program('v22')];
    await install(old);
    expect(await install(now)).toBe('installed');
    expect(readlinkSync(path)).toBe(now);
    rmSync(dirname(dirname(now)), { recursive: true });
    expect(await install(old)).toBe('installed');
    expect(readlinkSync(path)).toBe(old);
  });

  it.each([
    ['a file', () => writeFileSync(path, 'theirs')],
    ['a link to something else', () => symlinkSync(program('other', 'other-plugin'), path)],
    ['a link to nothing that ever was ours', () => symlinkSync('/nowhere/docker-mpublish', path)],
  ])('leaves %s alone, unless it is forced', async (_, make) => {
    mkdirSync(folder, { recursive: true });
    make();
    const before = lstatSync(path).isSymbolicLink() ? readlinkSync(path) : readFileSync(path, 'utf8');
    const file = program('global');
    await expect(install(file)).rejects.toMatchObject({
      code: 'FILE_FAILED',
      hint: expect.stringContaining('--force'),
    });
    await expect(uninstallPlugin(file, folder, false)).rejects.toMatchObject({ code: 'FILE_FAILED' });
    expect(lstatSync(path).isSymbolicLink() ? readlinkSync(path) : readFileSync(path, 'utf8')).toBe(before);
    expect(await install(file, true)).toBe('installed');
    expect(readlinkSync(path)).toBe(file);
  });

  it.each(['.npm/_npx/0123456789abcdef', '.cache/pnpm/dlx-4711', 'tmp/xfs-1234/dlx-1'])(
    'refuses a link into a cache that vanishes: %s',
    async (cache) => {
      const error = { code: 'USAGE_INVALID', hint: expect.stringContaining('npm install -g manifest-publish') };
      await expect(install(program(cache))).rejects.toMatchObject(error);
      expect(existsSync(folder)).toBe(false);
    },
  );

  it('says that it is not for Windows', async () => {
    await expect(install(program('global'), false, 'win32')).rejects.toMatchObject({
      code: 'USAGE_INVALID',
      message: expect.stringContaining('Windows'),
    });
  });

  it('says what docker could not run, and what cannot be written', async () => {
    const file = program('global');
    chmodSync(file, 0o644);
    await expect(install(file)).rejects.toMatchObject({ hint: `Run chmod +x ${file}.` });
    chmodSync(file, 0o755);
    mkdirSync(dirname(folder), { recursive: true });
    writeFileSync(folder, '');
    const unwritable = { code: 'FILE_FAILED', hint: expect.stringContaining('--dir') };
    await expect(install(file)).rejects.toMatchObject(unwritable);
    rmSync(folder);
    mkdirSync(path, { recursive: true });
    await expect(install(file, true)).rejects.toMatchObject(unwritable);
    expect(readdirSync(folder)).toEqual([PLUGIN_NAME]);
  });

  it('takes away its link and nothing else', async () => {
    const file = program('global');
    expect(await uninstallPlugin(file, folder, false)).toBe('absent');
    await install(file);
    writeFileSync(join(folder, 'docker-other'), '');
    expect(await uninstallPlugin(file, folder, false)).toBe('removed');
    expect(readdirSync(folder)).toEqual(['docker-other']);
  });

  it('takes no empty name for the folder that we are in', async () => {
    const place = emptyFolder();
    const { exitCode, stdout, stderr } = await cli(place, ['docker-plugin', 'install', '--dir', '']);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toContain('--dir needs the name of a folder');
    expect(readdirSync(place)).not.toContain(PLUGIN_NAME);
  });
});
