import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PublishError } from '../../src/errors.ts';
import type { Platform } from '../../src/model/descriptor.ts';
import {
  completePlatform,
  contradiction,
  formatPlatform,
  matchesPlatform,
  normalizePlatform,
  type PartialPlatform,
  parsePlatform,
  platformKey,
} from '../../src/model/platform.ts';
import { failure } from './failure.ts';

describe('platforms a user writes', () => {
  it.each([
    ['linux/amd64', 'linux/amd64'],
    ['linux/arm/v7', 'linux/arm/v7'],
    ['linux/arm', 'linux/arm'],
    ['linux/arm64/v8', 'linux/arm64/v8'],
    ['linux/arm64/v9.2', 'linux/arm64/v9.2'],
    ['linux/arm/v8', 'linux/arm/v8'],
    ['Linux/AMD64', 'linux/amd64'],
    ['linux/amd64/v3', 'linux/amd64/v3'],
    ['linux/386', 'linux/386'],
    ['arm64', 'linux/arm64'],
    ['arm/v6', 'linux/arm/v6'],
    ['s390x', 'linux/s390x'],
    ['armhf', 'linux/arm/v7'],
    ['linux/armhf', 'linux/arm/v7'],
    ['linux/armhf/v7', 'linux/arm/v7'],
    ['linux/armel', 'linux/arm/v5'],
    ['linux/i386', 'linux/386'],
    ['linux/mips64el', 'linux/mips64le'],
    ['linux/mipsel', 'linux/mipsle'],
    ['linux/ppc64el', 'linux/ppc64le'],
    ['linux/x86_64', 'linux/amd64'],
    ['linux/x86-64', 'linux/amd64'],
    ['linux/aarch64', 'linux/arm64'],
    ['aarch64', 'linux/arm64'],
    ['linux/armv5', 'linux/arm/v5'],
    ['linux/armv6', 'linux/arm/v6'],
    ['linux/armv7', 'linux/arm/v7'],
    ['linux/armv7l', 'linux/arm/v7'],
    ['linux/arm/armv7', 'linux/arm/v7'],
    ['linux/arm/7', 'linux/arm/v7'],
    ['linux/arm64/armv8', 'linux/arm64/v8'],
    ['linux/arm64/8', 'linux/arm64/v8'],
    ['macos/arm64', 'darwin/arm64'],
    ['windows/amd64:10.0.17763.2300', 'windows/amd64:10.0.17763.2300'],
    ['windows(10.0.17763.2300)/amd64', 'windows/amd64:10.0.17763.2300'],
    ['linux/riscv64/rva22u64', 'linux/riscv64/rva22u64'],
    ['unknown/unknown', 'unknown/unknown'],
    ['linux/newarch', 'linux/newarch'],
  ])('%s is %s', (text, expected) => {
    expect(formatPlatform(parsePlatform(text))).toBe(expected);
  });

  it('become OCI objects in the key order of an index', () => {
    expect(JSON.stringify(parsePlatform('windows/arm64/v8:10.0'))).toBe(
      '{"architecture":"arm64","os":"windows","os.version":"10.0","variant":"v8"}',
    );
  });

  it.each([
    ['', 'not a platform'],
    ['linux', 'not a platform'],
    ['foo', 'not a platform'],
    ['linux/', 'not a platform'],
    ['/amd64', 'not a platform'],
    ['linux/amd64/v1/x', 'not a platform'],
    ['linux/amd 64', 'not a platform'],
    ['linux/amd64,linux/arm', 'not a platform'],
    ['linux/amd64:', 'empty os.version'],
    ['windows()/amd64', 'empty os.version'],
    ['windows/amd64:10\n', 'os.version'],
    ['amd64/linux', 'architecture before operating system'],
    ['linux/arm64/v7', 'no variant'],
    ['linux/arm64/armv7', 'no variant'],
    ['linux/arm/v9', 'no variant'],
    ['linux/arm/hf', 'no variant'],
    ['linux/amd64/v8', 'no variant'],
    ['linux/armhf/v6', 'is arm/v7'],
    ['linux/armv8', '32 or 64'],
    ['constructor/__proto__/x/y', 'not a platform'],
  ])('%s is refused: %s', (text, words) => {
    const error = failure(() => parsePlatform(text));
    expect(error.code).toBe('PLATFORM_INVALID');
    expect(error.exitCode).toBe(2);
    expect(error.message).toContain(words);
    expect(error.message).toMatch(/^[^\n]+$/);
  });

  it('hints say what was meant', () => {
    expect(failure(() => parsePlatform('linux/arm64/v7')).hint).toBe('Write linux/arm/v7 or linux/arm64.');
    expect(failure(() => parsePlatform('amd64/linux')).hint).toBe('Write linux/amd64.');
  });

  it('fields written one by one follow the same rules', () => {
    expect(normalizePlatform({ os: 'linux', architecture: 'arm', variant: 'armv7' })).toEqual({
      architecture: 'arm',
      os: 'linux',
      variant: 'v7',
    });
    expect(
      normalizePlatform({
        os: 'Windows',
        architecture: 'amd64',
        variant: '',
        'os.version': '',
        'os.features': ['win32k'],
      }),
    ).toEqual({ architecture: 'amd64', os: 'windows', 'os.features': ['win32k'] });
    expect(() => normalizePlatform({ os: 'linux', architecture: 'arm64', variant: 'v7' })).toThrow(PublishError);
    expect(() => normalizePlatform({ os: '', architecture: 'arm64' })).toThrow(PublishError);
  });
});

const linux = (architecture: string, variant?: string): Platform => ({
  architecture,
  os: 'linux',
  ...(variant === undefined ? {} : { variant }),
});

describe('equality', () => {
  it.each([
    ['arm64', 'v8'],
    ['amd64', 'v1'],
    ['arm', 'v7'],
  ])('%s alone is %s', (architecture, variant) => {
    expect(platformKey(linux(architecture))).toBe(platformKey(linux(architecture, variant)));
    expect(matchesPlatform(linux(architecture), linux(architecture, variant))).toBe(true);
    expect(matchesPlatform(linux(architecture, variant), linux(architecture))).toBe(true);
    expect(contradiction(linux(architecture, variant), linux(architecture))).toBeUndefined();
  });

  it('other variants are other platforms', () => {
    const all = [
      linux('arm', 'v5'),
      linux('arm', 'v6'),
      linux('arm'),
      linux('arm64'),
      linux('amd64'),
      linux('amd64', 'v3'),
    ];
    expect(new Set(all.map(platformKey)).size).toBe(all.length);
    expect(matchesPlatform(linux('arm'), linux('arm', 'v6'))).toBe(false);
  });

  it('counts os.version, and os.features without their order', () => {
    const one: Platform = { architecture: 'amd64', os: 'windows', 'os.version': '10.0.17763.2300' };
    expect(platformKey(one)).not.toBe(platformKey({ ...one, 'os.version': '10.0.20348.1' }));
    expect(platformKey({ ...one, 'os.features': ['a', 'b'] })).toBe(platformKey({ ...one, 'os.features': ['b', 'a'] }));
    expect(platformKey({ ...one, 'os.features': ['a'] })).not.toBe(platformKey(one));
  });

  it('does not run fields together', () => {
    expect(platformKey({ os: 'a', architecture: 'b/c' })).not.toBe(
      platformKey({ os: 'a', architecture: 'b', variant: 'c' }),
    );
  });

  it('a filter asks for os.version and os.features only when it has them', () => {
    const image: Platform = {
      architecture: 'amd64',
      os: 'windows',
      'os.version': '10.0',
      'os.features': ['win32k', 'x'],
    };
    expect(matchesPlatform({ architecture: 'amd64', os: 'windows' }, image)).toBe(true);
    expect(matchesPlatform({ architecture: 'amd64', os: 'windows', 'os.version': '10.0' }, image)).toBe(true);
    expect(matchesPlatform({ architecture: 'amd64', os: 'windows', 'os.version': '11.0' }, image)).toBe(false);
    expect(matchesPlatform({ architecture: 'amd64', os: 'windows', 'os.features': ['x'] }, image)).toBe(true);
    expect(matchesPlatform({ architecture: 'amd64', os: 'windows', 'os.features': ['y'] }, image)).toBe(false);
    expect(matchesPlatform({ architecture: 'amd64', os: 'linux' }, image)).toBe(false);
  });
});

describe('an explicit platform beside the config', () => {
  const table: readonly [string, PartialPlatform, Platform, string | undefined, Platform | undefined][] = [
    ['agrees', linux('amd64'), linux('amd64'), undefined, linux('amd64')],
    ['another os', linux('amd64'), { architecture: 'amd64', os: 'windows' }, 'os', undefined],
    ['another architecture', linux('arm64'), linux('arm', 'v8'), 'architecture', undefined],
    ['another variant', linux('arm', 'v6'), linux('arm', 'v7'), 'variant', undefined],
    ['a variant against the default of the other', linux('arm', 'v6'), linux('arm'), 'variant', undefined],
    ['fills the variant', linux('arm'), linux('arm', 'v5'), undefined, linux('arm', 'v5')],
    ['fills even the default', linux('arm64'), linux('arm64', 'v8'), undefined, linux('arm64', 'v8')],
    ['keeps what the config says', linux('arm64', 'v8'), linux('arm64'), undefined, linux('arm64', 'v8')],
    ['fills everything', {}, linux('amd64'), undefined, linux('amd64')],
    ['fills os', { architecture: 'arm', variant: 'v7' }, linux('arm'), undefined, linux('arm', 'v7')],
    [
      'keeps os.version',
      { os: 'windows', architecture: 'amd64', 'os.version': '10.0' },
      { os: 'windows', architecture: 'amd64' },
      undefined,
      { os: 'windows', architecture: 'amd64', 'os.version': '10.0' },
    ],
    [
      'another os.version',
      { os: 'windows', architecture: 'amd64', 'os.version': '10.0' },
      { os: 'windows', architecture: 'amd64', 'os.version': '11.0' },
      'os.version',
      undefined,
    ],
    [
      'other os.features',
      { os: 'windows', architecture: 'amd64', 'os.features': ['a'] },
      { os: 'windows', architecture: 'amd64', 'os.features': ['b'] },
      'os.features',
      undefined,
    ],
    [
      'os.features in another order',
      { os: 'windows', architecture: 'amd64', 'os.features': ['a', 'b'] },
      { os: 'windows', architecture: 'amd64', 'os.features': ['b', 'a'] },
      undefined,
      { os: 'windows', architecture: 'amd64', 'os.features': ['a', 'b'] },
    ],
  ];
  it.each(table)('%s', (_title, config, explicit, field, complete) => {
    expect(contradiction(config, explicit)).toBe(field);
    if (field === undefined) expect(completePlatform(config, explicit)).toEqual(complete);
  });

  it('without one, the config must tell os and architecture', () => {
    expect(completePlatform(linux('arm'), undefined)).toEqual(linux('arm'));
    expect(completePlatform({ os: 'linux' }, undefined)).toBeUndefined();
    expect(completePlatform({ architecture: 'arm' }, undefined)).toBeUndefined();
  });

  it('is written in the key order of an index', () => {
    expect(JSON.stringify(completePlatform({ variant: 'v7' }, { os: 'linux', architecture: 'arm' }))).toBe(
      '{"architecture":"arm","os":"linux","variant":"v7"}',
    );
  });
});

describe('properties', () => {
  const platform = fc
    .record({
      os: fc.constantFrom('linux', 'windows', 'darwin', 'freebsd', 'unknown'),
      pair: fc.constantFrom<readonly [string, string?]>(
        ['amd64'],
        ['amd64', 'v2'],
        ['arm', 'v5'],
        ['arm', 'v7'],
        ['arm64'],
        ['arm64', 'v8'],
        ['386'],
        ['riscv64'],
        ['mips64le'],
        ['ppc64le', 'power9'],
        ['unknown'],
      ),
      version: fc.option(fc.constantFrom('10.0.17763.2300', '10.0', 'macOS 13.5', '1:2/3(4)'), { nil: undefined }),
    })
    .map(
      ({ os, pair: [architecture, variant], version }): Platform => ({
        architecture,
        os,
        ...(version === undefined ? {} : { 'os.version': version }),
        ...(variant === undefined ? {} : { variant }),
      }),
    );

  it('what is formatted is read back as it was', () => {
    fc.assert(
      fc.property(platform, (value) => {
        expect(parsePlatform(formatPlatform(value))).toEqual(value);
      }),
    );
  });

  it('any text is a platform or a PLATFORM_INVALID', () => {
    const pieces = fc.constantFrom('linux', 'arm', 'arm64', 'armv8', 'v7', '/', ':', '(', ')', ' ', 'é', '7');
    const text = fc.oneof(
      fc.string(),
      fc.array(pieces, { maxLength: 8 }).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(text, (value) => {
        let parsed: Platform;
        try {
          parsed = parsePlatform(value);
        } catch (error) {
          expect(error).toMatchObject({ code: 'PLATFORM_INVALID' });
          return;
        }
        expect(parsePlatform(formatPlatform(parsed))).toEqual(parsed);
      }),
      { numRuns: 2000 },
    );
  });

  it('two platforms with one key match each other', () => {
    fc.assert(
      fc.property(platform, platform, (one, other) => {
        if (platformKey(one) === platformKey(other)) {
          expect(matchesPlatform(one, other) && matchesPlatform(other, one)).toBe(true);
          expect(contradiction(one, other)).toBeUndefined();
        }
      }),
    );
  });
});
