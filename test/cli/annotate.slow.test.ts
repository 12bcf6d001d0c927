import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { makeImage, makeIndex, putBuilt, seedImage } from '../helpers/images.ts';
import { startRegistry } from '../helpers/registry.ts';
import { created, filesIn, newUser, type User, writeDockerDraft } from './drafts.ts';
import { parsed } from './program.ts';

let registry: RunningRegistry;
let user: User;

beforeEach(async () => {
  registry = await startRegistry();
  user = newUser(registry);
  seedImage(registry, 't/a', '1', { platform: { os: 'linux', architecture: 'amd64' } });
  seedImage(registry, 't/b', '1', { platform: { os: 'windows', architecture: 'amd64', 'os.features': ['win32k'] } });
  await user.does(created(registry, 't/all:1'), 'create', 't/all:1', 't/a:1', 't/b:1');
  registry.clearJournal();
});

afterEach(() => registry.close());

const full = (reference: string) => `${registry.host}/${reference}`;
const annotate = (...words: readonly string[]) => user.run('annotate', 't/all:1', ...words);
const platforms = async () => (await user.entries('t/all:1')).map(({ platform }) => platform);

describe('annotate', () => {
  it('is silent, asks no registry, and says what it is told field by field', async () => {
    const { stderr } = await user.does('', 'annotate', 't/all:1', 't/a:1', '--arch', 'arm64', '--variant=v8');
    expect(stderr).toBe('');
    expect(registry.journal).toEqual([]);
    expect((await platforms())[0]).toEqual({ architecture: 'arm64', os: 'linux', variant: 'v8' });
    await user.does('', 'annotate', '--os', 'freebsd', 't/all:1', 't/a:1');
    expect((await platforms())[0]).toEqual({ architecture: 'arm64', os: 'freebsd', variant: 'v8' });
  });

  it('adds os.features, with commas or repeated, and sets os.version', async () => {
    await user.does('', 'annotate', 't/all:1', 't/b:1', '--os-features=x,win32k', '--os-features', 'y');
    await user.does('', 'annotate', 't/all:1', 't/b:1', '--os-version', '10.0.1', '--os-features', 'z');
    expect((await platforms())[1]).toEqual({
      architecture: 'amd64',
      os: 'windows',
      'os.version': '10.0.1',
      'os.features': ['win32k', 'x', 'y', 'z'],
    });
  });

  it('without a flag changes nothing, as docker’s', async () => {
    const before = await platforms();
    await user.does('', 'annotate', 't/all:1', 't/a:1');
    expect(await platforms()).toEqual(before);
  });

  it.each([
    ['armv7', 'arm', 'v7'],
    ['armv8', 'arm64', 'v8'],
  ])('--variant %s of %s is written as %s, and said on stderr', async (written, architecture, variant) => {
    const { stderr } = await user.does(
      '',
      'annotate',
      't/all:1',
      't/a:1',
      '--arch',
      architecture,
      '--variant',
      written,
    );
    expect(stderr).toContain(`"${written}" is written as ${variant}`);
    expect((await platforms())[0]).toEqual({ architecture, os: 'linux', variant });
  });

  it.each([
    ['linux', 'loong64'],
    ['windows', 'arm64'],
    ['wasip1', 'wasm'],
  ])('takes %s/%s, which docker’s table lacks', async (os, architecture) => {
    const { stderr } = await user.does('', 'annotate', 't/all:1', 't/a:1', '--os', os, '--arch', architecture);
    expect(stderr).toBe('');
    expect((await platforms())[0]).toEqual({ architecture, os });
  });

  it('refuses what exists nowhere with a hint, exit code 2, and leaves the draft as it was', async () => {
    const before = filesIn(user.home);
    const { stdout, stderr, exitCode } = await annotate('t/a:1', '--arch', 'arm64', '--variant', 'v7');
    expect(stderr).toContain('hint: Write linux/arm/v7 or linux/arm64.');
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 });
    expect(filesIn(user.home)).toEqual(before);
  });

  it.each([
    ['an entry that is not in the list', ['t/all:1', 't/c:1']],
    ['a list that is not there', ['t/none:1', 't/a:1']],
  ])('%s: docker’s words, exit code 4', async (_, [list = '', source = '']) => {
    const { stdout, stderr, exitCode } = await user.run('annotate', list, source, '--os', 'linux');
    expect(stderr).toContain(`manifest for image ${full(source)} does not exist in ${full(list)}`);
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 4 });
  });

  it.each([
    ['PLATFORM=', ['linux/arm=t/a:1']],
    ['an annotation without a value', ['t/a:1', '--annotation', 'key']],
    ['an annotation of the index', ['t/a:1', '--annotation', 'index:key=value']],
    ['--remove beside something else', ['t/a:1', '--remove', '--os', 'linux']],
  ])('%s is exit code 2', async (_, words) => {
    expect((await annotate(...words)).exitCode).toBe(2);
  });

  it('--remove drops the entry', async () => {
    await user.does('', 'annotate', 't/all:1', 't/a:1', '--remove');
    expect(await user.entries('t/all:1')).toHaveLength(1);
    expect((await annotate('t/a:1', '--remove')).exitCode).toBe(4);
  });

  it('an index of one image means that image; of several it is exit code 2', async () => {
    const image = makeImage('x', { platform: { os: 'linux', architecture: 'arm' } });
    const other = makeImage('y', { platform: { os: 'linux', architecture: 's390x' } });
    putBuilt(registry, 't/one', makeIndex([{ manifest: image }]), '1');
    putBuilt(registry, 't/two', makeIndex([{ manifest: image }, { manifest: other }]), '1');
    await user.does(created(registry, 't/all:1'), 'create', '--replace', 't/all:1', 't/one:1', 't/two:1');
    await user.does('', 'annotate', 't/all:1', 't/one:1', '--variant', 'v6');
    expect((await platforms())[0]).toEqual({ architecture: 'arm', os: 'linux', variant: 'v6' });
    const { stderr, exitCode } = await annotate('t/two:1', '--variant', 'v6');
    expect(stderr).toContain('is an index of 2 images');
    expect(exitCode).toBe(2);
  });

  it('eight processes at once lose nothing', async () => {
    const features = [...'abcdefgh'];
    const runs = features.map((feature) => annotate('t/b:1', '--os-features', feature));
    for (const { exitCode, stderr } of await Promise.all(runs)) expect(exitCode, stderr).toBe(0);
    expect([...((await platforms())[1]?.['os.features'] ?? [])].sort()).toEqual([...features, 'win32k']);
  });

  it('--json prints the draft', async () => {
    const draft = parsed(await annotate('t/a:1', '--annotation', 'k=a=b', '--annotation', 'e=', '--json'));
    expect(draft).toMatchObject({
      reference: full('t/all:1'),
      entries: [{ reference: full('t/a:1'), children: [{ changes: { annotations: { k: 'a=b', e: '' } } }] }, {}],
    });
  });
});

describe('a draft of docker’s own', () => {
  const image = makeImage('of docker', { docker: true, platform: { os: 'linux', architecture: 'arm' } });
  const platform = { os: 'linux', architecture: 'arm' };

  it('is taken over, which stderr says; docker’s files stay as they are', async () => {
    const docker = join(user.home, '.docker');
    writeDockerDraft(docker, full('t/docker:1'), [{ reference: full('t/d:1'), image, platform }]);
    const before = filesIn(docker);
    const { stderr } = await user.does('', 'annotate', 't/docker:1', 't/d:1', '--variant', 'v5');
    expect(stderr).toContain(`docker's own draft of ${full('t/docker:1')}`);
    expect(filesIn(docker)).toEqual(before);
    expect(await user.drafts()).toEqual([full('t/all:1'), full('t/docker:1')]);
    expect((await user.entries('t/docker:1'))[0]?.platform).toEqual({ ...platform, variant: 'v5' });
    const again = await user.does('', 'annotate', 't/docker:1', 't/d:1', '--variant', 'v6');
    expect(again.stderr).toBe('');
  });

  it('is found where DOCKER_CONFIG says, and ours is kept beside it', async () => {
    const docker = join(newUser(registry).home, 'config');
    const other = newUser(registry, { DOCKER_CONFIG: docker });
    writeDockerDraft(docker, full('t/docker:1'), [{ reference: full('t/d:1'), image, platform }]);
    await other.does('', 'annotate', 't/docker:1', 't/d:1', '--variant', 'v5');
    expect(await other.drafts()).toEqual([full('t/docker:1')]);
    expect(filesIn(other.home)).toEqual({});
  });
});
