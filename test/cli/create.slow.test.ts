import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { makeImage, makeIndex, putBuilt, seedAttested, seedImage } from '../helpers/images.ts';
import { requests, startRegistry, withRegistry, writes } from '../helpers/registry.ts';
import { created, filesIn, newUser, type User, writeDockerDraft } from './drafts.ts';
import { parsed } from './program.ts';

let registry: RunningRegistry;
let user: User;

beforeEach(async () => {
  registry = await startRegistry();
  user = newUser(registry);
  seedImage(registry, 't/a', '1', { platform: { os: 'linux', architecture: 'amd64' } });
  seedImage(registry, 't/b', '1', { platform: { os: 'linux', architecture: 'arm64' } });
});

afterEach(() => registry.close());

const full = (reference: string) => `${registry.host}/${reference}`;
const digestOf = (repository: string, tag = '1') => String(registry.tagOf(repository, tag));
const digests = async (list = 't/all:1') => (await user.entries(list)).map(({ digest }) => digest);

describe('create', () => {
  it('says what docker says, and keeps a draft that only this user can read; nothing is written to the registry', async () => {
    const { stderr } = await user.does(created(registry, 't/all:1'), 'create', 't/all:1', 't/a:1', 't/b:1');
    expect(stderr).toBe('');
    expect(writes(registry)).toEqual([]);
    expect(await user.drafts()).toEqual([full('t/all:1')]);
    expect(await digests()).toEqual([digestOf('t/a'), digestOf('t/b')]);
    const [file = '', ...more] = Object.keys(filesIn(join(user.home, '.local')));
    expect(more).toEqual([]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('takes LIST without a tag as latest', () =>
    user.does(created(registry, 't/all:latest'), 'create', 't/all', 't/a:1').then(() => undefined));

  it('--json prints the draft', async () => {
    const draft = parsed(await user.run('create', 't/all:1', 't/a:1', '--json'));
    expect(draft).toMatchObject({ reference: full('t/all:1'), entries: [{ reference: full('t/a:1') }] });
  });

  it('one source that is missing: its name, exit code 4, and no draft that would be in the way of the next try', async () => {
    const { stdout, stderr, exitCode } = await user.run('create', 't/all:1', 't/a:1', 't/nope:1');
    expect(stderr).toContain(`no such manifest: ${full('t/nope:1')}`);
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 4 });
    expect(await user.drafts()).toEqual([]);
    seedImage(registry, 't/nope', '1', { platform: { os: 'linux', architecture: 's390x' } });
    await user.does(created(registry, 't/all:1'), 'create', 't/all:1', 't/a:1', 't/nope:1');
  });

  it.each([
    ['A/b c', 'error parsing name for manifest list'],
    ['t/all:1@sha256:0', 'error parsing name for manifest list'],
    [`t/all@sha256:${'0'.repeat(64)}`, 'a target cannot have a digest'],
  ])('LIST %j is exit code 2: %s', async (list, message) => {
    const { stderr, exitCode } = await user.run('create', list, 't/a:1');
    expect(stderr).toContain(message);
    if (message.startsWith('error')) expect(stderr).toContain('invalid reference format');
    expect(exitCode).toBe(2);
    expect(registry.journal).toEqual([]);
  });

  it.each([
    ['$DOCKER_CONFIG', { DOCKER_CONFIG: 'docker' }, 'docker/manifest-publish'],
    ['$XDG_DATA_HOME', { XDG_DATA_HOME: 'data' }, 'data/manifest-publish'],
    ['$MANIFEST_PUBLISH_DATA_DIR', { DOCKER_CONFIG: 'docker', MANIFEST_PUBLISH_DATA_DIR: 'own' }, 'own'],
  ])('keeps drafts where %s says', async (_, names, place) => {
    const root = newUser(registry).home;
    const env = Object.fromEntries(Object.entries(names).map(([name, folder]) => [name, join(root, folder)]));
    const other = newUser(registry, env);
    await other.does(created(registry, 't/all:1'), 'create', 't/all:1', 't/a:1');
    const files = Object.keys(filesIn(root));
    expect(files).toHaveLength(1);
    expect(files[0]).toContain(join(root, place));
    expect(filesIn(other.home)).toEqual({});
  });
});

describe('a draft that is there', () => {
  beforeEach(async () => {
    await user.does(created(registry, 't/all:1'), 'create', 't/all:1', 't/a:1');
    registry.clearJournal();
  });

  it('is refused with docker’s words before anything is asked, exit code 7, and what to do instead', async () => {
    const before = filesIn(user.home);
    const { stdout, stderr, exitCode } = await user.run('create', 't/all:1', 't/b:1');
    expect(stderr).toContain('refusing to amend an existing manifest list with no --amend flag');
    for (const word of ['--amend', '--replace', `manifest-publish rm ${full('t/all:1')}`])
      expect(stderr).toContain(word);
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 7 });
    expect(registry.journal).toEqual([]);
    expect(filesIn(user.home)).toEqual(before);
  });

  it('--amend adds to it, --replace starts afresh', async () => {
    await user.does(created(registry, 't/all:1'), 'create', '-a', 't/all:1', 't/b:1');
    expect(await digests()).toEqual([digestOf('t/a'), digestOf('t/b')]);
    await user.does(created(registry, 't/all:1'), 'create', '--replace', 't/all:1', 't/b:1');
    expect(await digests()).toEqual([digestOf('t/b')]);
    await user.does(created(registry, 't/new:1'), 'create', '--amend', 't/new:1', 't/b:1');
    await user.does(created(registry, 't/newer:1'), 'create', '--replace', 't/newer:1', 't/b:1');
    expect((await user.run('create', '--amend', '--replace', 't/all:1', 't/b:1')).exitCode).toBe(2);
  });

  it('--amend reads tags anew that have moved, of sources given and not, and keeps what annotate said', async () => {
    await user.does('', 'annotate', 't/all:1', 't/a:1', '--variant', 'v2', '--annotation', 'k=v');
    seedImage(registry, 't/a', '1', { platform: { os: 'linux', architecture: 'amd64' }, seed: 'new a' });
    await user.does(created(registry, 't/all:1'), 'create', '--amend', 't/all:1', 't/b:1');
    expect(await user.entries('t/all:1')).toMatchObject([
      { digest: digestOf('t/a'), platform: { os: 'linux', architecture: 'amd64', variant: 'v2' } },
      { digest: digestOf('t/b') },
    ]);
    seedImage(registry, 't/a', '1', { platform: { os: 'linux', architecture: 'amd64' }, seed: 'newer a' });
    await user.does(created(registry, 't/all:1'), 'create', '--amend', 't/all:1', 't/a:1');
    const [a] = await user.entries('t/all:1');
    expect(a).toMatchObject({ digest: digestOf('t/a'), platform: { variant: 'v2' } });
    const { drafts } = parsed(await user.run('ls', '--json')) as {
      drafts: readonly { entries: readonly { children: readonly { changes: object }[] }[] }[];
    };
    expect(drafts[0]?.entries[0]?.children[0]?.changes).toMatchObject({ annotations: { k: 'v' } });
  });

  it('--amend asks once for a tag that has not moved, and keeps what a tag named that is gone', async () => {
    await user.does(created(registry, 't/all:1'), 'create', '--amend', 't/all:1', 't/b:1');
    expect(requests(registry).filter(({ path }) => path.includes('/t/a/'))).toHaveLength(1);
    const old = digestOf('t/a');
    registry.addFault({
      operation: 'manifestGet',
      repository: 't/a',
      times: 9,
      action: { kind: 'answer', status: 404 },
    });
    const { stderr } = await user.does(created(registry, 't/all:1'), 'create', '--amend', 't/all:1', 't/b:1');
    expect(stderr).toContain(`${full('t/a:1')} is not there any more; the draft keeps ${old}`);
    expect(await digests()).toEqual([old, digestOf('t/b')]);
  });

  it('--amend that fails leaves it as it was', async () => {
    const before = filesIn(user.home);
    const failed = await user.run('create', '--amend', 't/all:1', 't/b:1', 't/nope:1');
    expect(failed.exitCode).toBe(4);
    expect(filesIn(user.home)).toEqual(before);
  });

  it('two processes that amend it at once lose nothing', async () => {
    for (const name of ['c', 'd', 'e', 'f']) {
      seedImage(registry, `t/${name}`, '1', { platform: { os: 'linux', architecture: `arch${name}` } });
    }
    const runs = ['b', 'c', 'd', 'e', 'f'].map((name) => user.run('create', '--amend', 't/all:1', `t/${name}:1`));
    for (const { exitCode, stderr } of await Promise.all(runs)) expect(exitCode, stderr).toBe(0);
    expect(await digests()).toHaveLength(6);
  });

  it('that is damaged is named, and --replace or rm get rid of it', async () => {
    const [file = ''] = Object.keys(filesIn(user.home));
    for (const way of [
      ['create', '--replace', 't/all:1', 't/b:1'],
      ['rm', 't/all:1'],
    ]) {
      writeFileSync(file, '{"half');
      for (const words of [
        ['create', 't/all:1', 't/b:1'],
        ['create', '--amend', 't/all:1', 't/b:1'],
      ]) {
        const { stderr, exitCode } = await user.run(...words);
        expect(stderr).toContain(file);
        expect(exitCode).toBe(8);
      }
      expect((await user.run(...way)).exitCode).toBe(0);
    }
    expect(await user.drafts()).toEqual([]);
  });

  it('of docker’s own counts too: refused, taken over by --amend, left alone by --replace', async () => {
    const docker = join(user.home, '.docker');
    const image = makeImage('of docker', { platform: { os: 'linux', architecture: 'arm' } });
    putBuilt(registry, 't/d', image, '1');
    const platform = { os: 'linux', architecture: 'arm', variant: 'v6' };
    writeDockerDraft(docker, full('t/docker:1'), [{ reference: full('t/d:1'), image, platform }]);
    const before = filesIn(docker);

    const refused = await user.run('create', 't/docker:1', 't/b:1');
    expect(refused.stderr).toContain('refusing to amend an existing manifest list with no --amend flag');
    expect(refused.stderr).toContain(`docker manifest rm ${full('t/docker:1')}`);
    expect(refused.exitCode).toBe(7);

    const { stderr } = await user.does(created(registry, 't/docker:1'), 'create', '-a', 't/docker:1', 't/b:1');
    expect(stderr).toContain("docker's own draft");
    expect(await user.entries('t/docker:1')).toMatchObject([
      { digest: digestOf('t/b') },
      { digest: image.descriptor.digest, platform },
    ]);
    await user.does(created(registry, 't/docker:1'), 'create', '--replace', 't/docker:1', 't/b:1');
    expect(await digests('t/docker:1')).toEqual([digestOf('t/b')]);
    expect(filesIn(docker)).toEqual(before);
  });
});

describe('sources', () => {
  it('that are indexes are taken in with their attestations', async () => {
    seedAttested(registry, 't/x', '1', { os: 'linux', architecture: 'riscv64' });
    await user.does(created(registry, 't/all:1'), 'create', 't/all:1', 't/a:1', 't/x:1');
    expect((await user.entries('t/all:1')).map(({ platform }) => platform.architecture)).toEqual([
      'amd64',
      'riscv64',
      'unknown',
    ]);
  });

  it('may be at other registries, and for systems that docker’s table lacks', () =>
    withRegistry({}, async (other) => {
      seedImage(other, 'else/where', '1', { platform: { os: 'linux', architecture: 'loong64' } });
      const source = `${other.host}/else/where:1`;
      await user.does(created(registry, 't/all:1'), 'create', 't/all:1', 't/a:1', source);
      expect((await user.entries('t/all:1')).map(({ platform }) => platform.architecture).sort()).toEqual([
        'amd64',
        'loong64',
      ]);
    }));

  it('may be a bare digest, which is of the repository of LIST', async () => {
    const image = seedImage(registry, 't/all', 'x');
    await user.does(created(registry, 't/all:1'), 'create', 't/all:1', image.descriptor.digest);
    expect(await digests()).toEqual([image.descriptor.digest]);
  });

  it('may say their platform: it is what annotate would say', async () => {
    await user.does(created(registry, 't/all:1'), 'create', 't/all:1', 'linux/arm/v7=t/a:1', 'armel=t/b:1');
    expect((await user.entries('t/all:1')).map(({ platform }) => platform)).toEqual([
      { architecture: 'arm', os: 'linux', variant: 'v7' },
      { architecture: 'arm', os: 'linux', variant: 'v5' },
    ]);
  });

  it('PLATFORM= of an index picks the image, also when the tag has moved', async () => {
    const index = (seed: string) => {
      const entries = ['amd64', 'arm64', 's390x'].map((architecture) => {
        const platform = { os: 'linux', architecture };
        return { manifest: makeImage(`${seed} ${architecture}`, { platform }), platform };
      });
      putBuilt(registry, 't/x', makeIndex(entries), '1');
      return entries.map(({ manifest }) => manifest.descriptor.digest);
    };
    const [, arm64 = ''] = index('old');
    const list = created(registry, 't/all:1');
    await user.does(list, 'create', 't/all:1', 'linux/arm64=t/x:1');
    expect(await digests()).toEqual([arm64]);
    const [, moved = ''] = index('new');
    await user.does(list, 'create', '--amend', 't/all:1', 't/a:1');
    expect((await digests()).sort()).toEqual([digestOf('t/a'), moved].sort());

    const { stderr, exitCode } = await user.run('create', '--replace', 't/all:1', 'linux/riscv64=t/x:1');
    expect(stderr).toContain('PLATFORM_NOT_FOUND');
    expect(exitCode).toBe(4);
    expect((await digests()).sort()).toEqual([digestOf('t/a'), moved].sort());
  });

  it('PLATFORM= of one index twice picks both; of one image twice the last counts, which is told', async () => {
    const index = (seed: string) => {
      const entries = ['amd64', 'arm64', 's390x'].map((architecture) => {
        const platform = { os: 'linux', architecture };
        return { manifest: makeImage(`${seed} ${architecture}`, { platform }), platform };
      });
      putBuilt(registry, 't/x', makeIndex(entries), '1');
      return entries.map(({ manifest }) => manifest.descriptor.digest);
    };
    const old = index('old');
    const list = created(registry, 't/all:1');
    await user.does(list, 'create', 't/all:1', 'linux/s390x=t/x:1', 'linux/amd64=t/x:1');
    expect(await digests()).toEqual([old[2], old[0]]);
    const moved = index('new');
    await user.does(list, 'create', '--amend', 't/all:1', 't/a:1');
    expect((await digests()).sort()).toEqual([digestOf('t/a'), moved[0], moved[2]].sort());
    const words = ['linux/arm/v6=t/a:1', 't/b:1', 'linux/arm/v5=t/a:1'];
    const { stderr } = await user.does(list, 'create', '--replace', 't/all:1', ...words);
    expect(stderr).toContain(`${full('t/a:1')} is given twice`);
    expect((await user.entries('t/all:1')).map(({ platform }) => platform.variant)).toEqual(['v5', undefined]);
    expect((await user.does(list, 'create', '--replace', 't/all:1', 't/a:1', 't/a:1')).stderr).toBe('');
  });

  it('PLATFORM= of an index with one image labels that image, not its attestation', async () => {
    seedAttested(registry, 't/x', '1', { os: 'linux', architecture: 'arm' });
    await user.does(created(registry, 't/all:1'), 'create', 't/all:1', 'linux/arm/v6=t/x:1');
    expect((await user.entries('t/all:1')).map(({ platform }) => platform)).toEqual([
      { architecture: 'arm', os: 'linux', variant: 'v6' },
      { architecture: 'unknown', os: 'unknown' },
    ]);
  });

  it('whose config tells half of the platform need only the other half from annotate', async () => {
    seedImage(registry, 't/os', '1', { platform: { os: 'linux' } });
    seedImage(registry, 't/arch', '1', { platform: { architecture: 'arm', variant: 'v6' } });
    await user.does(created(registry, 't/all:1'), 'create', 't/all:1', 't/arch:1', 't/os:1');
    expect((await user.entries('t/all:1')).map(({ platform }) => platform)).toEqual([
      { architecture: 'arm', os: '', variant: 'v6' },
      { architecture: '', os: 'linux' },
    ]);
    await user.does('', 'annotate', 't/all:1', 't/os:1', '--arch', 's390x');
    await user.does('', 'annotate', 't/all:1', 't/arch:1', '--os', 'linux');
    expect((await user.entries('t/all:1')).map(({ platform }) => platform)).toEqual([
      { architecture: 'arm', os: 'linux', variant: 'v6' },
      { architecture: 's390x', os: 'linux' },
    ]);
  });

  it('two for one platform, and one that tells none, are told on stderr', async () => {
    seedImage(registry, 't/c', '1', { platform: { os: 'linux', architecture: 'amd64' } });
    seedImage(registry, 't/d', '1', { platform: {} });
    const { stderr } = await user.does(created(registry, 't/all:1'), 'create', 't/all:1', 't/a:1', 't/c:1', 't/d:1');
    expect(stderr).toContain(`${full('t/a:1')} and ${full('t/c:1')} are both for linux/amd64`);
    expect(stderr).toContain(`${full('t/d:1')} tells no os or no architecture`);
    expect(await digests()).toHaveLength(3);
  });
});
