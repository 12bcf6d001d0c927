import { PublishError } from '../errors.ts';
import type { Descriptor, Platform } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import {
  completePlatform,
  contradiction,
  formatPlatform,
  matchesPlatform,
  type PartialPlatform,
} from '../model/platform.ts';
import { ofAllImages, withAnnotations } from './entry-annotations.ts';
import { notListed, picksChild } from './flatten.ts';
import { atOrigin } from './origin.ts';
import type { PublishRequest } from './request.ts';
import type { ResolvedChild, ResolvedSource } from './resolved.ts';

/** A child that the index will list, with the entry as it will be written. */
export type ListedChild = { readonly child: ResolvedChild; readonly entry: Descriptor };

/** Platforms that image configs tell, keyed by the config's digest. */
export type ConfigPlatforms = ReadonlyMap<Digest, PartialPlatform>;

/**
 * One source's children as entries, in order: chosen, labelled, annotated, attestations only beside an image that stays.
 * What the user insisted on against a config is put into `warnings`.
 *
 * @throws PublishError `PLATFORM_CONFLICT`, `PLATFORM_INVALID`, `PLATFORM_NOT_FOUND`
 */
export function listChildren(
  source: ResolvedSource,
  request: PublishRequest,
  configs: ConfigPlatforms,
  warnings: string[],
): readonly ListedChild[] {
  const explicit = source.request.platform;
  const pick = picksChild(source.request, source.root) ? explicit : undefined;
  const label = pick === undefined ? explicit : undefined;
  const filters = [
    ...(pick === undefined ? [] : [[pick]]),
    ...(request.platforms.length > 0 ? [request.platforms] : []),
  ];
  const annotations = { ...ofAllImages(request), ...source.request.annotations };

  const chosen = source.children.map((child): ListedChild | undefined => {
    if (child.kind === 'attestation') return undefined;
    const platform = platformOf(child, label, configs, request.forcePlatform, warnings);
    if (!filters.every((wanted) => matchesAny(wanted, platform))) return undefined;
    const entry = { ...child.descriptor, ...(platform === undefined ? {} : { platform }) };
    return { child, entry: withAnnotations(entry, annotations) };
  });
  const kept = new Set(chosen.map((one) => one?.entry.digest));
  if (explicit !== undefined && chosen.every((one) => one === undefined) && request.platforms.length === 0) {
    throw atOrigin(notListed(explicit, source), source.request.origin);
  }
  return source.children.flatMap((child, position) => {
    if (child.kind !== 'attestation') return chosen[position] ?? [];
    const stays = filters.length === 0 || child.subjects.some((subject) => kept.has(subject));
    return stays ? [{ child, entry: child.descriptor }] : [];
  });
}

function platformOf(
  child: ResolvedChild,
  explicit: Platform | undefined,
  configs: ConfigPlatforms,
  force: boolean,
  warnings: string[],
): Platform | undefined {
  const said = child.descriptor.platform ?? configs.get(child.manifest.config.digest) ?? {};
  if (explicit !== undefined) {
    const field = contradiction(said, explicit);
    if (field !== undefined) {
      const error = conflict(child, field, said, explicit);
      if (!force) throw error;
      warnings.push(`${error.message}; listed as you wrote it`);
      return explicit;
    }
  }
  const platform = completePlatform(said, explicit);
  if (platform === undefined && child.kind === 'image') throw silent(child, said);
  return platform;
}

/** Whether one of the wanted platforms means this one. */
export function matchesAny(wanted: readonly Platform[], platform: Platform | undefined): boolean {
  return platform !== undefined && wanted.some((want) => matchesPlatform(want, platform));
}

/** An image of which nobody says what it is for. */
export function silent(child: ResolvedChild, said: PartialPlatform): PublishError {
  const error = new PublishError(
    'PLATFORM_INVALID',
    `cannot tell the platform of ${child.name}: its config has no ${said.os === undefined ? 'os' : 'architecture'}`,
    `Say it: linux/amd64=${child.name}`,
    { side: 'source' },
  );
  return atOrigin(error, child.origin);
}

function conflict(child: ResolvedChild, field: string, said: PartialPlatform, explicit: Platform): PublishError {
  const own = completePlatform(said, undefined);
  const error = new PublishError(
    'PLATFORM_CONFLICT',
    `${child.name} says ${own === undefined ? JSON.stringify(said) : formatPlatform(own)}, but you wrote ${formatPlatform(explicit)} (${field} differs)`,
    'Correct the platform, or insist with --force-platform.',
    { side: 'source' },
  );
  return atOrigin(error, child.origin);
}
