import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Descriptor } from '../../src/model/descriptor.ts';
import { formatPlatform } from '../../src/model/platform.ts';
import type { PublishReport } from '../../src/publish/report.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { seedAttested, seedImage } from '../helpers/images.ts';
import { startRegistry, writes } from '../helpers/registry.ts';
import { cli, emptyFolder, parsed } from './program.ts';

let folder: string;
let registry: RunningRegistry;

beforeEach(async () => {
  folder = emptyFolder();
  registry = await startRegistry();
});

afterEach(() => registry.close());

const LINUX = { os: 'linux', architecture: 'amd64' };
const ARM64 = { os: 'linux', architecture: 'arm64' };
const ARMV7 = { os: 'linux', architecture: 'arm', variant: 'v7' };

const full = (name: string) => `${registry.host}/${name}`;

/** Three images of one application in repositories of their own. */
function seedApp(tag = '1'): void {
  seedImage(registry, 't/amd64', tag, { platform: LINUX });
  seedImage(registry, 't/arm64', tag, { platform: ARM64 });
  seedImage(registry, 't/armv7', tag, { platform: ARMV7 });
}

function write(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return name;
}

type Index = {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly manifests: readonly Descriptor[];
};

function indexOf(repository: string, tag: string, where = registry): Index {
  const found = where.manifestOf(repository, tag);
  if (found === undefined) throw new Error(`${repository}:${tag} is not there`);
  return JSON.parse(Buffer.from(found.bytes).toString('utf8')) as Index;
}

const platformsIn = ({ manifests }: Index) =>
  manifests.map(({ platform }) => (platform === undefined ? '' : formatPlatform(platform)));

describe('spec files', () => {
  const twoLists = () => `
defaults:
  annotations: { org.opencontainers.image.vendor: acme }
  type: oci
lists:
  - target: ${full('t/app:1')}
    tags: [latest]
    sources: [${full('t/amd64:1')}, ${full('t/arm64:1')}]
  - target: ${full('t/app:1-arm')}
    sources:
      - image: ${full('t/armv7:1')}
        platform: linux/arm/v7
`;

  it('publish each list, and print a line for each tag in the order of the file', async () => {
    seedApp();
    const spec = write('lists.yaml', twoLists());
    const files = ['--report', 'report', '--digest-file', 'digests', '--metadata-file', 'metadata'];
    const { stdout, stderr, exitCode } = await cli(folder, ['publish', '-f', spec, ...files]);
    expect(exitCode, stderr).toBe(0);
    const [app, arm] = [registry.tagOf('t/app', '1'), registry.tagOf('t/app', '1-arm')];
    expect(stdout).toBe(`${full('t/app:1')} ${app}\n${full('t/app:latest')} ${app}\n${full('t/app:1-arm')} ${arm}\n`);
    expect(platformsIn(indexOf('t/app', '1'))).toEqual(['linux/amd64', 'linux/arm64']);
    expect(indexOf('t/app', '1-arm').annotations).toEqual({ 'org.opencontainers.image.vendor': 'acme' });
    expect(stderr).toContain('2 lists in ');
    expect(readFileSync(join(folder, 'digests'), 'utf8')).toBe(stdout);
    const report = JSON.parse(readFileSync(join(folder, 'report'), 'utf8')) as PublishReport;
    expect(report.lists.map(({ targets }) => targets.length)).toEqual([2, 1]);
    expect(JSON.parse(readFileSync(join(folder, 'metadata'), 'utf8'))).toMatchObject({
      [full('t/app:1')]: {
        'containerimage.digest': app,
        'image.name': `${full('t/app:1')},${full('t/app:latest')}`,
      },
      [full('t/app:1-arm')]: { 'containerimage.digest': arm, 'image.name': full('t/app:1-arm') },
    });
  });

  it('may come from several files and from standard input, once', async () => {
    seedApp();
    const spec = write('one.yaml', `target: ${full('t/one:1')}\nsources: [${full('t/amd64:1')}]\n`);
    const input = `target: ${full('t/two:1')}\nsources: [${full('t/arm64:1')}]\n`;
    const { stdout, stderr, exitCode } = await cli(folder, ['publish', '-f', spec, '-f', '-', '-q'], { input });
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
    expect(stdout.split('\n')).toHaveLength(3);
    expect(registry.tagOf('t/two', '1')).toBeDefined();
  });

  it('of manifest-tool are taken as they are', async () => {
    seedApp();
    const spec = `image: ${full('t/app:1')}
tags: ['2']
manifests:
  - image: ${full('t/amd64:1')}
    platform: { architecture: amd64, os: linux }
  - image: ${full('t/armv7:1')}
    platform: { architecture: arm, os: linux, variant: v7 }
`;
    const { stdout, stderr, exitCode } = await cli(folder, ['publish', '-f', write('spec.yml', spec)]);
    expect(exitCode, stderr).toBe(0);
    expect(stdout.split('\n').slice(0, 2)).toEqual(
      ['1', '2'].map((tag) => `${full(`t/app:${tag}`)} ${registry.tagOf('t/app', tag)}`),
    );
    expect(platformsIn(indexOf('t/app', '2'))).toEqual(['linux/amd64', 'linux/arm/v7']);
  });

  it('may hold variables that were named, and no other', async () => {
    seedApp();
    const spec = write('v.yaml', `target: ${full('t/app')}:\${VERSION}\nsources: ['${full('t/amd64')}:\${BASE}']\n`);
    const env = { BASE: '1', HOME_SECRET: 'x' };
    const done = await cli(folder, ['publish', '-f', spec, '--var', 'VERSION=7', '--var', 'BASE'], { env });
    expect(done.exitCode, done.stderr).toBe(0);
    expect(registry.tagOf('t/app', '7')).toBeDefined();
    const refused = await cli(folder, ['publish', '-f', spec, '--var', 'VERSION=7'], { env });
    expect(refused.stderr).toContain('--var BASE');
    expect(refused.exitCode).toBe(2);
  });

  it('take flags for every list: they count over what the file says', async () => {
    seedApp();
    const list = (name: string) =>
      `---\ntarget: ${full(`t/${name}:1`)}\nannotations: { k: file, of: file }\nsources: [${full('t/amd64:1')}, ${full('t/armv7:1')}]\n`;
    const spec = write('lists.yaml', list('one') + list('two'));
    const flags = ['--annotation', 'k=flag', '-t', 'extra', '--platform', 'linux/arm/v7', '--type', 'oci'];
    const { stderr, exitCode } = await cli(folder, ['publish', '-f', spec, ...flags]);
    expect(exitCode, stderr).toBe(0);
    for (const repository of ['t/one', 't/two']) {
      const index = indexOf(repository, 'extra');
      expect(index.annotations).toEqual({ k: 'flag', of: 'file' });
      expect(platformsIn(index)).toEqual(['linux/arm/v7']);
    }
  });

  it('--dry-run prints what the digests would be, and writes nothing', async () => {
    seedApp();
    const spec = write('lists.yaml', twoLists());
    const dry = await cli(folder, ['publish', '-f', spec, '--dry-run']);
    expect(dry.exitCode, dry.stderr).toBe(0);
    expect(dry.stderr).toContain('would create');
    expect(writes(registry)).toEqual([]);
    expect((await cli(folder, ['publish', '-f', spec])).stdout).toBe(dry.stdout);
  });
});

describe('lists that fail', () => {
  const spec = () =>
    write(
      'lists.yaml',
      ['one', 'missing', 'three']
        .map(
          (name) =>
            `---\ntarget: ${full(`t/${name}:1`)}\nsources: [${full(name === 'missing' ? 't/none:1' : 't/amd64:1')}]\n`,
        )
        .join(''),
    );

  it('--keep-going publishes the others: exit code 9, and what was done on stdout and in the files', async () => {
    seedApp();
    const words = ['publish', '-f', spec(), '--keep-going', '--report', 'report', '--digest-file', 'digests'];
    const { stdout, stderr, exitCode } = await cli(folder, words);
    expect(stderr).toContain('LISTS_FAILED (exit 9)');
    expect(stderr).toContain(`failed: ${full('t/missing:1')}: `);
    expect(exitCode).toBe(9);
    const done = ['one', 'three'].map((name) => `${full(`t/${name}:1`)} ${registry.tagOf(`t/${name}`, '1')}\n`);
    expect(stdout).toBe(done.join(''));
    expect(readFileSync(join(folder, 'digests'), 'utf8')).toBe(stdout);
    const report = JSON.parse(readFileSync(join(folder, 'report'), 'utf8')) as PublishReport;
    expect(report.lists.map(({ targets }) => targets[0]?.action)).toEqual(['created', 'failed', 'created']);

    const again = await cli(folder, [...words, '--json']);
    expect(again.exitCode).toBe(9);
    const document = parsed(again) as { error: { code: string }; report: PublishReport };
    expect(document.error.code).toBe('LISTS_FAILED');
    expect(document.report.lists.map(({ targets }) => targets[0]?.action)).toEqual([
      'unchanged',
      'failed',
      'unchanged',
    ]);
  });

  it('end the run without it, in the exit code of the first', async () => {
    const { stderr, exitCode } = await cli(folder, ['publish', '-f', spec()]);
    expect(stderr).toContain('SOURCE_NOT_FOUND (exit 4)');
    expect(exitCode).toBe(4);
    expect(registry.tagOf('t/missing', '1')).toBeUndefined();
  });
});

describe('build jobs that left digests behind', () => {
  const hex = (digest: string) => digest.slice('sha256:'.length);

  function seedByDigest(): readonly string[] {
    return [
      seedAttested(registry, 't/app', 'a', LINUX).descriptor.digest,
      seedImage(registry, 't/app', 'b', { platform: ARM64 }).descriptor.digest,
    ];
  }

  const METADATA = () =>
    JSON.stringify({ tags: [full('t/app:1.2'), full('t/app:latest')], labels: {}, annotations: ['index:k=v'] });

  it('--digests-dir joins those that are named by files, attestations too', async () => {
    mkdirSync(join(folder, 'digests'));
    for (const digest of seedByDigest()) write(`digests/${hex(digest)}`, '');
    const words = [
      'publish',
      full('t/app:1'),
      '--digests-dir',
      'digests',
      '--expect-platforms',
      'linux/amd64,linux/arm64',
    ];
    const { stdout, stderr, exitCode } = await cli(folder, words);
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toBe(`${registry.tagOf('t/app', '1')}\n`);
    expect(platformsIn(indexOf('t/app', '1')).sort()).toEqual(['linux/amd64', 'linux/arm64', 'unknown/unknown']);
    const without = await cli(folder, [...words, '--attestations', 'drop']);
    expect(without.exitCode, without.stderr).toBe(0);
    expect(platformsIn(indexOf('t/app', '1')).sort()).toEqual(['linux/amd64', 'linux/arm64']);
  });

  it('--digests-dir takes folders of artifacts that were unpacked one by one', async () => {
    for (const [at, digest] of seedByDigest().entries()) {
      mkdirSync(join(folder, 'digests', `leg-${at}`), { recursive: true });
      write(`digests/leg-${at}/${hex(digest)}`, '');
    }
    write('digests/.gitkeep', '');
    const { stderr, exitCode } = await cli(folder, ['publish', full('t/app:1'), '--digests-dir', 'digests']);
    expect(exitCode, stderr).toBe(0);
    expect(indexOf('t/app', '1').manifests).toHaveLength(3);
  });

  it('a digest that is not in the repository is named with the file it came from', async () => {
    mkdirSync(join(folder, 'digests'));
    for (const digest of seedByDigest()) write(`digests/${hex(digest)}`, '');
    write(`digests/${'0'.repeat(64)}`, '');
    const { stderr, exitCode } = await cli(folder, ['publish', full('t/app:1'), '--digests-dir', 'digests']);
    expect(stderr).toContain(`digests/${'0'.repeat(64)}`);
    expect(exitCode).toBe(4);
    expect(writes(registry)).toEqual([]);
  });

  it('--digests-repository says where they are', async () => {
    mkdirSync(join(folder, 'digests'));
    for (const digest of seedByDigest()) write(`digests/${hex(digest)}`, '');
    const words = ['publish', full('t/other:1'), '--digests-dir', 'digests', '--digests-repository', full('t/app')];
    const { stderr, exitCode } = await cli(folder, words);
    expect(exitCode, stderr).toBe(0);
    expect(registry.missingFrom('t/other', '1')).toEqual([]);
  });

  it('--from-metadata takes files of buildx and of bake', async () => {
    const [one = '', two = ''] = seedByDigest();
    write('one.json', JSON.stringify({ 'containerimage.digest': one, 'image.name': full('t/app') }));
    write(
      'bake.json',
      JSON.stringify({
        app: { 'containerimage.digest': two, 'image.name': full('t/app:b') },
        db: { 'containerimage.digest': one },
      }),
    );
    const words = ['publish', full('t/app:1'), '--from-metadata', 'one.json', '--from-metadata', 'bake.json'];
    const all = await cli(folder, words);
    expect(all.stderr).toContain('--bake-target');
    expect(all.exitCode).toBe(2);
    const { stderr, exitCode } = await cli(folder, [...words, '--bake-target', 'app']);
    expect(exitCode, stderr).toBe(0);
    expect(platformsIn(indexOf('t/app', '1'))).toEqual(['linux/amd64', 'unknown/unknown', 'linux/arm64']);
  });

  it('tags and annotations of docker/metadata-action come from a variable that is named', async () => {
    mkdirSync(join(folder, 'digests'));
    for (const digest of seedByDigest()) write(`digests/${hex(digest)}`, '');
    const env = { DOCKER_METADATA_OUTPUT_JSON: METADATA() };
    const words = ['publish', '--digests-dir', 'digests', '--from-metadata', 'env:DOCKER_METADATA_OUTPUT_JSON'];
    const { stdout, stderr, exitCode } = await cli(folder, words, { env });
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toBe(`${registry.tagOf('t/app', '1.2')}\n`);
    expect(registry.tagOf('t/app', 'latest')).toBe(registry.tagOf('t/app', '1.2'));
    expect(indexOf('t/app', '1.2').annotations).toEqual({ k: 'v' });
    // Nothing is taken from it unasked.
    registry.clearJournal();
    const unasked = await cli(folder, ['publish', '--digests-dir', 'digests'], { env });
    expect(unasked.stderr).toContain('missing argument TARGET');
    expect(registry.journal).toEqual([]);
  });

  it('a TARGET without a tag beside such tags would move latest, and is refused', async () => {
    const input = METADATA();
    const words = ['publish', full('t/app'), full('t/amd64:1'), '--from-metadata', '-'];
    const { stderr, exitCode } = await cli(folder, words, { input });
    expect(stderr).toContain('TARGET has no tag');
    expect(exitCode).toBe(2);
    expect(registry.journal).toEqual([]);
  });
});

describe('templates', () => {
  it('--template takes one image for each of --platforms', async () => {
    seedImage(registry, 't/linux-arm', 'v7', { platform: ARMV7 });
    seedImage(registry, 't/linux-arm64', 'v8', { platform: { ...ARM64, variant: 'v8' } });
    const words = ['publish', full('t/app:1'), '--template', full('t/OS-ARCH:VARIANT')];
    const { stderr, exitCode } = await cli(folder, [...words, '--platforms', 'linux/arm/v7, linux/arm64/v8']);
    expect(exitCode, stderr).toBe(0);
    expect(platformsIn(indexOf('t/app', '1'))).toEqual(['linux/arm/v7', 'linux/arm64/v8']);
  });
});

describe('annotations', () => {
  it('go to the index and to entries, in the spelling of buildx too', async () => {
    seedApp();
    const given = [
      'k=index',
      'index:i=1',
      'descriptor:all=x',
      'manifest-descriptor[linux/arm/v7]:seven=y',
      'index,descriptor:both=z',
    ];
    const { stderr, exitCode } = await cli(folder, [
      'publish',
      full('t/app:1'),
      full('t/amd64:1'),
      full('t/armv7:1'),
      ...given.flatMap((text) => ['--annotation', text]),
    ]);
    expect(exitCode, stderr).toBe(0);
    const { annotations, manifests } = indexOf('t/app', '1');
    expect(annotations).toEqual({ both: 'z', i: '1', k: 'index' });
    expect(manifests.map((entry) => entry.annotations)).toEqual([
      { all: 'x', both: 'z' },
      { all: 'x', both: 'z', seven: 'y' },
    ]);
  });

  it('the time of creation is that of SOURCE_DATE_EPOCH where it is asked for, and never the clock’s', async () => {
    seedApp();
    const words = ['publish', full('t/app:1'), full('t/amd64:1'), '--type', 'oci'];
    const env = { SOURCE_DATE_EPOCH: '1700000000' };
    const unasked = await cli(folder, words, { env });
    expect(unasked.exitCode, unasked.stderr).toBe(0);
    expect(indexOf('t/app', '1').annotations).toBeUndefined();
    const asked = await cli(folder, [...words, '--annotation', 'org.opencontainers.image.created'], { env });
    expect(asked.exitCode, asked.stderr).toBe(0);
    expect(indexOf('t/app', '1').annotations).toEqual({ 'org.opencontainers.image.created': '2023-11-14T22:13:20Z' });
  });
});

describe('an index that is there', () => {
  it('--amend replaces by platform and keeps the rest; --append is the same', async () => {
    seedApp();
    const first = await cli(folder, ['publish', full('t/app:1'), full('t/amd64:1'), full('t/arm64:1')]);
    expect(first.exitCode, first.stderr).toBe(0);
    seedImage(registry, 't/amd64', '2', { platform: LINUX });
    for (const [flag, source] of [
      ['--amend', 't/amd64:2'],
      ['--append', 't/armv7:1'],
    ] as const) {
      const { stderr, exitCode } = await cli(folder, ['publish', full('t/app:1'), full(source), flag]);
      expect(exitCode, stderr).toBe(0);
    }
    const index = indexOf('t/app', '1');
    expect(platformsIn(index).sort()).toEqual(['linux/amd64', 'linux/arm/v7', 'linux/arm64']);
    expect(index.manifests.map(({ digest }) => digest)).toContain(registry.tagOf('t/amd64', '2'));
    expect(index.manifests.map(({ digest }) => digest)).not.toContain(registry.tagOf('t/amd64', '1'));
  });

  it('--ignore-missing leaves out what is not there, and says so', async () => {
    seedApp();
    const words = ['publish', full('t/app:1'), full('t/amd64:1'), full('t/none:1'), '--ignore-missing'];
    const { stderr, exitCode } = await cli(folder, words);
    expect(exitCode, stderr).toBe(0);
    expect(stderr).toContain(full('t/none:1'));
    expect(platformsIn(indexOf('t/app', '1'))).toEqual(['linux/amd64']);
  });
});
