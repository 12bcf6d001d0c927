import type { Platform } from '../model/descriptor.ts';
import { parseDigest } from '../model/digest.ts';
import { parsePlatform } from '../model/platform.ts';
import type { Reference } from '../model/reference.ts';
import type { EntryAnnotations, PublishRequest, SourceRequest } from '../publish/request.ts';
import { invalid, placed } from './failure.ts';
import type { ListSpec, ManifestToolSpec, SettingsSpec } from './schema.ts';
import { joined, requestOf, type SpecBase, type SpecSettings } from './settings.ts';
import { readPlatformMap, readReference, readSource } from './source.ts';
import { allTargets, type PlacedTarget, type PlacedText } from './targets.ts';
import { expandTemplate } from './template.ts';
import { keyPlaceAt, nodeAt, placeAt, type TreeNode } from './tree.ts';

/** A list that was read, and its targets with their places, which only files know. */
export type ReadList = { readonly request: PublishRequest; readonly targets: readonly PlacedTarget[] };

/** Tags keep their places until the repositories are known. */
type Defaults = { readonly settings: SpecSettings; readonly tags: readonly PlacedText[] };

/** What `defaults` says, or a list itself. */
export function readDefaults(spec: SettingsSpec, node: TreeNode): Defaults {
  return { settings: settingsOf(spec, node), tags: textsOf(spec.tags, node, 'tags') };
}

/** A list of our own format. */
export function readList(spec: ListSpec, node: TreeNode, defaults: Defaults | undefined, base: SpecBase): ReadList {
  const named = [
    ...textsOf(spec.target === undefined ? undefined : [spec.target], node, 'target'),
    ...textsOf(spec.targets, node, 'targets'),
  ];
  if (spec.target !== undefined && spec.targets !== undefined) {
    throw invalid(keyPlaceAt(node, ['targets']), 'both "target" and "targets"', 'Put all references into targets.');
  }
  if (named.length === 0) throw invalid(node.at, 'a list without a target', 'Add it: target: HOST/REPOSITORY:TAG.');
  const tags = spec.tags === undefined ? (defaults?.tags ?? []) : textsOf(spec.tags, node, 'tags');
  const targets = allTargets(named, tags, base.flags.tags ?? []);
  const sources = sourcesOf(spec, node, firstOf(targets));
  const { expectDigest } = spec;
  const settings = {
    ...joined(defaults?.settings ?? {}, settingsOf(spec, node)),
    ...(expectDigest === undefined
      ? {}
      : { expectDigest: placed(placeAt(node, ['expectDigest']), () => parseDigest(expectDigest)) }),
  };
  return finished(targets, sources, settings, base, node.at);
}

/** A file of manifest-tool. */
export function readManifestTool(spec: ManifestToolSpec, node: TreeNode, base: SpecBase): ReadList {
  const named = textsOf([spec.image], node, 'image');
  const targets = allTargets(named, textsOf(spec.tags, node, 'tags'), base.flags.tags ?? []);
  const sources = spec.manifests.map(({ image, platform }, index): SourceRequest => {
    const at = placeAt(node, ['manifests', index, 'image']);
    const claimed =
      platform === undefined ? undefined : readPlatformMap(platform, placeAt(node, ['manifests', index, 'platform']));
    return {
      reference: readReference(image, at, firstOf(targets)),
      ...(claimed === undefined ? {} : { platform: claimed }),
      origin: at,
    };
  });
  const { annotations } = spec;
  return finished(targets, sources, annotations === undefined ? {} : { annotations }, base, node.at);
}

function finished(
  targets: readonly PlacedTarget[],
  sources: readonly SourceRequest[],
  settings: SpecSettings,
  { flags, config = {} }: SpecBase,
  origin: string,
): ReadList {
  const references = targets.map(({ reference }) => reference);
  return { request: requestOf(references, sources, joined(joined(config, settings), flags), origin), targets };
}

function sourcesOf(spec: ListSpec, node: TreeNode, target: Reference): readonly SourceRequest[] {
  const listed = (spec.sources ?? []).map((source, index): SourceRequest => {
    const path = ['sources', index];
    if (typeof source === 'string') return readSource(source, placeAt(node, path), target);
    const at = placeAt(node, [...path, 'image']);
    const { image, platform, annotations } = source;
    const platformAt = placeAt(node, [...path, 'platform']);
    const claimed =
      typeof platform === 'string'
        ? placed(platformAt, () => parsePlatform(platform))
        : platform === undefined
          ? undefined
          : readPlatformMap(platform, platformAt);
    return {
      reference: readReference(image, at, target),
      ...(claimed === undefined ? {} : { platform: claimed }),
      origin: at,
      ...(annotations === undefined ? {} : { annotations }),
    };
  });
  const { template } = spec;
  const expanded =
    template === undefined
      ? []
      : expandTemplate(
          template.image,
          platformsOf(template.platforms, nodeAt(node, ['template']), 'platforms'),
          placeAt(node, ['template', 'image']),
        );
  if (listed.length + expanded.length > 0) return [...listed, ...expanded];
  throw invalid(
    spec.sources === undefined ? node.at : placeAt(node, ['sources']),
    'a list without a source',
    'Add it: sources, and below it - [PLATFORM=]REF.',
  );
}

function settingsOf(spec: SettingsSpec, node: TreeNode): SpecSettings {
  const { type, annotations, attestations, referrers, amend, ignoreMissing, forcePlatform, noClobber } = spec;
  const { platforms, expectPlatforms, entryAnnotations } = spec;
  const said = { type, annotations, attestations, referrers, amend, ignoreMissing, forcePlatform, noClobber };
  return {
    ...(Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined)) as SpecSettings),
    ...(platforms === undefined ? {} : { platforms: platformsOf(platforms, node, 'platforms') }),
    ...(expectPlatforms === undefined
      ? {}
      : { expectPlatforms: platformsOf(expectPlatforms, node, 'expectPlatforms') }),
    ...(entryAnnotations === undefined ? {} : { entryAnnotations: entryAnnotationsOf(entryAnnotations, node) }),
  };
}

function entryAnnotationsOf(
  spec: Readonly<Record<string, Readonly<Record<string, string>>>>,
  node: TreeNode,
): readonly EntryAnnotations[] {
  return Object.entries(spec).map(([name, annotations]) => {
    if (name === 'all') return { annotations };
    const platform = placed(keyPlaceAt(node, ['entryAnnotations', name]), () => parsePlatform(name));
    return { platform, annotations };
  });
}

function platformsOf(texts: readonly string[], node: TreeNode, key: string): readonly Platform[] {
  return texts.map((text, index) => placed(placeAt(node, [key, index]), () => parsePlatform(text)));
}

/** Of a list of texts or of one, with the place of each. */
function textsOf(texts: readonly string[] | undefined, node: TreeNode, key: string): readonly PlacedText[] {
  return (texts ?? []).map((text, index) => ({ text, at: placeAt(node, [key, index]) }));
}

function firstOf(targets: readonly PlacedTarget[]): Reference {
  const [first] = targets;
  if (first === undefined) throw new Error('a list without a target was let through');
  return first.reference;
}
