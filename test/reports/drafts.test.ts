import { describe, expect, it } from 'vitest';
import type { Descriptor } from '../../src/model/descriptor.ts';
import { parseDigest } from '../../src/model/digest.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { MEDIA_TYPES, seedImage } from '../helpers/images.ts';
import type { Finished } from '../helpers/processes.ts';
import { requests, withRegistry, writes } from '../helpers/registry.ts';
import { expectWords, manifestPuts, type Report, scriptAt, withCase } from './report.ts';

const AMD64 = { os: 'linux', architecture: 'amd64' };

/** What a tag holds. */
function entriesOf(registry: RunningRegistry, repository: string, tag: string): readonly Descriptor[] {
  const { bytes } = registry.manifestOf(repository, tag) ?? { bytes: Buffer.from('{"manifests":[]}') };
  expect(registry.missingFrom(repository, tag)).toEqual([]);
  return (JSON.parse(bytes.toString()) as { readonly manifests: readonly Descriptor[] }).manifests;
}

function good(finished: Finished): Finished {
  expect(finished.exitCode, finished.stderr).toBe(0);
  return finished;
}

/** The last line, as `$(... | tail -n1)` has it. */
function lastLine({ stdout }: Finished): string {
  return stdout.trimEnd().split('\n').at(-1) ?? '';
}

describe('drafts', () => {
  it('CLI-01: a rebuilt image gets into the list: --amend reads the tag anew, and without it the draft is refused', () =>
    withCase('CLI-01', async ({ registry, run, script, expect: wanted }) => {
      const [first = '', comment = '', second = ''] = script.trim().split('\n');
      const [, old = '', fresh = ''] = /from (\S+) to (\S+)$/.exec(comment) ?? [];
      good(await run(first));
      expect(entriesOf(registry, 't/all', '1')[0]?.digest).toBe(old);

      registry.setTag('t/a', '1', parseDigest(fresh));
      const refused = await run(first);
      expectWords(refused.stderr, ['no --amend flag', '--amend', '--replace', 'manifest-publish rm']);
      expect(refused.exitCode).toBe(7);
      expect(entriesOf(registry, 't/all', '1')[0]?.digest).toBe(old);

      expect(lastLine(good(await run(second)))).toBe(registry.tagOf('t/all', '1'));
      expect(entriesOf(registry, 't/all', '1')[0]?.digest).toBe(wanted['secondPushChild0']);
    }));

  it('CLI-07: rm of a known list is 0, of an unknown one it is not, and names it', () =>
    withLists(async ({ run, host }) => {
      expect(good(await run('manifest-publish rm HOST/t/all:1')).stdout).toBe('');
      const { stderr, exitCode } = await run('manifest-publish rm HOST/t/all:1');
      expect(stderr).toContain(`No such manifest: ${host}/t/all:1`);
      expect(exitCode).toBe(4);
    }));

  it('CLI-08: rm and push --purge stay on this machine: nothing is ever deleted at a registry', () =>
    withLists(async ({ registry, run }) => {
      good(await run('manifest-publish push HOST/t/all:1'));
      good(await run('manifest-publish rm HOST/t/all:1'));
      good(await run('manifest-publish create HOST/t/all:1 HOST/t/a:1 && manifest-publish push -p HOST/t/all:1'));
      good(await run('manifest-publish create HOST/t/all:1 HOST/t/a:1 && manifest-publish rm --all'));
      expect(registry.journal.filter(({ method }) => method === 'DELETE')).toEqual([]);
      expect(entriesOf(registry, 't/all', '1')).toHaveLength(1);
    }));

  it('CLI-10: annotations of a Docker list are an error that says --type oci, and with it they are there', () =>
    withCase('CLI-10', async ({ registry, run, script }) => {
      const [, words = '', annotation = '', key = '', value = ''] =
        / publish (\S+ .*) (--annotation (\S+?)=(\S+))/.exec(script) ?? [];
      good(await run(`manifest-publish create ${words}`));
      const push = `manifest-publish push ${registry.host}/t/all:1 ${annotation}`;
      for (const command of [script.trim(), push]) {
        const { stderr, exitCode } = await run(command);
        expect(stderr).toContain('--type oci');
        expect(exitCode).toBe(2);
        expect(registry.tags('t/all')).toEqual([]);
      }
      for (const [command, tag] of [[script.trim(), 'published'] as const, [push, 'pushed'] as const]) {
        good(await run(`${command} --type oci -t ${tag}`));
        const { bytes, mediaType } = registry.manifestOf('t/all', tag) ?? { bytes: Buffer.of(), mediaType: '' };
        expect(mediaType).toBe(MEDIA_TYPES.ociIndex);
        expect(JSON.parse(bytes.toString()).annotations).toEqual({ [key]: value });
      }
    }));

  it('MED-05: create refuses a schema 1 image by its name, exit code 2, and keeps no draft', () =>
    withCase('MED-05', async ({ registry, run, expect: wanted }) => {
      const { stdout, stderr, exitCode } = await run();
      expectWords(stderr, wanted['stderrContains']);
      expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 });
      expect(writes(registry)).toHaveLength(Number(wanted['writes']));
      expect((await run('manifest-publish ls')).stdout).toBe('');
    }));

  it('PLT-01: --variant armv7 and armv8 are written as v7 and v8', () =>
    withCase('PLT-01', async ({ registry, run, expect: wanted }) => {
      const { stderr } = good(await run());
      expect(stderr).toContain('"armv7" is written as v7');
      const variants = entriesOf(registry, 'k/app', 'latest').map(({ platform }) => platform?.variant ?? null);
      const allowed = wanted['pushedVariants'] as readonly (string | null)[];
      expect(variants.slice(0, 2)).toEqual(allowed.slice(0, 2));
      expect(['v8', null]).toContain(variants[2]);
      expect((await run('manifest-publish ls')).stdout, '--purge dropped it').toBe('');
    }));

  it('PLT-02: annotate refuses arm64 with variant v7 and says linux/arm/v7', () =>
    withLists(async ({ run }) => {
      const { stderr, exitCode } = await run(
        'manifest-publish annotate HOST/t/all:1 HOST/t/a:1 --os linux --arch arm64 --variant v7',
      );
      expectWords(stderr, ['arm64 has no variant', 'linux/arm/v7']);
      expect(exitCode).toBe(2);
    }));

  it('PLT-05: a second linux/amd64 is told when it is added, and the list is not pushed with both', () =>
    withCase('PLT-05', async ({ registry, run, script }) => {
      const { stderr } = good(await run());
      expectWords(stderr, ['t/a:1', 't/b:1', 'are both for linux/amd64']);
      const list = script.split(' ')[2];
      expect((await run(`manifest-publish push ${list}`)).exitCode).toBe(2);
      expect(registry.tags('t/all')).toEqual([]);
      const [, first = ''] = /(\S+t\/a:1)/.exec(script) ?? [];
      good(await run(`manifest-publish annotate ${list} ${first} --remove && manifest-publish push ${list}`));
      expect(entriesOf(registry, 't/all', '1')).toHaveLength(2);
    }));
});

describe('scripts in daily use', () => {
  it('shape 6: no tag, --amend at the end of the line, armv7 and armv8, inspect, push with --purge last', () =>
    withCase('PLT-01', async ({ registry, run }) => {
      const app = `${registry.host}/k/app`;
      const finished = good(
        await run(
          [
            `manifest-publish create ${app} ${app}:amd64 ${app}:armv7 ${app}:armv8 --amend`,
            `manifest-publish annotate ${app} ${app}:armv7 --os linux --arch arm --variant armv7`,
            `manifest-publish annotate ${app} ${app}:armv8 --os linux --arch arm64 --variant armv8`,
            `manifest-publish inspect ${app}`,
            `manifest-publish push ${app} --purge`,
          ].join(' && '),
        ),
      );
      expect(finished.stdout.startsWith(`Created manifest list ${app}:latest\n{\n   "schemaVersion": 2,\n`)).toBe(true);
      expect(lastLine(finished)).toBe(registry.tagOf('k/app', 'latest'));
      expect(entriesOf(registry, 'k/app', 'latest')).toHaveLength(3);
    }));

  it('shape 7: a second tag for the same list in one call', () =>
    withLists(async ({ registry, run }) => {
      const { stdout } = good(await run('manifest-publish push HOST/t/all:1 -t latest'));
      expect(registry.tagOf('t/all', 'latest')).toBe(registry.tagOf('t/all', '1'));
      expect(stdout.trimEnd().split('\n').at(-1)).toBe(registry.tagOf('t/all', '1'));
      expect(manifestPuts(registry).tags).toHaveLength(2);
    }));

  it('shape 10: --amend before each source, an architecture that docker’s table lacks', () =>
    withLists(async ({ registry, run }) => {
      seedImage(registry, 't/r', '1', { platform: { os: 'linux', architecture: 'riscv64' } });
      seedImage(registry, 't/l', '1', { platform: { os: 'linux', architecture: 'loong64' } });
      const sources = ['a', 'r', 'l'].map((name) => `--amend HOST/t/${name}:1`).join(' ');
      good(await run(`manifest-publish create HOST/t/new:1 ${sources} && manifest-publish push HOST/t/new:1`));
      expect(entriesOf(registry, 't/new', '1').map(({ platform }) => platform?.architecture)).toEqual([
        'amd64',
        'loong64',
        'riscv64',
      ]);
    }));

  it('shape 11: one list for the version and again for latest, --amend before each source', () =>
    withLists(async ({ registry, run }) => {
      seedImage(registry, 't/app', '1-amd64', { platform: AMD64 });
      seedImage(registry, 't/app', '1-arm64', { platform: { os: 'linux', architecture: 'arm64' } });
      const lines = ['1', 'latest'].flatMap((tag) => [
        `manifest-publish create HOST/t/app:${tag} --amend HOST/t/app:1-arm64 --amend HOST/t/app:1-amd64`,
        `manifest-publish push HOST/t/app:${tag}`,
      ]);
      const shown: string[] = [];
      for (const line of lines) shown.push(good(await run(line)).stdout);
      // All in one repository: no line but the digest, no blob but the configs, one PUT for each tag.
      const digest = registry.tagOf('t/app', '1');
      expect(registry.tagOf('t/app', 'latest')).toBe(digest);
      expect(shown.filter((text) => !text.startsWith('Created'))).toEqual([`${digest}\n`, `${digest}\n`]);
      expect(writes(registry)).toHaveLength(2);
      expect(requests(registry, 'blobHead', 'mount', 'uploadPost')).toEqual([]);
    }));
});

/** A registry with t/a:1 for linux/amd64 and a draft t/all:1 of it. `HOST` in a script is the registry. */
async function withLists(
  use: (world: {
    readonly registry: RunningRegistry;
    readonly host: string;
    readonly run: Report['run'];
  }) => Promise<void>,
): Promise<void> {
  await withRegistry({}, (registry) =>
    scriptAt([registry], async (runScript) => {
      seedImage(registry, 't/a', '1', { platform: AMD64 });
      const run = (script = '') => runScript(script.replaceAll('HOST', registry.host));
      good(await run('manifest-publish create HOST/t/all:1 HOST/t/a:1'));
      registry.clearJournal();
      await use({ registry, host: registry.host, run });
    }),
  );
}
