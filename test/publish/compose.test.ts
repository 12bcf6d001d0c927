import { describe, expect, it } from 'vitest';
import type { PublishError } from '../../src/errors.ts';
import { MEDIA_TYPES } from '../../src/model/descriptor.ts';
import { parsePlatform } from '../../src/model/platform.ts';
import { compose, composeEarly, verbatimIndex } from '../../src/publish/compose.ts';
import {
  attestation,
  blob,
  child,
  digest,
  image,
  indexSource,
  request,
  resolution,
  source,
  withPlatform,
} from './values.ts';

const amd64 = child('t/amd64', image('amd64', [blob('a')]));
const arm = child('t/arm', image('arm', [blob('b')]));
const configs = new Map([
  [amd64.manifest.config.digest, { architecture: 'amd64', os: 'linux' }],
  [arm.manifest.config.digest, { architecture: 'arm', os: 'linux' }],
]);
const none = new Map();

function codeOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    return (error as PublishError).code;
  }
  return 'nothing thrown';
}

describe('compose', () => {
  it('lists the sources in the order of the arguments, with the platforms of their configs', () => {
    const { index } = compose(request(), resolution([source(arm), source(amd64)]), configs, none);
    expect(index.manifests.map((entry) => entry.platform)).toEqual([
      { architecture: 'arm', os: 'linux' },
      { architecture: 'amd64', os: 'linux' },
    ]);
  });

  it('fills what the config lacks from the platform the user wrote', () => {
    const sources = [source(arm, { platform: parsePlatform('linux/arm/v5') })];
    const { index } = compose(request(), resolution(sources), configs, none);
    expect(index.manifests[0]?.platform).toEqual({ architecture: 'arm', os: 'linux', variant: 'v5' });
  });

  it('refuses a platform that contradicts the config, unless forced', () => {
    const sources = resolution([source(amd64, { platform: parsePlatform('linux/arm64') })]);
    expect(codeOf(() => compose(request(), sources, configs, none))).toBe('PLATFORM_CONFLICT');
    const forced = compose(request({ forcePlatform: true }), sources, configs, none);
    expect(forced.index.manifests[0]?.platform?.architecture).toBe('arm64');
  });

  it('asks for a platform when the config tells none', () => {
    const silent = new Map([[amd64.manifest.config.digest, { os: 'linux' }]]);
    expect(codeOf(() => compose(request(), resolution([source(amd64)]), silent, none))).toBe('PLATFORM_INVALID');
  });

  it('refuses two images for one platform, also when only an equality makes them one', () => {
    const other = withPlatform(child('t/other', image('other', [])), parsePlatform('linux/arm/v7'));
    const two = resolution([source(arm), source(other)]);
    expect(codeOf(() => compose(request(), two, configs, none))).toBe('PLATFORM_DUPLICATE');
  });

  it('keeps entries of one platform that os.version or annotations tell apart', () => {
    const windows = ['10.0.14393.4770', '10.0.17763.2300'].map((version) =>
      withPlatform(child('t/win', image(version, [])), { architecture: 'amd64', os: 'windows', 'os.version': version }),
    );
    const gzip = withPlatform(child('t/z', image('gzip', [])), parsePlatform('linux/amd64'));
    const zstd = withPlatform(child('t/z', image('zstd', [])), parsePlatform('linux/amd64'));
    const marked = { ...zstd, descriptor: { ...zstd.descriptor, annotations: { compression: 'zstd' } } };
    const { index } = compose(
      request(),
      resolution([...windows, gzip, marked].map((one) => source(one))),
      configs,
      none,
    );
    expect(index.manifests).toHaveLength(4);
  });

  it('finds duplicates that descriptors tell before any config is read', () => {
    const one = withPlatform(amd64, parsePlatform('linux/amd64'));
    const two = withPlatform(child('t/x', image('x', [])), parsePlatform('linux/amd64'));
    expect(codeOf(() => composeEarly(request(), resolution([source(one), source(two)])))).toBe('PLATFORM_DUPLICATE');
  });

  it('refuses early a Docker list with an OCI child, when that type is asked for', () => {
    const one = withPlatform(amd64, parsePlatform('linux/amd64'));
    const list = indexSource('t/m', [one]);
    const sources = resolution([{ ...list, root: { ...list.root, mediaType: MEDIA_TYPES.dockerList } }]);
    expect(codeOf(() => composeEarly(request({ type: 'docker' }), sources))).toBe('INDEX_TYPE_CONFLICT');
    expect(composeEarly(request(), sources)).toBe('fits');
  });

  /** One image whose config says these os.features; what composing early makes of its size, and composing. */
  function sized(features: readonly string[], layout: 'plain' | 'docker'): { early: string; late: string } {
    const platform = { architecture: 'amd64', os: 'linux', 'os.features': features };
    const size = Buffer.byteLength(JSON.stringify(platform));
    const config = { ...amd64.manifest.config, size };
    const sources = resolution([source(child('t/amd64', image('amd64', [blob('a')], { config })))]);
    const wanted = request({ layout });
    return {
      early: composeEarly(wanted, sources),
      late: codeOf(() => compose(wanted, sources, new Map([[config.digest, platform]]), none)),
    };
  }

  it.each([
    ['plain', ''],
    ['docker', ''],
    ['plain', '<'],
    ['docker', '<'],
    ['docker', '\u2028&'],
    ['plain', 'é\t"'],
  ] as const)('is in doubt about every index that a config can make too large: %s, %j', (layout, feature) => {
    const most = 4 * 1024 * 1024;
    // What one more feature takes in the index: its line, and its text after Go's escapes.
    const base = layout === 'docker' ? 19 : 14;
    const each = base + (layout === 'docker' ? 6 : 1) * feature.length;
    const seen = new Set<string>();
    for (const share of [0.3, 1.5]) {
      const { early, late } = sized(Array(Math.ceil((most * share) / each)).fill(feature), layout);
      seen.add(late);
      if (late === 'INDEX_TOO_LARGE') expect(early).toBe('in doubt');
    }
    expect(seen).toEqual(new Set(['INDEX_TOO_LARGE', 'nothing thrown']));
    const long = sized([(feature || 'x').repeat(feature === '' ? most : (most * 1.1) / (each - base))], layout);
    expect(long).toEqual({ early: 'in doubt', late: 'INDEX_TOO_LARGE' });
  });

  it('is in no doubt about thirty images with usual configs', () => {
    const config = { ...amd64.manifest.config, size: 20_000 };
    const children = Array.from({ length: 30 }, (_, index) => child('t/x', image(`x${index}`, [], { config })));
    expect(composeEarly(request(), resolution(children.map((one) => source(one))))).toBe('fits');
  });

  it('drops the attestation of an image that a filter drops', () => {
    const one = withPlatform(amd64, parsePlatform('linux/amd64'));
    const two = withPlatform(arm, parsePlatform('linux/arm/v7'));
    const children = [one, attestation('t/m', 'att-one', one), two, attestation('t/m', 'att-two', two)];
    const wanted = request({ platforms: [parsePlatform('linux/arm/v7')] });
    const { listed } = compose(wanted, resolution([indexSource('t/m', children)]), none, none);
    expect(listed.map((entry) => entry.child.manifest.digest)).toEqual([digest('arm'), digest('att-two')]);
  });

  it('picks the child that PLATFORM= names, with its attestation, and says what there is when it is not there', () => {
    const one = withPlatform(amd64, parsePlatform('linux/amd64'));
    const two = withPlatform(arm, parsePlatform('linux/arm/v7'));
    const children = [one, two, attestation('t/m', 'att-two', two)];
    const pick = (platform: string) =>
      compose(request(), resolution([indexSource('t/m', children, { platform: parsePlatform(platform) })]), none, none);
    expect(pick('linux/arm').listed.map((entry) => entry.child.kind)).toEqual(['image', 'attestation']);
    expect(codeOf(() => pick('linux/s390x'))).toBe('PLATFORM_NOT_FOUND');
    expect(() => pick('linux/s390x')).toThrow(/it lists linux\/amd64, linux\/arm/);
  });

  it('labels the only image of an index with PLATFORM=', () => {
    const one = withPlatform(arm, { architecture: 'arm', os: 'linux' });
    const only = indexSource('t/m', [one], { platform: parsePlatform('linux/arm/v6') });
    const { index } = compose(request(), resolution([only]), none, none);
    expect(index.manifests[0]?.platform?.variant).toBe('v6');
  });

  it('refuses any set of platforms but the expected one, naming both sides', () => {
    const expectPlatforms = [parsePlatform('linux/amd64'), parsePlatform('linux/s390x')];
    const two = resolution([source(amd64), source(arm)]);
    expect(() => compose(request({ expectPlatforms }), two, configs, none)).toThrow(
      /missing linux\/s390x; not expected linux\/arm/,
    );
    const right = [parsePlatform('linux/arm/v7'), parsePlatform('linux/amd64')];
    expect(compose(request({ expectPlatforms: right }), two, configs, none).listed).toHaveLength(2);
  });

  it('refuses a filter that finds nothing', () => {
    const wanted = request({ platforms: [parsePlatform('linux/amd64'), parsePlatform('linux/riscv64')] });
    expect(() => compose(wanted, resolution([source(amd64)]), configs, none)).toThrow(
      /no source is for linux\/riscv64/,
    );
  });

  it('warns of an index that mixes Docker and OCI manifests', () => {
    const docker = withPlatform(
      child('t/d', image('d', [], { mediaType: MEDIA_TYPES.dockerManifest })),
      parsePlatform('linux/386'),
    );
    const { index, warnings } = compose(request(), resolution([source(amd64), source(docker)]), configs, none);
    expect(index.mediaType).toBe(MEDIA_TYPES.ociIndex);
    expect(warnings[0]).toMatch(/1 of 2 are Docker/);
  });
});

describe('verbatimIndex', () => {
  const one = indexSource('t/m', [withPlatform(amd64, parsePlatform('linux/amd64'))]);
  it('takes a single flat index as it is', () => {
    expect(verbatimIndex(request(), { sources: [one] })).toBe(one);
    expect(verbatimIndex(request({ type: 'oci' }), { sources: [one] })).toBe(one);
  });
  it('does not when anything is to be done to it', () => {
    expect(verbatimIndex(request({ type: 'docker' }), { sources: [one] })).toBeUndefined();
    expect(verbatimIndex(request({ platforms: [parsePlatform('linux/amd64')] }), { sources: [one] })).toBeUndefined();
    expect(verbatimIndex(request(), { sources: [one, source(arm)] })).toBeUndefined();
    expect(verbatimIndex(request(), { sources: [{ ...one, flat: false }] })).toBeUndefined();
    expect(
      verbatimIndex(request(), {
        sources: [{ ...one, request: { ...one.request, platform: parsePlatform('amd64') } }],
      }),
    ).toBeUndefined();
  });
});
