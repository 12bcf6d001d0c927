import { describe, expect, it, test } from 'vitest';
import type { MountCheck } from '../../src/publish/mount-check-report.ts';
import type { RegistryOptions, RegistryUser, RunningRegistry } from '../../src/registry-server/index.ts';
import { parsed } from '../cli/program.ts';
import { seedImage } from '../helpers/images.ts';
import type { Finished } from '../helpers/processes.ts';
import { requests, withRegistries, withRegistry, writes } from '../helpers/registry.ts';
import { loginFor, program } from './report.ts';

const TARGET = 'debian/debian';
const SOURCE = 'debian/amd64:bullseye';

/** GHCR and Harbor let nobody cancel, so that no session of theirs ever ends. */
const CANCELLING = { upload: { cancel: '204' } } as const;

/** The source and, for registries where a push creates none, the target. */
function withSource(options: RegistryOptions, use: (registry: RunningRegistry) => Promise<void>): Promise<void> {
  return withRegistry({ options }, (registry) => {
    registry.createRepository(TARGET);
    seedImage(registry, 'debian/amd64', 'bullseye');
    return use(registry);
  });
}

/** `mount-check` of the one pair, as `robot` or somebody else. */
function check(registry: RunningRegistry, flags: readonly string[] = [], user = 'robot'): Promise<Finished> {
  const words = ['mount-check', `${registry.host}/${TARGET}`, `${registry.host}/${SOURCE}`, ...flags];
  return program([registry], words, { logins: loginFor(registry.host, user, 'secret') });
}

function documentOf(finished: Finished): MountCheck & { readonly error?: { readonly code: string } } {
  return parsed(finished) as unknown as MountCheck;
}

describe('mount-check', () => {
  test.each([
    ['ecr-mounting', 'referenced'],
    ['ecr-public', 'never'],
    ['serverless', 'existence'],
    ['quay', 'existence'],
    ['ghcr', 'existence'],
    ['harbor', 'existence'],
    ['zot', 'discovery'],
  ])('tells with a login that %s mounts by %s', (profile, verdict) =>
    withSource({ profile, changes: CANCELLING }, async (registry) => {
      const good = await check(registry, ['--write', '--json', '--expect', verdict]);
      expect(good.exitCode, good.stderr).toBe(0);
      expect(documentOf(good)).toMatchObject({ schemaVersion: 1, write: true, verdict });
      const uploads = requests(registry, 'uploadPut').map(({ repository }) => repository);
      expect(uploads).toEqual(['debian/amd64']);
    }),
  );

  it('of aws/containers-roadmap#2860: HEAD 200 and mount 202, until a manifest names the blob', () =>
    withSource({ profile: 'ecr-mounting' }, async (registry) => {
      const finished = await check(registry, ['--write']);
      expect(finished.exitCode, finished.stderr).toBe(0);
      const answers = finished.stdout
        .split('\n')
        .map((line) => /^ *\d+ {2}(\w+) +(\w+(?: \w+)*?) {2,}\S+ +(\d{3}) /.exec(line)?.slice(1).join(' '))
        .filter((line) => line !== undefined);
      expect(answers).toEqual([
        'GET manifest 200',
        'POST upload 202',
        'PUT blob 201',
        'HEAD blob 200',
        'POST mount without from 202',
        'POST mount with from 202',
        'PUT manifest 201',
        'HEAD manifest 200',
        'POST mount with from 201',
        'HEAD blob 200',
        'DELETE manifest 202',
        'DELETE blob 202',
        'DELETE blob 202',
      ]);
      expect(finished.stdout).toMatch(/^verdict {3}referenced$/m);
      expect(finished.stdout).toContain('distribution-spec v1.1.1, section "Mounting a blob from another repository"');
      expect(finished.stderr).toMatch(/^warning: mount-check writes: uploads sha256:/);
      // The image is as it was, and nothing of ours is left.
      expect(registry.repositories().flatMap((name) => registry.tags(name))).toEqual(['bullseye']);
    }));

  it('ends with 6 where another verdict was expected, and the document still tells all', () =>
    withSource({ profile: 'ecr-mounting' }, async (registry) => {
      const finished = await check(registry, ['--write', '--json', '--expect', 'existence']);
      expect(finished.exitCode).toBe(6);
      expect(documentOf(finished)).toMatchObject({ verdict: 'referenced', error: { code: 'VERIFY_FAILED' } });
      const shown = await check(registry, ['--write', '--expect', 'existence']);
      expect(shown.exitCode).toBe(6);
      expect(shown.stdout).toContain('verdict   referenced');
      expect(shown.stderr).toContain('the verdict is referenced, not existence');
    }));

  it('ends with 5 where it was not asked what is expected', () =>
    withSource({}, async (registry) => {
      const finished = await check(registry, ['--json', '--expect', 'existence']);
      expect(finished.exitCode).toBe(5);
      expect(documentOf(finished)).toMatchObject({ verdict: 'mounts', write: false });
    }));

  it('ends with 5 where the mount is refused, and tells status, code and what publish does', () =>
    withSource({ changes: { mount: { mode: 'off(403)' } } }, async (registry) => {
      const finished = await check(registry, ['--json']);
      expect(finished.exitCode).toBe(5);
      const document = documentOf(finished);
      expect(document).toMatchObject({ verdict: 'unknown', error: { code: 'REGISTRY_FAILED' } });
      expect(document.unknown?.because).toContain('403 DENIED');
      expect(document.publish).toContain('opens an upload without mount');
    }));
});

describe('mount-check and rights', () => {
  const users = (access: RegistryUser['access']): readonly RegistryUser[] => [
    { name: 'some', password: 'secret', ...(access === undefined ? {} : { access }) },
  ];

  test.each(['ecr-off', 'ghcr', 'harbor'])(
    '--write without a right to push to the source is 3, and nothing is written (%s)',
    (profile) =>
      withSource({ profile, users: users({ 'debian/amd64': 'pull', [TARGET]: 'push' }) }, async (registry) => {
        const finished = await check(registry, ['--write'], 'some');
        expect(finished.exitCode, finished.stderr).toBe(3);
        expect(finished.stderr).toMatch(/hint: Log in with a right to push to .*debian\/amd64, which --write needs/);
        expect(writes(registry).filter(({ status = 0 }) => status < 300)).toEqual([]);
      }),
  );

  test.each(['ecr-off', 'ghcr', 'harbor'])('without a right to push to the target is 3 (%s)', (profile) =>
    withSource({ profile, users: users({ 'debian/amd64': 'pull', [TARGET]: 'pull' }) }, async (registry) => {
      const finished = await check(registry, [], 'some');
      expect(finished.exitCode, finished.stdout + finished.stderr).toBe(3);
      expect(finished.stderr).toContain(TARGET);
    }),
  );

  it('a source that may not be read is 3 (Harbor)', () =>
    withSource({ profile: 'harbor', users: users({ 'debian/amd64': 'none', [TARGET]: 'push' }) }, async (registry) => {
      const finished = await check(registry, [], 'some');
      expect(finished.exitCode).toBe(3);
      expect(writes(registry)).toEqual([]);
    }));

  it('shows no secret, whatever is asked to be shown', () =>
    withSource({ profile: 'harbor', changes: CANCELLING }, async (registry) => {
      const finished = await check(registry, ['--write', '--debug', '--json']);
      expect(finished.exitCode, finished.stderr).toBe(0);
      const all = finished.stdout + finished.stderr;
      const shown = registry.journal.map(({ headers }) => headers['authorization']?.split(' ')[1] ?? '');
      for (const secret of shown.filter((text) => text !== '')) expect(all).not.toContain(secret);
      expect(all).not.toContain('_state=');
    }));
});

describe('mount-check and its words', () => {
  const refused = async (words: readonly string[], registries: readonly RunningRegistry[]) => {
    const finished = await program(registries, ['mount-check', ...words]);
    expect(finished.exitCode, finished.stderr).toBe(2);
    for (const registry of registries) expect(registry.journal).toEqual([]);
    return finished.stderr;
  };

  it('two registries are 2, and neither is asked', () =>
    withRegistries('spec', 'spec', async (one, two) => {
      const stderr = await refused([`${one.host}/${TARGET}`, `${two.host}/${SOURCE}`], [one, two]);
      expect(stderr).toContain('mounts work within one registry');
    }));

  test.each([
    ['the target as its own source', [`HOST/${TARGET}`, `HOST/${TARGET}:1`], /both target and source/],
    ['an unknown verdict', [`HOST/${TARGET}`, `HOST/${SOURCE}`, '--expect', 'maybe'], /--expect must be one of/],
    ['one argument', [`HOST/${TARGET}`], /missing argument SOURCE/],
  ])('%s is 2, and nothing is asked', (_, words, message) =>
    withRegistry('spec', async (registry) => {
      const own = words.map((word) => word.replace('HOST', registry.host));
      expect(await refused(own, [registry])).toMatch(message);
    }),
  );

  it('a source that is not there is 4', () =>
    withRegistry('spec', async (registry) => {
      const finished = await check(registry, ['--json']);
      expect(finished.exitCode).toBe(4);
      expect(parsed(finished)).toMatchObject({ error: { code: 'MANIFEST_NOT_FOUND', side: 'source' } });
      expect(writes(registry)).toEqual([]);
    }));

  it('-q leaves stderr empty, --progress json keeps it to one event a line', () =>
    withSource({}, async (registry) => {
      const quiet = await check(registry, ['--quiet']);
      expect(quiet).toMatchObject({ exitCode: 0, stderr: '' });
      expect(quiet.stdout).toContain('verdict   mounts');
      const events = await check(registry, ['--progress', 'json']);
      const lines = events.stderr.trim().split('\n');
      expect(lines.map((line) => JSON.parse(line))).toEqual([
        { kind: 'warning', text: expect.stringContaining('mount-check writes: mounts sha256:') },
      ]);
    }));
});
