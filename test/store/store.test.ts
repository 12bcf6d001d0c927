import { lstat, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { removeEntry } from '../../src/store/annotate.ts';
import type { DraftStore, StoredDraft } from '../../src/store/draft.ts';
import { withDirectory } from '../helpers/registry.ts';
import { imageEntry, linux, storedDraft, storeIn } from './drafts.ts';

const APP = 'docker.io/acme/app:1';
const made = storedDraft(APP, imageEntry('docker.io/acme/a:1', linux('amd64')));
const more = storedDraft(
  APP,
  imageEntry('docker.io/acme/a:1', linux('amd64')),
  imageEntry('docker.io/acme/b:1', linux('arm64')),
);
const put = (store: DraftStore, stored: StoredDraft): Promise<void> =>
  store.change(stored.draft.reference, async () => stored);

/** The one draft in the folder: its path. */
async function onlyFile(folder: string): Promise<string> {
  const names = await readdir(folder);
  expect(names).toHaveLength(1);
  return join(folder, names[0] ?? '');
}

async function inFolder(use: (folder: string, store: DraftStore) => Promise<void>): Promise<void> {
  await withDirectory((directory) => {
    const folder = join(directory, 'data', 'drafts');
    return use(folder, storeIn(folder));
  });
}

describe('drafts', () => {
  it('are read as they were written, by any store of the folder', async () => {
    await inFolder(async (folder, store) => {
      expect(await store.read(APP)).toBeUndefined();
      await put(store, made);
      const read = await storeIn(folder).read(APP);
      expect(read?.draft).toEqual(made.draft);
      expect([...(read?.manifests ?? [])].map(([digest, bytes]) => [digest, Buffer.from(bytes)])).toEqual([
        ...made.manifests,
      ]);
      expect(await store.read('docker.io/acme/app:2')).toBeUndefined();
    });
  });

  it('can be read by nobody else, and leave nothing else behind', async () => {
    await inFolder(async (folder, store) => {
      await put(store, made);
      await put(store, more);
      const path = await onlyFile(folder);
      expect((await lstat(path)).mode & 0o777).toBe(0o600);
      expect((await lstat(folder)).mode & 0o777).toBe(0o700);
      expect((await lstat(join(folder, '..'))).mode & 0o777).toBe(0o700);
    });
  });

  it('stay when the work gives none or fails, and nothing is left of it', async () => {
    await inFolder(async (folder, store) => {
      await put(store, made);
      await store.change(APP, async () => undefined);
      await expect(
        store.change(APP, async () => {
          throw new Error('no such image');
        }),
      ).rejects.toThrow('no such image');
      expect((await store.read(APP))?.draft).toEqual(made.draft);
      await onlyFile(folder);
    });
  });

  it('are handed to the work as they are', async () => {
    await inFolder(async (_folder, store) => {
      await put(store, more);
      await store.change(APP, async (current) => {
        if (current === undefined) throw new Error('not there');
        const name = { source: 'docker.io/acme/a:1', shown: { list: 'app', source: 'a' } };
        return { ...current, draft: removeEntry(current.draft, name) };
      });
      const read = await store.read(APP);
      expect(read?.draft.entries.map(({ reference }) => reference)).toEqual(['docker.io/acme/b:1']);
      expect(read?.manifests.size).toBe(1);
    });
  });

  it('are listed by reference, with the files that are none', async () => {
    await inFolder(async (folder, store) => {
      expect(await store.list()).toEqual({ drafts: [], damaged: [] });
      const other = storedDraft('docker.io/acme/aaa:9', imageEntry('docker.io/acme/a:1', linux('amd64')));
      await put(store, made);
      await put(store, other);
      const [file = ''] = await readdir(folder);
      await writeFile(join(folder, 'copy.json'), await readFile(join(folder, file)));
      await writeFile(join(folder, 'damaged.json'), '{');
      await mkdir(join(folder, `${file}.lock`));
      await mkdir(join(folder, `${file}.new.x`));
      await symlink(file, join(folder, 'link.json'));
      const { drafts, damaged } = await store.list();
      expect(drafts).toEqual([other.draft, made.draft]);
      expect(damaged).toEqual(['copy.json', 'damaged.json', 'link.json'].map((name) => join(folder, name)));
    });
  });

  it('are removed, damaged ones too', async () => {
    await inFolder(async (folder, store) => {
      expect(await store.remove(APP)).toBe(false);
      expect(await readdir(join(folder, '..', '..'))).toEqual([]);
      await put(store, made);
      expect(await store.remove('docker.io/acme/app:2')).toBe(false);
      await writeFile(await onlyFile(folder), 'damaged');
      await expect(store.read(APP)).rejects.toMatchObject({ code: 'DRAFT_INVALID' });
      expect(await store.remove(APP)).toBe(true);
      expect(await store.remove(APP)).toBe(false);
      expect(await readdir(folder)).toEqual([]);
    });
  });

  it('are of the list that was asked for', async () => {
    await inFolder(async (folder, store) => {
      await put(store, made);
      const own = await onlyFile(folder);
      const other = storedDraft('docker.io/acme/app:2', imageEntry('docker.io/acme/a:1', linux('amd64')));
      await put(store, other);
      const second = (await readdir(folder)).find((name) => join(folder, name) !== own) ?? '';
      await writeFile(own, await readFile(join(folder, second)));
      await expect(store.read(APP)).rejects.toMatchObject({
        code: 'DRAFT_INVALID',
        message: `${own}: the draft of docker.io/acme/app:2, not of ${APP}`,
      });
    });
  });

  it('that could not be read again are not written', async () => {
    await inFolder(async (_folder, store) => {
      await put(store, made);
      const extra: object = Array(70)
        .fill(0)
        .reduce<object>((inner) => ({ inner }), {});
      const [entry] = made.draft.entries;
      if (entry === undefined) throw new Error('no entry');
      const children = entry.children.map(({ descriptor }) => ({ descriptor: { ...descriptor, extra: { extra } } }));
      const deep = { ...made, draft: { ...made.draft, entries: [{ ...entry, children }] } };
      await expect(put(store, deep)).rejects.toMatchObject({ code: 'MANIFEST_UNSUPPORTED', exitCode: 2 });
      expect((await store.read(APP))?.draft).toEqual(made.draft);
      await expect(
        store.change(APP, async () => ({ ...made, draft: { ...made.draft, reference: 'x' } })),
      ).rejects.toThrow('a draft of x');
    });
  });
});

describe('what stands where a draft should is refused by name', () => {
  it('a link to a file elsewhere, which is not touched', async () => {
    await inFolder(async (folder, store) => {
      await put(store, made);
      const path = await onlyFile(folder);
      const elsewhere = join(folder, '..', 'elsewhere');
      await writeFile(elsewhere, await readFile(path));
      await rm(path);
      await symlink(elsewhere, path);
      const refused = { code: 'DRAFT_INVALID', exitCode: 8, message: `${path}: a symbolic link` };
      await expect(store.read(APP)).rejects.toMatchObject(refused);
      await expect(put(store, more)).rejects.toMatchObject(refused);
      expect(await store.remove(APP)).toBe(true);
      expect((await readFile(elsewhere)).length).toBeGreaterThan(0);
      expect(await readdir(folder)).toEqual([]);
    });
  });

  it('a folder', async () => {
    await inFolder(async (folder, store) => {
      await put(store, made);
      const path = await onlyFile(folder);
      await rm(path);
      await mkdir(path);
      await expect(store.read(APP)).rejects.toMatchObject({ code: 'DRAFT_INVALID' });
      await expect(put(store, made)).rejects.toMatchObject({ code: 'DRAFT_INVALID' });
      await expect(store.remove(APP)).rejects.toMatchObject({ code: 'FILE_FAILED' });
    });
  });

  it('a file of more than 64 MiB', async () => {
    await inFolder(async (folder, store) => {
      await put(store, made);
      const path = await onlyFile(folder);
      await writeFile(path, Buffer.alloc(64 * 1024 * 1024 + 1, ' '));
      await expect(store.read(APP)).rejects.toMatchObject({
        code: 'DRAFT_INVALID',
        message: `${path}: 67108865 bytes, the limit is 67108864`,
      });
    });
  });

  it('a link in the place of the folder', async () => {
    await inFolder(async (folder, store) => {
      const elsewhere = join(folder, '..', '..', 'elsewhere');
      await mkdir(elsewhere);
      await mkdir(join(folder, '..'));
      await symlink(elsewhere, folder);
      const refused = { code: 'DRAFT_INVALID', message: `${folder}: a symbolic link where drafts are kept` };
      await expect(store.read(APP)).rejects.toMatchObject(refused);
      await expect(put(store, made)).rejects.toMatchObject(refused);
      await expect(store.list()).rejects.toMatchObject(refused);
      await expect(store.remove(APP)).rejects.toMatchObject(refused);
      expect(await readdir(elsewhere)).toEqual([]);
    });
  });

  it('a file in the place of the folder', async () => {
    await inFolder(async (folder, store) => {
      await mkdir(join(folder, '..'));
      await writeFile(folder, '');
      await expect(put(store, made)).rejects.toMatchObject({
        code: 'DRAFT_INVALID',
        message: `${folder}: not a folder`,
      });
      await expect(store.read(APP)).rejects.toMatchObject({ code: 'DRAFT_INVALID' });
    });
  });

  it.each(['file', 'link'])('a %s in the place of the lock', async (kind) => {
    await inFolder(async (folder, store) => {
      await put(store, made);
      const lock = `${await onlyFile(folder)}.lock`;
      if (kind === 'file') await writeFile(lock, '');
      else await symlink('..', lock);
      await expect(put(store, more)).rejects.toMatchObject({ code: 'DRAFT_INVALID', message: `${lock}: not a folder` });
      expect((await store.read(APP))?.draft).toEqual(made.draft);
    });
  });
});
