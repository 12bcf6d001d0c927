import { describe, expect, it } from 'vitest';
import { parsePlatform } from '../../src/model/platform.ts';
import {
  MEDIA_TYPES,
  makeAttestedIndex,
  makeImage,
  makeIndex,
  putBuilt,
  seedAttested,
  seedImage,
} from '../helpers/images.ts';
import { type PublishOptions, publishTo } from '../helpers/publishing.ts';
import { requests, withRegistries, withRegistry, writes } from '../helpers/registry.ts';
import { platformsAt, publishRequest, readBack, requestAt } from './inputs.ts';

const amd64 = parsePlatform('linux/amd64');
const arm64 = parsePlatform('linux/arm64');
const s390x = parsePlatform('linux/s390x');
const TARGET = 't/all:1';
const AMEND: PublishOptions = { amend: true };

describe('amending a tag', () => {
  it('lets jobs add one architecture after another, and replaces one that comes again', () =>
    withRegistry({}, async (registry) => {
      const images = [amd64, arm64, s390x].map((platform) =>
        seedImage(registry, `t/${platform.architecture}`, '1', { platform }),
      );
      const first = await publishTo(registry, TARGET, ['t/amd64:1'], AMEND);
      expect(first.warnings).toEqual([expect.stringContaining('is not there: there was nothing to amend')]);
      await publishTo(registry, TARGET, ['t/arm64:1'], AMEND);
      const third = await publishTo(registry, TARGET, ['t/s390x:1'], AMEND);
      expect(third).toMatchObject({ warnings: [], lists: [{ targets: [{ action: 'updated' }] }] });
      expect((await readBack(registry, TARGET)).entries.map(({ digest }) => digest)).toEqual(
        images.map(({ descriptor }) => descriptor.digest),
      );
      const newer = seedImage(registry, 't/amd64', '2', { platform: amd64 });
      await publishTo(registry, TARGET, ['t/amd64:2'], AMEND);
      const { entries } = await readBack(registry, TARGET);
      expect(entries.map(({ platform }) => platform?.architecture)).toEqual(['amd64', 'arm64', 's390x']);
      expect(entries[0]?.digest).toBe(newer.descriptor.digest);
    }));

  it('asks nothing and sends nothing for what is there already', () =>
    withRegistry({}, async (registry) => {
      for (const platform of [amd64, arm64]) seedImage(registry, `t/${platform.architecture}`, '1', { platform });
      await publishTo(registry, TARGET, ['t/amd64:1']);
      registry.clearJournal();
      await publishTo(registry, TARGET, ['t/arm64:1'], AMEND);
      // The tag before, just before and just after its PUT, the child that stays, the source.
      expect(requests(registry, 'manifestGet')).toHaveLength(5);
      expect(requests(registry, 'manifestPut')).toHaveLength(2);
      expect(requests(registry, 'mount')).toHaveLength(3);
      registry.clearJournal();
      const again = await publishTo(registry, TARGET, ['t/arm64:1'], AMEND);
      expect(again.lists[0]?.targets[0]).toMatchObject({ action: 'unchanged' });
      expect(writes(registry)).toEqual([]);
    }));

  it('keeps the bytes of buildx when the same images come again, attestations among them', () =>
    withRegistry({}, async (registry) => {
      const [one, two] = [amd64, arm64].map((platform) => {
        const image = makeImage(platform.architecture, { platform });
        const attested = makeAttestedIndex(image, platform);
        const [, attestation] = JSON.parse(attested.bytes.toString()).manifests;
        return { image, platform, attested, annotations: attestation.annotations };
      });
      if (one === undefined || two === undefined) throw new Error('no images');
      const attestations = [one, two].map(({ attested, annotations }) => {
        const [, manifest] = attested.children;
        if (manifest === undefined) throw new Error('no attestation');
        return { manifest, annotations, platform: { architecture: 'unknown', os: 'unknown' } };
      });
      const images = [one, two].map(({ image, platform }) => ({ manifest: image, platform }));
      const index = makeIndex([...images, ...attestations], { annotations: { note: 'kept' } });
      putBuilt(registry, 't/all', index, '1');
      putBuilt(registry, 't/one', one.attested, '1');
      const report = await publishTo(registry, TARGET, ['t/one:1'], AMEND);
      expect(report.lists[0]?.targets[0]).toMatchObject({ action: 'unchanged', digest: index.descriptor.digest });
      expect(writes(registry)).toEqual([]);
    }));

  it('replaces an image together with its attestation', () =>
    withRegistry({}, async (registry) => {
      const old = [amd64, arm64].map((platform) => seedAttested(registry, 't/old', platform.architecture, platform));
      await publishTo(registry, TARGET, ['t/old:amd64', 't/old:arm64']);
      const fresh = seedAttested(registry, 't/new', 'arm64', arm64);
      await publishTo(registry, TARGET, ['t/new:arm64'], AMEND);
      const children = [old[0], fresh].flatMap((index) => index?.children ?? []);
      const { entries } = await readBack(registry, TARGET);
      expect(entries.map(({ digest }) => digest)).toEqual(children.map(({ descriptor }) => descriptor.digest));
      // All attestations go, also those that were there, when none are wanted.
      await publishTo(registry, TARGET, ['t/new:arm64'], { ...AMEND, attestations: 'drop' });
      expect((await readBack(registry, TARGET)).entries).toHaveLength(2);
    }));

  it('makes an entry of a plain image that the tag names', () =>
    withRegistry({}, async (registry) => {
      const plain = seedImage(registry, 't/all', '1', { platform: amd64 });
      seedImage(registry, 't/arm64', '1', { platform: arm64 });
      const report = await publishTo(registry, TARGET, ['t/arm64:1'], AMEND);
      expect(report.warnings).toEqual([]);
      const { entries } = await readBack(registry, TARGET);
      expect(entries[0]).toEqual({ ...plain.descriptor, platform: amd64 });
      expect(platformsAt(registry, TARGET)).toEqual(['linux/amd64', 'linux/arm64']);
    }));

  it('takes the place of an entry that only its config tells the platform of', () =>
    withRegistry({}, async (registry) => {
      const nameless = [amd64, arm64].map((platform) => ({ manifest: makeImage(platform.architecture, { platform }) }));
      putBuilt(registry, 't/all', makeIndex(nameless), '1');
      const newer = seedImage(registry, 't/amd64', '1', { platform: amd64 });
      await publishTo(registry, TARGET, ['t/amd64:1'], AMEND);
      const { entries } = await readBack(registry, TARGET);
      expect(entries).toEqual([{ ...newer.descriptor, platform: amd64 }, nameless[1]?.manifest.descriptor]);
    }));

  it('says which fields of the present index are not kept', () =>
    withRegistry({}, async (registry) => {
      const image = makeImage('amd64', { platform: amd64 });
      putBuilt(registry, 't/all', image);
      const entry = { ...image.descriptor, platform: amd64 };
      const index = { schemaVersion: 2, artifactType: 'a/b', mediaType: MEDIA_TYPES.ociIndex, manifests: [entry] };
      registry.putManifest('t/all', Buffer.from(JSON.stringify(index)), MEDIA_TYPES.ociIndex, '1');
      putBuilt(registry, 't/amd64', image, '1');
      seedImage(registry, 't/arm64', '1', { platform: arm64 });
      expect((await publishTo(registry, TARGET, ['t/amd64:1'], AMEND)).warnings).toEqual([]);
      expect((await publishTo(registry, TARGET, ['t/arm64:1'], AMEND)).warnings).toEqual([
        expect.stringMatching(/fields that the amended index does not have: .artifactType.$/),
      ]);
    }));

  it('flattens what is nested in the tag', () =>
    withRegistry({}, async (registry) => {
      const inner = makeIndex([{ manifest: makeImage('inner', { platform: amd64 }), platform: amd64 }]);
      putBuilt(registry, 't/all', makeIndex([{ manifest: inner }]), '1');
      seedImage(registry, 't/arm64', '1', { platform: arm64 });
      await publishTo(registry, TARGET, ['t/arm64:1'], AMEND);
      expect(platformsAt(registry, TARGET)).toEqual(['linux/amd64', 'linux/arm64']);
    }));

  it('says in a dry run what it would do, and writes nothing', () =>
    withRegistry({}, async (registry) => {
      for (const platform of [amd64, arm64]) seedImage(registry, `t/${platform.architecture}`, '1', { platform });
      await publishTo(registry, TARGET, ['t/amd64:1']);
      registry.clearJournal();
      const report = await publishTo(registry, TARGET, ['t/arm64:1'], { ...AMEND, dryRun: true });
      expect(report.lists[0]?.index?.manifests.map(({ platform }) => platform)).toEqual([amd64, arm64]);
      expect(writes(registry)).toEqual([]);
    }));
});

describe('what stands in the way of amending', () => {
  it.each([
    [401, 3],
    [403, 3],
    [503, 5],
  ])('a tag that answers %i ends the run, nothing written', (status, exitCode) =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/amd64', '1', { platform: amd64 });
      const answer = { kind: 'answer', status } as const;
      registry.addFault({ operation: 'manifestGet', repository: 't/all', times: Infinity, action: answer });
      const run = publishTo(registry, TARGET, ['t/amd64:1'], { ...AMEND, patient: true });
      await expect(run).rejects.toMatchObject({ exitCode, side: 'target', moved: [] });
      expect(writes(registry)).toEqual([]);
    }),
  );

  it('a child of the present index that is gone is named; --ignore-missing leaves it out', () =>
    withRegistry({}, async (registry) => {
      const images = [amd64, arm64, s390x].map((platform) =>
        seedImage(registry, `t/${platform.architecture}`, '1', { platform }),
      );
      await publishTo(registry, TARGET, ['t/amd64:1', 't/arm64:1']);
      const lost = String(images[0]?.descriptor.digest);
      registry.deleteManifest('t/all', lost);
      registry.clearJournal();
      const run = publishTo(registry, TARGET, ['t/s390x:1'], AMEND);
      await expect(run).rejects.toMatchObject({
        exitCode: 4,
        message: expect.stringMatching(new RegExp(`t/all:1 lists a child .*${lost}.*\\(linux/amd64\\)`)),
        hint: expect.stringContaining('--ignore-missing'),
      });
      expect(writes(registry)).toEqual([]);
      const report = await publishTo(registry, TARGET, ['t/s390x:1'], { ...AMEND, ignoreMissing: true });
      expect(report.warnings).toEqual([expect.stringMatching(`${lost}.*left out of the index`)]);
      expect(platformsAt(registry, TARGET)).toEqual(['linux/arm64', 'linux/s390x']);
      await readBack(registry, TARGET);
    }));

  it('but one whose platform is replaced is not missed, in a repository that is healed so', () =>
    withRegistry({}, async (registry) => {
      const image = seedImage(registry, 't/amd64', '1', { platform: amd64 });
      seedImage(registry, 't/arm64', '1', { platform: arm64 });
      await publishTo(registry, TARGET, ['t/amd64:1', 't/arm64:1']);
      registry.deleteManifest('t/all', String(image.descriptor.digest));
      await publishTo(registry, TARGET, ['t/amd64:1'], AMEND);
      expect((await readBack(registry, TARGET)).entries[0]?.digest).toBe(image.descriptor.digest);
      expect(platformsAt(registry, TARGET)).toEqual(['linux/amd64', 'linux/arm64']);
    }));

  it('a tag that is no manifest anybody reads', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/amd64', '1', { platform: amd64 });
      registry.putManifest('t/all', Buffer.from('{"schemaVersion":1}'), MEDIA_TYPES.ociManifest, '1');
      await expect(publishTo(registry, TARGET, ['t/amd64:1'], AMEND)).rejects.toMatchObject({ exitCode: 2 });
      expect(writes(registry)).toEqual([]);
    }));
});

describe('what others do meanwhile', () => {
  /** Amends with `sources`, and moves the tag to `other` once the new index is known. */
  async function overtaken(from: string | undefined) {
    return withRegistry({}, async (registry) => {
      for (const platform of [amd64, arm64, s390x])
        seedImage(registry, `t/${platform.architecture}`, '1', { platform });
      await publishTo(registry, 't/all:theirs', ['t/amd64:1', 't/arm64:1']);
      if (from !== undefined) await publishTo(registry, TARGET, [from]);
      const theirs = registry.tagOf('t/all', 'theirs');
      if (theirs === undefined) throw new Error('not published');
      const onEvent = (event: { kind: string }): void => {
        if (event.kind === 'index') registry.setTag('t/all', '1', theirs);
      };
      const run = publishTo(registry, TARGET, ['t/s390x:1'], { ...AMEND, onEvent });
      await expect(run).rejects.toMatchObject({
        code: 'TAG_CHANGED',
        exitCode: 7,
        hint: expect.stringContaining('Run the same command again'),
      });
      expect(registry.tagOf('t/all', '1')).toBe(theirs);
      await publishTo(registry, TARGET, ['t/s390x:1'], AMEND);
      expect(platformsAt(registry, TARGET)).toEqual(['linux/amd64', 'linux/arm64', 'linux/s390x']);
    });
  }

  it('is not lost: a tag that was moved since it was read ends the run, and the same command again keeps both', () =>
    overtaken('t/amd64:1'));

  it('is not lost either where the tag was not there', () => overtaken(undefined));

  it('to other tags of the run is no matter: these get what TARGET gets', () =>
    withRegistry({}, async (registry) => {
      for (const platform of [amd64, arm64]) seedImage(registry, `t/${platform.architecture}`, '1', { platform });
      await publishTo(registry, TARGET, ['t/amd64:1']);
      await publishTo(registry, 't/all:latest', ['t/arm64:1']);
      registry.clearJournal();
      await publishTo(registry, TARGET, ['t/arm64:1'], { ...AMEND, tags: ['latest'] });
      expect(platformsAt(registry, 't/all:latest')).toEqual(['linux/amd64', 'linux/arm64']);
      // TARGET is read three times, the other tag once.
      const tags = requests(registry, 'manifestGet').map(({ reference }) => reference);
      expect(tags.filter((tag) => tag === 'latest')).toHaveLength(1);
      expect(tags.filter((tag) => tag === '1').length).toBe(4);
    }));
});

it('amending in several registries ends where the first cannot be read, nothing written to any', () =>
  withRegistries({}, {}, async (one, two) => {
    seedImage(one, 't/arm64', '1', { platform: arm64 });
    const action = { kind: 'answer', status: 401 } as const;
    one.addFault({ operation: 'manifestGet', repository: 't/all', times: Infinity, action });
    const request = requestAt(one, TARGET, ['t/arm64:1'], AMEND);
    const targets = [...request.targets, ...requestAt(two, 't/copy:1', []).targets];
    await expect(publishRequest({ ...request, targets }, [one, two])).rejects.toMatchObject({ exitCode: 3 });
    expect([...writes(one), ...writes(two)]).toEqual([]);
  }));

it('amending in several registries starts from the first and gives all the same', () =>
  withRegistries({}, {}, async (one, two) => {
    for (const platform of [amd64, arm64]) seedImage(one, `t/${platform.architecture}`, '1', { platform });
    await publishTo(one, TARGET, ['t/amd64:1']);
    const request = requestAt(one, TARGET, ['t/arm64:1'], AMEND);
    const targets = [...request.targets, ...requestAt(two, 't/copy:1', []).targets];
    const report = await publishRequest({ ...request, targets }, [one, two]);
    expect(report.lists[0]?.targets.map(({ action }) => action)).toEqual(['updated', 'created']);
    expect(platformsAt(two, 't/copy:1')).toEqual(['linux/amd64', 'linux/arm64']);
    await readBack(two, 't/copy:1');
  }));
