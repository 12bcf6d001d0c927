import { ATTESTATIONS, REFERRERS } from '../config/values.ts';
import { placedAnnotations } from './annotations.ts';
import type { Environment } from './environment.ts';
import { type RequestSettings, requestSettings } from './request.ts';
import { choice, duration, indexType, usage } from './settings.ts';

/** What {@link PUBLISH_FLAGS} that say something of a list parse to. */
export type ListFlags = {
  readonly type?: string | undefined;
  readonly annotation?: readonly string[] | undefined;
  readonly platform?: readonly string[] | undefined;
  readonly 'expect-platforms'?: string | undefined;
  readonly 'expect-digest'?: string | undefined;
  readonly 'wait-for-source'?: string | undefined;
  readonly attestations?: string | undefined;
  readonly referrers?: string | undefined;
  readonly 'force-platform': boolean;
  readonly 'foreign-layers': boolean;
  readonly 'dry-run': boolean;
  readonly 'no-verify': boolean;
  readonly 'no-clobber': boolean;
  readonly amend: boolean;
  readonly 'ignore-missing': boolean;
};

/**
 * What the flags say of every list of the run; what was not said is absent, so that a spec file or the configuration
 * can say it.
 *
 * @throws PublishError `USAGE_INVALID`, `PLATFORM_INVALID`, `DIGEST_INVALID`
 */
export function settingsOfFlags(flags: ListFlags, env: Environment): RequestSettings {
  const { type, attestations, referrers } = flags;
  const wait = flags['wait-for-source'];
  const expectPlatforms = flags['expect-platforms'];
  const expectDigest = flags['expect-digest'];
  const { index, entries } = placedAnnotations(flags.annotation ?? [], env);
  const said = requestSettings({
    ...(type === undefined ? {} : { type: indexType(type) }),
    ...(flags.platform === undefined ? {} : { platforms: platformsOf(flags.platform) }),
    ...(expectPlatforms === undefined ? {} : { expectPlatforms: itemsOf(expectPlatforms) }),
    ...(expectDigest === undefined ? {} : { expectDigest }),
    ...(wait === undefined ? {} : { waitForSource: duration({ name: '--wait-for-source', text: wait }) }),
    ...(attestations === undefined
      ? {}
      : { attestations: choice({ name: '--attestations', text: attestations }, ATTESTATIONS) }),
    ...(referrers === undefined ? {} : { referrers: choice({ name: '--referrers', text: referrers }, REFERRERS) }),
    ...(flags['force-platform'] ? { forcePlatform: true } : {}),
    ...(flags['foreign-layers'] ? { foreignLayers: true } : {}),
    ...(flags['dry-run'] ? { dryRun: true } : {}),
    ...(flags['no-verify'] ? { verify: false } : {}),
    ...(flags['no-clobber'] ? { noClobber: true } : {}),
    ...(flags.amend ? { amend: true } : {}),
    ...(flags['ignore-missing'] ? { ignoreMissing: true } : {}),
  });
  return {
    ...said,
    ...(Object.keys(index).length === 0 ? {} : { annotations: index }),
    ...(entries.length === 0 ? {} : { entryAnnotations: entries }),
  };
}

/** The items of a list with commas. */
export function itemsOf(text: string): readonly string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** A variable of a CI job that is not set must not turn a filter into no filter. */
function platformsOf(texts: readonly string[]): readonly string[] {
  const platforms = texts.flatMap(itemsOf);
  if (platforms.length > 0) return platforms;
  throw usage('--platform names no platform', 'Write for example --platform=linux/arm64, or leave it out.');
}
