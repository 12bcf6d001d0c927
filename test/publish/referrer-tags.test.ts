import { describe, expect, test } from 'vitest';
import { MEDIA_TYPES } from '../../src/model/descriptor.ts';
import { parseManifest } from '../../src/model/manifest.ts';
import { judgeTag } from '../../src/publish/referrer-tags.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { type BuiltManifest, makeImage, makeIndex, putBuilt, seedImage } from '../helpers/images.ts';
import { publishTo } from '../helpers/publishing.ts';
import { requests, withRegistries, withRegistry, writes } from '../helpers/registry.ts';
import { attach, listedAt, makeArtifact, makeSignatures, noteInTag, tagOf } from './referrer-world.ts';

const ALL = { referrers: 'all' } as const;

const read = ({ bytes, descriptor }: BuiltManifest) => parseManifest(bytes, descriptor.digest, undefined, 'x');

describe('of two lists of signatures', () => {
  const image = makeImage('image');
  const signedBy = (...signers: readonly string[]) => read(makeSignatures(image, ...signers));

  test.each([
    ['the same', ['a'], ['a'], 'same'],
    ['the target has more', ['a', 'b'], ['b'], 'keep'],
    ['the source has more', ['a'], ['b', 'a'], 'move'],
    ['each has its own', ['a', 'b'], ['b', 'c'], 'differs'],
    ['the same in another order', ['a', 'b'], ['b', 'a'], 'keep'],
  ] as const)('%s: %j, %j', (_, target, source, verdict) => {
    expect(judgeTag(signedBy(...target), signedBy(...source))).toBe(verdict);
  });

  test('an index and an image have nothing in common', () => {
    expect(judgeTag(read(makeIndex([])), signedBy())).toBe('differs');
  });
});

describe("a tag of cosign's that is there", () => {
  const world = (registry: RunningRegistry, here: readonly string[], there?: readonly string[]) => {
    const image = seedImage(registry, 'src/amd', '1');
    const sig = `${tagOf(image.descriptor.digest)}.sig`;
    const ours = makeSignatures(image, ...here);
    putBuilt(registry, 'src/amd', ours, sig);
    const theirs = there === undefined ? undefined : makeSignatures(image, ...there);
    if (theirs !== undefined) putBuilt(registry, 'acme/app', theirs, sig);
    return { image, sig, ours: ours.descriptor.digest, theirs: theirs?.descriptor.digest };
  };

  test('with fewer signatures moves to the source, and loses none', () =>
    withRegistry({}, async (registry) => {
      const { sig, ours } = world(registry, ['alice', 'bob'], ['alice']);
      const report = await publishTo(registry, 'acme/app:1', ['src/amd:1'], ALL);
      expect(registry.tagOf('acme/app', sig)).toBe(ours);
      expect(report.warnings).toEqual([]);
    }));

  test('with all of them stays, and nothing is placed for it', () =>
    withRegistry({}, async (registry) => {
      const { sig, theirs, ours } = world(registry, ['alice'], ['alice', 'bob']);
      const report = await publishTo(registry, 'acme/app:1', ['src/amd:1'], ALL);
      expect(registry.tagOf('acme/app', sig)).toBe(theirs);
      expect(registry.manifestOf('acme/app', ours)).toBeUndefined();
      expect(report.warnings).toEqual([]);
      expect(report.lists[0]?.images).toHaveLength(1);
    }));

  test('with others stays, and that is told once', () =>
    withRegistry({}, async (registry) => {
      const { sig, theirs, ours } = world(registry, ['alice'], ['bob']);
      const report = await publishTo(registry, 'acme/app:1', ['src/amd:1'], ALL);
      expect(registry.tagOf('acme/app', sig)).toBe(theirs);
      expect(report.warnings).toEqual([expect.stringContaining(`${sig} holds ${theirs}, not the source's ${ours}`)]);
    }));

  test('and is something else stays, and that is told', () =>
    withRegistry({ manifest: { bodyCheck: false } }, async (registry) => {
      const { sig } = world(registry, ['alice']);
      const digest = registry.putManifest('acme/app', Buffer.from('{}'), MEDIA_TYPES.ociManifest, sig);
      const report = await publishTo(registry, 'acme/app:1', ['src/amd:1'], ALL);
      expect(registry.tagOf('acme/app', sig)).toBe(digest);
      expect(report.warnings).toHaveLength(1);
    }));

  test('since somebody signed meanwhile stays: it is looked at just before its PUT', () =>
    withRegistry({}, async (registry) => {
      const { image, sig, ours } = world(registry, ['alice']);
      const theirs = makeSignatures(image, 'mallory');
      await publishTo(registry, 'acme/app:1', ['src/amd:1'], {
        ...ALL,
        onEvent: (event) => {
          if (event.kind === 'plan' && event.images.some(({ digest }) => digest === ours)) {
            putBuilt(registry, 'acme/app', theirs, sig);
          }
        },
      });
      expect(registry.tagOf('acme/app', sig)).toBe(theirs.descriptor.digest);
    }));

  test('and may not be moved stays, with a warning', () =>
    withRegistry({ manifest: { immutable: '409' } }, async (registry) => {
      const { sig, theirs } = world(registry, ['alice', 'bob'], ['alice']);
      const report = await publishTo(registry, 'acme/app:1', ['src/amd:1'], ALL);
      expect(registry.tagOf('acme/app', sig)).toBe(theirs);
      expect(report.warnings).toEqual([expect.stringContaining('may not be moved')]);
    }));

  test('is put by its tag alone, with attestations and SBOMs beside it', () =>
    withRegistry({}, async (registry) => {
      const { image, sig, ours } = world(registry, ['alice']);
      const tags = ['att', 'sbom'].map((suffix) => `${tagOf(image.descriptor.digest)}.${suffix}`);
      for (const tag of tags) putBuilt(registry, 'src/amd', makeArtifact(tag), tag);
      await publishTo(registry, 'acme/app:1', ['src/amd:1'], ALL);
      expect(registry.tags('acme/app')).toEqual(['1', sig, ...tags].sort());
      expect(requests(registry, 'manifestPut').map(({ reference }) => reference)).not.toContain(ours);
    }));

  test('one manifest under two tags is put under both', () =>
    withRegistry({}, async (registry) => {
      const { image, sig, ours } = world(registry, ['alice']);
      const att = sig.replace('.sig', '.att');
      putBuilt(registry, 'src/amd', makeSignatures(image, 'alice'), att);
      await publishTo(registry, 'acme/app:1', ['src/amd:1'], ALL);
      expect([sig, att].map((tag) => registry.tagOf('acme/app', tag))).toEqual([ours, ours]);
    }));

  test("a signature of cosign's SBOM comes along", () =>
    withRegistry({}, async (registry) => {
      const { image } = world(registry, ['alice']);
      const sbom = makeArtifact('sbom');
      putBuilt(registry, 'src/amd', sbom, `${tagOf(image.descriptor.digest)}.sbom`);
      const signature = `${tagOf(sbom.descriptor.digest)}.sig`;
      putBuilt(registry, 'src/amd', makeSignatures(sbom, 'alice'), signature);
      await publishTo(registry, 'acme/app:1', ['src/amd:1'], ALL);
      expect(registry.tagOf('acme/app', signature)).toBeDefined();
    }));
});

describe('the fallback tag', () => {
  const world = (from: RunningRegistry) => {
    const image = seedImage(from, 'src/amd', '1');
    const sbom = makeArtifact('sbom', { subject: image.descriptor });
    attach(from, 'src/amd', image, sbom);
    return { image, sbom, sources: [`${from.host}/src/amd:1`], tag: tagOf(image.descriptor.digest) };
  };

  test('keeps every entry and annotation that is there, and gets what is lacking behind them', () =>
    withRegistries({}, { manifest: { referrers: '404' } }, async (from, to) => {
      const { image, sbom, sources, tag } = world(from);
      const other = makeArtifact('other', { subject: image.descriptor });
      putBuilt(to, 'acme/app', image);
      putBuilt(to, 'acme/app', other);
      const entry = { ...other.descriptor, artifactType: 'x/y', annotations: { b: '1', a: '2' }, 'org.example': 1.0 };
      const list = {
        schemaVersion: 2,
        mediaType: MEDIA_TYPES.ociIndex,
        manifests: [entry],
        annotations: { who: 'oras' },
      };
      to.putManifest('acme/app', Buffer.from(JSON.stringify(list)), MEDIA_TYPES.ociIndex, tag);
      await publishTo(to, 'acme/app:1', sources, ALL);
      const after = JSON.parse(to.manifestOf('acme/app', tag)?.bytes.toString() ?? '');
      expect(after).toEqual({
        ...list,
        manifests: [entry, { ...sbom.descriptor, artifactType: 'application/vnd.oci.empty.v1+json' }],
      });
    }));

  test('is read anew just before it is written: what came meanwhile stays', () =>
    withRegistries({}, { manifest: { referrers: '404' } }, async (from, to) => {
      const { image, sbom, sources } = world(from);
      const other = makeArtifact('other', { subject: image.descriptor });
      await publishTo(to, 'acme/app:1', sources, {
        ...ALL,
        onEvent: (event) => {
          if (event.kind === 'manifest.done' && event.digest === sbom.descriptor.digest) {
            attach(to, 'acme/app', image, other);
          }
        },
      });
      expect(await listedAt(to, 'acme/app', image.descriptor.digest)).toMatchObject([
        other.descriptor,
        sbom.descriptor,
      ]);
    }));

  test('that holds no index is left alone, and that is told', () =>
    withRegistries({}, { manifest: { referrers: '404' } }, async (from, to) => {
      const { sbom, sources, tag } = world(from);
      const image = seedImage(to, 'acme/app', tag);
      const report = await publishTo(to, 'acme/app:1', sources, ALL);
      expect(to.tagOf('acme/app', tag)).toBe(image.descriptor.digest);
      expect(to.manifestOf('acme/app', sbom.descriptor.digest)).toBeDefined();
      expect(report.warnings).toEqual([expect.stringMatching(/are there, but not listed under sha256-/)]);
    }));

  test('whose entries are gone is written without them where the registry wants them all', () =>
    withRegistries({}, { manifest: { referrers: '404' } }, async (from, to) => {
      const { image, sbom, sources } = world(from);
      const gone = makeArtifact('gone', { subject: image.descriptor });
      noteInTag(to, 'acme/app', image.descriptor.digest, [gone]);
      await publishTo(to, 'acme/app:1', sources, { ...ALL, patient: true });
      expect(await listedAt(to, 'acme/app', image.descriptor.digest)).toMatchObject([sbom.descriptor]);
    }));

  test('is not written by a registry that lists a referrer by its own word, though it had no list before', () =>
    withRegistries({}, {}, async (from, to) => {
      const { image, sbom, sources } = world(from);
      to.addFault({ operation: 'referrers', action: { kind: 'answer', status: 404 } });
      await publishTo(to, 'acme/app:1', sources, ALL);
      expect(to.tags('acme/app')).toEqual(['1']);
      expect(await listedAt(to, 'acme/app', image.descriptor.digest)).toMatchObject([sbom.descriptor]);
      expect(requests(to, 'referrers')).toHaveLength(2);
    }));

  test('is not written where the API has come up meanwhile, though the PUT said nothing of it', () =>
    withRegistries({}, {}, async (from, to) => {
      const { sources } = world(from);
      to.addFault({ operation: 'referrers', action: { kind: 'answer', status: 404 } });
      to.addFault({
        operation: 'manifestPut',
        times: Number.POSITIVE_INFINITY,
        action: { kind: 'headers', set: { 'OCI-Subject': undefined } },
      });
      await publishTo(to, 'acme/app:1', sources, ALL);
      expect(to.tags('acme/app')).toEqual(['1']);
      expect(requests(to, 'referrers')).toHaveLength(2);
    }));

  test('that lists what is not there does not make it there: it is put again', () =>
    withRegistries({}, { manifest: { referrers: '404' } }, async (from, to) => {
      const { image, sbom, sources } = world(from);
      noteInTag(to, 'acme/app', image.descriptor.digest, [sbom]);
      await publishTo(to, 'acme/app:1', sources, ALL);
      expect(to.manifestOf('acme/app', sbom.descriptor.digest)).toBeDefined();
      const before = writes(to).length;
      await publishTo(to, 'acme/app:1', sources, ALL);
      expect(writes(to)).toHaveLength(before);
    }));

  test('that may not be moved is left, with a warning', () =>
    withRegistries({}, { manifest: { referrers: '404', immutable: '409' } }, async (from, to) => {
      const { image, sources, tag } = world(from);
      attach(to, 'acme/app', image, makeArtifact('other', { subject: image.descriptor }));
      const before = to.tagOf('acme/app', tag);
      const report = await publishTo(to, 'acme/app:1', sources, ALL);
      expect(to.tagOf('acme/app', tag)).toBe(before);
      expect(report.warnings).toEqual([expect.stringContaining('not listed under')]);
    }));

  test('that the registry refuses ends the run before the tag moves', () =>
    withRegistries({}, { manifest: { referrers: '404' } }, async (from, to) => {
      const { sources } = world(from);
      to.addFault({ method: 'PUT', path: /manifests\/sha256-/, action: { kind: 'answer', status: 403 } });
      const run = publishTo(to, 'acme/app:1', sources, ALL);
      await expect(run).rejects.toMatchObject({ code: 'DENIED', side: 'target' });
      expect(to.tagOf('acme/app', '1')).toBeUndefined();
    }));
});
