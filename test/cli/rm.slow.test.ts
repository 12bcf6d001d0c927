import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { makeImage, seedImage } from '../helpers/images.ts';
import { startRegistry } from '../helpers/registry.ts';
import { created, filesIn, newUser, type User, writeDockerDraft } from './drafts.ts';
import { parsed } from './program.ts';

let registry: RunningRegistry;
let user: User;

beforeEach(async () => {
  registry = await startRegistry();
  user = newUser(registry);
  seedImage(registry, 't/a', '1', { platform: { os: 'linux', architecture: 'amd64' } });
  for (const list of ['t/one:1', 't/two:1', 't/three:1']) {
    await user.does(created(registry, list), 'create', list, 't/a:1');
  }
  registry.clearJournal();
});

afterEach(() => registry.close());

const full = (reference: string) => `${registry.host}/${reference}`;

describe('rm', () => {
  it('is silent, drops the drafts that are named, and asks no registry', async () => {
    const { stderr } = await user.does('', 'rm', 't/one:1', 't/two:1');
    expect(stderr).toBe('');
    expect(await user.drafts()).toEqual([full('t/three:1')]);
    expect(registry.journal).toEqual([]);
  });

  it('tells each one that is not there, exit code 4, and drops the others', async () => {
    const { stdout, stderr, exitCode } = await user.run('rm', 't/no:1', 't/one:1', 't/none:1');
    expect(stderr).toContain(`No such manifest: ${full('t/no:1')}`);
    expect(stderr).toContain(`No such manifest: ${full('t/none:1')}`);
    expect(stderr).not.toContain('t/one');
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 4 });
    expect(await user.drafts()).toEqual([full('t/three:1'), full('t/two:1')]);
  });

  it('--all drops every draft, and says which files are none', async () => {
    const [file = ''] = Object.keys(filesIn(join(user.home, '.local')));
    const stray = join(dirname(file), 'notes.txt');
    writeFileSync(stray, 'mine');
    const { stderr } = await user.does('', 'rm', '--all');
    expect(stderr).toContain(stray);
    expect(await user.drafts()).toEqual([]);
    expect(Object.keys(filesIn(join(user.home, '.local')))).toEqual([stray]);
    await user.does('', 'rm', '--all');
  });

  it.each([[[]], [['--all', 't/one:1']], [['t/one:1', 'not a reference']]])(
    '%j is exit code 2, and drops nothing',
    async (words) => {
      expect((await user.run('rm', ...words)).exitCode).toBe(2);
      expect(await user.drafts()).toHaveLength(3);
    },
  );

  it('leaves docker’s own to docker, and says how', async () => {
    const docker = join(user.home, '.docker');
    const entry = { reference: full('t/d:1'), image: makeImage('d'), platform: { os: 'linux', architecture: 'arm' } };
    writeDockerDraft(docker, full('t/docker:1'), [entry]);
    const before = filesIn(docker);
    const { stderr, exitCode } = await user.run('rm', 't/docker:1');
    expect(stderr).toContain(`docker manifest rm ${full('t/docker:1')}`);
    expect(exitCode).toBe(4);
    expect((await user.run('rm', '--all')).exitCode).toBe(0);
    expect(filesIn(docker)).toEqual(before);
  });

  it('--json prints what was dropped', async () => {
    expect(parsed(await user.run('rm', 't/one:1', 't/one:1', '--json'))).toEqual({ removed: [full('t/one:1')] });
  });
});
