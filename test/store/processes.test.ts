import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { run } from '../helpers/processes.ts';
import { withDirectory } from '../helpers/registry.ts';
import { buildWriter } from './built-writer.ts';
import { storeIn } from './drafts.ts';
import { LIST } from './writer.ts';

describe('eight processes', () => {
  it('that annotate one entry at once lose nothing', async () => {
    await withDirectory(async (directory) => {
      const writer = await buildWriter(directory);
      const folder = join(directory, 'drafts');
      const keys = [...'abcdefgh'];
      const ended = await Promise.all(keys.map((key) => run(process.execPath, [writer, folder, 'notes', key, '6'])));
      expect(ended.map(({ exitCode, stderr }) => ({ exitCode, stderr }))).toEqual(
        keys.map(() => ({ exitCode: 0, stderr: '' })),
      );
      const read = await storeIn(folder).read(LIST);
      const wanted = keys.flatMap((key) => Array.from({ length: 6 }, (_, place) => `${key}${place}`));
      const annotations = read?.draft.entries[0]?.children[0]?.changes?.annotations ?? {};
      expect(Object.keys(annotations).sort()).toEqual(wanted);
      expect(await readdir(folder)).toHaveLength(1);
    });
  });
});
