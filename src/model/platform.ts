import { PublishError } from '../errors.ts';
import type { Platform } from './descriptor.ts';
import { quoted } from './quoted.ts';

/** @see orderedPlatform */
type PlatformFields = { readonly os: string; readonly architecture: string } & {
  readonly [Key in 'os.version' | 'os.features' | 'variant']?: Platform[Key] | undefined;
};

/** What an image config tells of its platform; configs of artifacts and of old tools leave fields out. */
export type PartialPlatform = Partial<Platform>;

/** Names of Debian, Linux kernels and compilers, and what Go and OCI call them. */
const SPELLINGS: ReadonlyMap<string, { readonly architecture: string; readonly variant?: string }> = new Map([
  ['armhf', { architecture: 'arm', variant: 'v7' }],
  ['armel', { architecture: 'arm', variant: 'v5' }],
  ['i386', { architecture: '386' }],
  ['x86_64', { architecture: 'amd64' }],
  ['x86-64', { architecture: 'amd64' }],
  ['aarch64', { architecture: 'arm64' }],
  ['mipsel', { architecture: 'mipsle' }],
  ['mips64el', { architecture: 'mips64le' }],
  ['ppc64el', { architecture: 'ppc64le' }],
]);

/** `uname -m` on 32-bit ARM: armv6l, armv7l, and the bare armv7. */
const UNAME_ARM = /^armv([5-8])[a-z]*$/;

/** Told apart from operating systems where one word is missing; any other architecture is taken as it is written. */
const ARCHITECTURES: ReadonlySet<string> = new Set(
  '386 amd64 arm arm64 loong64 mips mipsle mips64 mips64le ppc64 ppc64le riscv64 s390x wasm'.split(' '),
);
const SYSTEMS: ReadonlySet<string> = new Set(
  'aix android darwin freebsd illumos linux netbsd openbsd solaris wasip1 windows'.split(' '),
);

/** Variants that exist; architectures that are not named here have any. */
const VARIANTS: ReadonlyMap<string, RegExp> = new Map([
  ['arm', /^v[5-8]$/],
  ['arm64', /^v(?:8|9)(?:\.\d)?$/],
  ['amd64', /^v[1-4]$/],
]);

/** What the architecture alone means; clients treat the two as one platform. */
const DEFAULT_VARIANTS: ReadonlyMap<string, string> = new Map([
  ['arm64', 'v8'],
  ['amd64', 'v1'],
  ['arm', 'v7'],
]);

const WORD = /^[a-z0-9_][a-z0-9_.-]*$/;
const VERSION = /^[\x21-\x7e](?:[\x20-\x7e]{0,126}[\x21-\x7e])?$/;
const FORM =
  'Write OS/ARCHITECTURE[/VARIANT][:OSVERSION], for example linux/amd64, linux/arm/v7, windows/amd64:10.0.17763.2300.';

/**
 * Reads a platform that a user wrote: `os/arch[/variant][:osversion]` as crane writes it, or containerd's
 * `os(osversion)/arch[/variant]`. An architecture alone is one of Linux. Debian's and the kernel's names of
 * architectures are understood, see {@link normalizePlatform}.
 *
 * @throws PublishError `PLATFORM_INVALID`
 */
export function parsePlatform(text: string): Platform {
  const { words, version } = splitVersion(text);
  const [first = '', second] = words;
  if (isArchitecture(first)) {
    if (second !== undefined && SYSTEMS.has(second)) {
      throw invalid(`${quoted(text)}: architecture before operating system`, `Write ${second}/${first}.`);
    }
    words.unshift('linux');
  }
  const [os, architecture, variant, ...more] = words;
  if (os === undefined || architecture === undefined || more.length > 0) {
    throw invalid(`${quoted(text)} is not a platform`, FORM);
  }
  return normalizePlatform({
    architecture,
    os,
    ...(version === undefined ? {} : { 'os.version': version }),
    ...(variant === undefined ? {} : { variant }),
  });
}

/** Whether the text can hardly be meant as anything else: a known operating system and architecture, `linux/arm/v7`. */
export function readsAsPlatform(text: string): boolean {
  const [os = '', architecture = '', variant, ...more] = text.toLowerCase().split('/');
  if (!SYSTEMS.has(os) || !isArchitecture(architecture) || more.length > 0) return false;
  return variant === undefined || /^v?\d+(?:\.\d+)?$/.test(variant);
}

/**
 * A platform of a user's hand, spelled Go's way: lower case, `armhf` as arm/v7, `armel` as arm/v5, `aarch64` as arm64,
 * `armv7` as arm/v7, variant `armv7` or `7` as `v7`. For platforms whose fields are written one by one as well;
 * platforms that a registry sent are never changed.
 *
 * @throws PublishError `PLATFORM_INVALID` also for pairs that exist nowhere, such as arm64/v7
 */
export function normalizePlatform(written: Platform): Platform {
  const os = written.os.toLowerCase() === 'macos' ? 'darwin' : written.os.toLowerCase();
  const spelled = readArchitecture(written.architecture.toLowerCase());
  const variant = readVariant(spelled.architecture, written.variant?.toLowerCase());
  const shown = [written.os, written.architecture, written.variant].filter((part) => part !== undefined).join('/');
  const version = written['os.version'];
  for (const word of [os, spelled.architecture, ...(variant === undefined ? [] : [variant])]) {
    if (!WORD.test(word)) throw invalid(`${quoted(shown)} is not a platform`, FORM);
  }
  if (version !== undefined && version !== '' && !VERSION.test(version)) {
    throw invalid(`${quoted(version)} is not an os.version`, FORM);
  }
  if (spelled.variant !== undefined && variant !== undefined && variant !== spelled.variant) {
    throw invalid(
      `${quoted(shown)}: ${written.architecture.toLowerCase()} is ${spelled.architecture}/${spelled.variant}`,
      `Write ${os}/${spelled.architecture}/${variant} or ${os}/${spelled.architecture}/${spelled.variant}.`,
    );
  }
  refuseImpossible(shown, os, spelled.architecture, variant);
  return orderedPlatform({ ...written, os, architecture: spelled.architecture, variant: variant ?? spelled.variant });
}

/** `linux/arm/v7`; with an os.version `windows/amd64:10.0.17763.2300`. os.features are not shown. */
export function formatPlatform(platform: Platform): string {
  const variant = platform.variant ? `/${platform.variant}` : '';
  const version = platform['os.version'] ? `:${platform['os.version']}` : '';
  return `${platform.os}/${platform.architecture}${variant}${version}`;
}

/**
 * Equal for platforms that clients cannot tell apart: arm64 is arm64/v8, amd64 is amd64/v1, arm is arm/v7, and
 * os.features have no order.
 */
export function platformKey(platform: Platform): string {
  return JSON.stringify([
    platform.os,
    platform.architecture,
    variantOf(platform) ?? '',
    platform['os.version'] ?? '',
    [...new Set(platform['os.features'])].sort(),
  ]);
}

/**
 * Whether an image of platform `actual` is meant by the filter `wanted`: the same os, architecture and variant under
 * the equalities of {@link platformKey}; an os.version must be the same and os.features there if they are wanted.
 */
export function matchesPlatform(wanted: Platform, actual: Platform): boolean {
  if (wanted.os !== actual.os || wanted.architecture !== actual.architecture) return false;
  if (variantOf(wanted) !== variantOf(actual)) return false;
  if (wanted['os.version'] !== undefined && wanted['os.version'] !== actual['os.version']) return false;
  const features = new Set(actual['os.features']);
  return (wanted['os.features'] ?? []).every((feature) => features.has(feature));
}

/**
 * The first field that the config has with another value than the explicit platform, equalities aside; undefined when
 * they agree. A field that only one of the two has contradicts nothing, but a missing variant of arm, arm64 and amd64
 * means v7, v8 and v1.
 */
export function contradiction(config: PartialPlatform, explicit: Platform): string | undefined {
  if (config.os !== undefined && config.os !== explicit.os) return 'os';
  if (config.architecture !== undefined && config.architecture !== explicit.architecture) return 'architecture';
  if (differ(config.variant, variantOf(explicit))) return 'variant';
  if (differ(config['os.version'], explicit['os.version'])) return 'os.version';
  const features = [config['os.features'], explicit['os.features']].map(
    (list) => list && JSON.stringify([...list].sort()),
  );
  return differ(features[0], features[1]) ? 'os.features' : undefined;
}

/**
 * What is written for an image: the config's own values as the config has them, and from the explicit platform what
 * the config lacks. Undefined when neither tells os and architecture. Meant for two that do not contradict each other.
 */
export function completePlatform(config: PartialPlatform, explicit: Platform | undefined): Platform | undefined {
  const { os, architecture, ...more } = { ...explicit, ...config };
  return os === undefined || architecture === undefined ? undefined : orderedPlatform({ os, architecture, ...more });
}

/** The platform with the keys and the key order of an index entry; empty fields are left out. */
export function orderedPlatform(fields: PlatformFields): Platform {
  const version = fields['os.version'];
  const features = fields['os.features'];
  return {
    architecture: fields.architecture,
    os: fields.os,
    ...(version ? { 'os.version': version } : {}),
    ...(features && features.length > 0 ? { 'os.features': features } : {}),
    ...(fields.variant ? { variant: fields.variant } : {}),
  };
}

function variantOf(platform: Platform): string | undefined {
  return platform.variant || DEFAULT_VARIANTS.get(platform.architecture);
}

function differ(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && other !== undefined && one !== other;
}

function isArchitecture(word: string): boolean {
  return ARCHITECTURES.has(word) || SPELLINGS.has(word) || UNAME_ARM.test(word);
}

/** Words in lower case, the os.version as it was written. */
function splitVersion(text: string): { readonly words: string[]; readonly version: string | undefined } {
  const containerd = /^([^/():]+)\(([^()]*)\)(\/.*)?$/.exec(text);
  const colon = text.indexOf(':');
  const [platform, version] = containerd
    ? [`${containerd[1]}${containerd[3] ?? ''}`, containerd[2]]
    : colon < 0
      ? [text, undefined]
      : [text.slice(0, colon), text.slice(colon + 1)];
  if (version === '') throw invalid(`${quoted(text)}: empty os.version`, FORM);
  return { words: platform.toLowerCase().split('/'), version };
}

function readArchitecture(word: string): { readonly architecture: string; readonly variant?: string } {
  const known = SPELLINGS.get(word);
  if (known !== undefined) return known;
  const version = UNAME_ARM.exec(word)?.[1];
  if (version === undefined) return { architecture: word };
  if (version === '8') throw invalid(`${quoted(word)} may be 32 or 64 bits wide`, 'Write linux/arm64 or linux/arm/v8.');
  return { architecture: 'arm', variant: `v${version}` };
}

function readVariant(architecture: string, word: string | undefined): string | undefined {
  if (word === undefined || word === '') return undefined;
  if (!VARIANTS.has(architecture)) return word;
  const number = /^v?(\d+(?:\.\d+)?)$/.exec(architecture === 'amd64' ? word : word.replace(/^armv/, 'v'))?.[1];
  return number === undefined ? word : `v${number}`;
}

function refuseImpossible(shown: string, os: string, architecture: string, variant: string | undefined): void {
  if (variant === undefined || (VARIANTS.get(architecture)?.test(variant) ?? true)) return;
  const other = VARIANTS.get('arm')?.test(variant)
    ? `${os}/arm/${variant} or ${os}/${architecture}`
    : `${os}/${architecture}`;
  throw invalid(`${quoted(shown)}: ${architecture} has no variant ${quoted(variant)}`, `Write ${other}.`);
}

function invalid(message: string, hint: string): PublishError {
  return new PublishError('PLATFORM_INVALID', message, hint);
}
