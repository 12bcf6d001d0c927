import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import process, { argv, env, stderr, stdout } from 'node:process';
import { promisify } from 'node:util';
import { releaseFaults, releaseNotes } from './release-checks.ts';
import { ROOT } from './root.ts';

// `npm run release -- TAG FOLDER`: checks that TAG may be released and puts what a release consists of into FOLDER: the
// tarball, its bill of materials, SHA256SUMS of both, and notes.md from CHANGELOG.md. Publishes nothing. Exit code 2
// when something speaks against it.

const run = promisify(execFile);
const text = (name: string) => readFile(join(ROOT, name), 'utf8');

const [tag, to] = argv.slice(2);
if (tag === undefined || to === undefined) {
  stderr.write('usage: npm run release -- TAG FOLDER\n');
  process.exitCode = 2;
} else {
  const files = {
    tag,
    packageJson: await text('package.json'),
    packageLock: await text('package-lock.json'),
    commandManifest: await text('oclif.manifest.json'),
    changelog: await text('CHANGELOG.md'),
  };
  const faults = releaseFaults(files);
  for (const fault of faults) stderr.write(`${fault}\n`);
  if (faults.length > 0) process.exitCode = 2;
  else await make(resolve(to), tag.slice(1), files.changelog);
}

async function make(folder: string, version: string, changelog: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await npm('run', '-s', 'build', '--', '--types');
  // The last line is the name of the file.
  const packed = (await npm('pack', '--silent', '--ignore-scripts', '--pack-destination', folder)).trim();
  const tarball = packed.slice(packed.lastIndexOf('\n') + 1);
  const bill = `manifest-publish-${version}.spdx.json`;
  await writeFile(join(folder, bill), await npm('run', '-s', 'sbom'));
  const sums = await Promise.all([tarball, bill].map(async (name) => `${await sha256(join(folder, name))}  ${name}\n`));
  await writeFile(join(folder, 'SHA256SUMS'), sums.join(''));
  await writeFile(join(folder, 'notes.md'), `${releaseNotes(changelog, version) ?? ''}\n`);
  stdout.write(sums.join(''));
}

async function npm(...args: readonly string[]): Promise<string> {
  const { stdout: output } = await run('npm', args, { cwd: ROOT, env, maxBuffer: 2 ** 26 });
  return output;
}

async function sha256(path: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(path))
    .digest('hex');
}
