import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { makeImage, seedAttested, seedImage } from '../helpers/images.ts';
import { startRegistry, writes } from '../helpers/registry.ts';
import { FORMS, HOST, STEPS, seedForms, wordsFor } from './docker-forms.ts';
import { created, newUser, type User, writeDockerDraft } from './drafts.ts';
import { cli, parsed } from './program.ts';

const golden = (name: string) => readFileSync(new URL(`../golden/docker-inspect/${name}.txt`, import.meta.url), 'utf8');

let registry: RunningRegistry;
let user: User;

beforeAll(async () => {
  registry = await startRegistry();
  user = newUser(registry);
  seedForms(registry);
  for (const words of STEPS) {
    const { stderr, exitCode } = await cli(user.home, wordsFor(registry, words));
    expect(exitCode, stderr).toBe(0);
  }
  seedImage(registry, 't/a', '1', { platform: { os: 'linux', architecture: 'amd64' }, docker: true });
  seedImage(registry, 't/b', '1', { platform: { os: 'linux', architecture: 'arm64' }, docker: true });
  seedAttested(registry, 't/x', '1', { os: 'linux', architecture: 's390x' });
  // The draft of that name comes before this one.
  seedImage(registry, 't/all', '1', { platform: { os: 'linux', architecture: 'arm' } });
  await user.does(created(registry, 't/all:1'), 'create', 't/all:1', 't/b:1', 't/a:1');
  await user.does(created(registry, 't/mixed:1'), 'create', 't/mixed:1', 't/x:1', 't/a:1');
});

afterAll(() => registry.close());

const full = (reference: string) => `${registry.host}/${reference}`;

describe('prints what docker 28.2.2 prints, byte for byte', () => {
  it.each(FORMS)('$name', async ({ name, words }) => {
    const { stdout, stderr, exitCode } = await cli(user.home, wordsFor(registry, words));
    expect(exitCode, stderr).toBe(0);
    expect(stdout.replaceAll(registry.host, HOST)).toBe(golden(name));
  });
});

describe('a draft', () => {
  it('comes before the registry, which stderr says; --remote turns that round', async () => {
    const local = await user.run('inspect', 't/all:1');
    expect(JSON.parse(local.stdout).manifests).toHaveLength(2);
    expect(local.stderr).toBe(
      `this is the draft of this machine of ${full('t/all:1')}; --remote shows what the registry has\n`,
    );
    const remote = await user.run('inspect', 't/all:1', '--remote');
    expect(JSON.parse(remote.stdout).config).toBeDefined();
    expect(remote.stderr).toBe('');
    expect((await user.run('inspect', 't/all:1', '-q')).stderr).toBe('');
  });

  it('--digest, --raw, --json and --tree show the index that push would put', async () => {
    const { stdout: digest } = await user.run('inspect', 't/all:1', '--digest');
    const { stdout: raw } = await user.run('inspect', 't/all:1', '--raw');
    expect(digest).toBe(`${digestOf(Buffer.from(raw))}\n`);
    expect(parsed(await user.run('inspect', 't/all:1', '--json'))).toMatchObject({
      draft: 'own',
      reference: full('t/all:1'),
      digest: digest.trim(),
      manifest: JSON.parse(raw),
      children: [{ kind: 'image' }, { kind: 'image' }],
    });
    const { stdout: tree } = await user.run('inspect', 't/all:1', '--tree');
    expect(tree).toContain(digest.trim());
    expect(tree).toContain('linux/arm64');
    expect((await user.run('push', 't/all:1', '--dry-run')).stdout).toBe(digest);
  });

  it('with a source: that entry, also one that is an index', async () => {
    const image = await user.run('inspect', 't/all:1', 't/a:1', '--digest');
    expect(image).toMatchObject({ stdout: `${registry.tagOf('t/a', '1')}\n`, stderr: '' });
    const index = await user.run('inspect', 't/mixed:1', 't/x:1');
    expect(JSON.parse(index.stdout).manifests).toHaveLength(2);
    const verbose = JSON.parse((await user.run('inspect', 't/mixed:1', 't/x:1', '-v')).stdout);
    const [first] = verbose as readonly { readonly Ref: string; readonly Descriptor: { readonly digest: string } }[];
    expect(first?.Ref).toBe(`${full('t/x:1')}@${first?.Descriptor.digest}`);
    const json = parsed(await user.run('inspect', 't/mixed:1', 't/x:1', '--json'));
    expect(json).toMatchObject({ draft: 'own', digest: registry.tagOf('t/x', '1') });
  });

  it.each([
    ['an entry that is not in it', ['t/all:1', 't/c:1'], 't/c:1', 'inspect -v'],
    ['an entry of no draft', ['t/none:1', 't/a:1'], 't/a:1', 'There is no draft of'],
    ['--local without a draft', ['--local', 't/a:1'], 't/a:1', 'manifest-publish ls'],
  ])('%s: docker’s words, exit code 4', async (_, words, missing, hint) => {
    const { stdout, stderr, exitCode } = await user.run('inspect', ...words);
    expect(stderr).toContain(`No such manifest: ${full(missing)}\n`);
    expect(stderr).toContain(hint);
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 4 });
  });

  it('of docker’s own is shown when there is none of ours, and stderr says so', async () => {
    const image = makeImage('of docker', { platform: { os: 'linux', architecture: 'arm' } });
    const platform = { os: 'linux', architecture: 'arm', variant: 'v7' };
    const entry = { reference: full('t/d:1'), image, platform };
    writeDockerDraft(join(user.home, '.docker'), full('t/docker:1'), [entry]);
    const { stdout, stderr } = await user.run('inspect', 't/docker:1');
    expect(JSON.parse(stdout).manifests).toEqual([{ ...image.descriptor, platform }]);
    expect(stderr).toContain("this is docker's own draft");
    const one = await user.run('inspect', '-v', 't/docker:1', 't/d:1');
    expect(JSON.parse(one.stdout).Descriptor).toEqual({ ...image.descriptor, platform });
    expect(one.stderr).toContain("this is docker's own draft");
    expect(parsed(await user.run('inspect', 't/docker:1', '--json'))).toMatchObject({ draft: 'docker' });
  });
});

describe('a store that cannot be read', () => {
  it('is told, and the registry is asked; only what can be nothing but a draft ends with exit code 8', async () => {
    const other = newUser(registry);
    mkdirSync(join(other.home, '.docker'));
    writeFileSync(join(other.home, '.docker', 'manifests'), 'no folder');
    const { stdout, stderr, exitCode } = await other.run('inspect', 't/a:1', '--digest');
    expect(stdout).toBe(`${registry.tagOf('t/a', '1')}\n`);
    expect(stderr).toContain('this is what the registry has');
    expect(exitCode).toBe(0);
    expect((await other.run('inspect', 't/a:1', '--local')).exitCode).toBe(8);
    expect((await other.run('inspect', 't/all:1', 't/a:1')).exitCode).toBe(8);
  });
});

describe('the registry', () => {
  it('that has nothing of that name: docker’s words, exit code 4', async () => {
    const { stdout, stderr, exitCode } = await user.run('inspect', 't/none:1');
    expect(stderr).toContain(`no such manifest: ${full('t/none:1')}`);
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 4 });
  });

  it('is asked once for an index, and with -v once more for each image; nothing is written', async () => {
    registry.clearJournal();
    await user.run('inspect', 'linux/amd64=t/x:1');
    expect(registry.journal).toEqual([]);
    await user.run('inspect', 't/x:1');
    expect(registry.journal.map(({ operation }) => operation)).toEqual(['manifestGet']);
    registry.clearJournal();
    await user.run('inspect', 't/x:1', '--verbose');
    expect(registry.journal.map(({ operation }) => operation)).toEqual(['manifestGet', 'manifestGet', 'manifestGet']);
    expect(writes(registry)).toEqual([]);
  });

  it.each([
    ['--remote with an entry', ['t/all:1', 't/a:1', '--remote']],
    ['--remote and --local', ['t/all:1', '--remote', '--local']],
    ['-v and --raw', ['t/all:1', '-v', '--raw']],
    ['-v and --json', ['t/all:1', '-v', '--json']],
    ['three references', ['t/all:1', 't/a:1', 't/b:1']],
  ])('%s is exit code 2', async (_, words) => {
    expect((await user.run('inspect', ...words)).exitCode).toBe(2);
  });
});
