import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startCraneRegistry, startDebianRegistry, startDistributionV3 } from '../helpers/external-registry.ts';
import { type Finished, needProgram, run } from '../helpers/processes.ts';
import { countByKind, type Exchange, isWrite } from '../helpers/proxy.ts';
import { type ImagePlatform, makeIndex } from './images.ts';
import { withPeers } from './lane.ts';
import { lastWords, makeHome, type Published } from './publish-command.ts';
import { digestOfTag, missingIn } from './registry-access.ts';
import { type Access, CHALLENGE, SOURCES, type Stage, type StartRegistry, startStage } from './registry-stage.ts';

const IMAGES = SOURCES.flatMap((source) => source.images);
const INDEX = makeIndex(IMAGES.map(({ entry }) => entry));
const BLOBS = IMAGES.flatMap(({ blobs }) => blobs);
const BLOB_BYTES = BLOBS.reduce((sum, { bytes }) => sum + bytes.length, 0);

type Counts = Readonly<Record<string, number>>;

/** What one publish costs at the registry, and how the forty blobs came there. */
type Course = {
  readonly requests: Counts;
  /** Kinds of requests whose number hangs on how quick the machine is. */
  readonly asides?: RegExp;
  readonly blobs: { readonly present: number; readonly mounted: number; readonly copied: number };
};

/** A registry of somebody else: what it does with the main job when mounts reach it, and when they do not. */
type Row = {
  readonly name: string;
  readonly programs: readonly string[];
  readonly accesses: readonly Access[];
  readonly start: StartRegistry;
  /** What `mount-check` finds without writing a blob of its own, and with one. */
  readonly verdicts: readonly [plain: string, write: string];
  readonly mounting: Course;
  readonly refusing: Course;
};

/** Reading the target's tag, the sources and their configs. */
const READ = { 'manifest GET 404': 1, 'manifest GET 200': 8 };
const MOUNTED: Course = {
  requests: { ...READ, 'blob GET 200': 8, 'mount 201': 40, 'blob HEAD 200': 40, 'manifest PUT 201': 9 },
  blobs: { present: 0, mounted: 40, copied: 0 },
};
const STREAMED: Course = {
  // The eight configs are read once, for their platforms, and put from memory.
  requests: {
    ...READ,
    'blob GET 200': 40,
    'mount 202': 40,
    'blob HEAD 404': 40,
    'upload PUT 201': 40,
    'manifest PUT 201': 9,
  },
  blobs: { present: 0, mounted: 0, copied: 40 },
};
/**
 * It mounts nothing but shows every blob in every repository. The source is opened while the target is asked
 * (docs/decisions/0003), and the session of a mount is given up, for which this registry has no word.
 */
const SHOWN: Course = {
  requests: { ...READ, 'mount 202': 40, 'blob HEAD 200': 40, 'manifest PUT 201': 9 },
  asides: /^(blob GET (200|unanswered)|upload DELETE 400)$/,
  blobs: { present: 40, mounted: 0, copied: 0 },
};
const AGAIN = { 'manifest GET 200': 9, 'blob GET 200': 8, 'manifest HEAD 200': 8 };

const REGISTRIES: readonly Row[] = [
  {
    name: 'distribution 2.8 (docker-registry of Debian)',
    programs: ['docker-registry', 'openssl'],
    accesses: ['anonymous', 'Basic', 'token'],
    start: startDebianRegistry,
    verdicts: ['mounts', 'existence'],
    mounting: MOUNTED,
    refusing: STREAMED,
  },
  {
    name: 'distribution 3',
    programs: ['distribution-v3', 'openssl'],
    accesses: ['anonymous', 'Basic', 'token'],
    start: startDistributionV3,
    verdicts: ['mounts', 'existence'],
    mounting: MOUNTED,
    refusing: STREAMED,
  },
  {
    name: 'crane registry serve',
    programs: ['crane'],
    accesses: ['anonymous'],
    start: startCraneRegistry,
    verdicts: ['never', 'never'],
    mounting: SHOWN,
    refusing: SHOWN,
  },
];

/** The same script on every registry that can be had here: eight architectures become one reference. */
for (const row of REGISTRIES) {
  withPeers(row.programs, row.name, () => {
    describe.each(row.accesses)('%s', (access) => {
      let stage: Stage;
      beforeAll(async () => {
        stage = await startStage(row.start, access, ['debian/mounted', 'debian/streamed', 'debian/checked']);
      });
      afterAll(() => stage?.stop());
      beforeEach(() => stage.forget());

      it.each([
        ['mounts that reach it', 'debian/mounted', 'accepting', row.mounting],
        ['mounts that do not', 'debian/streamed', 'refusing', row.refusing],
      ] as const)('%s: complete, every blob once at most, the tag last', async (_, repository, through, course) => {
        const { exchanges } = stage[through];
        const done = await stage.publish(stage[through], repository);
        await expectPublished(stage, done, repository);
        const kinds = Object.entries(countByKind(exchanges())).filter(([kind]) => course.asides?.test(kind) !== true);
        expect(Object.fromEntries(kinds)).toEqual({ ...course.requests, ...CHALLENGE[access] });
        expect(bodiesByDigest(exchanges())).toEqual(
          course.blobs.copied === 0 ? [] : BLOBS.map(({ digest, bytes }) => [digest, bytes.length]).sort(),
        );
        expectTagMovedLast(exchanges(), repository);
        const bytesSent = course.blobs.copied === 0 ? 0 : BLOB_BYTES;
        expect(done.report?.totals).toMatchObject({ blobs: course.blobs, bytesSent });
      });

      it('the second time: nothing is written', async () => {
        const done = await stage.publish(stage.refusing, 'debian/streamed');
        await expectPublished(stage, done, 'debian/streamed');
        expect(stage.refusing.exchanges().filter(isWrite)).toEqual([]);
        expect(countByKind(stage.refusing.exchanges())).toEqual({ ...AGAIN, ...CHALLENGE[access] });
        expect(done.report?.lists[0]?.targets[0]?.action).toBe('unchanged');
      });

      it('mount-check says what was seen above', async () => {
        const [plain, write] = row.verdicts;
        expect(await verdict(stage.checkMounts(stage.accepting, 'debian/checked'))).toBe(plain);
        expect(await verdict(stage.checkMounts(stage.refusing, 'debian/checked'))).toBe('never');
        // A blob of its own takes a right to push to the source, which the users of the token service lack.
        if (access === 'token') return;
        expect(await verdict(stage.checkMounts(stage.accepting, 'debian/checked', '--write'))).toBe(write);
      });

      const targets = ['debian/mounted', 'debian/streamed'];

      withPeers(['crane'], 'read by crane', () => {
        it.each(targets)('%s: the same digest', async (repository) => {
          expect(await read(stage, 'crane', 'digest', `${stage.inside}/${repository}:bullseye`)).toBe(
            `${INDEX.digest}\n`,
          );
        });
      });

      withPeers(['docker'], 'read by docker manifest inspect', () => {
        it.each(targets)('%s: the same children and platforms', async (repository) => {
          const reference = `${stage.inside}/${repository}:bullseye`;
          const shown = JSON.parse(
            await read(stage, 'docker', 'manifest', 'inspect', '--insecure', reference),
          ) as Shown;
          const children = shown.manifests.map(({ digest, platform }) => ({ digest, platform }));
          expect(children).toEqual(IMAGES.map(({ entry: { digest, platform } }) => ({ digest, platform })));
        });
      });
    });
  });
}

type Shown = { readonly manifests: readonly { readonly digest: string; readonly platform: ImagePlatform }[] };

async function read(stage: Stage, program: string, ...args: readonly string[]): Promise<string> {
  const done = await run(needProgram(program), args, { env: { HOME: await makeHome(stage.folder) } });
  expect(done, `${program} ${args.join(' ')}\n${done.stderr}`).toMatchObject({ exitCode: 0 });
  return done.stdout;
}

async function verdict(checking: Promise<Finished>): Promise<unknown> {
  const done = await checking;
  expect(done, lastWords(done)).toMatchObject({ exitCode: 0 });
  return (JSON.parse(done.stdout) as { readonly verdict: unknown }).verdict;
}

async function expectPublished(stage: Stage, done: Published, repository: string): Promise<void> {
  expect(done, lastWords(done)).toMatchObject({ exitCode: 0, stdout: `${INDEX.digest}\n` });
  expect(await digestOfTag(stage.inside, repository, 'bullseye')).toBe(INDEX.digest);
  expect(await missingIn(stage.inside, repository, IMAGES)).toEqual([]);
}

/** The tag is put once, after every other request that can change anything. */
function expectTagMovedLast(exchanges: readonly Exchange[], repository: string): void {
  const path = `/v2/${repository}/manifests/bullseye`;
  const puts = exchanges.filter((exchange) => exchange.method === 'PUT' && exchange.path === path);
  expect(puts).toHaveLength(1);
  // A session that nobody needs is given up when there is time for it.
  const writes = exchanges.filter((exchange) => isWrite(exchange) && exchange.method !== 'DELETE');
  expect(writes.at(-1)).toBe(puts[0]);
}

/** Digest and size of every blob body that was sent, in order of digests; one sent twice is there twice. */
function bodiesByDigest(exchanges: readonly Exchange[]): readonly (readonly [string | null, number])[] {
  return exchanges
    .filter(({ path, sent }) => path.includes('/blobs/uploads/') && sent > 0)
    .map(({ query, sent }) => [query.get('digest'), sent] as const)
    .sort();
}
