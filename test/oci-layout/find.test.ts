import { mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findLayout } from '../../src/oci-layout/folder.ts';
import { withDirectory } from '../helpers/registry.ts';

describe('a folder that is looked at', () => {
  it('while another process makes a layout of it, is not taken for something else', () =>
    withDirectory(async (folder) => {
      for (let round = 0; round < 100; round += 1) {
        const out = join(folder, String(round));
        await mkdir(join(out, 'blobs'), { recursive: true });
        await writeFile(join(out, '.tmp-1'), '{"imageLayoutVersion":"1.0.0"}');
        // Looks that have got differently far when the file appears.
        const looks: ReturnType<typeof findLayout>[] = [];
        for (let turn = 0; turn < 20; turn += 1) {
          looks.push(findLayout(out));
          await new Promise((resolve) => setImmediate(resolve));
        }
        const made = rename(join(out, '.tmp-1'), join(out, 'oci-layout'));
        for (const found of await Promise.all(looks)) expect(['empty', 'layout']).toContain(found.kind);
        await made;
        expect((await findLayout(out)).kind).toBe('layout');
      }
    }));

  it('and has a link to nowhere in the place of its oci-layout file, is no layout', () =>
    withDirectory(async (folder) => {
      await symlink(join(folder, 'nowhere'), join(folder, 'oci-layout'));
      await expect(findLayout(folder)).rejects.toMatchObject({ code: 'MANIFEST_UNSUPPORTED' });
    }));
});
