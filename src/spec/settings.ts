import type { Platform } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import type { Reference } from '../model/reference.ts';
import type { EntryAnnotations, IndexType, PublishRequest, SourceRequest } from '../publish/request.ts';

/** What may be said of a publish besides its targets and sources; what was not said is absent. */
export type SpecSettings = {
  readonly type?: IndexType;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly entryAnnotations?: readonly EntryAnnotations[];
  readonly platforms?: readonly Platform[];
  readonly expectPlatforms?: readonly Platform[];
  readonly attestations?: 'keep' | 'drop';
  readonly referrers?: 'none' | 'all';
  readonly amend?: boolean;
  readonly ignoreMissing?: boolean;
  readonly forcePlatform?: boolean;
  readonly noClobber?: boolean;
  readonly expectDigest?: Digest;
  readonly foreignLayers?: boolean;
  /** In ms. */
  readonly waitForSource?: number;
  readonly dryRun?: boolean;
  readonly verify?: boolean;
  /** More tags: a tag alone in the repository of every target, or a reference. */
  readonly tags?: readonly string[];
};

/** What surrounds a file: the command line counts over it, the configuration under it. */
export type SpecBase = { readonly flags: SpecSettings; readonly config?: SpecSettings };

/** Of two, the latter counts; annotations are joined key by key, those of entries in order. */
export function joined(under: SpecSettings, over: SpecSettings): SpecSettings {
  const entryAnnotations = [...(under.entryAnnotations ?? []), ...(over.entryAnnotations ?? [])];
  return {
    ...under,
    ...over,
    annotations: { ...under.annotations, ...over.annotations },
    ...(entryAnnotations.length === 0 ? {} : { entryAnnotations }),
  };
}

/** The request in full, with a default for everything that was not said. `origin`: the place in a file that asks for it. */
export function requestOf(
  targets: readonly Reference[],
  sources: readonly SourceRequest[],
  settings: SpecSettings,
  origin?: string,
): PublishRequest {
  const { entryAnnotations, expectPlatforms, attestations, referrers, expectDigest } = settings;
  return {
    targets,
    sources,
    type: settings.type ?? 'auto',
    annotations: settings.annotations ?? {},
    layout: 'plain',
    platforms: settings.platforms ?? [],
    ...(expectPlatforms === undefined ? {} : { expectPlatforms }),
    forcePlatform: settings.forcePlatform ?? false,
    foreignLayers: settings.foreignLayers ?? false,
    waitForSource: settings.waitForSource ?? 0,
    dryRun: settings.dryRun ?? false,
    verify: settings.verify ?? true,
    ...(settings.noClobber === true ? { noClobber: true } : {}),
    ...(expectDigest === undefined ? {} : { expectDigest }),
    ...(entryAnnotations === undefined || entryAnnotations.length === 0 ? {} : { entryAnnotations }),
    ...(settings.amend === true ? { amend: true } : {}),
    ...(settings.ignoreMissing === true ? { ignoreMissing: true } : {}),
    ...(attestations === undefined ? {} : { attestations }),
    ...(referrers === undefined ? {} : { referrers }),
    ...(origin === undefined ? {} : { origin }),
  };
}
