import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { readFolder, readInput } from '../../src/cli/input-files.ts';
import { emptyFolder } from './program.ts';

const world = (input: AsyncIterable<unknown> = Readable.from([])) => ({ env: { NAME: 'text' }, stdin: () => input });

describe('what a flag names', () => {
  it('is a file, standard input, or a variable', async () => {
    const path = join(emptyFolder(), 'a');
    writeFileSync(path, 'x');
    expect(await readInput(path, '--file', world())).toEqual({ name: path, text: 'x' });
    const pieces = Readable.from([Buffer.from('caf\u00c3', 'latin1'), Buffer.from([0xa9]), '!']);
    expect(await readInput('-', '--file', world(pieces))).toEqual({ name: '-', text: 'caf\u00e9!' });
    expect(await readInput('env:NAME', '--file', world())).toEqual({ name: 'env:NAME', text: 'text' });
    await expect(readInput('env:OTHER', '--file', world())).rejects.toThrow('empty or not set: OTHER');
  });

  it('is read as its byte order mark says', async () => {
    const path = join(emptyFolder(), 'a');
    writeFileSync(path, Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('image: a', 'utf16le')]));
    expect((await readInput(path, '--file', world())).text).toBe('image: a');
    writeFileSync(path, Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from('image: b')]));
    expect((await readInput(path, '--file', world())).text).toBe('image: b');
  });

  it('is not read for ever', async () => {
    let given = 0;
    async function* endless() {
      for (;;) {
        given += 1;
        yield Buffer.alloc(1024 * 1024);
      }
    }
    const { text } = await readInput('-', '--file', world(endless()));
    expect(text.length).toBe(16 * 1024 * 1024 + 1);
    expect(given).toBeLessThan(20);
  });

  it('is told when it cannot be read', async () => {
    const folder = emptyFolder();
    await expect(readInput(join(folder, 'none'), '--file', world())).rejects.toMatchObject({ code: 'FILE_FAILED' });
    await expect(readInput(folder, '--file', world())).rejects.toThrow('is a folder');
    await expect(readInput('', '--file', world())).rejects.toMatchObject({ code: 'USAGE_INVALID' });
  });
});

describe('a folder', () => {
  it('has its files in the order of their names, then those of its folders, and no hidden ones', async () => {
    const folder = emptyFolder();
    for (const below of ['x', 'empty', '.git']) mkdirSync(join(folder, below));
    for (const name of ['b', 'a', '.hidden', 'x/c', '.git/d'])
      writeFileSync(join(folder, name), name === 'a' ? 'text' : '');
    symlinkSync(join(folder, 'b'), join(folder, 'x', 'link'));
    expect(await readFolder(folder, '--digests-dir')).toEqual([
      { folder, files: [{ name: 'a', content: 'text' }, { name: 'b' }] },
      { folder: join(folder, 'x'), files: [{ name: 'c' }, { name: 'link' }] },
    ]);
  });

  it('without files is itself, without any', async () => {
    const folder = emptyFolder();
    mkdirSync(join(folder, 'below'));
    expect(await readFolder(folder, '--digests-dir')).toEqual([{ folder, files: [] }]);
  });

  it('passes nothing over without a word: a missing image would be the price', async () => {
    const deep = emptyFolder();
    mkdirSync(join(deep, 'job', 'digests'), { recursive: true });
    await expect(readFolder(deep, '--digests-dir')).rejects.toMatchObject({
      code: 'USAGE_INVALID',
      message: expect.stringContaining(`${join(deep, 'job', 'digests')} is a folder two levels down`),
    });
    const piped = emptyFolder();
    execFileSync('mkfifo', [join(piped, 'pipe')]);
    await expect(readFolder(piped, '--digests-dir')).rejects.toMatchObject({
      code: 'USAGE_INVALID',
      message: expect.stringContaining(`${join(piped, 'pipe')} is neither a file nor a folder`),
    });
    const circle = emptyFolder();
    symlinkSync('self', join(circle, 'self'));
    await expect(readFolder(circle, '--digests-dir')).rejects.toMatchObject({
      code: 'FILE_FAILED',
      message: expect.stringContaining(`${join(circle, 'self')} (ELOOP)`),
    });
  });

  it('has the beginning of a file that is long', async () => {
    const folder = emptyFolder();
    writeFileSync(join(folder, 'a'), 'x'.repeat(100_000));
    const [{ files } = { files: [] }] = await readFolder(folder, '--digests-dir');
    expect(files[0]?.content?.length).toBe(64 * 1024 + 1);
  });
});
