import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env, execPath } from 'node:process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

it('npm run release: the tarball, its bill of materials, sums that fit, and the notes of the changelog', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'release-'));
  try {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    const script = [join(ROOT, 'scripts', 'run-ts.js'), join(ROOT, 'scripts', 'release.ts')];
    const { stdout } = await promisify(execFile)(execPath, [...script, `v${version}`, folder], { env });
    const [tarball, bill] = [`manifest-publish-${version}.tgz`, `manifest-publish-${version}.spdx.json`];
    expect((await readdir(folder)).sort()).toEqual(['SHA256SUMS', bill, tarball, 'notes.md'].sort());
    const sums = await readFile(join(folder, 'SHA256SUMS'), 'utf8');
    expect(stdout).toBe(sums);
    for (const name of [tarball, bill]) {
      const digest = createHash('sha256')
        .update(await readFile(join(folder, name)))
        .digest('hex');
      expect(sums).toContain(`${digest}  ${name}\n`);
    }
    const { packages } = JSON.parse(await readFile(join(folder, bill), 'utf8')) as { packages: { name: string }[] };
    expect(packages.map(({ name }) => name)).toEqual(expect.arrayContaining(['manifest-publish', 'undici']));
    expect((await readFile(join(folder, 'notes.md'), 'utf8')).length).toBeGreaterThan(100);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
