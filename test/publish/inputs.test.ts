import { describe, expect, it } from 'vitest';
import type { Platform } from '../../src/model/descriptor.ts';
import { parsePlatform } from '../../src/model/platform.ts';
import type { SourceRequest } from '../../src/publish/request.ts';
import type { BuiltManifest, RunningRegistry } from '../../src/registry-server/index.ts';
import { makeAttestation, makeAttestedIndex, makeImage, makeIndex, putBuilt, seedImage } from '../helpers/images.ts';
import { type PublishOptions, publishTo } from '../helpers/publishing.ts';
import { requests, withRegistry, writes } from '../helpers/registry.ts';
import { platformsAt, publishRequest, readBack, requestAt } from './inputs.ts';

const TARGET = 't/all:1';
const amd64 = parsePlatform('linux/amd64');
const arm64 = parsePlatform('linux/arm64');
const s390x = parsePlatform('linux/s390x');
const UNKNOWN = { architecture: 'unknown', os: 'unknown' };

const on = (platform: Platform, seed = platform.architecture) => ({
  manifest: makeImage(seed, { platform }),
  platform,
});
const nested = (...entries: readonly Parameters<typeof makeIndex>[0][number][]) => ({ manifest: makeIndex(entries) });
const isAttestation = (entry: { annotations?: Readonly<Record<string, string>> }) =>
  entry.annotations?.['vnd.docker.reference.type'] === 'attestation-manifest';

/** Attestation of one image, as buildkit lists it. */
function attesting({ manifest }: { readonly manifest: BuiltManifest }) {
  const annotations = {
    'vnd.docker.reference.digest': manifest.descriptor.digest,
    'vnd.docker.reference.type': 'attestation-manifest',
  };
  return { manifest: makeAttestation(manifest), platform: UNKNOWN, annotations };
}

/** The sources as the command line would give them, some with what only files can say. */
async function publishWith(
  registry: RunningRegistry,
  sources: readonly (readonly [string, Partial<SourceRequest>])[],
  options: PublishOptions = {},
) {
  const request = requestAt(
    registry,
    TARGET,
    sources.map(([text]) => text),
    options,
  );
  const more = sources.map(([, rest]) => rest);
  const own = request.sources.map((source, at) => ({ ...source, ...more[at] }));
  return publishRequest({ ...request, sources: own }, [registry], options);
}

describe('an index as a source', () => {
  const deep = (levels: number) =>
    Array.from({ length: levels - 1 }).reduce<ReturnType<typeof nested>>(
      (inner) => nested(inner, on(s390x)),
      nested(on(amd64), attesting(on(amd64)), on(arm64)),
    ).manifest;

  it.each([1, 2, 3])('is flattened at depth %i, in its order, attestations beside their image', (levels) =>
    withRegistry({}, async (registry) => {
      // Further down the same image would be listed twice.
      const index =
        levels === 3 ? nested(nested(nested(on(amd64), attesting(on(amd64)), on(arm64)))).manifest : deep(levels);
      putBuilt(registry, 't/deep', index, '1');
      seedImage(registry, 't/386', '1', { platform: parsePlatform('linux/386') });
      await publishTo(registry, TARGET, ['t/386:1', 't/deep:1']);
      const { entries } = await readBack(registry, TARGET);
      const expected = ['linux/386', 'linux/amd64', 'unknown/unknown', 'linux/arm64'];
      expect(platformsAt(registry, TARGET)).toEqual(levels === 2 ? [...expected, 'linux/s390x'] : expected);
      expect(entries.filter(isAttestation).map((one) => one.annotations?.['vnd.docker.reference.digest'])).toEqual([
        on(amd64).manifest.descriptor.digest,
      ]);
    }),
  );

  it('is refused at a fourth level, nothing written', () =>
    withRegistry({}, async (registry) => {
      putBuilt(registry, 't/deep', nested(nested(nested(nested(on(amd64))))).manifest, '1');
      await expect(publishTo(registry, TARGET, ['t/deep:1'])).rejects.toMatchObject({
        exitCode: 6,
        message: expect.stringContaining('nested more than 3 deep'),
      });
      expect(writes(registry)).toEqual([]);
    }));

  it.each(['flat', 'nested'])('is refused with 1,001 entries, %s, nothing written', (shape) =>
    withRegistry({}, async (registry) => {
      const many = (count: number) => Array.from({ length: count }, () => on(amd64));
      const index = shape === 'flat' ? makeIndex(many(1001)) : makeIndex([nested(...many(600)), nested(...many(399))]);
      putBuilt(registry, 't/many', index, '1');
      await expect(publishTo(registry, TARGET, ['t/many:1'])).rejects.toMatchObject({ exitCode: 6 });
      expect(writes(registry)).toEqual([]);
      expect(requests(registry, 'manifestGet').length).toBeLessThan(8);
    }),
  );

  it('gives up one image by PLATFORM=REF, with its attestation, however deep it lies; the others are not read', () =>
    withRegistry({}, async (registry) => {
      const others = [on(s390x), attesting(on(s390x))];
      putBuilt(registry, 't/m', makeIndex([...others, nested(on(amd64), on(arm64), attesting(on(arm64)))]), '1');
      await publishTo(registry, TARGET, ['linux/arm64/v8=t/m:1']);
      await readBack(registry, TARGET);
      expect(platformsAt(registry, TARGET)).toEqual(['linux/arm64', 'unknown/unknown']);
      for (const { manifest } of [...others, on(amd64)]) {
        expect(requests(registry).filter(({ path }) => path.includes(manifest.descriptor.digest))).toEqual([]);
      }
      const run = publishTo(registry, 't/other:1', ['linux/riscv64=t/m:1']);
      await expect(run).rejects.toMatchObject({ code: 'PLATFORM_NOT_FOUND', exitCode: 4 });
    }));

  it('whose children have no platform is read from their configs, also to pick one', () =>
    withRegistry({}, async (registry) => {
      const images = [amd64, arm64].map((platform) => ({ manifest: on(platform).manifest }));
      putBuilt(registry, 't/m', makeIndex(images), '1');
      seedImage(registry, 't/s390x', '1', { platform: s390x });
      await publishTo(registry, TARGET, ['t/m:1', 't/s390x:1']);
      expect(platformsAt(registry, TARGET)).toEqual(['linux/amd64', 'linux/arm64', 'linux/s390x']);
      await publishTo(registry, 't/one:1', ['arm64=t/m:1']);
      const { entries } = await readBack(registry, 't/one:1');
      expect(entries.map(({ digest }) => digest)).toEqual([images[1]?.manifest.descriptor.digest]);
    }));

  it('with one entry is unwrapped beside another source, and labelled by PLATFORM=', () =>
    withRegistry({}, async (registry) => {
      putBuilt(registry, 't/one', makeIndex([on({ os: 'linux', architecture: 'arm' })]), '1');
      seedImage(registry, 't/amd64', '1', { platform: amd64 });
      await publishTo(registry, TARGET, ['linux/arm/v6=t/one:1', 't/amd64:1']);
      await readBack(registry, TARGET);
      expect(platformsAt(registry, TARGET)).toEqual(['linux/arm/v6', 'linux/amd64']);
    }));

  const whole = makeIndex([on(amd64), on(arm64), attesting(on(amd64)), { manifest: on(s390x).manifest }], {
    annotations: { note: 'ours' },
  });
  const same: readonly (readonly [string, PublishOptions])[] = [
    ['nothing is said', {}],
    ['its type is asked for', { type: 'oci' }],
    ['attestations are kept', { attestations: 'keep' }],
    ['empty annotations are said', { entryAnnotations: [{ annotations: {} }] }],
    ['its platforms are the expected ones', { expectPlatforms: [amd64, arm64, s390x] }],
    ['there was nothing to amend', { amend: true }],
    ['nothing is missing', { ignoreMissing: true }],
  ];
  it.each(same)('keeps its bytes when %s', (_, options) =>
    withRegistry({}, async (registry) => {
      putBuilt(registry, 't/m', whole, '1');
      await publishTo(registry, TARGET, ['t/m:1'], options);
      expect((await readBack(registry, TARGET)).bytes.equals(whole.bytes)).toBe(true);
    }),
  );

  it('with a platform that --platform drops loses that image’s attestation; neither is read', () =>
    withRegistry({}, async (registry) => {
      putBuilt(registry, 't/m', makeIndex([on(amd64), on(arm64), attesting(on(amd64)), attesting(on(arm64))]), '1');
      await publishTo(registry, TARGET, ['t/m:1'], { platforms: [arm64] });
      const { entries } = await readBack(registry, TARGET);
      expect(entries.map(({ digest }) => digest)).toEqual(
        [on(arm64), attesting(on(arm64))].map(({ manifest }) => manifest.descriptor.digest),
      );
      for (const { manifest } of [on(amd64), attesting(on(amd64))]) {
        expect(requests(registry).filter(({ path }) => path.includes(manifest.descriptor.digest))).toEqual([]);
      }
    }));
});

describe('attestations that are not wanted', () => {
  it('are neither read nor copied, and the index is written anew', () =>
    withRegistry({ mount: { mode: 'ignore' } }, async (registry) => {
      const attested = [amd64, arm64].map((platform) => makeAttestedIndex(on(platform).manifest, platform));
      attested.forEach((index, at) => void putBuilt(registry, 't/m', index, `${at}`));
      await publishTo(registry, TARGET, ['t/m:0', 't/m:1'], { attestations: 'drop' });
      await readBack(registry, TARGET);
      expect(platformsAt(registry, TARGET)).toEqual(['linux/amd64', 'linux/arm64']);
      await publishTo(registry, 't/one:1', ['t/m:0'], { attestations: 'drop' });
      expect(platformsAt(registry, 't/one:1')).toEqual(['linux/amd64']);
      for (const attestation of attested.map(({ children }) => children[1])) {
        const digests = [attestation, ...(attestation?.blobs ?? [])].map((one) => String(one?.descriptor.digest));
        const asked = requests(registry).filter(({ path, query }) =>
          digests.some((digest) => decodeURIComponent(path + query).includes(digest)),
        );
        expect(asked).toEqual([]);
      }
    }));

  it('where there are none: the same bytes', () =>
    withRegistry({}, async (registry) => {
      const index = makeIndex([on(amd64), on(arm64)]);
      putBuilt(registry, 't/m', index, '1');
      await publishTo(registry, TARGET, ['t/m:1'], { attestations: 'drop' });
      expect((await readBack(registry, TARGET)).bytes.equals(index.bytes)).toBe(true);
    }));

  it('are dropped at every depth; an index of nothing else is said', () =>
    withRegistry({}, async (registry) => {
      putBuilt(registry, 't/m', makeIndex([nested(on(amd64), attesting(on(amd64)))]), '1');
      await publishTo(registry, TARGET, ['t/m:1'], { attestations: 'drop' });
      expect(platformsAt(registry, TARGET)).toEqual(['linux/amd64']);
      putBuilt(registry, 't/only', makeIndex([attesting(on(amd64))]), '1');
      await expect(publishTo(registry, 't/x:1', ['t/only:1'], { attestations: 'drop' })).rejects.toMatchObject({
        exitCode: 4,
        message: expect.stringContaining('t/only:1 lists nothing but attestations'),
      });
    }));
});

describe('annotations of entries', () => {
  it('stand on images of all platforms, of one source, of one platform, from general to special, never on attestations', () =>
    withRegistry({}, async (registry) => {
      const own = { ...on(arm64), annotations: { own: 'kept', all: 'own', source: 'own' } };
      putBuilt(registry, 't/m', makeIndex([own, attesting(own)]), '1');
      seedImage(registry, 't/amd64', '1', { platform: amd64 });
      const entryAnnotations = [
        { platform: parsePlatform('linux/arm64/v8'), annotations: { special: 'arm64', source: 'special' } },
        { annotations: { all: 'all', special: 'all', source: 'all' } },
      ];
      const sources = [
        ['t/m:1', { annotations: { source: 'one', both: 'one' } }],
        ['t/amd64:1', {}],
      ] as const;
      await publishWith(registry, sources, { entryAnnotations });
      const { entries } = await readBack(registry, TARGET);
      expect(entries.map(({ annotations }) => annotations)).toEqual([
        { all: 'all', both: 'one', own: 'kept', source: 'special', special: 'arm64' },
        attesting(own).annotations,
        { all: 'all', source: 'all', special: 'all' },
      ]);
    }));

  it.each([
    ['every image', { entryAnnotations: [{ annotations: { a: '1' } }] }, {}],
    ['one platform', { entryAnnotations: [{ platform: amd64, annotations: { a: '1' } }] }, {}],
    ['the source', {}, { annotations: { a: '1' } }],
  ] as const)('of %s make a new index of a single one', (_, options, source) =>
    withRegistry({}, async (registry) => {
      putBuilt(registry, 't/m', makeIndex([on(amd64)]), '1');
      await publishWith(registry, [['t/m:1', source]], options);
      expect((await readBack(registry, TARGET)).entries[0]?.annotations).toEqual({ a: '1' });
    }),
  );

  it('for a platform that the index does not list end the run, with what there is, nothing written', () =>
    withRegistry({}, async (registry) => {
      for (const platform of [amd64, arm64]) seedImage(registry, `t/${platform.architecture}`, '1', { platform });
      const entryAnnotations = [{ platform: s390x, annotations: { a: '1' } }];
      const run = publishTo(registry, TARGET, ['t/amd64:1', 't/arm64:1'], { entryAnnotations });
      await expect(run).rejects.toMatchObject({
        code: 'PLATFORM_NOT_FOUND',
        exitCode: 4,
        message: expect.stringMatching(/linux\/s390x.* lists linux\/amd64, linux\/arm64/),
      });
      expect(writes(registry)).toEqual([]);
    }));

  it.each([
    ['the index', { annotations: { a: '1' } }, {}],
    ['every image', { entryAnnotations: [{ annotations: { a: '1' } }] }, {}],
    ['one platform', { entryAnnotations: [{ platform: amd64, annotations: { a: '1' } }] }, {}],
    ['one source', {}, { annotations: { a: '1' } }],
  ] as const)(
    'of %s: a Docker list can hold none, which is said before any write; --type oci can',
    (_, options, source) =>
      withRegistry({}, async (registry) => {
        seedImage(registry, 't/amd64', '1', { platform: amd64, docker: true });
        await expect(publishWith(registry, [['t/amd64:1', source]], options)).rejects.toMatchObject({
          code: 'INDEX_TYPE_CONFLICT',
          exitCode: 2,
          hint: expect.stringContaining('--type oci'),
        });
        expect(writes(registry)).toEqual([]);
        await publishWith(registry, [['t/amd64:1', source]], { ...options, type: 'oci' });
        const { entries, annotations } = await readBack(registry, TARGET);
        expect(annotations ?? entries[0]?.annotations).toEqual({ a: '1' });
      }),
  );

  it('tell two copies for one platform apart, which are duplicates without them', () =>
    withRegistry({}, async (registry) => {
      for (const tag of ['gzip', 'zstd']) seedImage(registry, 't/a', tag, { platform: amd64 });
      await expect(publishTo(registry, TARGET, ['t/a:gzip', 't/a:zstd'])).rejects.toMatchObject({ exitCode: 2 });
      const zstd = { annotations: { 'io.github.containerd.zstd': 'true' } };
      await publishWith(registry, [
        ['t/a:gzip', {}],
        ['t/a:zstd', zstd],
      ]);
      const { entries } = await readBack(registry, TARGET);
      expect(entries.map(({ annotations }) => annotations)).toEqual([undefined, zstd.annotations]);
    }));
});

describe('a source that is missing', () => {
  const origin = 'digests/ab12';

  it('is named with the place it was named in, with all others that are missing', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64 });
      const lost = `t/a@sha256:${'ab12'.repeat(16)}`;
      const run = publishWith(registry, [
        ['t/a:1', {}],
        [lost, { origin }],
        ['t/gone:1', { origin: 'app.yaml:3:5' }],
      ]);
      await expect(run).rejects.toMatchObject({ code: 'SOURCE_NOT_FOUND', exitCode: 4, side: 'source' });
      const message = await run.catch((error: Error) => error.message);
      expect(message).toContain(`2 sources are not there: ${origin}: ${registry.host}/${lost} is not there`);
      expect(message).toContain(`; app.yaml:3:5: ${registry.host}/t/gone:1 is not there`);
      expect(writes(registry)).toEqual([]);
    }));

  it('is left out with a warning when that is asked for', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64 });
      const sources = [
        ['t/gone:1', { origin }],
        ['t/a:1', {}],
      ] as const;
      const report = await publishWith(registry, sources, { ignoreMissing: true });
      expect(report.warnings).toEqual([
        expect.stringMatching(new RegExp(`^${origin}: ${registry.host}/t/gone:1 is not there.*; left out$`)),
      ]);
      await readBack(registry, TARGET);
      expect(platformsAt(registry, TARGET)).toEqual(['linux/amd64']);
    }));

  it('is waited for first', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64 });
      const onSleep = (): void => void seedImage(registry, 't/late', '1', { platform: arm64 });
      const options = { ignoreMissing: true, waitForSource: 60_000, patient: true, onSleep };
      const report = await publishWith(
        registry,
        [
          ['t/a:1', {}],
          ['t/late:1', {}],
        ],
        options,
      );
      expect(report.warnings).toEqual([]);
      expect(platformsAt(registry, TARGET)).toEqual(['linux/amd64', 'linux/arm64']);
    }));

  it('does not make up for the platforms that are expected', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64 });
      const options = { ignoreMissing: true, expectPlatforms: [amd64, arm64] };
      await expect(
        publishWith(
          registry,
          [
            ['t/gone:1', {}],
            ['t/a:1', {}],
          ],
          options,
        ),
      ).rejects.toMatchObject({
        exitCode: 4,
        message: expect.stringContaining('missing linux/arm64'),
      });
      expect(writes(registry)).toEqual([]);
    }));

  it.each([false, true])('and so are all others: exit 4, all named; amending: %s', (amend) =>
    withRegistry({}, async (registry) => {
      if (amend) seedImage(registry, 't/all', '1', { platform: amd64 });
      const run = publishWith(
        registry,
        [
          ['t/gone:1', {}],
          ['t/lost:1', {}],
        ],
        { ignoreMissing: true, amend },
      );
      await expect(run).rejects.toMatchObject({
        code: 'SOURCE_NOT_FOUND',
        exitCode: 4,
        message: expect.stringMatching(/t\/gone:1.*t\/lost:1/),
      });
      expect(writes(registry)).toEqual([]);
    }),
  );

  type Broken = (registry: RunningRegistry) => void;
  const answer =
    (status: number): Broken =>
    (registry) =>
      registry.addFault({ repository: 't/bad', times: Infinity, action: { kind: 'answer', status } });
  const broken: readonly (readonly [string, number, Broken])[] = [
    ['answered 401', 3, answer(401)],
    ['answered 403', 3, answer(403)],
    ['answered 500', 5, answer(500)],
    ['lacks a child', 4, (registry) => registry.deleteManifest('t/bad', on(arm64).manifest.descriptor.digest)],
    [
      'lacks a config',
      4,
      (registry) => registry.deleteBlob('t/bad', String(on(arm64).manifest.blobs[0]?.descriptor.digest)),
    ],
  ];
  it.each(broken)('is none that is %s: exit %i, nothing left out', (_, exitCode, breakIt) =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1', { platform: amd64 });
      putBuilt(registry, 't/bad', makeIndex([{ manifest: on(arm64).manifest }]), '1');
      breakIt(registry);
      const options = { ignoreMissing: true, patient: true, expectPlatforms: [amd64, arm64] };
      const run = publishWith(
        registry,
        [
          ['t/a:1', {}],
          ['t/bad:1', { origin }],
        ],
        options,
      );
      await expect(run).rejects.toMatchObject({ exitCode, message: expect.stringContaining(`${origin}: `) });
      expect(writes(registry)).toEqual([]);
    }),
  );
});
