import { PublishError } from '../errors.ts';
import type { Descriptor, Platform } from '../model/descriptor.ts';
import { formatPlatform, matchesPlatform, platformKey } from '../model/platform.ts';
import { namedAt } from './origin.ts';
import type { ResolvedChild } from './resolved.ts';

type Listed = { readonly child: ResolvedChild; readonly entry: Descriptor };

/**
 * Two images for one platform leave it to chance which one a client pulls. Entries with other annotations are told
 * apart by clients that know them (gzip and zstd copies), so these may stand side by side.
 *
 * @throws PublishError `PLATFORM_DUPLICATE` naming both
 */
export function checkDuplicates(listed: readonly Listed[]): void {
  const seen = new Map<string, Listed>();
  for (const one of listed) {
    const { platform, annotations } = one.entry;
    if (platform === undefined || one.child.kind === 'attestation') continue;
    const key = `${platformKey(platform)} ${JSON.stringify(Object.entries(annotations ?? {}).sort())}`;
    const other = seen.get(key);
    if (other !== undefined) throw duplicate(other, one, platform);
    seen.set(key, one);
  }
}

function duplicate(first: Listed, second: Listed, platform: Platform): PublishError {
  if (first.entry.digest === second.entry.digest) return namedTwice(first, second, platform);
  return new PublishError(
    'PLATFORM_DUPLICATE',
    `${namedAt(first.child)} and ${namedAt(second.child)} are both for ${formatPlatform(platform)}`,
    'Leave one out, or tell them apart: PLATFORM=REF for an image whose config is silent about its variant.',
    { side: 'source' },
  );
}

/** One image: no platform can tell it from itself. */
function namedTwice(first: Listed, second: Listed, platform: Platform): PublishError {
  const [one, other] = [namedAt(first.child), namedAt(second.child)];
  return new PublishError(
    'PLATFORM_DUPLICATE',
    `the image for ${formatPlatform(platform)} is named twice: ${one === other ? one : `${one} and ${other}`}`,
    'Leave one of the two out: they are the same image.',
    { side: 'source' },
  );
}

/**
 * The platforms of the images must be exactly the expected ones; attestations and artifacts without a platform do not
 * count. An expected `windows/amd64` stands for every os.version, however many images there are for it, but for those
 * that are expected by their version.
 *
 * @throws PublishError `PLATFORM_NOT_FOUND` naming what is missing and what is too much
 */
export function checkExpected(expected: readonly Platform[], listed: readonly Listed[]): void {
  const met = new Set<Platform>();
  const surplus: string[] = [];
  for (const { child, entry } of listed) {
    if (child.kind === 'attestation' || entry.platform === undefined) continue;
    const meant = mostExact(expected, entry.platform);
    if (meant !== undefined) met.add(meant);
    else if (!surplus.includes(formatPlatform(entry.platform))) surplus.push(formatPlatform(entry.platform));
  }
  const keys = new Set([...met].map(platformKey));
  const missing = [...new Set(expected.filter((one) => !keys.has(platformKey(one))).map(formatPlatform))];
  if (missing.length === 0 && surplus.length === 0) return;
  const parts = [
    ...(missing.length > 0 ? [`missing ${missing.join(', ')}`] : []),
    ...(surplus.length > 0 ? [`not expected ${surplus.join(', ')}`] : []),
  ];
  throw new PublishError(
    'PLATFORM_NOT_FOUND',
    `the platforms are not the expected ones: ${parts.join('; ')}`,
    'Nothing was written. Push what is missing, or correct --expect-platforms.',
    { side: 'source' },
  );
}

/** The expected platform that says most about this one. */
function mostExact(expected: readonly Platform[], actual: Platform): Platform | undefined {
  const weight = (one: Platform): number =>
    (one['os.version'] === undefined ? 0 : 1) + (one['os.features']?.length ?? 0);
  const fitting = expected.filter((one) => matchesPlatform(one, actual));
  return fitting.sort((one, other) => weight(other) - weight(one))[0];
}
