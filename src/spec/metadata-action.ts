import { parsePlatform } from '../model/platform.ts';
import { quoted } from '../model/quoted.ts';
import type { Reference } from '../model/reference.ts';
import type { EntryAnnotations } from '../publish/request.ts';
import { invalid, placed } from './failure.ts';
import { readJson } from './json-tree.ts';
import { allTargets } from './targets.ts';
import type { SpecFile, TreeNode } from './tree.ts';

/** What docker/metadata-action made of a commit, as far as it concerns an index. */
export type ActionMetadata = {
  /** At least one; in several registries perhaps. */
  readonly targets: readonly Reference[];
  readonly annotations: Readonly<Record<string, string>>;
  readonly entryAnnotations: readonly EntryAnnotations[];
  /** What was left out, for the user to know. */
  readonly notes: readonly string[];
};

/** `LEVEL[,LEVEL][PLATFORM]:` in front of an annotation; each level may have a platform of its own. */
const LEVEL = '(?:index|manifest|index-descriptor|manifest-descriptor)(?:\\[[^\\]=]*\\])?';
const LEVELS = new RegExp(`^${LEVEL}(?:,${LEVEL})*:`);

/**
 * Reads the JSON of docker/metadata-action (`DOCKER_METADATA_OUTPUT_JSON`, or its output `json`). Labels are of images and
 * not of an index, as are annotations of the level `manifest`, which is the action's default.
 *
 * @throws PublishError `SPEC_INVALID` with file, line and column
 * @see https://github.com/docker/metadata-action#annotations
 */
export function metadataAction(file: SpecFile): ActionMetadata {
  const root = readJson(file);
  if (root.kind !== 'map') throw invalid(root.at, 'not the JSON of docker/metadata-action', HINT);
  const tags = textsOf(root.entries.get('tags')?.value);
  if (tags.length === 0) {
    throw invalid(
      root.entries.get('tags')?.at ?? root.at,
      'no tags in it',
      `${HINT} The action makes none for some events.`,
    );
  }
  const targets = allTargets(
    tags.map(({ text, at }) => ({ text, at })),
    [],
    [],
  );
  return {
    targets: targets.map(({ reference }) => reference),
    ...annotationsOf(textsOf(root.entries.get('annotations')?.value)),
  };
}

const HINT = 'Hand in the output json of docker/metadata-action, which it also puts into DOCKER_METADATA_OUTPUT_JSON.';

type Texts = readonly { readonly text: string; readonly at: string }[];

function textsOf(node: TreeNode | undefined): Texts {
  if (node === undefined || node.kind === 'nothing') return [];
  if (node.kind !== 'list') throw invalid(node.at, 'must be a list of texts', HINT);
  return node.items.map((item) => {
    if (item.kind === 'text') return item;
    throw invalid(item.at, 'must be a text', HINT);
  });
}

function annotationsOf(lines: Texts): Omit<ActionMetadata, 'targets'> {
  const annotations: [string, string][] = [];
  const entries: EntryAnnotations[] = [];
  let left = 0;
  for (const { text, at } of lines) {
    const levels = LEVELS.exec(text)?.[0] ?? '';
    const pair = text.slice(levels.length);
    const equals = pair.indexOf('=');
    if (equals < 1) throw invalid(at, `not KEY=VALUE: ${quoted(text)}`, HINT);
    const [key, value] = [pair.slice(0, equals), pair.slice(equals + 1)];
    for (const level of levels === '' ? ['manifest'] : levels.slice(0, -1).split(',')) {
      const [, kind, name] = /^([a-z-]+)(?:\[(.*)\])?$/.exec(level) ?? [];
      if (kind === 'index') annotations.push([key, value]);
      else if (kind === 'manifest-descriptor') {
        const platform = name === undefined ? undefined : placed(at, () => parsePlatform(name));
        entries.push({ ...(platform === undefined ? {} : { platform }), annotations: { [key]: value } });
      } else left += 1;
    }
  }
  const note =
    `${left} ${left === 1 ? 'annotation is' : 'annotations are'} for the manifests of images, which are not changed;` +
    ' with DOCKER_METADATA_ANNOTATIONS_LEVELS=index docker/metadata-action makes them for the index';
  return {
    annotations: Object.fromEntries(annotations),
    entryAnnotations: entries,
    notes: left === 0 ? [] : [note],
  };
}
