import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { seedAttested, seedImage } from '../helpers/images.ts';
import { startRegistry } from '../helpers/registry.ts';
import { created, filesIn, newUser, type User } from './drafts.ts';
import { parsed } from './program.ts';

let registry: RunningRegistry;
let user: User;

beforeEach(async () => {
  registry = await startRegistry();
  user = newUser(registry);
  seedImage(registry, 't/a', '1', { platform: { os: 'linux', architecture: 'amd64' } });
  seedAttested(registry, 't/b', '1', { os: 'linux', architecture: 'arm', variant: 'v7' });
});

afterEach(() => registry.close());

describe('ls', () => {
  it('without drafts prints nothing on stdout', async () => {
    const { stderr } = await user.does('', 'ls');
    expect(stderr).toBe('no drafts on this machine\n');
  });

  it('lists drafts with their sources and platforms', async () => {
    await user.does(created(registry, 't/two:1'), 'create', 't/two:1', 't/a:1', 't/b:1');
    await user.does(created(registry, 't/one:1'), 'create', 't/one:1', 't/a:1');
    const { stdout, stderr } = await user.run('ls');
    expect(stdout.replaceAll(registry.host, 'HOST').split('\n')).toEqual(
      [
        'LIST          ENTRIES  PLATFORMS',
        'HOST/t/one:1        1  linux/amd64',
        'HOST/t/two:1        2  linux/amd64, linux/arm/v7',
        '',
      ].map((line) => line.replace('LIST          ', `LIST${' '.repeat(registry.host.length + 6)}`)),
    );
    expect(stderr).toBe('');
  });

  it('names files that are no drafts, also with --json', async () => {
    await user.does(created(registry, 't/one:1'), 'create', 't/one:1', 't/a:1');
    await user.does(created(registry, 't/two:1'), 'create', 't/two:1', 't/a:1');
    const file = Object.keys(filesIn(join(user.home, '.local'))).find((path) => path.includes('t_one')) ?? '';
    writeFileSync(file, '{}');
    const { stdout, stderr, exitCode } = await user.run('ls');
    expect(stderr).toContain(file);
    expect(stdout).toContain('t/two:1');
    expect(exitCode).toBe(0);
    const found = parsed(await user.run('ls', '--json'));
    expect(found).toMatchObject({ drafts: [{ reference: `${registry.host}/t/two:1` }], damaged: [file] });
  });
});
