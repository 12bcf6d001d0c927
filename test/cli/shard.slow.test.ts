import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { isDigest } from '../../src/model/digest.ts';
import type { PublishReport } from '../../src/publish/report.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { seedImage } from '../helpers/images.ts';
import { type Finished, run } from '../helpers/processes.ts';
import { requests, withRegistry, writes } from '../helpers/registry.ts';
import { BIN, cli, emptyFolder, variables } from './program.ts';
import { together } from './shard-run.ts';

const SHARDS = 8;
const LISTS = 80;
/** Each has two lists, which belong together. */
const REPOSITORIES = LISTS / 2;

/** 80 lists in 40 repositories, of images that they share in part. */
function stage(registry: RunningRegistry) {
  const folder = emptyFolder();
  const { host } = registry;
  const source = (name: string, architecture: string) => {
    seedImage(registry, `s/${name}-${architecture}`, '1', { platform: { os: 'linux', architecture }, layers: 1 });
    return `${host}/s/${name}-${architecture}:1`;
  };
  const shared = ['amd64', 'arm64'].map((architecture) => source('base', architecture));
  const lists = Array.from({ length: LISTS }, (_, at) => {
    const own = at % 5 === 0 ? [source(`own${at}`, 's390x')] : [];
    const sources = [...shared, ...own].map((reference) => `'${reference}'`).join(', ');
    return `- { target: '${host}/x/r${at % REPOSITORIES}:t${at}', sources: [${sources}] }`;
  });
  writeFileSync(join(folder, 'lists.yaml'), `lists:\n${lists.join('\n')}\n`);
  mkdirSync(join(folder, 'reports'));
  return folder;
}

const shardWords = (index: number) => [
  ...['publish', '-f', 'lists.yaml', '--shard', `${index}/${SHARDS}`],
  ...['--report', `reports/shard-${index}.json`],
];

const shard = (index: number) => ({ program: process.execPath, words: [BIN, ...shardWords(index)] });

const tagPuts = (registry: RunningRegistry) =>
  requests(registry, 'manifestPut').filter(({ reference }) => !isDigest(reference));

const linesOf = (finished: readonly Finished[]) => finished.flatMap(({ stdout }) => stdout.split('\n').filter(Boolean));

function merged({ stdout }: Finished): PublishReport {
  return JSON.parse(stdout) as PublishReport;
}

/** The digest of each tag, as a run that only looks says. */
async function expected(folder: string): Promise<readonly string[]> {
  return linesOf([await cli(folder, ['publish', '-f', 'lists.yaml', '--dry-run'])]).sort();
}

const all = Array.from({ length: SHARDS }, (_, at) => at + 1);

describe('8 shards over 80 lists', () => {
  it('publish each list once, and the joined report is complete', () =>
    withRegistry({}, async (registry) => {
      const folder = stage(registry);
      const wanted = await expected(folder);
      registry.clearJournal();
      const finished = await together(folder, all.map(shard));
      expect(finished.map(({ exitCode }) => exitCode)).toEqual(all.map(() => 0));
      expect(linesOf(finished).sort()).toEqual(wanted);
      expect(tagPuts(registry)).toHaveLength(LISTS);
      expect(new Set(tagPuts(registry).map(({ path }) => path)).size).toBe(LISTS);
      // 40 repositories of two lists each: five for each shard, give or take what the sources weigh.
      for (const { stderr } of finished)
        expect(stderr).toMatch(/^shard \d\/8: (?:8|10|12) of 80 lists, [456] of 40 rep/);
      const asked = registry.journal.length;

      const joined = await cli(folder, ['report', 'merge', 'reports', '--json', '--report', 'all.json']);
      expect(joined.exitCode).toBe(0);
      const report = merged(joined);
      expect(JSON.parse(readFileSync(join(folder, 'all.json'), 'utf8'))).toEqual(report);
      expect(report.merged).toEqual({ reports: SHARDS, shards: SHARDS, missing: [] });
      expect(report.lists).toHaveLength(LISTS);
      expect(report.totals.requests).toBe(asked);
      const told = report.lists.flatMap(({ targets }) => targets.map((one) => `${one.reference} ${one.digest}`));
      expect([...told].sort()).toEqual(wanted);
      const text = await cli(folder, ['report', 'merge', 'reports']);
      expect(text.stdout).toMatch(/^8 reports of 8 shards\n80 lists in /);
    }));

  it('with one killed half way and repeated, come to the same', () =>
    withRegistry({}, async (registry) => {
      const folder = stage(registry);
      const wanted = await expected(folder);
      registry.clearJournal();
      // Half of its ten lists are put at once; the others are tried again for as long as it lives.
      registry.addFault({
        operation: 'manifestPut',
        path: /\/manifests\/t\d+$/,
        nth: 6,
        times: Number.POSITIVE_INFINITY,
        action: { kind: 'answer', status: 503 },
      });
      const killing = new AbortController();
      const killed = run(process.execPath, [BIN, ...shardWords(3)], {
        cwd: folder,
        env: variables(folder),
        signal: killing.signal,
        kill: 'SIGKILL',
      });
      while (registry.tagMoves.length < 5) await sleep(5);
      killing.abort();
      expect((await killed).exitCode).toBeUndefined();
      registry.clearFaults();
      expect(registry.tagMoves).toHaveLength(5);

      const others = all.filter((index) => index !== 3);
      for (const pair of [others.slice(0, 4), others.slice(4)]) {
        const finished = await together(folder, pair.map(shard));
        expect(finished.map(({ exitCode }) => exitCode)).toEqual(pair.map(() => 0));
      }
      const without = await cli(folder, ['report', 'merge', 'reports']);
      expect(without.exitCode).toBe(4);
      expect(without.stdout).toMatch(/^7 reports of 8 shards; missing: 3\n/);
      expect(without.stderr).toContain('there is no report of shard 3 of 8');
      expect(without.stderr).toContain('--shard 3/8');

      const again = await cli(folder, shardWords(3));
      expect(again.exitCode).toBe(0);
      const joined = await cli(folder, ['report', 'merge', 'reports', '--json']);
      expect(joined.exitCode).toBe(0);
      const told = merged(joined).lists.flatMap(({ targets }) =>
        targets.map((one) => `${one.reference} ${one.digest}`),
      );
      expect([...told].sort()).toEqual(wanted);
      for (const line of wanted) {
        const [reference = '', digest] = line.split(' ');
        const [, repository = '', tag = ''] = /^[^/]+\/(.+):(.+)$/.exec(reference) ?? [];
        expect(registry.tagOf(repository, tag)).toBe(digest);
      }
    }));
});

describe('a shard', () => {
  const two = (registry: RunningRegistry) => {
    const folder = emptyFolder();
    const { host } = registry;
    for (const name of ['a', 'b']) seedImage(registry, `s/${name}`, '1');
    const list = (name: string) => `- { target: '${host}/x/${name}:1', sources: ['${host}/s/${name}:1'] }`;
    writeFileSync(join(folder, 'lists.yaml'), `lists:\n${list('a')}\n${list('b')}\n`);
    mkdirSync(join(folder, 'reports'));
    return folder;
  };
  const words = (index: number, total: number) => [
    ...['publish', '-f', 'lists.yaml', '--shard', `${index}/${total}`, '--report', `reports/${index}.json`],
  ];

  it('without lists ends well, says so, and reports that it had nothing to do', () =>
    withRegistry({}, async (registry) => {
      const folder = two(registry);
      const { exitCode, stdout, stderr } = await cli(folder, words(3, 3));
      expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
      expect(stderr).toBe('shard 3/3: nothing to do, since there are fewer repositories than shards: 2\n');
      expect(JSON.parse(readFileSync(join(folder, 'reports', '3.json'), 'utf8'))).toMatchObject({
        schemaVersion: 1,
        shard: { index: 3, total: 3 },
        lists: [],
        totals: { requests: 0 },
      });
      expect(registry.journal).toEqual([]);
    }));

  it('that was given other lists than the others is found out, whatever each of them left out', () =>
    withRegistry({}, async (registry) => {
      const folder = two(registry);
      expect((await cli(folder, words(1, 2))).exitCode).toBe(0);
      const text = readFileSync(join(folder, 'lists.yaml'), 'utf8');
      // With a list more, b is the work of the first shard, which had never heard of it.
      writeFileSync(
        join(folder, 'lists.yaml'),
        text.replace('lists:\n', `$&${text.split('\n')[1]?.replace('x/a', 'x/a0')}\n`),
      );
      expect((await cli(folder, words(2, 2))).exitCode).toBe(0);
      const joined = await cli(folder, ['report', 'merge', 'reports']);
      expect(joined.exitCode).toBe(2);
      expect(joined.stderr).toContain('are of shards that were given different lists');
    }));

  it('sends a registry its share of --max-rps', () =>
    withRegistry({}, async (registry) => {
      const folder = two(registry);
      const pace = async (more: readonly string[]) => {
        registry.clearJournal();
        const words = ['publish', '-f', 'lists.yaml', '--json', '--max-rps', `${registry.host}=40`, ...more];
        const { totals } = merged(await cli(folder, words));
        expect(totals.requests).toBe(registry.journal.length);
        expect(totals.requests).toBeGreaterThan(8);
        return (totals.requests - 1) / totals.seconds;
      };
      // The first goes at once, the others at 40/4 a second; one run alone at 40 is held up by nothing else.
      const shared = await pace(['--shard', '1/4']);
      expect(shared).toBeLessThan(10.5);
      expect(await pace([])).toBeGreaterThan(shared * 1.5);
    }));

  it('is found in the variables of the engine only where auto asks for it', () =>
    withRegistry({}, async (registry) => {
      const folder = two(registry);
      const env = { GITLAB_CI: 'true', CI_NODE_INDEX: '2', CI_NODE_TOTAL: '2' };
      const own = await cli(folder, ['publish', '-f', 'lists.yaml', '--shard', 'auto'], { env });
      expect(own.stdout).toMatch(/^\S+\/x\/b:1 sha256:\w+\n$/);
      const whole = await cli(folder, ['publish', '-f', 'lists.yaml'], { env });
      expect(whole.stdout.split('\n')).toHaveLength(3);
      const before = registry.journal.length;
      const lost = await cli(folder, ['publish', '-f', 'lists.yaml'], { env: { MANIFEST_PUBLISH_SHARD: 'auto' } });
      expect(lost).toMatchObject({ exitCode: 2, stdout: '' });
      expect(lost.stderr).toContain('looked for CI_NODE_INDEX (GitLab)');
      expect(registry.journal).toHaveLength(before);
    }));

  it('reports a list that failed, and the joined report ends in 9', () =>
    withRegistry({}, async (registry) => {
      const folder = two(registry);
      registry.deleteManifest('s/b', registry.tagOf('s/b', '1') ?? '');
      expect((await cli(folder, words(1, 2))).exitCode).toBe(0);
      expect((await cli(folder, words(2, 2))).exitCode).toBe(4);
      const text = await cli(folder, ['report', 'merge', 'reports']);
      expect(text.exitCode).toBe(9);
      expect(text.stderr).toContain('1 of 2 lists failed');
      expect(text.stdout).toContain('SOURCE_NOT_FOUND');
      const unwritten = await cli(folder, ['report', 'merge', 'reports', '--report', 'nowhere/all.json']);
      expect(unwritten.exitCode).toBe(9);
      expect(unwritten.stderr).toContain('cannot write the file of --report');
      const json = await cli(folder, ['report', 'merge', 'reports', '--json']);
      expect(json.exitCode).toBe(9);
      expect(JSON.parse(json.stdout)).toMatchObject({
        error: { code: 'LISTS_FAILED', exitCode: 9 },
        report: { merged: { missing: [] }, lists: [{}, {}] },
      });
    }));

  it('finds what is wrong with the lists together, whichever part it has', () =>
    withRegistry({}, async (registry) => {
      const folder = two(registry);
      const { host } = registry;
      const list = (target: string, source: string) =>
        `- { target: '${host}/${target}', sources: ['${host}/${source}'] }`;
      writeFileSync(join(folder, 'lists.yaml'), `lists:\n${list('x/a:1', 's/a:1')}\n${list('x/b:1', 'x/a:1')}\n`);
      for (const index of [1, 2]) {
        const { exitCode, stderr } = await cli(folder, words(index, 2));
        expect(exitCode).toBe(2);
        expect(stderr).toContain('is made from');
      }
      expect(registry.journal).toEqual([]);
    }));
});

describe('--stage', () => {
  it('content, divided by source, then index, publishes what one run would', () =>
    withRegistry({}, async (registry) => {
      const folder = emptyFolder();
      const { host } = registry;
      const architectures = ['amd64', 'arm64', 's390x', 'riscv64'];
      const sources = architectures.map((architecture) => {
        seedImage(registry, `s/${architecture}`, '1', { platform: { os: 'linux', architecture } });
        return `${host}/s/${architecture}:1`;
      });
      const list = ['publish', `${host}/x/all:1`, ...sources, '--tag', '2'];
      const expectAll = ['--expect-platforms', architectures.map((name) => `linux/${name}`).join(',')];
      const early = await cli(folder, [...list, '--stage', 'index']);
      expect(early.exitCode).toBe(4);
      expect(writes(registry)).toEqual([]);

      for (const index of [1, 2, 3]) {
        const part = ['--stage', 'content', '--shard', `${index}/3`, '--report', `${index}.json`];
        const { exitCode, stdout, stderr } = await cli(folder, [...list, ...expectAll, ...part]);
        expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
        expect(stderr).toContain(`shard ${index}/3: ${index === 1 ? 2 : 1} of 4 sources: ${host}/s/`);
        expect(stderr).toContain(`placed`);
      }
      expect(tagPuts(registry)).toEqual([]);
      const joined = merged(await cli(folder, ['report', 'merge', '.', '--json']));
      expect(joined).toMatchObject({ stage: 'content', merged: { reports: 3 } });
      expect(joined.lists.map(({ images }) => images.length)).toEqual([4]);

      const before = writes(registry).length;
      const put = await cli(folder, [...list, ...expectAll, '--stage', 'index', '--digest-file', 'digest']);
      expect(put.exitCode).toBe(0);
      expect(
        writes(registry)
          .slice(before)
          .map(({ path }) => path),
      ).toEqual(['/v2/x/all/manifests/1', '/v2/x/all/manifests/2']);
      expect(readFileSync(join(folder, 'digest'), 'utf8')).toBe(put.stdout);
      const whole = await cli(folder, ['publish', `${host}/y/all:1`, ...sources]);
      expect(whole.stdout).toBe(put.stdout);
    }));
});

describe('report merge', () => {
  it('says which file is no report, and where', () =>
    withRegistry({}, async (registry) => {
      const folder = stage(registry);
      await cli(folder, shardWords(1));
      const path = join(folder, 'reports', 'shard-1.json');
      const good = readFileSync(path, 'utf8');
      const merge = async (text: string) => {
        writeFileSync(path, text);
        const { exitCode, stdout, stderr } = await cli(folder, ['report', 'merge', 'reports']);
        expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
        return stderr;
      };
      const lineOf = (text: string, word: string) => text.slice(0, text.indexOf(word)).split('\n').length;
      expect(await merge(good.slice(0, 400))).toContain(`error: ${join('reports', 'shard-1.json')}:`);
      const version = good.replace('"schemaVersion": 1', '"schemaVersion": 2');
      expect(await merge(version)).toContain('shard-1.json:2:20: not a report: schemaVersion must be 1');
      const action = good.replace('"action": "created"', '"action": "done"');
      expect(await merge(action)).toContain(`shard-1.json:${lineOf(action, '"done"')}:`);
      const digest = good.replace(/"digest": "sha256:[^"]*"/, '"digest": "sha256:1"');
      expect(await merge(digest)).toContain(`shard-1.json:${lineOf(digest, '"sha256:1"')}:`);
      const many = good.replace(/"total": \d+/, '"total": 8589934592');
      expect(await merge(many)).toContain('names no shard');
      expect(await merge('[]')).toContain('shard-1.json:1:1: not a report');
      expect(await merge('')).toContain('shard-1.json:1:1: ');
      const missing = good.replace('"totals"', '"total"');
      expect(await merge(missing)).toContain('totals is missing');
    }));

  it('finds reports in folders of a folder, and says when there is none', async () => {
    const folder = emptyFolder();
    mkdirSync(join(folder, 'reports', 'artifact-1'), { recursive: true });
    const none = await cli(folder, ['report', 'merge', 'reports']);
    expect(none.exitCode).toBe(4);
    expect((await cli(folder, ['report', 'merge', 'nothing'])).exitCode).toBe(8);
    await cli(folder, ['publish', 'oci:x:1', 'oci:y:1', '--shard', '2/2', '--report', 'reports/artifact-1/r.json']);
    expect(readdirSync(join(folder, 'reports', 'artifact-1'))).toEqual(['r.json']);
    writeFileSync(join(folder, 'reports', 'log.txt'), 'no report');
    const one = await cli(folder, ['report', 'merge', 'reports']);
    expect(one.exitCode).toBe(4);
    expect(one.stderr).toContain('shard 1 of 2');
    rmSync(join(folder, 'reports', 'artifact-1'), { recursive: true });
  });
});
