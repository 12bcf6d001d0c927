import { describe, expect, it } from 'vitest';
import type { Platform } from '../../src/model/descriptor.ts';
import { parsePlatform } from '../../src/model/platform.ts';
import { readSpec } from '../../src/spec/index.ts';
import { type LaidCase, layCase } from '../helpers/cases.ts';
import { makeImage, makeIndex, putBuilt, seedImage } from '../helpers/images.ts';
import { type PublishOptions, publishTo, requestOf } from '../helpers/publishing.ts';
import { requests, withRegistry, writes } from '../helpers/registry.ts';
import { platformsAt, publishRequest, readBack, requestAt } from './inputs.ts';

const TARGET = 't/all:1';

/** What a config says, and what it is listed as. */
type Row = readonly [
  what: string,
  configs: readonly Partial<Platform>[],
  sources: readonly string[],
  listed: readonly string[],
];

const linux = (architecture: string, variant?: string): Platform => ({
  os: 'linux',
  architecture,
  ...(variant === undefined ? {} : { variant }),
});
const windows = (version: string, features?: readonly string[]): Platform => ({
  os: 'windows',
  architecture: 'amd64',
  'os.version': version,
  ...(features === undefined ? {} : { 'os.features': features }),
});

/** Seeds `t/0:1`, `t/1:1`, … with these configs, and publishes `sources` with `N` for `t/N:1`. */
async function publishConfigs(
  configs: readonly Partial<Platform>[],
  sources: readonly string[],
  options: PublishOptions = {},
): Promise<{ listed: readonly string[]; warnings: readonly string[] }> {
  return withRegistry({}, async (registry) => {
    for (const [at, platform] of configs.entries()) seedImage(registry, `t/${at}`, '1', { platform });
    const full = sources.map((text) => text.replace(/(\d+)$/, 't/$1:1'));
    try {
      const { warnings } = await publishTo(registry, TARGET, full, options);
      await readBack(registry, TARGET);
      return { listed: platformsAt(registry, TARGET), warnings };
    } finally {
      // Nothing but duplicates that nobody named is found after a mount, and no manifest is put then.
      if (registry.tagMoves.length === 0) expect(requests(registry, 'manifestPut')).toEqual([]);
    }
  });
}

describe('platforms that are listed', () => {
  const rows: readonly Row[] = [
    [
      'what configs say, unknown pairs too',
      [linux('amd64', 'v2'), linux('quux', 'z9'), { os: 'plan9', architecture: 'arm64', variant: 'v7' }],
      ['0', '1', '2'],
      ['linux/amd64/v2', 'linux/quux/z9', 'plan9/arm64/v7'],
    ],
    [
      'amd64 beside amd64/v2 and amd64/v3',
      [linux('amd64'), linux('amd64', 'v2'), linux('amd64', 'v3')],
      ['0', '1', '2'],
      ['linux/amd64', 'linux/amd64/v2', 'linux/amd64/v3'],
    ],
    [
      'arm in every variant, in their order',
      [linux('arm', 'v7'), linux('arm', 'v5'), linux('arm', 'v6')],
      ['0', '1', '2'],
      ['linux/arm/v7', 'linux/arm/v5', 'linux/arm/v6'],
    ],
    [
      'the user’s variant where the config has none',
      [linux('arm'), linux('arm')],
      ['linux/arm/v5=0', 'armv6=1'],
      ['linux/arm/v5', 'linux/arm/v6'],
    ],
    [
      'the config’s spelling where the user says the same',
      [linux('arm64'), linux('arm', 'v7')],
      ['linux/arm64/v8=0', 'armhf=1'],
      ['linux/arm64/v8', 'linux/arm/v7'],
    ],
    [
      'the user’s word where the config says nothing',
      [{}, { os: 'linux' }],
      ['windows/amd64:10.0.1=0', 's390x=1'],
      ['windows/amd64:10.0.1', 'linux/s390x'],
    ],
    [
      'Windows images of several versions',
      [windows('10.0.1'), windows('10.0.2')],
      ['0', '1'],
      ['windows/amd64:10.0.1', 'windows/amd64:10.0.2'],
    ],
    [
      'images told apart by os.features',
      [windows('10.0.1'), windows('10.0.1', ['win32k'])],
      ['0', '1'],
      ['windows/amd64:10.0.1', 'windows/amd64:10.0.1'],
    ],
  ];
  it.each(rows)('%s', async (_, configs, sources, listed) => {
    expect((await publishConfigs(configs, sources)).listed).toEqual(listed);
  });

  it('carry os.features from the config into the entry', () =>
    withRegistry({}, async (registry) => {
      const platform = windows('10.0.1', ['win32k']);
      seedImage(registry, 't/0', '1', { platform });
      await publishTo(registry, TARGET, ['t/0:1']);
      expect((await readBack(registry, TARGET)).entries[0]?.platform).toEqual(platform);
    }));
});

describe('platforms that are refused', () => {
  type Refused = readonly [
    configs: readonly Partial<Platform>[],
    sources: readonly string[],
    code: string,
    words: RegExp,
  ];
  const rows: readonly Refused[] = [
    [
      [linux('arm64'), linux('arm64', 'v8')],
      ['0', '1'],
      'PLATFORM_DUPLICATE',
      /t\/0:1@.* and .*t\/1:1@.* are both for linux\/arm64/,
    ],
    [[linux('amd64', 'v1'), linux('amd64')], ['0', '1'], 'PLATFORM_DUPLICATE', /are both for linux\/amd64/],
    [[linux('arm'), linux('arm', 'v7')], ['0', '1'], 'PLATFORM_DUPLICATE', /are both for linux\/arm/],
    [[windows('10.0.1'), windows('10.0.1')], ['0', '1'], 'PLATFORM_DUPLICATE', /windows\/amd64:10.0.1/],
    [[windows('1', ['a', 'b']), windows('1', ['b', 'a'])], ['0', '1'], 'PLATFORM_DUPLICATE', /windows\/amd64:1/],
    [[linux('amd64')], ['0', '0'], 'PLATFORM_DUPLICATE', /the image for linux\/amd64 is named twice: .*t\/0:1@[^ ]*$/],
    [
      [linux('amd64')],
      ['linux/arm64=0'],
      'PLATFORM_CONFLICT',
      /says linux\/amd64, but you wrote linux\/arm64 \(architecture differs\)/,
    ],
    [[linux('arm', 'v6')], ['linux/arm=0'], 'PLATFORM_CONFLICT', /variant differs/],
    [[linux('amd64', 'v2')], ['linux/amd64=0'], 'PLATFORM_CONFLICT', /variant differs/],
    [[windows('10.0.1')], ['windows/amd64:10.0.2=0'], 'PLATFORM_CONFLICT', /os.version differs/],
    [[{ os: 'linux' }], ['0'], 'PLATFORM_INVALID', /has no architecture/],
    [[linux('amd64')], ['s390x=0'], 'PLATFORM_CONFLICT', /architecture differs/],
  ];
  it.each(rows)('%j as %j: %s', async (configs, sources, code, words) => {
    await expect(publishConfigs(configs, sources)).rejects.toMatchObject({
      code,
      exitCode: 2,
      message: expect.stringMatching(words),
    });
  });

  it.each(['linux/arm64/v7', 'linux/amd64/v9', 'linux/arm/v9', 'amd64/linux', 'linux/armv8'])(
    '%s, which is nowhere',
    (text) => {
      expect(() => requestOf('a.test/t', [`${text}=a.test/s`])).toThrow(expect.objectContaining({ exitCode: 2 }));
    },
  );

  it('are named with the place in a file where they were said', () =>
    withRegistry({}, async (registry) => {
      for (const name of ['a', 'b']) seedImage(registry, `t/${name}`, '1', { platform: linux('amd64') });
      const place = async (origins: readonly string[], platform?: Platform) => {
        const request = requestAt(registry, TARGET, ['t/a:1', 't/b:1']);
        const sources = request.sources.map((source, at) => ({
          ...source,
          origin: origins[at] ?? '',
          ...(platform === undefined ? {} : { platform }),
        }));
        const run = publishRequest({ ...request, sources }, [registry]);
        return run.then(
          () => 'published',
          (error: Error) => error.message,
        );
      };
      expect(await place(['app.yaml:3:5', 'app.yaml:7:5'])).toMatch(
        /t\/a:1@\S+ \(app.yaml:3:5\) and \S+ \(app.yaml:7:5\)/,
      );
      expect(await place(['app.yaml:3:5', 'app.yaml:7:5'], linux('arm64'))).toMatch(
        /^app.yaml:3:5: \S+ says linux\/amd64/,
      );
      expect(requests(registry, 'manifestPut')).toEqual([]);
    }));

  it('unless forced: then it is listed as it was written, and said', async () => {
    const { listed, warnings } = await publishConfigs([linux('amd64', 'v2')], ['linux/arm64=0'], {
      forcePlatform: true,
    });
    expect(listed).toEqual(['linux/arm64']);
    expect(warnings).toEqual([
      expect.stringMatching(/says linux\/amd64\/v2, but you wrote linux\/arm64 .*listed as you wrote it/),
    ]);
  });
});

describe('--platform', () => {
  const entries = [
    linux('amd64'),
    linux('arm64', 'v8'),
    linux('arm', 'v7'),
    linux('arm', 'v6'),
    windows('10.0.1'),
    windows('10.0.2'),
  ];
  const rows: readonly (readonly [readonly string[], readonly string[]])[] = [
    [['linux/arm64'], ['linux/arm64/v8']],
    [['linux/arm'], ['linux/arm/v7']],
    [
      ['linux/arm/v6', 'linux/amd64/v1'],
      ['linux/amd64', 'linux/arm/v6'],
    ],
    [['windows/amd64'], ['windows/amd64:10.0.1', 'windows/amd64:10.0.2']],
    [['windows/amd64:10.0.2'], ['windows/amd64:10.0.2']],
  ];
  it.each(rows)('%j takes %j, of an index and of images', (platforms, listed) =>
    withRegistry({}, async (registry) => {
      const images = entries.map((platform, at) => ({ manifest: makeImage(`${at}`, { platform }), platform }));
      putBuilt(registry, 't/m', makeIndex(images), '1');
      images.forEach(({ manifest }, at) => void putBuilt(registry, `t/${at}`, manifest, '1'));
      const options = { platforms: platforms.map(parsePlatform) };
      await publishTo(registry, TARGET, ['t/m:1'], options);
      await readBack(registry, TARGET);
      expect(platformsAt(registry, TARGET)).toEqual(listed);
      await publishTo(
        registry,
        't/images:1',
        images.map((_, at) => `t/${at}:1`),
        options,
      );
      expect(platformsAt(registry, 't/images:1')).toEqual(listed);
    }),
  );

  it('that no source has ends the run before any write', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/0', '1', { platform: linux('amd64') });
      const run = publishTo(registry, TARGET, ['t/0:1'], { platforms: [linux('amd64'), linux('amd64', 'v2')] });
      await expect(run).rejects.toMatchObject({ exitCode: 4, message: expect.stringContaining('linux/amd64/v2') });
      expect(writes(registry)).toEqual([]);
    }));
});

describe('specs of other people', () => {
  async function publishCase(
    id: string,
    more: { readonly forcePlatform?: boolean },
    use: (laid: LaidCase, run: ReturnType<typeof publishRequest>) => Promise<void>,
  ) {
    const laid = await layCase(id);
    try {
      const file = { name: 'spec.yaml', text: await laid.file('spec.yaml') };
      const [request] = readSpec(file, { flags: more });
      if (request === undefined) throw new Error('no list');
      const registries = Object.values(laid.registries);
      const run = publishRequest(request, registries);
      await use(laid, run);
    } finally {
      await laid.close();
    }
  }
  const registryOf = ({ registries }: LaidCase) => {
    const [registry] = Object.values(registries);
    if (registry === undefined) throw new Error('no registry');
    return registry;
  };

  it('PLT-03: three arm images whose configs have no variant get those of the spec, in its order', () =>
    publishCase('PLT-03', {}, async (laid, run) => {
      await run;
      const { entries } = await readBack(registryOf(laid), TARGET);
      expect(entries.map(({ platform }) => platform?.variant)).toEqual(laid.expect['order']);
    }));

  it('PLT-06: an architecture 386 without quotes is the text "386"', () =>
    publishCase('PLT-06', {}, async (laid, run) => {
      await run;
      for (const tag of laid.expect['tags'] as readonly string[]) {
        const { entries } = await readBack(registryOf(laid), `m/tool:${tag}`);
        expect(platformsAt(registryOf(laid), `m/tool:${tag}`)).toEqual(laid.expect['platforms']);
        expect(entries[1]?.platform?.architecture).toBe('386');
      }
    }));

  it('PLT-15: one image under two platforms contradicts its config', () =>
    publishCase('PLT-15', {}, async (laid, run) => {
      await expect(run).rejects.toMatchObject({ code: 'PLATFORM_CONFLICT', exitCode: 2 });
      expect(writes(registryOf(laid))).toEqual([]);
    }));

  it('PLT-15: insisted on, both entries are kept, the image is put once, and both doubts are said', () =>
    publishCase('PLT-15', { forcePlatform: true }, async (laid, run) => {
      const { warnings } = await run;
      expect(platformsAt(registryOf(laid), 'j/d:9')).toEqual(['linux/arm64', 'linux/arm/v8', 'linux/amd64']);
      const { entries } = await readBack(registryOf(laid), 'j/d:9');
      expect(entries[0]?.digest).toBe(entries[1]?.digest);
      const puts = requests(registryOf(laid), 'manifestPut').map(({ reference }) => reference);
      expect(puts.length).toBe(new Set(puts).size);
      expect(warnings).toEqual([
        expect.stringMatching(/says linux\/arm64, but you wrote linux\/arm\/v8/),
        expect.stringContaining('is listed more than once'),
      ]);
    }));
});
