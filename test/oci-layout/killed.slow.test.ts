import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { digestOf, parseDigest } from '../../src/model/digest.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { type BuiltManifest, blobDigests, makeImage, makeIndex, putBuilt } from '../helpers/images.ts';
import { BIN, runProgram } from '../helpers/program.ts';
import { withDirectory, withRegistry } from '../helpers/registry.ts';
import { blobFile, filesOf, indexFile, REF_NAME } from './fixture.ts';

const ARCHITECTURES = ['amd64', 'arm64', 's390x'];
const LIST = makeIndex(
  ARCHITECTURES.map((architecture) => ({
    manifest: makeImage(architecture, { platform: { os: 'linux', architecture }, layers: 3, layerBytes: 2_000_000 }),
    platform: { os: 'linux', architecture },
  })),
);

/** What a folder holds when the run is ended: files of that kind, and how many. */
const MOMENTS: readonly (readonly [name: string, isReached: (folder: string) => boolean])[] = [
  ['the folder is there', (folder) => existsSync(folder)],
  ['it is a layout', (folder) => existsSync(join(folder, 'oci-layout'))],
  ['the first blob is being written', (folder) => namesIn(folder).some((name) => name.startsWith('.tmp-'))],
  ['one blob is there', (folder) => blobsIn(folder) >= 1],
  ['five are', (folder) => blobsIn(folder) >= 5],
  ['eleven are', (folder) => blobsIn(folder) >= 11],
  ['all but the index are', (folder) => blobsIn(folder) >= 15],
  ['all are', (folder) => blobsIn(folder) >= 16],
  [
    'somebody holds the lock of index.json',
    (folder) => blobsIn(folder) >= 1 && existsSync(join(folder, 'index.json.lock')),
  ],
];

function namesIn(folder: string): readonly string[] {
  const blobs = join(folder, 'blobs', 'sha256');
  return existsSync(blobs) ? readdirSync(blobs) : [];
}

function blobsIn(folder: string): number {
  return namesIn(folder).filter((name) => !name.startsWith('.')).length;
}

/** Every file under a final name is what its name says, and what index.json lists is there with all below it. */
async function problemsOf(folder: string, list: BuiltManifest): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const name of namesIn(folder).filter((one) => !one.startsWith('.'))) {
    const digest = parseDigest(`sha256:${name}`);
    if (digestOf(await readFile(blobFile(folder, digest))) !== digest) problems.push(`${digest} is half written`);
  }
  if (!existsSync(join(folder, 'oci-layout'))) return problems;
  expect(JSON.parse(await readFile(join(folder, 'oci-layout'), 'utf8'))).toEqual({ imageLayoutVersion: '1.0.0' });
  for (const { digest } of (await indexFile(folder)).manifests) {
    if (digest !== list.descriptor.digest) problems.push(`index.json lists ${digest}`);
    const below = [
      list.descriptor.digest,
      ...list.children.map((child) => child.descriptor.digest),
      ...blobDigests(list),
    ];
    problems.push(...below.filter((one) => !existsSync(blobFile(folder, one))).map((one) => `${one} is missing`));
  }
  return problems;
}

async function killAt(
  registry: RunningRegistry,
  home: string,
  out: string,
  isReached: (folder: string) => boolean,
): Promise<boolean> {
  const words = ['publish', `oci:${out}:1`, `${registry.host}/acme/list:1`];
  const env = { PATH: process.env['PATH'] ?? '', HOME: home };
  const child = spawn(process.execPath, [BIN, ...words], { cwd: home, env, stdio: 'ignore' });
  const ended = once(child, 'exit');
  while (child.exitCode === null && !isReached(out)) await new Promise((resolve) => setImmediate(resolve));
  child.kill('SIGKILL');
  await ended;
  return child.signalCode === 'SIGKILL';
}

describe('a run that writes a layout and is killed', () => {
  it.each(MOMENTS)('when %s leaves nothing half written, and the next one completes it', (_name, isReached) =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        putBuilt(registry, 'acme/list', LIST, '1');
        const out = join(folder, 'out');
        const killed = await killAt(registry, folder, out, isReached);
        // The last moments are so short that the run may have ended before they were seen.
        if (blobsIn(out) < 15) expect(killed).toBe(true);
        expect(await problemsOf(out, LIST)).toEqual([]);
        const done = await runProgram(['publish', `oci:${out}:1`, `${registry.host}/acme/list:1`], { folder });
        expect(done, done.stderr).toMatchObject({ exitCode: 0, stdout: `${LIST.descriptor.digest}\n` });
        expect(await problemsOf(out, LIST)).toEqual([]);
        expect((await indexFile(out)).manifests).toHaveLength(1);
        const deep = await runProgram(['verify', '--deep', `oci:${out}:1`], { folder });
        expect(deep, deep.stderr).toMatchObject({ exitCode: 0 });
      }),
    ),
  );
});

describe('runs that write one layout at a time', () => {
  it('all get their tags, and no other tag is lost', () =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        putBuilt(registry, 'acme/list', LIST, '1');
        const out = join(folder, 'out');
        const tags = ['a', 'b', 'c', 'd'];
        const runs = await Promise.all(
          tags.map((tag) => runProgram(['publish', `oci:${out}:${tag}`, `${registry.host}/acme/list:1`], { folder })),
        );
        for (const done of runs) expect(done, done.stderr).toMatchObject({ exitCode: 0 });
        const names = (await indexFile(out)).manifests.map((one) => Object(one['annotations'])[REF_NAME]);
        expect(names.sort()).toEqual(tags);
        expect((await filesOf(out)).filter((name) => /\.tmp-|\.lock|\.new\./.test(name))).toEqual([]);
      }),
    ));
});
