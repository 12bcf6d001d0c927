import { execFileSync } from 'node:child_process';
import type { FileHandle } from 'node:fs/promises';
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import type { StoredDraft } from '../../src/store/draft.ts';
import { FILES, type Files } from '../../src/store/files.ts';
import { withDirectory } from '../helpers/registry.ts';
import { imageEntry, linux, storedDraft, storeIn } from './drafts.ts';

const APP = 'docker.io/acme/app:1';
const before = storedDraft(APP, imageEntry('docker.io/acme/a:1', linux('amd64')));
const after = storedDraft(APP, imageEntry('docker.io/acme/a:2', linux('arm64')));
const large = storedDraft(
  APP,
  ...Array.from({ length: 60 }, (_, place) => imageEntry(`docker.io/acme/a:${place}`, linux('amd64'))),
);
const put = (folder: string, stored: StoredDraft, files: Files = FILES): Promise<void> =>
  storeIn(folder, { files, wait: 0 }).change(APP, async () => stored);

/** A file system whose call number `failing` fails so; `calls` counts all. */
function failingFiles(failing: number, code: string): { readonly files: Files; calls(): number } {
  let calls = 0;
  const counted = <Args extends unknown[], Result>(work: (...args: Args) => Promise<Result>) => {
    return async (...args: Args): Promise<Result> => {
      calls += 1;
      if (calls - 1 === failing) throw Object.assign(new Error(`${code}: injected`), { code });
      return work(...args);
    };
  };
  const open = async (...args: Parameters<Files['open']>): Promise<FileHandle> => {
    const handle = await counted(FILES.open)(...args);
    handle.writeFile = counted(handle.writeFile.bind(handle));
    handle.sync = counted(handle.sync.bind(handle));
    return handle;
  };
  const { lstat, mkdir, readdir: list, rename, rm, rmdir, unlink } = FILES;
  // Several signatures each, of which the store uses one.
  const files = {
    open,
    lstat: counted(lstat) as Files['lstat'],
    mkdir: counted(mkdir) as Files['mkdir'],
    readdir: counted(list as (path: string) => Promise<string[]>) as Files['readdir'],
    rename: counted(rename),
    rm: counted(rm),
    rmdir: counted(rmdir),
    unlink: counted(unlink),
  };
  return { files, calls: () => calls };
}

async function draftIn(folder: string): Promise<unknown> {
  return (await storeIn(folder).read(APP))?.draft;
}

describe('whatever the file system refuses', () => {
  it.each(['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'EMFILE', 'ENFILE', 'EIO'])(
    '%s at any moment of a change leaves the old draft or the new one, and nothing else',
    async (code) => {
      const counting = failingFiles(-1, code);
      await withDirectory((folder) => put(folder, before, counting.files));
      let refused = 0;
      for (let call = 0; call < counting.calls(); call++) {
        await withDirectory(async (folder) => {
          await put(folder, before);
          const outcome = await put(folder, after, failingFiles(call, code).files).catch((error: unknown) => error);
          const draft = await draftIn(folder);
          if (outcome === undefined) {
            expect(draft).toEqual(after.draft);
          } else {
            refused += 1;
            expect(outcome).toBeInstanceOf(PublishError);
            expect(outcome).toMatchObject({ code: 'FILE_FAILED', exitCode: 8 });
            expect([before.draft, after.draft]).toContainEqual(draft);
          }
          await put(folder, after);
          expect(await draftIn(folder)).toEqual(after.draft);
          expect(await readdir(folder)).toHaveLength(1);
        });
      }
      expect(refused).toBeGreaterThan(5);
    },
  );

  it('it is said in words, with what helps', async () => {
    await withDirectory(async (folder) => {
      await put(folder, before);
      const [file = ''] = await readdir(folder);
      const attempt = (code: string) => put(folder, after, failingFiles(3, code).files);
      await expect(attempt('ENOSPC')).rejects.toMatchObject({
        message: `cannot write ${join(folder, file)} (no space left on the device)`,
        hint: 'Free some space, then run the same command again.',
      });
      await expect(attempt('EROFS')).rejects.toMatchObject({
        message: `cannot write ${join(folder, file)} (the file system is read-only)`,
        hint: expect.stringContaining('MANIFEST_PUBLISH_DATA_DIR'),
      });
      await expect(attempt('EMFILE')).rejects.toMatchObject({ hint: expect.stringContaining('ulimit -n') });
      await expect(attempt('EXYZ')).rejects.toMatchObject({ message: expect.stringContaining('(EXYZ)') });
    });
  });

  it('reads say so too', async () => {
    await withDirectory(async (folder) => {
      await put(folder, before);
      for (const call of [0, 1]) {
        const store = storeIn(folder, { files: failingFiles(call, 'EACCES').files });
        await expect(store.read(APP)).rejects.toMatchObject({
          code: 'FILE_FAILED',
          message: expect.stringContaining('cannot read'),
        });
      }
      for (const call of [0, 1, 2]) {
        const store = storeIn(folder, { files: failingFiles(call, 'EACCES').files });
        await expect(store.list()).rejects.toMatchObject({ code: 'FILE_FAILED' });
      }
    });
  });

  it('a bug is no refusal', async () => {
    await withDirectory(async (folder) => {
      const files = { ...FILES, rename: () => Promise.reject(new TypeError('a bug')) };
      await expect(put(folder, before, files)).rejects.toThrow(TypeError);
    });
  });
});

/** Runs `use` on a file system of 64 kB; undefined where this user may not make one. */
async function onSmallDisk<T>(use: (disk: string, remount: (options: string) => void) => Promise<T>): Promise<T> {
  return withDirectory(async (directory) => {
    const disk = join(directory, 'disk');
    await mkdir(disk);
    const mount = (options: string): unknown =>
      execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', disk], { stdio: 'ignore' });
    mount('size=64k');
    try {
      return await use(disk, (options) => void mount(`remount,${options}`));
    } finally {
      execFileSync('umount', [disk]);
    }
  });
}

const mayMount = await onSmallDisk(async () => true).catch(() => false);

describe.skipIf(!mayMount)('a real disk of 64 kB', () => {
  it('that is full keeps the old draft; removing it needs no room', async () => {
    await onSmallDisk(async (disk) => {
      const folder = join(disk, 'drafts');
      await put(folder, before);
      const full = { code: 'FILE_FAILED', exitCode: 8, message: expect.stringContaining('no space left') };
      await expect(put(folder, large)).rejects.toMatchObject(full);
      expect(await draftIn(folder)).toEqual(before.draft);
      expect(await readdir(folder)).toHaveLength(1);

      await writeFile(join(disk, 'filler'), Buffer.alloc(64 * 1024)).catch(() => undefined);
      await expect(put(folder, after)).rejects.toMatchObject(full);
      expect(await draftIn(folder)).toEqual(before.draft);
      expect(await readdir(folder)).toHaveLength(1);
      expect(await storeIn(folder).remove(APP)).toBe(true);
      expect(await readdir(folder)).toEqual([]);
    });
  });

  it('that is read-only keeps the old draft, and can be read', async () => {
    await onSmallDisk(async (disk, remount) => {
      const folder = join(disk, 'drafts');
      await put(folder, before);
      remount('ro');
      const refused = { code: 'FILE_FAILED', exitCode: 8, message: expect.stringContaining('read-only') };
      await expect(put(folder, after)).rejects.toMatchObject(refused);
      await expect(put(join(disk, 'new'), after)).rejects.toMatchObject(refused);
      await expect(storeIn(folder).remove(APP)).rejects.toMatchObject(refused);
      expect(await storeIn(folder).remove('docker.io/acme/other:1')).toBe(false);
      expect(await draftIn(folder)).toEqual(before.draft);
      expect((await storeIn(folder).list()).drafts).toEqual([before.draft]);
      remount('rw');
    });
  });
});

/** Root may write anywhere, so the work is done as somebody else. */
async function asNobody<T>(use: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return use();
  process.seteuid?.(65534);
  try {
    return await use();
  } finally {
    process.seteuid?.(0);
  }
}

describe.skipIf(process.platform === 'win32')('a folder that may not be written to', () => {
  it('keeps the old draft, and says where another may be', async () => {
    await withDirectory(async (directory) => {
      await chmod(directory, 0o777);
      const folder = join(directory, 'drafts');
      await asNobody(async () => {
        await put(folder, before);
        await chmod(folder, 0o500);
        await expect(put(folder, after)).rejects.toMatchObject({
          code: 'FILE_FAILED',
          exitCode: 8,
          message: expect.stringContaining('(permission denied)'),
          hint: expect.stringContaining('MANIFEST_PUBLISH_DATA_DIR'),
        });
        expect(await draftIn(folder)).toEqual(before.draft);
        await expect(storeIn(folder).remove(APP)).rejects.toMatchObject({ code: 'FILE_FAILED' });
        await chmod(folder, 0o000);
        await expect(storeIn(folder).read(APP)).rejects.toMatchObject({ code: 'FILE_FAILED' });
        await expect(storeIn(folder).list()).rejects.toMatchObject({ code: 'FILE_FAILED' });
        await chmod(folder, 0o700);
      });
    });
  });
});
