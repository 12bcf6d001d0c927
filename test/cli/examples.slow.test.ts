import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningRegistry, seedDebian } from '../../src/registry-server/index.ts';
import { seedImage } from '../helpers/images.ts';
import { startRegistry } from '../helpers/registry.ts';
import { cli, emptyFolder } from './program.ts';

type Manifest = {
  readonly commands: Readonly<Record<string, { readonly examples: readonly { readonly command: string }[] }>>;
};

const folder = emptyFolder();
let registry: RunningRegistry;

beforeAll(async () => {
  registry = await startRegistry();
  seedDebian(registry);
  // What the examples take from files and from the environment of a CI job.
  const { host } = registry;
  const list = (name: string) =>
    `- { target: '${host}/debian/${name}:list', sources: ['${host}/debian/${name}:bullseye'] }`;
  writeFileSync(join(folder, 'lists.yaml'), `lists:\n${list('amd64')}\n${list('arm64')}\n`);
  mkdirSync(join(folder, 'reports'));
  for (const index of [1, 2]) {
    const shard = ['--shard', `${index}/2`, '--report', `reports/${index}.json`];
    await cli(folder, ['publish', '-f', 'lists.yaml', ...shard]);
  }
  mkdirSync(join(folder, 'digests'));
  for (const architecture of ['amd64', 'arm64']) {
    const image = seedImage(registry, 'acme/app', architecture, { platform: { os: 'linux', architecture } });
    writeFileSync(join(folder, 'digests', image.descriptor.digest.slice('sha256:'.length)), '');
  }
});

afterAll(() => registry.close());

/** The examples of every help page; they are written for `registry serve --seed debian` and its default port. */
function examples(): readonly (readonly [command: string, args: readonly string[]])[] {
  const manifest: Manifest = JSON.parse(readFileSync(new URL('../../oclif.manifest.json', import.meta.url), 'utf8'));
  return Object.entries(manifest.commands).flatMap(([id, { examples }]) =>
    examples.map(({ command }) => {
      // What the shell does around it, as in `source <(...)`, `sudo ...` and `... > FILE`, is not ours to run.
      const said = command
        .replaceAll('<%= config.bin %>', 'manifest-publish')
        .replace('<%= command.id %>', id.replaceAll(':', ' '));
      const [, own = ''] = /manifest-publish ([^)>]*[^)>\s])/.exec(said) ?? [];
      const words = own.split(/\s+/);
      return [words.join(' '), words] as const;
    }),
  );
}

/** What does not end by itself is tested with the signals. */
const ENDLESS = /^registry serve (?!--list)/;

/** What says "after: manifest-publish create". */
const NEEDS_DRAFT = ['annotate', 'push', 'rm', 'ls'];

/** What prints nothing when it has done what it should, as docker's. */
const SILENT = ['annotate', 'rm'];

describe('the examples of the help pages', () => {
  const all = examples();

  it('are there for every command', () => {
    expect(new Set(all.map(([, [first]]) => first))).toEqual(
      new Set([
        'publish',
        'create',
        'annotate',
        'push',
        'inspect',
        'rm',
        'ls',
        'verify',
        'mount-check',
        'registry',
        'report',
        'completion',
        'docker-plugin',
        'demo',
      ]),
    );
  });

  it.each(all.filter(([command]) => !ENDLESS.test(command)))('%s', async (_, words) => {
    const args = words.map((word) =>
      word.replace('localhost:5000', registry.host).replace('/usr/local/lib', join(folder, 'usr')),
    );
    if (NEEDS_DRAFT.includes(words[0] ?? '')) {
      const sources = ['amd64', 'arm64', 'armhf'].map((name) => `${registry.host}/debian/${name}:bullseye`);
      await cli(folder, ['create', '--replace', `${registry.host}/debian/debian:draft`, ...sources]);
    }
    const env = { DOCKER_METADATA_OUTPUT_JSON: JSON.stringify({ tags: [`${registry.host}/acme/app:1`], labels: {} }) };
    const { stdout, stderr, exitCode } = await cli(folder, args, { env });
    expect(exitCode, stderr).toBe(0);
    if (SILENT.includes(words[0] ?? '')) expect(stdout).toBe('');
    else expect(stdout).not.toBe('');
  });
});
