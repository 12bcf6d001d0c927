import { chmod, link, lstat, mkdir, open, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type FileWorld, type WantedFile, withOutputFiles } from '../../src/cli/files.ts';
import { run } from '../helpers/processes.ts';
import { emptyFolder } from './program.ts';

const text = (result: string) => `${result}\n`;

/** What went to stdout and stderr, and time that passes at once. */
function fileWorld(): FileWorld & { readonly printed: string[]; readonly slept: number[] } {
  const printed: string[] = [];
  const slept: number[] = [];
  return {
    pid: process.pid,
    print: async (content, to) => void printed.push(`${to}: ${content}`),
    conceal: (content) => content.replaceAll('hunter2', '***'),
    sleep: async (milliseconds) => {
      slept.push(milliseconds);
      await new Promise((resolve) => setImmediate(resolve));
    },
    signal: new AbortController().signal,
    printed,
    slept,
  };
}

function written<T>(wanted: readonly WantedFile<T>[], work: () => Promise<T>, world = fileWorld()): Promise<T> {
  return withOutputFiles(wanted, world, work);
}

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
    const result = await written([{ flag: '--digest-file', path, text }], async () => {
      await expect(stat(path)).rejects.toThrow('ENOENT');
      return 'done';
    });
    expect(result).toBe('done');
    expect(await readFile(path, 'utf8')).toBe('done\n');
    expect(await readdir(folder)).toEqual(['digest']);
  });

  it('that would be taken for those of a run that is killed go before the work; others stay until then', async () => {
    const folder = emptyFolder();
    const [report, digest] = [join(folder, 'report'), join(folder, 'digest')];
    for (const path of [report, digest]) await writeFile(path, 'old');
    const wanted = [
      { flag: '--report', path: report, text, outdated: true },
      { flag: '--digest-file', path: digest, text },
    ];
    const work = written(wanted, async () => {
      expect((await readdir(folder)).filter((name) => !name.startsWith('.'))).toEqual(['digest']);
      throw new Error('stopped');
    });
    await expect(work).rejects.toThrow('stopped');
    expect(await readdir(folder)).toEqual(['digest']);
    await writeFile(report, 'old');
    const unfit = written(
      [...wanted, { flag: '--metadata-file', path: join(folder, 'no', 'x'), text }],
      async () => '',
    );
    await expect(unfit).rejects.toMatchObject({ code: 'FILE_FAILED' });
    expect(await readFile(report, 'utf8')).toBe('old');
  });

  it('need a name', async () => {
    const failed = written([{ flag: '--report', path: '', text }], async () => '');
    await expect(failed).rejects.toMatchObject({ exitCode: 2, message: '--report needs the name of a file' });
  });

  it.each(['file', 'descriptor'])('tell no secret: %s', async (kind) => {
    const folder = emptyFolder();
    const path = join(folder, 'report');
    const handle = await open(path, 'w');
    const name = kind === 'file' ? path : `/dev/fd/${handle.fd}`;
    await written([{ flag: '--report', path: name, text }], async () => 'linux/hunter2');
    await handle.close();
    expect(await readFile(path, 'utf8')).toBe('linux/***\n');
  });

  it('keep their old content when the work fails', async () => {
    const folder = emptyFolder();
    const path = join(folder, 'digest');
    await writeFile(path, 'old');
    const failed = written([{ flag: '--digest-file', path, text }], () => Promise.reject(new Error('no')));
    await expect(failed).rejects.toThrow('no');
    expect(await readFile(path, 'utf8')).toBe('old');
    expect(await readdir(folder)).toEqual(['digest']);
  });

  it('keep the rights of the file they replace, and follow a link to it', async () => {
    const folder = emptyFolder();
    await writeFile(join(folder, 'real'), 'old');
    await chmod(join(folder, 'real'), 0o600);
    await symlink('real', join(folder, 'link'));
    await written([{ flag: '--report', path: join(folder, 'link'), text }], async () => 'new');
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
    const failed = written([first, { flag: '--digest-file', path: join(folder, name), text }], async () => {
      worked = true;
      return '';
    });
    await expect(failed).rejects.toMatchObject({ code: 'FILE_FAILED', exitCode: 8 });
    await expect(failed).rejects.toThrow('--digest-file');
    await expect(failed).rejects.toThrow(reason);
    expect(worked).toBe(false);
    expect((await readdir(folder)).sort()).toEqual(['file', 'folder']);
  });

  it('create what a link without an end leads to, and keep the link', async () => {
    const folder = emptyFolder();
    await mkdir(join(folder, 'real'));
    await symlink('real/digest', join(folder, 'near'));
    await symlink(join(folder, 'near'), join(folder, 'link'));
    await written([{ flag: '--digest-file', path: join(folder, 'link'), text }], async () => 'new');
    expect((await lstat(join(folder, 'link'))).isSymbolicLink()).toBe(true);
    expect((await lstat(join(folder, 'near'))).isSymbolicLink()).toBe(true);
    expect(await readFile(join(folder, 'real/digest'), 'utf8')).toBe('new\n');
    expect(await readdir(join(folder, 'real'))).toEqual(['digest']);
  });

  it('are refused where a link leads to itself', async () => {
    const folder = emptyFolder();
    await symlink('loop', join(folder, 'loop'));
    const failed = written([{ flag: '--report', path: join(folder, 'loop'), text }], async () => 'new');
    await expect(failed).rejects.toThrow('loop (ELOOP)');
    expect((await lstat(join(folder, 'loop'))).isSymbolicLink()).toBe(true);
  });

  it.each(['/dev/stdout', '/dev/fd/1', '/proc/self/fd/1', `/proc/${process.pid}/fd/1`, 'link'])(
    'go to stdout itself by the name of %s',
    async (name) => {
      const folder = emptyFolder();
      await symlink('/dev/stdout', join(folder, 'link'));
      const world = fileWorld();
      const path = name === 'link' ? join(folder, name) : name;
      await written([{ flag: '--report', path, text }], async () => 'new', world);
      expect(world.printed).toEqual(['stdout: new\n']);
    },
  );

  it('go to another descriptor where it stands, and the file behind it is not replaced', async () => {
    const folder = emptyFolder();
    const log = await open(join(folder, 'log'), 'w');
    await log.write('before\n');
    const path = `/dev/fd/${log.fd}`;
    await written([{ flag: '--report', path, text }], async () => 'new');
    await log.write('after\n');
    await log.close();
    expect(await readFile(join(folder, 'log'), 'utf8')).toBe('before\nnew\nafter\n');
    expect(await readdir(folder)).toEqual(['log']);
  });

  it.each([
    ['stdin', '/dev/stdin', 'it is for reading'],
    ['a descriptor that is not open', '/dev/fd/9999', 'EBADF'],
    ['what another process has open', `/proc/${process.ppid}/fd/1`, 'another process'],
  ])('cannot be %s', async (_, path, reason) => {
    const failed = written([{ flag: '--report', path, text }], async () => 'new');
    await expect(failed).rejects.toMatchObject({ code: 'FILE_FAILED' });
    await expect(failed).rejects.toThrow(reason);
  });

  it('may be a pipe that is read', async () => {
    const path = join(emptyFolder(), 'pipe');
    await run('mkfifo', [path]);
    // More than a pipe holds, so that writing has to wait for the reader.
    const long = 'x'.repeat(300_000);
    const read = run('cat', [path]);
    await written([{ flag: '--report', path, text }], async () => long);
    expect((await read).stdout).toBe(`${long}\n`);
  });

  it('end the run before the work where nobody reads the pipe, and not for ever after', async () => {
    const path = join(emptyFolder(), 'pipe');
    await run('mkfifo', [path]);
    const world = fileWorld();
    let worked = false;
    const failed = written(
      [{ flag: '--report', path, text }],
      async () => {
        worked = true;
        return '';
      },
      world,
    );
    await expect(failed).rejects.toMatchObject({ code: 'FILE_FAILED' });
    await expect(failed).rejects.toThrow('nobody reads the pipe');
    expect(world.slept.reduce((sum, each) => sum + each, 0)).toBe(2000);
    expect(worked).toBe(false);
  });

  it('wait for a reader of a pipe no longer than the run is to last', async () => {
    const path = join(emptyFolder(), 'pipe');
    await run('mkfifo', [path]);
    const reason = new Error('interrupted');
    const world = { ...fileWorld(), signal: AbortSignal.abort(reason), sleep: () => Promise.reject(reason) };
    await expect(written([{ flag: '--report', path, text }], async () => '', world)).rejects.toBe(reason);
  });

  it('are all written though one of them fails', async () => {
    const folder = emptyFolder();
    const path = join(folder, 'digest');
    const full = { flag: '--report', path: '/dev/full', text };
    const failed = written([full, { flag: '--digest-file', path, text }], async () => 'done');
    await expect(failed).rejects.toThrow('cannot write the file of --report: /dev/full (ENOSPC)');
    await expect(failed).rejects.toMatchObject({ exitCode: 8 });
    expect(await readFile(path, 'utf8')).toBe('done\n');
  });

  it.each([
    ['the same name', 'real', 'real'],
    ['a link', 'real', 'link'],
    ['a hard link', 'real', 'hard'],
    ['another spelling', 'real', 'folder/../real'],
    ['a link to its folder', 'folder/new', 'elsewhere/new'],
    ['a link that leads to what is not there yet', 'new', 'dangling'],
  ])('are refused where two flags name one: %s', async (_, one, other) => {
    const folder = emptyFolder();
    await mkdir(join(folder, 'folder'));
    await writeFile(join(folder, 'real'), 'old');
    await symlink('real', join(folder, 'link'));
    await link(join(folder, 'real'), join(folder, 'hard'));
    await symlink('folder', join(folder, 'elsewhere'));
    await symlink('new', join(folder, 'dangling'));
    let worked = false;
    const failed = written(
      [
        { flag: '--digest-file', path: `${folder}/${one}`, text },
        { flag: '--report', path: `${folder}/${other}`, text },
      ],
      async () => {
        worked = true;
        return '';
      },
    );
    await expect(failed).rejects.toMatchObject({ code: 'USAGE_INVALID', exitCode: 2 });
    await expect(failed).rejects.toThrow('--digest-file and --report name one file');
    expect(worked).toBe(false);
    expect(await readFile(join(folder, 'real'), 'utf8')).toBe('old');
  });

  it('may be devices', async () => {
    await written([{ flag: '--report', path: '/dev/null', text }], async () => 'gone');
    expect((await stat('/dev/null')).isCharacterDevice()).toBe(true);
  });
});
