import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PublishReport } from '../../src/publish/report.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { type BuiltManifest, MEDIA_TYPES, seedAttested, seedImage } from '../helpers/images.ts';
import { checkInvariants } from '../helpers/publishing.ts';
import { requests, startRegistry, withRegistry, writes } from '../helpers/registry.ts';
import { created, filesIn, newUser, type User, writeDockerDraft } from './drafts.ts';
import { parsed } from './program.ts';

const AMD64 = { os: 'linux', architecture: 'amd64' };
const ARM64 = { os: 'linux', architecture: 'arm64' };

let registry: RunningRegistry;
let user: User;
let a: BuiltManifest;
let b: BuiltManifest;

beforeEach(async () => {
  registry = await startRegistry();
  user = newUser(registry);
  a = seedImage(registry, 't/a', '1', { platform: AMD64, docker: true });
  b = seedImage(registry, 't/b', '1', { platform: ARM64, docker: true });
});

afterEach(async () => {
  checkInvariants(registry);
  await registry.close();
});

const full = (reference: string) => `${registry.host}/${reference}`;
const create = (...sources: readonly string[]) =>
  user.does(created(registry, 't/all:1'), 'create', 't/all:1', ...sources);
const pushed = () => registry.tagOf('t/all', '1');
const line = ({ descriptor: { digest } }: BuiltManifest) =>
  `Pushed ref ${full('t/all')}@${digest} with digest: ${digest}\n`;

describe('push', () => {
  it('prints docker’s line for each image of another repository, in the order of the list, and the digest last', async () => {
    const own = seedImage(registry, 't/all', 'own', { platform: { os: 'linux', architecture: 's390x' }, docker: true });
    await create('t/b:1', 't/all:own', 't/a:1');
    const { stdout, stderr, exitCode } = await user.run('push', 't/all:1');
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toBe(`${line(a)}${line(b)}${pushed()}\n`);
    const { manifests } = JSON.parse(String(registry.manifestOf('t/all', '1')?.bytes));
    expect(manifests.map(({ digest }: { readonly digest: string }) => digest)).toEqual([
      a.descriptor.digest,
      own.descriptor.digest,
      b.descriptor.digest,
    ]);
    expect(registry.missingFrom('t/all', '1')).toEqual([]);
    expect(await user.drafts()).toEqual([full('t/all:1')]);
  });

  it('a second time prints the same and writes nothing', async () => {
    await create('t/a:1', 't/b:1');
    const first = await user.run('push', 't/all:1');
    registry.clearJournal();
    const second = await user.run('push', 't/all:1');
    expect(second.stdout).toBe(first.stdout);
    expect(writes(registry)).toEqual([]);
  });

  it('finishes where every mount is refused, with the digest that inspect has told', async () => {
    registry.configure({ mount: { mode: 'ignore' } });
    await create('t/a:1', 't/b:1');
    const { stdout: digest } = await user.run('inspect', '--digest', 't/all:1');
    await user.does(`${line(a)}${line(b)}${digest}`, 'push', 't/all:1', '--insecure');
    expect(digest).toBe(`${pushed()}\n`);
  });

  it('pushes what was read when the draft was made, though the tag has moved since', async () => {
    await create('t/a:1', 't/b:1');
    seedImage(registry, 't/a', '1', { platform: AMD64, docker: true, seed: 'moved' });
    expect((await user.run('push', 't/all:1')).stdout).toContain(line(a));
  });

  it('writes a tag once that is given twice', async () => {
    await create('t/a:1');
    expect((await user.run('push', 't/all:1', '-t', '1', '-t', '2', '--tag', full('t/all:2'))).exitCode).toBe(0);
    expect(registry.tagMoves.map(({ tag }) => tag)).toEqual(['1', '2']);
  });

  it('writes more tags, another type, annotations and files', async () => {
    await create('t/a:1', 't/b:1');
    await user.does('', 'annotate', 't/all:1', 't/a:1', '--annotation', 'of=entry');
    const words = ['--type', 'oci', '--annotation', 'index:of=index', '-t', '2', '--tag', full('t/all:3')];
    const files = ['--digest-file', 'digest', '--metadata-file', 'metadata', '--report', 'report'];
    const { stdout, stderr } = await user.run('push', 't/all:1', ...words, ...files);
    expect(registry.tags('t/all'), stderr).toEqual(['1', '2', '3']);
    const { bytes, mediaType } = registry.manifestOf('t/all', '3') ?? { bytes: Buffer.of(), mediaType: '' };
    expect(mediaType).toBe(MEDIA_TYPES.ociIndex);
    expect(JSON.parse(bytes.toString())).toMatchObject({
      annotations: { of: 'index' },
      manifests: [{ annotations: { of: 'entry' } }, {}],
    });
    const digest = readFileSync(join(user.home, 'digest'), 'utf8');
    expect(stdout.endsWith(`\n${digest}`)).toBe(true);
    expect(JSON.parse(readFileSync(join(user.home, 'metadata'), 'utf8'))).toMatchObject({
      'containerimage.digest': digest.trim(),
      'image.name': ['1', '2', '3'].map((tag) => full(`t/all:${tag}`)).join(','),
    });
    expect(JSON.parse(readFileSync(join(user.home, 'report'), 'utf8'))).toMatchObject({ schemaVersion: 1 });
  });

  it.each([[['--annotation', 'k=v']], [['--annotation', 'k=v', '--type', 'docker']]])(
    '%j on a list of Docker images is exit code 2, and nothing is written',
    async (words) => {
      await create('t/a:1', 't/b:1');
      const { stdout, stderr, exitCode } = await user.run('push', 't/all:1', ...words);
      expect(stderr).toContain('--type oci');
      expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 });
      expect(writes(registry)).toEqual([]);
    },
  );

  it('--dry-run prints the digest only, writes nothing, and keeps the draft, also with --purge', async () => {
    await create('t/a:1', 't/b:1');
    const { stdout, stderr } = await user.run('push', 't/all:1', '--dry-run', '--purge');
    expect(stdout).toMatch(/^sha256:[a-f0-9]{64}\n$/);
    expect(stderr).toContain('linux/arm64');
    expect(writes(registry)).toEqual([]);
    expect((await user.run('push', 't/all:1')).stdout.endsWith(stdout)).toBe(true);
  });

  it('--json prints the report', async () => {
    await create('t/a:1', 't/b:1');
    const report = parsed(await user.run('push', 't/all:1', '--json', '--no-verify')) as unknown as PublishReport;
    expect(report.lists[0]?.targets).toEqual([{ reference: full('t/all:1'), digest: pushed(), action: 'created' }]);
    expect(requests(registry, 'blobHead')).toEqual([]);
  });

  it('copies from another registry, and takes indexes with their attestations', () =>
    withRegistry({}, async (other) => {
      const image = seedImage(other, 'else/where', '1', { platform: { os: 'linux', architecture: 'loong64' } });
      seedAttested(registry, 't/x', '1', { os: 'linux', architecture: 's390x' });
      await create(`${other.host}/else/where:1`, 't/x:1', 't/a:1');
      const { stdout, stderr } = await user.run('push', 't/all:1');
      expect(stdout.split('\n').filter((text) => text.startsWith('Pushed ref'))).toHaveLength(4);
      expect(stdout).toContain(line(image));
      expect(stderr).toContain('lists Docker and OCI manifests');
      expect(registry.missingFrom('t/all', '1')).toEqual([]);
    }));
});

describe('what push refuses', () => {
  it('a list that nobody made: docker’s words, exit code 4, nothing asked', async () => {
    const { stdout, stderr, exitCode } = await user.run('push', 't/all:1');
    expect(stderr).toContain(`No such manifest: ${full('t/all:1')}`);
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 4 });
    expect(registry.journal).toEqual([]);
  });

  it('an image without os and architecture: docker’s words, exit code 2, until annotate says them', async () => {
    seedImage(registry, 't/silent', '1', { platform: {}, docker: true });
    await create('t/a:1', 't/silent:1');
    const { stderr, exitCode } = await user.run('push', 't/all:1');
    expect(stderr).toContain(
      `manifest ${full('t/silent:1')} must have an OS and Architecture to be pushed to a registry`,
    );
    expect(exitCode).toBe(2);
    await user.does('', 'annotate', 't/all:1', 't/silent:1', '--os', 'linux', '--arch', 'arm');
    expect((await user.run('push', 't/all:1')).exitCode).toBe(0);
  });

  it('two images for one platform, exit code 2, and nothing is written', async () => {
    seedImage(registry, 't/c', '1', { platform: AMD64, docker: true });
    await create('t/a:1', 't/c:1');
    const { stderr, exitCode } = await user.run('push', 't/all:1');
    expect(stderr).toContain('are both for linux/amd64');
    expect(exitCode).toBe(2);
    expect(writes(registry)).toEqual([]);
  });

  it('a manifest that the registry refuses is told with docker’s words', async () => {
    await create('t/a:1', 't/b:1');
    const action = { kind: 'answer', status: 400, body: '{"errors":[{"code":"TAG_INVALID"}]}' } as const;
    registry.addFault({ operation: 'manifestPut', path: /manifests\/1$/, times: 9, action });
    const { stdout, stderr, exitCode } = await user.run('push', 't/all:1', '--purge');
    expect(stderr).toContain(`failed to put manifest ${full('t/all:1')}`);
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 5 });
    expect(await user.drafts()).toEqual([full('t/all:1')]);
  });

  it.each([
    ['a digest in --tag', ['t/all:1', '-t', `t/other@sha256:${'0'.repeat(64)}`]],
    ['a digest', [`t/all@sha256:${'0'.repeat(64)}`]],
    ['an unknown type', ['t/all:1', '--type', 'oct']],
  ])('%s is exit code 2', async (_, words) => {
    await create('t/a:1', 't/b:1');
    expect((await user.run('push', ...words)).exitCode).toBe(2);
    expect(writes(registry)).toEqual([]);
  });
});

describe('--purge', () => {
  it('drops the draft when it has been pushed', async () => {
    await create('t/a:1', 't/b:1');
    const { stdout, stderr } = await user.run('push', '-p', 't/all:1');
    expect(stdout.endsWith(`${pushed()}\n`), stderr).toBe(true);
    expect(await user.drafts()).toEqual([]);
    await create('t/a:1');
  });

  it('keeps what another process has made of the draft meanwhile', async () => {
    await create('t/a:1', 't/b:1');
    registry.addFault({
      operation: 'manifestPut',
      path: /manifests\/1$/,
      action: { kind: 'delay', milliseconds: 1500 },
    });
    const pushing = user.run('push', '-p', 't/all:1');
    while (requests(registry, 'mount').length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await user.does('', 'annotate', 't/all:1', 't/a:1', '--variant', 'v2');
    const { stderr, exitCode } = await pushing;
    expect(stderr).toContain('was changed while it was pushed, and stays');
    expect(exitCode).toBe(0);
    expect(await user.drafts()).toEqual([full('t/all:1')]);
  });
});

describe('a draft of docker’s own', () => {
  let docker: string;
  beforeEach(() => {
    docker = join(user.home, '.docker');
    writeDockerDraft(docker, full('t/all:1'), [
      { reference: full('t/b:1'), image: b, platform: ARM64 },
      { reference: full('t/a:1'), image: a, platform: AMD64 },
    ]);
  });

  it('is pushed when there is none of ours, which stderr says; its files stay, also with --purge', async () => {
    const before = filesIn(docker);
    const { stdout, stderr, exitCode } = await user.run('push', 't/all:1', '--purge');
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toBe(`${line(a)}${line(b)}${pushed()}\n`);
    expect(stderr).toContain(`this pushes docker's own draft of ${full('t/all:1')}`);
    expect(stderr).toContain(`docker manifest rm ${full('t/all:1')}`);
    expect(filesIn(docker)).toEqual(before);
  });

  it('whose tag has moved since is told by name, and pushed as docker read it', async () => {
    seedImage(registry, 't/a', '1', { platform: AMD64, docker: true, seed: 'moved on' });
    const { stderr, exitCode } = await user.run('push', 't/all:1');
    expect(stderr).toMatch(/t\/a:1 has moved since the draft was made/);
    expect(stderr).not.toMatch(/t\/b:1 has moved/);
    expect(exitCode).toBe(0);
  });

  it('that docker changed after it was taken over is told; what was taken over is pushed', async () => {
    await user.does('', 'annotate', 't/all:1', 't/a:1', '--variant', 'v2');
    const same = await user.run('push', 't/all:1', '--dry-run');
    expect(same.stderr).not.toContain('docker has changed');
    const c = seedImage(registry, 't/c', '1', { platform: { os: 'linux', architecture: 'arm' } });
    const platform = { os: 'linux', architecture: 'arm' };
    writeDockerDraft(docker, full('t/all:1'), [{ reference: full('t/c:1'), image: c, platform }]);
    const { stdout, stderr } = await user.run('push', 't/all:1');
    expect(stderr).toContain('docker has changed its own draft');
    expect(stdout).toBe(`${line(a)}${line(b)}${pushed()}\n`);
  });

  it('that cannot be read is not in the way of ours', async () => {
    await user.does(created(registry, 't/all:1'), 'create', '--replace', 't/all:1', 't/b:1');
    const files = Object.keys(filesIn(docker));
    for (const file of files) rmSync(file);
    mkdirSync(files[0] ?? '');
    expect((await user.run('push', 't/all:1')).stdout).toBe(`${line(b)}${pushed()}\n`);
  });

  it('that is damaged is exit code 8 and names the file', async () => {
    const [file = ''] = Object.keys(filesIn(docker));
    writeFileSync(file, '{"Ref":1}');
    const { stderr, exitCode } = await user.run('push', 't/all:1');
    expect(stderr).toContain(file);
    expect(exitCode).toBe(8);
    expect(writes(registry)).toEqual([]);
  });
});
