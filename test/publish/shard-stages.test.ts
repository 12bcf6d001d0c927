import { describe, expect, it } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import { isDigest } from '../../src/model/digest.ts';
import type { PublishReport } from '../../src/publish/report.ts';
import { workOfShard } from '../../src/publish/shards.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { blobDigests, putBuilt, seedAttested, seedImage } from '../helpers/images.ts';
import { publishAll, requestOf } from '../helpers/publishing.ts';
import { requests, withRegistry, writes } from '../helpers/registry.ts';
import { attach, makeArtifact, makeSignatures, tagOf } from './referrer-world.ts';

const ARCHITECTURES = ['amd64', 'arm64', 's390x'];

/** Images of three architectures, and the words that name them. */
function seed(registry: RunningRegistry) {
  const images = ARCHITECTURES.map((architecture) =>
    seedImage(registry, `t/${architecture}`, '1', { platform: { os: 'linux', architecture } }),
  );
  const sources = ARCHITECTURES.map((architecture) => `${registry.host}/t/${architecture}:1`);
  return { images, sources, target: `${registry.host}/t/all:1` };
}

const tagPuts = (registry: RunningRegistry) =>
  requests(registry, 'manifestPut').filter(({ reference }) => !isDigest(reference));

async function failure(work: Promise<unknown>): Promise<PublishError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof PublishError) return error;
  throw new Error('it did not fail');
}

describe('--stage content', () => {
  it('places images and blobs, and puts no index and no tag', () =>
    withRegistry({}, async (registry) => {
      const { images, sources, target } = seed(registry);
      const list = requestOf(target, sources, { tags: ['2'], stage: 'content' });
      const report = await publishAll([registry], [list]);
      expect(tagPuts(registry)).toEqual([]);
      expect(registry.tagMoves).toEqual([]);
      expect(
        requests(registry, 'manifestPut')
          .map(({ reference }) => reference)
          .sort(),
      ).toEqual(images.map(({ descriptor }) => descriptor.digest).sort());
      const [only] = report.lists;
      expect(only?.targets).toEqual([]);
      expect(only?.content).toEqual([target, target.replace(/1$/, '2')]);
      expect(only).not.toHaveProperty('index');
      expect(only?.images.map(({ digest }) => digest)).toEqual(images.map(({ descriptor }) => descriptor.digest));
      expect(report.totals.blobs.mounted).toBe(new Set(images.flatMap(blobDigests)).size);
    }));

  it('fails before any write when the whole list would', () =>
    withRegistry({}, async (registry) => {
      const { sources, target } = seed(registry);
      const expectPlatforms = [{ os: 'linux', architecture: 'riscv64' }];
      const error = await failure(
        publishAll([registry], [requestOf(target, sources, { expectPlatforms, stage: 'content' })]),
      );
      expect(error.code).toBe('PLATFORM_NOT_FOUND');
      expect(writes(registry)).toEqual([]);
    }));

  it('does not say of an image under the tag that it is replaced', () =>
    withRegistry({}, async (registry) => {
      const { sources, target } = seed(registry);
      seedImage(registry, 't/all', '1', { platform: { os: 'linux', architecture: '386' } });
      const report = await publishAll([registry], [requestOf(target, sources, { stage: 'content' })]);
      expect(report.warnings).toEqual([]);
    }));

  it('tells of a repository that failed', () =>
    withRegistry({}, async (registry) => {
      const { sources, target } = seed(registry);
      registry.addFault({
        operation: 'manifestPut',
        repository: 't/all',
        times: 99,
        action: { kind: 'answer', status: 403 },
      });
      const other = `${registry.host}/t/b:1`;
      const list = requestOf(target, sources, { also: [other], stage: 'content' });
      const { report } = await failure(publishAll([registry], [list]));
      if (report === undefined) throw new Error('no report');
      const [only] = (report as PublishReport).lists;
      expect(only).toMatchObject({ content: [other], targets: [{ reference: target, action: 'failed' }] });
      expect(only?.targets[0]).not.toHaveProperty('digest');
    }));

  it('divided by source, what all shards have placed is what one would have', () =>
    withRegistry({}, async (registry) => {
      const { images, sources, target } = seed(registry);
      seedAttested(registry, 't/attested', '1', { os: 'linux', architecture: 'riscv64' });
      const all = [...sources, `${registry.host}/t/attested:1`];
      const list = requestOf(target, all, {
        stage: 'content',
        expectPlatforms: [...ARCHITECTURES, 'riscv64'].map((architecture) => ({ os: 'linux', architecture })),
        platforms: ['amd64', 'arm64', 'riscv64'].map((architecture) => ({ os: 'linux', architecture })),
      });
      for (const index of [1, 2, 3, 4]) {
        const { requests: part } = workOfShard([list], { index, total: 4 }, true);
        expect(part).toHaveLength(1);
        await publishAll([registry], part);
      }
      expect(tagPuts(registry)).toEqual([]);
      const placed = requests(registry, 'manifestPut').map(({ reference }) => reference);
      // Three images and an attestation: the image for a platform that was not asked for stays away.
      expect(placed).toHaveLength(4);
      expect(placed).not.toContain(images[2]?.descriptor.digest);
    }));

  it('leaves out a missing source of a part as of the whole, where that was allowed', () =>
    withRegistry({}, async (registry) => {
      const { sources, target } = seed(registry);
      const list = requestOf(target, [...sources, `${registry.host}/t/gone:1`], {
        stage: 'content',
        ignoreMissing: true,
      });
      const { requests: part } = workOfShard([list], { index: 3, total: 4 }, true);
      expect(part[0]?.sources[0]?.reference.repository).toBe('t/gone');
      const report = await publishAll([registry], part);
      expect(report.warnings).toEqual([expect.stringContaining('left out')]);
      expect(writes(registry)).toEqual([]);
    }));
});

describe('--stage index', () => {
  it('puts index and tags when the images are there, and asks nothing of blobs', () =>
    withRegistry({}, async (registry) => {
      const { sources, target } = seed(registry);
      await publishAll([registry], [requestOf(target, sources, { stage: 'content' })]);
      const before = registry.journal.length;
      const report = await publishAll([registry], [requestOf(target, sources, { tags: ['2'], stage: 'index' })]);
      const asked = registry.journal.slice(before);
      expect(asked.filter(({ method }) => !['GET', 'HEAD'].includes(method)).map(({ path }) => path)).toEqual([
        '/v2/t/all/manifests/1',
        '/v2/t/all/manifests/2',
      ]);
      expect(asked.filter(({ method }) => method === 'HEAD')).toHaveLength(3);
      expect(report.lists[0]?.targets.map(({ action }) => action)).toEqual(['created', 'created']);
      expect(report.lists[0]?.images[0]?.placed).toEqual([
        { repository: `${registry.host}/t/all`, manifest: 'present', blobs: [] },
      ]);
      const whole = await publishAll([registry], [requestOf(target, sources)]);
      expect(whole.lists[0]?.targets).toMatchObject([{ action: 'unchanged' }]);
    }));

  it('ends with 4 and moves nothing when an image is not there, and names each', () =>
    withRegistry({}, async (registry) => {
      const { sources, target } = seed(registry);
      await publishAll([registry], [requestOf(target, sources.slice(0, 1), { stage: 'content' })]);
      const before = writes(registry).length;
      const error = await failure(publishAll([registry], [requestOf(target, sources, { stage: 'index' })]));
      expect(error).toMatchObject({ code: 'MANIFEST_NOT_FOUND', exitCode: 4, side: 'target' });
      expect(error.message).toContain('lacks 2 of the 3 images');
      expect(error.message).toContain('t/arm64:1@');
      expect(error.message).toContain('t/s390x:1@');
      expect(writes(registry)).toHaveLength(before);
    }));

  it('takes referrers along, which the content stage leaves alone, since some are found by tags', () =>
    withRegistry({ manifest: { referrers: '404' } }, async (registry) => {
      const { images, sources, target } = seed(registry);
      const [amd] = images;
      if (amd === undefined) throw new Error('no image');
      const signature = `${tagOf(amd.descriptor.digest)}.sig`;
      putBuilt(registry, 't/amd64', makeSignatures(amd, 'alice'), signature);
      const sbom = makeArtifact('sbom', { subject: amd.descriptor });
      attach(registry, 't/amd64', amd, sbom);
      await publishAll([registry], [requestOf(target, sources, { referrers: 'all', stage: 'content' })]);
      expect(registry.tags('t/all')).toEqual([]);
      const report = await publishAll([registry], [requestOf(target, sources, { referrers: 'all', stage: 'index' })]);
      expect(registry.tags('t/all')).toEqual(['1', tagOf(amd.descriptor.digest), signature].sort());
      expect(registry.manifestOf('t/all', sbom.descriptor.digest)?.bytes).toEqual(sbom.bytes);
      expect(report.lists[0]?.images.map(({ kind }) => kind)).toEqual([
        ...ARCHITECTURES.map(() => 'image'),
        'artifact',
        'artifact',
      ]);
    }));

  it('reads an image of which HEAD says nothing', () =>
    withRegistry({}, async (registry) => {
      const { sources, target } = seed(registry);
      await publishAll([registry], [requestOf(target, sources, { stage: 'content' })]);
      registry.addFault({
        operation: 'manifestHead',
        repository: 't/all',
        times: 99,
        action: { kind: 'answer', status: 500 },
      });
      const report = await publishAll([registry], [requestOf(target, sources, { stage: 'index' })], { patient: true });
      expect(report.lists[0]?.targets).toMatchObject([{ action: 'created' }]);
    }));

  it('waits for images that the registry shows late', () =>
    withRegistry({}, async (registry) => {
      const { sources, target } = seed(registry);
      await publishAll([registry], [requestOf(target, sources, { stage: 'content' })]);
      const body = JSON.stringify({ errors: [{ code: 'MANIFEST_UNKNOWN', message: 'a child is not there' }] });
      registry.addFault({ operation: 'manifestPut', times: 2, action: { kind: 'answer', status: 404, body } });
      // The first look at each finds it; then two rounds do not.
      registry.addFault({ operation: 'manifestHead', nth: 4, times: 6, action: { kind: 'answer', status: 404 } });
      const waits: number[] = [];
      await publishAll([registry], [requestOf(target, sources, { stage: 'index' })], {
        patient: true,
        onSleep: (milliseconds) => waits.push(milliseconds),
      });
      expect(tagPuts(registry).map(({ status }) => status)).toEqual([404, 404, 201]);
      expect(waits).toEqual([1000, 2000]);
    }));
});
