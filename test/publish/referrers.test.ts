import { describe, expect, test } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { parseReference } from '../../src/model/reference.ts';
import type { PublishEvent } from '../../src/publish/events.ts';
import { publish } from '../../src/publish/publish.ts';
import { publishLists } from '../../src/publish/publish-lists.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { MEDIA_TYPES, makeImage, makeIndex, putBuilt, seedImage } from '../helpers/images.ts';
import { publishTo, requestOf, withPorts } from '../helpers/publishing.ts';
import { requests, withRegistries, withRegistry, writes } from '../helpers/registry.ts';
import {
  attach,
  listedAt,
  makeArtifact,
  makeArtifactIndex,
  makeSignatures,
  noteInTag,
  tagOf,
} from './referrer-world.ts';

const ARM = { architecture: 'arm64', os: 'linux' } as const;

/** Two images, the first with an SBOM, its signature, and a signature of cosign's. */
function seedSource(registry: RunningRegistry) {
  const amd = seedImage(registry, 'src/amd', '1');
  const arm = seedImage(registry, 'src/arm', '1', { platform: ARM });
  const sbom = makeArtifact('sbom', {
    subject: amd.descriptor,
    artifactType: 'application/spdx+json',
    annotations: { made: 'here' },
  });
  const signed = makeArtifact('signature of sbom', { subject: sbom.descriptor });
  const cosign = makeSignatures(amd, 'alice');
  attach(registry, 'src/amd', amd, sbom);
  attach(registry, 'src/amd', sbom, signed);
  putBuilt(registry, 'src/amd', cosign, `${tagOf(amd.descriptor.digest)}.sig`);
  return { amd, arm, sbom, signed, cosign };
}

const modes = ['api', '404'] as const;
const pairs = modes.flatMap((source) => modes.map((target) => [source, target] as const));

describe('taken along', () => {
  test.each(pairs)('source %s, target %s, each on a host of its own', (source, target) =>
    withRegistries({ manifest: { referrers: source } }, { manifest: { referrers: target } }, async (from, to) => {
      const { amd, arm, sbom, signed, cosign } = seedSource(from);
      const sources = [`${from.host}/src/amd:1`, `${from.host}/src/arm:1`];
      const report = await publishTo(to, 'acme/app:1', sources, { referrers: 'all' });

      const sig = `${tagOf(amd.descriptor.digest)}.sig`;
      expect(to.tagOf('acme/app', sig)).toBe(cosign.descriptor.digest);
      for (const one of [sbom, signed, cosign]) {
        expect(to.manifestOf('acme/app', one.descriptor.digest)?.bytes).toEqual(one.bytes);
        for (const { descriptor } of one.blobs) expect(to.hasBlob('acme/app', descriptor.digest)).toBe(true);
      }
      expect(await listedAt(to, 'acme/app', amd.descriptor.digest)).toEqual([
        { ...sbom.descriptor, artifactType: 'application/spdx+json', annotations: { made: 'here' } },
      ]);
      expect(await listedAt(to, 'acme/app', sbom.descriptor.digest)).toEqual([
        { ...signed.descriptor, artifactType: 'application/vnd.oci.empty.v1+json' },
      ]);
      const fallback = to.tags('acme/app').filter((tag) => /^sha256-[0-9a-f]{64}$/.test(tag));
      expect(fallback).toHaveLength(target === 'api' ? 0 : 2);

      const images = report.lists[0]?.images ?? [];
      const along = images.filter(({ kind }) => kind === 'artifact');
      expect(images.map(({ digest }) => digest).slice(0, 2)).toEqual([amd.descriptor.digest, arm.descriptor.digest]);
      expect(new Set(along.map(({ digest }) => digest))).toEqual(
        new Set([sbom, signed, cosign].map(({ descriptor }) => descriptor.digest)),
      );
      expect(along.find(({ digest }) => digest === cosign.descriptor.digest)?.source).toBe(
        `${from.host}/src/amd:${sig}@${cosign.descriptor.digest}`,
      );
      expect(along.every(({ placed }) => placed[0]?.manifest === 'pushed')).toBe(true);
      expect(report.warnings).toEqual([]);

      // Everything of it is there before the tag moves.
      const puts = requests(to, 'manifestPut').map(({ reference }) => reference);
      expect(puts.at(-1)).toBe('1');
      expect(puts.indexOf(amd.descriptor.digest)).toBeLessThan(puts.indexOf(sbom.descriptor.digest));
      expect(puts.indexOf(sbom.descriptor.digest)).toBeLessThan(puts.indexOf(signed.descriptor.digest));
      expect(new Set(puts).size).toBe(puts.length);

      const before = writes(to).length;
      const again = await publishTo(to, 'acme/app:1', sources, { referrers: 'all' });
      expect(writes(to)).toHaveLength(before);
      expect(again.lists[0]?.images).toHaveLength(5);
      expect(again.warnings).toEqual([]);
    }),
  );

  test('on one host blobs are mounted, and a child without referrers costs one list and three tags', () =>
    withRegistry({}, async (registry) => {
      const { amd, arm, sbom } = seedSource(registry);
      const report = await publishTo(registry, 'acme/app:1', ['src/amd:1', 'src/arm:1'], { referrers: 'all' });
      const along = report.lists[0]?.images.find(({ digest }) => digest === sbom.descriptor.digest);
      expect(along?.placed[0]?.blobs.map(({ how }) => how)).toEqual(['mounted', 'mounted']);
      expect(report.totals.blobs.copied).toBe(0);
      const of = ({ descriptor }: { descriptor: { digest: string } }) =>
        registry.journal
          .filter(({ path }) => path.includes(descriptor.digest) || path.includes(descriptor.digest.replace(':', '-')))
          .filter(({ operation, reference }) => operation === 'referrers' || reference.startsWith('sha256-'))
          .map(
            ({ method, path }) =>
              `${method} ${path.split('/').slice(2, 4).join('/')} ${path.split('.').at(-1)?.slice(-4)}`,
          );
      expect(of(arm)).toHaveLength(4);
      expect(new Set(of(arm)).size).toBe(4);
      // Of the one with an SBOM also the target's list, and of its signature the target's tag, twice, and its PUT.
      expect(of(amd)).toHaveLength(4 + 1 + 3);
    }));

  test('a referrer waits for what it speaks of', () =>
    withRegistries({}, {}, async (from, to) => {
      const { amd, sbom } = seedSource(from);
      const path = new RegExp(`manifests/${amd.descriptor.digest}`);
      to.addFault({ method: 'PUT', path, action: { kind: 'delay', milliseconds: 200 } });
      await publishTo(to, 'acme/app:1', [`${from.host}/src/amd:1`], { referrers: 'all' });
      const put = (digest: string) => requests(to, 'manifestPut').find(({ reference }) => reference === digest);
      expect(put(sbom.descriptor.digest)?.start).toBeGreaterThanOrEqual(put(amd.descriptor.digest)?.end ?? 0);
      expect(put(amd.descriptor.digest)?.end).toBeGreaterThan(0);
    }));

  test('nothing is asked unless it is wanted', () =>
    withRegistry({}, async (registry) => {
      seedSource(registry);
      await publishTo(registry, 'acme/app:1', ['src/amd:1', 'src/arm:1']);
      expect(requests(registry, 'referrers')).toEqual([]);
      expect(registry.journal.filter(({ reference }) => reference.startsWith('sha256-'))).toEqual([]);
    }));

  test('children of the target repository itself are left alone', () =>
    withRegistry({}, async (registry) => {
      seedSource(registry);
      await publishTo(registry, 'src/amd:list', ['src/amd:1'], { referrers: 'all' });
      expect(requests(registry, 'referrers')).toEqual([]);
      expect(writes(registry).map(({ reference }) => reference)).toEqual(['list']);
    }));

  test('a child that was there before is looked after as well, and the tag stays', () =>
    withRegistry({}, async (registry) => {
      const { amd, sbom } = seedSource(registry);
      await publishTo(registry, 'acme/app:1', ['src/amd:1', 'src/arm:1']);
      expect(await listedAt(registry, 'acme/app', amd.descriptor.digest)).toEqual([]);
      const report = await publishTo(registry, 'acme/app:1', ['src/amd:1', 'src/arm:1'], { referrers: 'all' });
      expect(report.lists[0]?.targets[0]?.action).toBe('unchanged');
      expect(await listedAt(registry, 'acme/app', amd.descriptor.digest)).toMatchObject([sbom.descriptor]);
    }));

  test('all pages of a list are taken along', () =>
    withRegistry({ manifest: { referrersPage: 2 } }, async (registry) => {
      const amd = seedImage(registry, 'src/amd', '1');
      const many = Array.from({ length: 5 }, (_, index) => makeArtifact(`n${index}`, { subject: amd.descriptor }));
      attach(registry, 'src/amd', amd, ...many);
      await publishTo(registry, 'acme/app:1', ['src/amd:1'], { referrers: 'all' });
      for (const { descriptor } of many) expect(registry.manifestOf('acme/app', descriptor.digest)).toBeDefined();
    }));

  test('an index that refers to a child comes with what it holds, and behind it', () =>
    withRegistries({}, { manifest: { referrers: '404' } }, async (from, to) => {
      const amd = seedImage(from, 'src/amd', '1');
      const parts = [makeArtifact('one'), makeArtifact('two')];
      const bundle = makeArtifactIndex(parts, amd.descriptor);
      attach(from, 'src/amd', amd, bundle);
      const sources = [`${from.host}/src/amd:1`];
      await publishTo(to, 'acme/app:1', sources, { referrers: 'all' });
      const puts = requests(to, 'manifestPut').map(({ reference }) => reference);
      for (const { descriptor } of parts) {
        expect(puts).toContain(descriptor.digest);
        expect(puts.indexOf(descriptor.digest)).toBeLessThan(puts.indexOf(bundle.descriptor.digest));
      }
      expect(await listedAt(to, 'acme/app', amd.descriptor.digest)).toEqual([
        { ...bundle.descriptor, artifactType: 'application/x-bundle' },
      ]);
      const before = writes(to).length;
      await publishTo(to, 'acme/app:1', sources, { referrers: 'all' });
      expect(writes(to)).toHaveLength(before);
    }));

  test('a child that is itself listed as a referrer is put once, and listed where there is no API', () =>
    withRegistries({}, { manifest: { referrers: '404' } }, async (from, to) => {
      const amd = makeImage('amd');
      const statement = makeArtifact('provenance', { subject: amd.descriptor });
      const index = makeIndex([
        { manifest: amd, platform: { architecture: 'amd64', os: 'linux' } },
        {
          manifest: statement,
          platform: { architecture: 'unknown', os: 'unknown' },
          annotations: {
            'vnd.docker.reference.type': 'attestation-manifest',
            'vnd.docker.reference.digest': amd.descriptor.digest,
          },
        },
      ]);
      putBuilt(from, 'src/app', index, '1');
      const report = await publishTo(to, 'acme/app:1', [`${from.host}/src/app:1`], { referrers: 'all' });
      const puts = requests(to, 'manifestPut').map(({ reference }) => reference);
      expect(puts.filter((one) => one === statement.descriptor.digest)).toHaveLength(1);
      expect(report.lists[0]?.images).toHaveLength(2);
      expect(await listedAt(to, 'acme/app', amd.descriptor.digest)).toMatchObject([statement.descriptor]);
    }));
});

describe('of the index', () => {
  function seedIndex(registry: RunningRegistry) {
    const amd = makeImage('amd');
    const arm = makeImage('arm', { platform: ARM });
    const index = makeIndex([
      { manifest: amd, platform: { architecture: 'amd64', os: 'linux' } },
      { manifest: arm, platform: ARM },
    ]);
    putBuilt(registry, 'src/app', index, '1');
    const sbom = makeArtifact('sbom of index', { subject: index.descriptor });
    attach(registry, 'src/app', index, sbom);
    const cosign = makeSignatures(index, 'alice');
    putBuilt(registry, 'src/app', cosign, `${tagOf(index.descriptor.digest)}.sig`);
    return { index, sbom, cosign };
  }

  test.each(modes)('that is published as it is they come along, before the tag; target %s', (referrers) =>
    withRegistries({}, { manifest: { referrers } }, async (from, to) => {
      const { index, sbom, cosign } = seedIndex(from);
      await publishTo(to, 'acme/app:1', [`${from.host}/src/app:1`], { referrers: 'all' });
      expect(to.tagOf('acme/app', '1')).toBe(index.descriptor.digest);
      expect(to.tagOf('acme/app', `${tagOf(index.descriptor.digest)}.sig`)).toBe(cosign.descriptor.digest);
      expect(await listedAt(to, 'acme/app', index.descriptor.digest)).toMatchObject([sbom.descriptor]);
      const puts = requests(to, 'manifestPut').map(({ reference }) => reference);
      expect(puts.at(-1)).toBe('1');
      expect(puts).not.toContain(index.descriptor.digest);
    }),
  );

  test('that is another than the source they stay where they are', () =>
    withRegistries({}, {}, async (from, to) => {
      const { sbom } = seedIndex(from);
      const options = { referrers: 'all', annotations: { a: 'b' } } as const;
      const report = await publishTo(to, 'acme/app:1', [`${from.host}/src/app:1`], options);
      expect(to.manifestOf('acme/app', sbom.descriptor.digest)).toBeUndefined();
      expect(report.lists[0]?.images).toHaveLength(2);
    }));

  test('a registry that wants subjects first is given the index by its digest before', () =>
    withRegistries({}, { manifest: { subjectMustExist: true, childError: '400 BLOB_UNKNOWN' } }, async (from, to) => {
      const { index, sbom } = seedIndex(from);
      await publishTo(to, 'acme/app:1', [`${from.host}/src/app:1`], { referrers: 'all', patient: true });
      expect(await listedAt(to, 'acme/app', index.descriptor.digest)).toMatchObject([sbom.descriptor]);
      const puts = requests(to, 'manifestPut').filter(({ status }) => status === 201);
      const order = puts.map(({ reference }) => reference);
      expect(order.indexOf(index.descriptor.digest)).toBeLessThan(order.indexOf(sbom.descriptor.digest));
      expect(order.at(-1)).toBe('1');
    }));
});

describe('what is no referrer', () => {
  test('one whose subject is another is left out with what it leads to, and that is told', () =>
    withRegistry({ manifest: { referrers: '404' } }, async (registry) => {
      const amd = seedImage(registry, 'src/amd', '1');
      const stranger = makeArtifact('stranger', { subject: makeImage('other').descriptor });
      const beneath = makeArtifact('beneath', { subject: stranger.descriptor });
      attach(registry, 'src/amd', stranger, beneath);
      attach(registry, 'src/amd', amd, stranger, makeArtifact('none'));
      const report = await publishTo(registry, 'acme/app:1', ['src/amd:1'], { referrers: 'all' });
      expect(report.warnings).toHaveLength(2);
      expect(report.warnings[0]).toMatch(/src\/amd@sha256:\w+ is left out.*its subject is sha256:\w+, not sha256:/);
      expect(report.warnings[1]).toMatch(/its subject is nothing/);
      expect(registry.manifestOf('acme/app', stranger.descriptor.digest)).toBeUndefined();
      expect(registry.manifestOf('acme/app', beneath.descriptor.digest)).toBeUndefined();
      expect(registry.tags('acme/app')).toEqual(['1']);
    }));

  test('lists and tags that lead in circles come to an end', () =>
    withRegistry({ manifest: { referrers: '404' } }, async (registry) => {
      const amd = seedImage(registry, 'src/amd', '1');
      const sbom = makeArtifact('sbom', { subject: amd.descriptor });
      putBuilt(registry, 'src/amd', sbom);
      noteInTag(registry, 'src/amd', amd.descriptor.digest, [sbom, amd]);
      noteInTag(registry, 'src/amd', sbom.descriptor.digest, [amd, sbom]);
      putBuilt(registry, 'src/amd', amd, `${tagOf(amd.descriptor.digest)}.sig`);
      putBuilt(registry, 'src/amd', amd, `${tagOf(sbom.descriptor.digest)}.sig`);
      putBuilt(registry, 'src/amd', sbom, `${tagOf(sbom.descriptor.digest)}.att`);
      const report = await publishTo(registry, 'acme/app:1', ['src/amd:1'], { referrers: 'all' });
      expect(await listedAt(registry, 'acme/app', amd.descriptor.digest)).toMatchObject([sbom.descriptor]);
      expect(registry.tagOf('acme/app', `${tagOf(amd.descriptor.digest)}.sig`)).toBeUndefined();
      expect(report.warnings.length).toBeGreaterThan(0);
      const lists = requests(registry, 'referrers').filter(({ repository }) => repository === 'src/amd');
      expect(new Set(lists.map(({ path }) => path)).size).toBe(lists.length);
    }));

  test('one that the API lists and that is not there ends the run, and the tag does not move', () =>
    withRegistry({}, async (registry) => {
      const amd = seedImage(registry, 'src/amd', '1');
      const sbom = makeArtifact('sbom', { subject: amd.descriptor });
      attach(registry, 'src/amd', amd, sbom);
      const path = new RegExp(`manifests/${sbom.descriptor.digest}`);
      registry.addFault({ method: 'GET', path, action: { kind: 'answer', status: 404 } });
      const run = publishTo(registry, 'acme/app:1', ['src/amd:1'], { referrers: 'all' });
      await expect(run).rejects.toMatchObject({ code: 'MANIFEST_NOT_FOUND', exitCode: 4, side: 'source' });
      expect(registry.tagOf('acme/app', '1')).toBeUndefined();
    }));

  test('one that only the fallback tag notes and that is not there is left out', () =>
    withRegistry({ manifest: { referrers: '404' } }, async (registry) => {
      const amd = seedImage(registry, 'src/amd', '1');
      const sbom = makeArtifact('sbom', { subject: amd.descriptor });
      attach(registry, 'src/amd', amd, sbom);
      noteInTag(registry, 'src/amd', amd.descriptor.digest, [makeArtifact('gone', { subject: amd.descriptor }), sbom]);
      const report = await publishTo(registry, 'acme/app:1', ['src/amd:1'], { referrers: 'all' });
      expect(report.warnings).toMatchObject([expect.stringMatching(/left out.*it is not there/)]);
      expect(await listedAt(registry, 'acme/app', amd.descriptor.digest)).toMatchObject([sbom.descriptor]);
    }));

  test('a type that cannot be read is left out, and an index that holds such', () =>
    withRegistry({ manifest: { referrers: '404', bodyCheck: false } }, async (registry) => {
      const amd = seedImage(registry, 'src/amd', '1');
      const mediaType = 'application/vnd.oci.artifact.manifest.v1+json';
      const old = { ...makeArtifact('old'), descriptor: { ...makeArtifact('old').descriptor, mediaType } };
      const bundle = makeArtifactIndex([makeArtifact('new'), old], amd.descriptor);
      registry.putManifest('src/amd', bundle.bytes, bundle.descriptor.mediaType);
      putBuilt(registry, 'src/amd', makeArtifact('new'));
      noteInTag(registry, 'src/amd', amd.descriptor.digest, [old, bundle]);
      const report = await publishTo(registry, 'acme/app:1', ['src/amd:1'], { referrers: 'all' });
      expect(report.warnings).toMatchObject([
        expect.stringMatching(/a manifest of type.*artifact\.manifest.*cannot be read/),
        expect.stringMatching(/it holds sha256:\w+, and a manifest of type/),
      ]);
      expect(registry.manifestOf('acme/app', bundle.descriptor.digest)).toBeUndefined();
    }));

  test('more than 1,000 are too many', () =>
    withRegistry({ manifest: { referrers: '404' } }, async (registry) => {
      const amd = seedImage(registry, 'src/amd', '1');
      const manifests = Array.from({ length: 1000 }, (_, n) => ({
        ...amd.descriptor,
        mediaType: 'text/plain',
        digest: digestOf(Buffer.from(`${n}`)),
      }));
      const list = { schemaVersion: 2, mediaType: MEDIA_TYPES.ociIndex, manifests };
      registry.putManifest(
        'src/amd',
        Buffer.from(JSON.stringify(list)),
        MEDIA_TYPES.ociIndex,
        tagOf(amd.descriptor.digest),
      );
      const all = { referrers: 'all' } as const;
      const report = await publishTo(registry, 'acme/app:1', ['src/amd:1'], all);
      expect(report.warnings).toHaveLength(1000);
      putBuilt(registry, 'src/amd', makeSignatures(amd, 'alice'), `${tagOf(amd.descriptor.digest)}.sig`);
      const run = publishTo(registry, 'acme/app:2', ['src/amd:1'], all);
      await expect(run).rejects.toMatchObject({ code: 'MANIFEST_INVALID', exitCode: 6, side: 'source' });
    }));

  test('referrers more than three deep are left out, and that is told', () =>
    withRegistry({}, async (registry) => {
      const amd = seedImage(registry, 'src/amd', '1');
      const chain = [amd];
      for (let depth = 1; depth <= 5; depth += 1) {
        const subject = chain[depth - 1] ?? amd;
        const next = makeArtifact(`depth ${depth}`, { subject: subject.descriptor });
        attach(registry, 'src/amd', subject, next);
        chain.push(next);
      }
      const report = await publishTo(registry, 'acme/app:1', ['src/amd:1'], { referrers: 'all' });
      const there = chain.map(({ descriptor }) => registry.manifestOf('acme/app', descriptor.digest) !== undefined);
      expect(there).toEqual([true, true, true, true, false, false]);
      expect(report.warnings).toMatchObject([expect.stringMatching(/more than 3 deep/)]);
    }));
});

describe('what cannot be read', () => {
  const answers = [
    ['referrers', /\/src\/amd\/referrers\//, 403, 'DENIED', 3],
    ['referrers', /\/src\/amd\/referrers\//, 500, 'REGISTRY_FAILED', 5],
    ['a tag of cosign', /\/src\/amd\/manifests\/sha256-\w+\.att/, 403, 'DENIED', 3],
    ['a tag of cosign', /\/src\/amd\/manifests\/sha256-\w+\.sbom/, 503, 'REGISTRY_FAILED', 5],
    ["the target's referrers", /\/acme\/app\/referrers\//, 403, 'DENIED', 3],
    ["the target's tag", /\/acme\/app\/manifests\/sha256-\w+\.sig/, 403, 'DENIED', 3],
  ] as const;
  test.each(answers)('%s %s: %i ends the run with %s', (_, path, status, code, exitCode) =>
    withRegistry({}, async (registry) => {
      seedSource(registry);
      registry.addFault({ method: 'GET', path, times: Number.POSITIVE_INFINITY, action: { kind: 'answer', status } });
      const run = publishTo(registry, 'acme/app:1', ['src/amd:1'], { referrers: 'all', network: { retries: 0 } });
      const side = String(path).includes('acme') ? 'target' : 'source';
      await expect(run).rejects.toMatchObject({ code, exitCode, side, moved: [] });
      expect(registry.tagOf('acme/app', '1')).toBeUndefined();
    }),
  );
});

describe('several', () => {
  test('targets get them all, and the source is read once', () =>
    withRegistries({}, { manifest: { referrers: '404' } }, async (from, to) => {
      const { amd, sbom, cosign } = seedSource(from);
      const targets = [`${from.host}/acme/one:1`, `${to.host}/acme/two:1`, `${to.host}/acme/three:1`].map(
        parseReference,
      );
      const request = requestOf(`${from.host}/acme/one:1`, [`${from.host}/src/amd:1`], { referrers: 'all' });
      const report = await withPorts({}, (ports, signal) => publish({ ...request, targets }, ports, signal), [
        from,
        to,
      ]);
      for (const [registry, repository] of [
        [from, 'acme/one'],
        [to, 'acme/two'],
        [to, 'acme/three'],
      ] as const) {
        expect(await listedAt(registry, repository, amd.descriptor.digest)).toMatchObject([sbom.descriptor]);
        expect(registry.tagOf(repository, `${tagOf(amd.descriptor.digest)}.sig`)).toBe(cosign.descriptor.digest);
      }
      const along = report.lists[0]?.images.find(({ digest }) => digest === sbom.descriptor.digest);
      expect(along?.placed.map(({ repository }) => repository)).toEqual(
        targets.map(({ host, repository }) => `${host}/${repository}`),
      );
      const read = from.journal.filter(({ path }) => path === `/v2/src/amd/referrers/${amd.descriptor.digest}`);
      expect(read).toHaveLength(1);
    }));

  test('sources of one child bring the referrers of all of them', () =>
    withRegistry({ manifest: { referrers: '404' } }, async (registry) => {
      const amd = seedImage(registry, 'src/one', '1', { seed: 'same' });
      seedImage(registry, 'src/two', '1', { seed: 'same' });
      const [first, second] = [1, 2].map((n) => makeArtifact(`sbom ${n}`, { subject: amd.descriptor }));
      if (first === undefined || second === undefined) throw new Error('two');
      attach(registry, 'src/one', amd, first);
      attach(registry, 'src/two', amd, second);
      const lists = ['one', 'two'].map((name) =>
        requestOf(`${registry.host}/acme/app:${name}`, [`${registry.host}/src/${name}:1`], { referrers: 'all' }),
      );
      await withPorts({}, (ports, signal) => publishLists(lists, ports, signal), [registry]);
      const listed = await listedAt(registry, 'acme/app', amd.descriptor.digest);
      expect(new Set(listed?.map(({ digest }) => digest))).toEqual(
        new Set([first, second].map(({ descriptor }) => descriptor.digest)),
      );
    }));

  test('lists of the same children read their referrers once and write them once', () =>
    withRegistry({}, async (registry) => {
      const { amd, sbom } = seedSource(registry);
      const lists = ['a', 'b', 'c'].map((tag) =>
        requestOf(`${registry.host}/acme/app:${tag}`, [`${registry.host}/src/amd:1`], { referrers: 'all' }),
      );
      const report = await withPorts({}, (ports, signal) => publishLists(lists, ports, signal), [registry]);
      expect(report.lists.map(({ images }) => images.length)).toEqual([4, 4, 4]);
      expect(
        registry.journal.filter(({ path }) => path === `/v2/src/amd/referrers/${amd.descriptor.digest}`),
      ).toHaveLength(1);
      const puts = requests(registry, 'manifestPut').map(({ reference }) => reference);
      expect(puts.filter((one) => one === sbom.descriptor.digest)).toHaveLength(1);
      expect(new Set(puts).size).toBe(puts.length);
    }));
});

describe('a run that only looks', () => {
  test('reads and counts them, writes nothing and asks nothing of the target', () =>
    withRegistry({}, async (registry) => {
      const { sbom, signed, cosign } = seedSource(registry);
      const events: PublishEvent[] = [];
      const report = await publishTo(registry, 'acme/app:1', ['src/amd:1', 'src/arm:1'], {
        referrers: 'all',
        dryRun: true,
        onEvent: (event) => events.push(event),
      });
      const along = report.lists[0]?.images.filter(({ kind }) => kind === 'artifact') ?? [];
      expect(new Set(along.map(({ digest }) => digest))).toEqual(
        new Set([sbom, signed, cosign].map(({ descriptor }) => descriptor.digest)),
      );
      expect(along.every(({ placed }) => placed.length === 0)).toBe(true);
      const planned = events.flatMap((event) => (event.kind === 'plan' ? event.images : []));
      expect(planned.filter(({ kind }) => kind === 'artifact')).toHaveLength(3);
      expect(writes(registry)).toEqual([]);
      expect(
        registry.journal.filter(({ repository, operation }) => repository === 'acme/app' && operation === 'referrers'),
      ).toEqual([]);
    }));
});
