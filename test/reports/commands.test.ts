import { describe, expect, it } from 'vitest';
import { seedDebian } from '../../src/registry-server/index.ts';
import { parsed } from '../cli/program.ts';
import { seedImage } from '../helpers/images.ts';
import { sourcesOf } from '../helpers/publishing.ts';
import { requests, withRegistry, writes } from '../helpers/registry.ts';
import { expectWords, manifestPuts, publishAt, published, withCase } from './report.ts';

describe('commands', () => {
  it('CLI-02: an image that was never pushed: its full name, the host that was asked, the status, and to push it first', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 'team/app', 'amd64');
      const finished = await publishAt(registry, 'team/app:1', ['team/app:amd64', 'team/app:arm64']);
      expectWords(finished.stderr, [
        `${registry.host}/team/app:arm64 is not there`,
        `${registry.host} answered 404`,
        'Push it first',
      ]);
      expect({ stdout: finished.stdout, exitCode: finished.exitCode }).toEqual({ stdout: '', exitCode: 4 });
      expect(writes(registry)).toEqual([]);
    }));

  it('CLI-03: all sources that are missing are named, and nothing is written', () =>
    withCase('CLI-03', async ({ registry, run, expect: wanted }) => {
      const { stdout, stderr, exitCode } = await run();
      expectWords(stderr, wanted['stderrContains']);
      expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 4 });
      expect(writes(registry)).toHaveLength(Number(wanted['writes']));
    }));

  it('CLI-11: the merge job puts one index under four tags, and neither asks for nor sends a blob but the configs', () =>
    withCase('CLI-11', async ({ registry, run, script, expect: wanted }) => {
      const { digest, entries } = published(registry, await run(), 'acme/app:1.2.3');
      const tags = ['1.2.3', ...[...script.matchAll(/--tag (\S+)/g)].map(([, tag = '']) => tag)];
      expect(tags).toHaveLength(4);
      expect(registry.tags('acme/app')).toEqual([...tags].sort());
      for (const tag of tags) expect(registry.tagOf('acme/app', tag)).toBe(digest);
      expect(entries).toHaveLength(2);
      const { children, tags: moved } = manifestPuts(registry);
      expect({ children: children.length, moved: moved.length }).toEqual({ children: 0, moved: 4 });
      const blobWrites = writes(registry).filter(({ operation }) => operation !== 'manifestPut');
      expect(blobWrites).toHaveLength(Number(wanted['blobWrites']));
      expect(requests(registry, 'blobHead', 'manifestHead')).toEqual([]);
      expect(requests(registry, 'blobGet')).toHaveLength(2);
    }));

  it.each([
    ['manifestGet', 't/a'],
    ['uploadPut', 't/all'],
    ['manifestPut', 't/all'],
  ] as const)(
    'CLI-14: a 401 to a %s is shown with status, code, message, repository and action, not hidden by retries',
    (operation, repository) =>
      withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
        seedImage(registry, 't/a', '1', { layers: 1 });
        const body = '{"errors":[{"code":"UNAUTHORIZED","message":"access token has insufficient scopes"}]}';
        const headers = { 'Content-Type': 'application/json' };
        const action = { kind: 'answer', status: 401, headers, body } as const;
        registry.addFault({ operation, repository, times: Number.POSITIVE_INFINITY, action });
        const finished = await publishAt(registry, 't/all:1', ['t/a:1']);
        expectWords(finished.stderr, [
          `needs ${operation === 'manifestGet' ? 'pull' : 'pull,push'}, and no login was found for ${registry.host}/${repository}`,
          `${registry.host} answered 401 UNAUTHORIZED: "access token has insufficient scopes"`,
        ]);
        expect({ stdout: finished.stdout, exitCode: finished.exitCode }).toEqual({ stdout: '', exitCode: 3 });
        const refused = requests(registry, operation).filter(({ status }) => status === 401);
        const asked = refused.map(({ path, query }) => (operation === 'uploadPut' ? query : path));
        for (const one of asked) expect(asked.filter((other) => other === one).length).toBeLessThanOrEqual(2);
        const json = await publishAt(registry, 't/all:1', ['t/a:1'], { flags: ['--json'] });
        const error = { code: 'UNAUTHORIZED', status: 401, registry: registry.host, repository, exitCode: 3 };
        expect(parsed(json)).toMatchObject({ error });
        expect(registry.tagMoves).toEqual([]);
      }),
  );

  it('CLI-15: the same command again writes nothing and ends well with the same digest', () =>
    withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
      const sources = sourcesOf(seedDebian(registry));
      const first = published(
        registry,
        await publishAt(registry, 'debian/debian:1', sources, { flags: ['-t', '2'] }),
        'debian/debian:1',
      );
      registry.clearJournal();
      const second = published(
        registry,
        await publishAt(registry, 'debian/debian:1', sources, { flags: ['-t', '2'] }),
        'debian/debian:1',
      );
      expect(second.digest).toBe(first.digest);
      expect(writes(registry)).toEqual([]);
    }));
});
