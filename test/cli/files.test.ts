import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { withOutputFiles } from '../../src/cli/files.ts';
import { emptyFolder } from './program.ts';

const text = (result: string) => `${result}\n`;

describe('a folder that a test asks for', () => {
  let asked = '';

  it('is there while it runs', async () => {
    asked = emptyFolder();
    expect((await stat(asked)).isDirectory()).toBe(true);
  });

  it('and gone afterwards', async () => {
    await expect(stat(asked)).rejects.toThrow('ENOENT');
  });
});

describe('output files', () => {
  it('are put in place after the work, and nothing else stays', async () => {
    const folder = emptyFolder();
    const path = join(folder, 'digest');
    const result = await withOutputFiles([{ flag: '--digest-file', path, text }], async () => {
      await expect(stat(path)).rejects.toThrow('ENOENT');
      return 'done';
    });
    expect(result).toBe('done');
    expect(await readFile(path, 'utf8')).toBe('done\n');
    expect(await readdir(folder)).toEqual(['digest']);
  });

  it('keep their old content when the work fails', async () => {
    const folder = emptyFolder();
    const path = join(folder, 'digest');
    await writeFile(path, 'old');
    const failed = withOutputFiles([{ flag: '--digest-file', path, text }], () => Promise.reject(new Error('no')));
    await expect(failed).rejects.toThrow('no');
    expect(await readFile(path, 'utf8')).toBe('old');
    expect(await readdir(folder)).toEqual(['digest']);
  });

  it('keep the rights of the file they replace, and follow a link to it', async () => {
    const folder = emptyFolder();
    await writeFile(join(folder, 'real'), 'old');
    await chmod(join(folder, 'real'), 0o600);
    await symlink('real', join(folder, 'link'));
    await withOutputFiles([{ flag: '--report', path: join(folder, 'link'), text }], async () => 'new');
    expect(await readFile(join(folder, 'real'), 'utf8')).toBe('new\n');
    expect((await stat(join(folder, 'real'))).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['in a folder that is missing', 'missing/digest', 'ENOENT'],
    ['that are folders', 'folder', 'it is a folder'],
    ['below a file', 'file/digest', 'ENOTDIR'],
  ])('%s end the run before the work', async (_, name, reason) => {
    const folder = emptyFolder();
    await mkdir(join(folder, 'folder'));
    await writeFile(join(folder, 'file'), '');
    let worked = false;
    const first = { flag: '--report', path: join(folder, 'report'), text };
    const failed = withOutputFiles([first, { flag: '--digest-file', path: join(folder, name), text }], async () => {
      worked = true;
      return '';
    });
    await expect(failed).rejects.toMatchObject({ code: 'FILE_FAILED', exitCode: 8 });
    await expect(failed).rejects.toThrow('--digest-file');
    await expect(failed).rejects.toThrow(reason);
    expect(worked).toBe(false);
    expect((await readdir(folder)).sort()).toEqual(['file', 'folder']);
  });

  it('may be devices', async () => {
    await withOutputFiles([{ flag: '--report', path: '/dev/null', text }], async () => 'gone');
    expect((await stat('/dev/null')).isCharacterDevice()).toBe(true);
  });
});
