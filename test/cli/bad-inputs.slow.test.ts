import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { seedImage } from '../helpers/images.ts';
import { startRegistry } from '../helpers/registry.ts';
import { cli, emptyFolder, parsed } from './program.ts';

const folder = emptyFolder();
let registry: RunningRegistry;

const DIGEST = `sha256:${'a'.repeat(64)}`;
const GOOD = (host: string) => `target: ${host}/t/app:1\nsources: [${host}/t/a:1]\n`;

const FILES: Readonly<Record<string, (host: string) => string>> = {
  'good.yaml': GOOD,
  'two.yaml': (host) => `---\n${GOOD(host)}---\n${GOOD(host).replace('app:1', 'app:2')}`,
  'twice.yaml': (host) => `---\n${GOOD(host)}---\n${GOOD(host)}`,
  'empty.yaml': () => '',
  'key.yaml': (host) => `${GOOD(host)}plattforms: [linux/amd64]\n`,
  'syntax.yaml': () => 'target: [\n',
  'number.yaml': (host) => `target: ${host}/t/app:1\nsources: 3\n`,
  'reference.yaml': (host) => `target: ${host}/t/App:1\nsources: [${host}/t/a:1]\n`,
  'platform.yaml': (host) => `target: ${host}/t/app:1\nsources: [windows95=${host}/t/a:1]\n`,
  'variable.yaml': (host) => `target: ${host}/t/app:\${VERSION}\nsources: [${host}/t/a:1]\n`,
  'tool.yaml': (host) =>
    `image: ${host}/t/app:1\nmanifests:\n  - image: ${host}/t/a:1\n    platform: { os: linux, architecture: amd64, features: [x] }\n`,
  'spec.json': () => '{"target": ',
  'latin1.yaml': () => 'target: caf\u00e9',
  'metadata.json': () => '{"tags": []}',
  'local.json': () => `{"containerimage.config.digest": "${DIGEST}"}`,
  'text.json': () => 'not json',
  'digests/readme.md': () => 'not a digest\n',
};

beforeAll(async () => {
  registry = await startRegistry();
  seedImage(registry, 't/a', '1');
  for (const name of ['digests', 'nothing', 'nothing/below']) mkdirSync(join(folder, name));
  for (const [name, text] of Object.entries(FILES)) {
    writeFileSync(join(folder, name), text(registry.host), name === 'latin1.yaml' ? 'latin1' : 'utf8');
  }
});

afterAll(() => registry.close());
beforeEach(() => registry.clearJournal());

type Row = readonly [kind: string, words: readonly string[], message: string, hint: string, exitCode?: number];

/** `TARGET` and `SOURCE` stand for references of the registry. */
const ROWS: readonly Row[] = [
  ['a spec file beside a target', ['-f', 'good.yaml', 'TARGET'], 'with --file there is no TARGET', 'add --tag'],
  ['a spec file beside sources', ['TARGET', 'SOURCE', '-f', 'good.yaml'], 'with --file there is no TARGET', '-f again'],
  [
    'a spec file beside a folder of digests',
    ['-f', 'good.yaml', '--digests-dir', 'digests'],
    '--file and --digests-dir',
    'spec file',
  ],
  [
    'a spec file beside a template',
    ['-f', 'good.yaml', '--template', 'a/ARCH', '--platforms', 'linux/amd64'],
    '--file and --template',
    'spec file',
  ],
  [
    'a spec file beside metadata',
    ['-f', 'good.yaml', '--from-metadata', 'local.json'],
    '--file and --from-metadata',
    'spec file',
  ],
  ['standard input twice', ['-f', '-', '-f', '-'], 'standard input can be read once only', 'Name a file'],
  [
    'platforms without a template',
    ['TARGET', 'SOURCE', '--platforms', 'linux/amd64'],
    '--platforms needs --template',
    '--platform.',
  ],
  [
    'a template without platforms',
    ['TARGET', '--template', 'a/ARCH'],
    '--template needs --platforms',
    'Add --platforms',
  ],
  [
    'a template without placeholders',
    ['TARGET', '--template', 'a/b', '--platforms', 'linux/amd64'],
    'has none of OS, ARCH and VARIANT',
    'ARCHVARIANT',
  ],
  [
    'a template for no platform',
    ['TARGET', '--template', 'a/ARCH', '--platforms', ' ,'],
    '--platforms names no platform',
    'linux/amd64',
  ],
  ['a variable without a spec file', ['TARGET', 'SOURCE', '--var', 'A=1'], '--var needs --file', 'leave it out'],
  ['a variable without a name', ['-f', 'good.yaml', '--var', '=1'], '--var must be NAME=VALUE', 'VERSION=1.2.3'],
  [
    'a variable that is not set',
    ['-f', 'variable.yaml', '--var', 'VERSION'],
    '--var VERSION is not set',
    '--var VERSION=VALUE',
  ],
  ['a variable that nobody named', ['-f', 'variable.yaml'], 'variable.yaml:1:', '--var VERSION=VALUE'],
  [
    'a target of bake without a file',
    ['TARGET', 'SOURCE', '--bake-target', 'app'],
    '--bake-target needs --from-metadata',
    'leave it out',
  ],
  [
    'a repository of digests without any',
    ['TARGET', 'SOURCE', '--digests-repository', 'a/b'],
    '--digests-repository needs',
    'leave it out',
  ],
  [
    'a digest that is expected of two lists',
    ['-f', 'two.yaml', '--expect-digest', DIGEST],
    '--expect-digest is for one list',
    'expectDigest',
  ],
  [
    'a spec file that is not there',
    ['-f', 'none.yaml'],
    'cannot read what --file names: none.yaml (ENOENT)',
    'Check the name',
    8,
  ],
  ['a spec file that is a folder', ['-f', 'digests'], 'digests is a folder', '--file digests/FILE', 8],
  ['a spec file without a name', ['-f', ''], '--file needs the name of a file', '--file FILE'],
  ['a spec file without content', ['-f', 'empty.yaml'], 'empty.yaml:1:1: the file is empty', 'target:'],
  ['an unknown key', ['-f', 'key.yaml'], 'key.yaml:3:1: unknown key "plattforms"', 'platforms'],
  ['broken YAML', ['-f', 'syntax.yaml'], 'syntax.yaml:', ''],
  ['broken JSON', ['-f', 'spec.json'], 'spec.json:1:', ''],
  ['a file that is no UTF-8', ['-f', 'latin1.yaml'], 'not a text in UTF-8', 'UTF-8'],
  ['a value of another kind', ['-f', 'number.yaml'], 'number.yaml:2:10: ', 'PLATFORM'],
  ['a bad reference', ['-f', 'reference.yaml'], 'reference.yaml:1:9: ', 't/app:1'],
  ['a bad platform', ['-f', 'platform.yaml'], 'platform.yaml:2:', 'OS/ARCHITECTURE'],
  ['a key that manifest-tool would pass over', ['-f', 'tool.yaml'], 'tool.yaml:4:', ''],
  ['two lists for one tag', ['-f', 'twice.yaml'], 'twice.yaml:', 'another tag'],
  ['two files for one tag', ['-f', 'good.yaml', '-f', 'two.yaml'], 'is the target of two lists', 'another tag'],
  ['a folder of digests that is empty', ['TARGET', '--digests-dir', 'nothing'], 'no digest in nothing', 'job'],
  [
    'a folder of digests that is not there',
    ['TARGET', '--digests-dir', 'none'],
    'cannot read what --digests-dir names: none (ENOENT)',
    'Check',
    8,
  ],
  ['a folder of digests that is a file', ['TARGET', '--digests-dir', 'good.yaml'], 'good.yaml (ENOTDIR)', 'Check', 8],
  ['a file that is no digest', ['TARGET', '--digests-dir', 'digests'], 'digests/readme.md', 'hex digits'],
  ['metadata of an image that was not pushed', ['TARGET', '--from-metadata', 'local.json'], 'local.json:1:', '--push'],
  ['metadata that is no JSON', ['TARGET', '--from-metadata', 'text.json'], 'text.json:1:', ''],
  [
    'metadata without tags',
    ['--from-metadata', 'metadata.json', '--digests-dir', 'digests'],
    'no tags in it',
    'docker/metadata-action',
  ],
  [
    'a variable that is empty',
    ['TARGET', '--from-metadata', 'env:NOT_SET'],
    'empty or not set: NOT_SET',
    'Set NOT_SET',
  ],
  [
    'metadata without a target',
    ['--from-metadata', 'local.json'],
    'missing argument TARGET',
    'env:DOCKER_METADATA_OUTPUT_JSON',
  ],
  [
    'an annotation of a manifest',
    ['TARGET', 'SOURCE', '--annotation', 'manifest:k=v'],
    'cannot annotate the manifest',
    'descriptor[PLATFORM]',
  ],
  [
    'an annotation of an index for a platform',
    ['TARGET', 'SOURCE', '--annotation', 'index[linux/amd64]:k=v'],
    '--annotation of an index has no platform',
    'index:k=',
  ],
  [
    'an annotation of a bad platform',
    ['TARGET', 'SOURCE', '--annotation', 'descriptor[x/y/z/w]:k=v'],
    'PLATFORM_INVALID',
    'OS/ARCHITECTURE',
  ],
  [
    'a time of creation that nobody told',
    ['TARGET', 'SOURCE', '--annotation', 'org.opencontainers.image.created'],
    'SOURCE_DATE_EPOCH is not set',
    'git log',
  ],
  [
    'attestations otherwise',
    ['TARGET', 'SOURCE', '--attestations', 'some'],
    '--attestations must be one of keep, drop',
    '--attestations=keep',
  ],
  [
    'referrers otherwise',
    ['TARGET', 'SOURCE', '--referrers', 'yes'],
    '--referrers must be one of none, all',
    '--referrers=none',
  ],
  [
    'another tag with a digest',
    ['TARGET', 'SOURCE', '-t', `ghcr.io/a/b@${DIGEST}`],
    'a target cannot have a digest',
    'Leave out',
  ],
];

describe('what cannot be meant is told with what to write instead, and nothing is asked of a registry', () => {
  const cases = ROWS.map(([kind, words, message, hint, exitCode = 2]) => ({ kind, words, message, hint, exitCode }));

  it.each(cases)('$kind', async ({ words, message, hint, exitCode }) => {
    const names: Readonly<Record<string, string>> = {
      TARGET: `${registry.host}/t/app:1`,
      SOURCE: `${registry.host}/t/a:1`,
    };
    const done = await cli(folder, ['publish', ...words.map((word) => names[word] ?? word)]);
    expect(done.stderr).toContain(message);
    expect(done.stderr).toMatch(/^hint: \S/m);
    expect(done.stderr.slice(done.stderr.indexOf('hint: '))).toContain(hint);
    expect({ stdout: done.stdout, exitCode: done.exitCode }).toEqual({ stdout: '', exitCode });
    expect(registry.journal).toEqual([]);
  });

  it.each([
    ['', 'SOURCE_DATE_EPOCH is not set'],
    ['yesterday', 'SOURCE_DATE_EPOCH must be a whole number of seconds'],
    ['-1', 'SOURCE_DATE_EPOCH must be a whole number of seconds'],
    ['1700000000.5', 'SOURCE_DATE_EPOCH must be a whole number of seconds'],
    ['253402300800', 'SOURCE_DATE_EPOCH must be a whole number of seconds'],
  ])('SOURCE_DATE_EPOCH=%s, where it is asked for', async (value, message) => {
    const names = [`${registry.host}/t/app:1`, `${registry.host}/t/a:1`];
    const annotation = ['--annotation', 'org.opencontainers.image.created'];
    const { stderr, exitCode } = await cli(folder, ['publish', ...names, ...annotation], {
      env: { SOURCE_DATE_EPOCH: value },
    });
    expect(stderr).toContain(message);
    expect(exitCode).toBe(2);
    expect(registry.journal).toEqual([]);
  });

  it('--json has the place in the message', async () => {
    const document = parsed(await cli(folder, ['publish', '-f', 'key.yaml', '--json']));
    expect(document).toMatchObject({ error: { code: 'SPEC_INVALID', exitCode: 2 } });
    expect(JSON.stringify(document)).toContain('key.yaml:3:1: unknown key');
  });
});
