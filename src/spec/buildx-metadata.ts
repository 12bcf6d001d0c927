import { nearest } from '../model/nearest.ts';
import { quoted } from '../model/quoted.ts';
import { formatReference, parseReference, type Reference, withDigest } from '../model/reference.ts';
import type { SourceRequest } from '../publish/request.ts';
import { readDescriptorMap, readDigest } from './descriptor.ts';
import { invalid, placed } from './failure.ts';
import { readJson } from './json-tree.ts';
import type { SpecFile, TreeEntry, TreeMap, TreeNode } from './tree.ts';

/** What a metadata file is read for. */
export type MetadataOptions = {
  readonly target: Reference;
  /** Where the images lie; default: what the file says, then the repository of the target. */
  readonly repository?: Reference;
  /** Which targets of bake; needed when there are several. */
  readonly bakeTargets?: readonly string[];
};

const DIGEST = 'containerimage.digest';
const DESCRIPTOR = 'containerimage.descriptor';
const NAMES = 'image.name';

/**
 * The sources in a file of `docker buildx build --metadata-file`, of bake, of `imagetools create`, or in a descriptor.
 * The digest alone counts: a build's descriptor has annotations that were never meant for an index.
 *
 * @throws PublishError `SPEC_INVALID` with file, line and column
 * @see https://docs.docker.com/reference/cli/docker/buildx/build/#metadata-file
 */
export function buildxMetadata(file: SpecFile, options: MetadataOptions): readonly SourceRequest[] {
  const root = readJson(file);
  if (root.kind !== 'map') throw invalid(root.at, 'not metadata of buildx', HINT);
  const { entries } = root;
  if (entries.has('mediaType') || entries.has('digest') || entries.has('schemaVersion')) {
    return [readDescriptorMap(root, options.repository ?? options.target)];
  }
  const bake = bakeTargets(root);
  if (bake.size === 0) return [readBuild(root, options)];
  return chosen(bake, root, options.bakeTargets ?? []).map((target) => readBuild(target, options));
}

/**
 * Whether the file is one of bake, which keeps its builds by target.
 *
 * @throws PublishError `SPEC_INVALID` for what is no JSON
 */
export function isBakeMetadata(file: SpecFile): boolean {
  const root = readJson(file);
  return root.kind === 'map' && bakeTargets(root).size > 0;
}

const HINT = 'Name a file of docker buildx build --metadata-file, of bake, or a descriptor.';

/** Objects that hold a build; the top of bake's file has `buildx.build.warnings` besides. */
function bakeTargets({ entries }: TreeMap): ReadonlyMap<string, TreeMap> {
  if ([DIGEST, DESCRIPTOR, NAMES].some((key) => entries.has(key))) return new Map();
  const targets = [...entries].flatMap(([name, { value }]): [string, TreeMap][] =>
    value.kind === 'map' &&
    [...value.entries.keys()].some((key) => /^(?:containerimage\.|buildx\.build\.|image\.name$)/.test(key))
      ? [[name, value]]
      : [],
  );
  return new Map(targets);
}

function chosen(bake: ReadonlyMap<string, TreeMap>, root: TreeMap, names: readonly string[]): readonly TreeMap[] {
  const all = [...bake.keys()];
  const [only, second] = [...bake.values()];
  if (names.length === 0) {
    if (only !== undefined && second === undefined) return [only];
    throw invalid(
      root.at,
      `several targets of bake: ${all.map(quoted).join(', ')}`,
      'Name those to publish: --bake-target NAME.',
    );
  }
  return [...new Set(names)].map((name) => {
    const target = bake.get(name);
    if (target !== undefined) return target;
    const guess = nearest(name, all);
    throw invalid(
      root.at,
      `no target ${quoted(name)} of bake`,
      `${guess === undefined ? '' : `Did you mean ${quoted(guess)}? `}There are ${all.map(quoted).join(', ')}.`,
    );
  });
}

function readBuild(build: TreeMap, options: MetadataOptions): SourceRequest {
  const { entries, at } = build;
  const found = [entries.get(DIGEST), descriptorDigest(entries.get(DESCRIPTOR))].filter((entry) => entry !== undefined);
  const [first, second] = found;
  if (first === undefined) {
    const hint = entries.has('containerimage.config.digest')
      ? 'The image was not pushed: build it with --push, or with --output type=image,push=true.'
      : HINT;
    throw invalid(at, `no ${DIGEST} in it`, hint);
  }
  const digest = readDigest(first.value);
  if (second !== undefined && readDigest(second.value) !== digest) {
    throw invalid(second.at, `another digest than ${DIGEST} has`, 'Build again; the file contradicts itself.');
  }
  const repository = options.repository ?? namedRepository(entries.get(NAMES)?.value, options.target);
  return { reference: withDigest(repository, digest), origin: first.value.at };
}

function descriptorDigest(entry: TreeEntry | undefined): TreeEntry | undefined {
  if (entry === undefined || entry.value.kind === 'nothing') return undefined;
  if (entry.value.kind === 'map') return entry.value.entries.get('digest');
  throw invalid(entry.value.at, `${DESCRIPTOR} is no descriptor`, HINT);
}

/** Of the names that the build was pushed by, the target's repository, else one of its registry, else the first. */
function namedRepository(node: TreeNode | undefined, target: Reference): Reference {
  if (node === undefined || node.kind === 'nothing') return target;
  if (node.kind !== 'text' || node.bare === true) throw invalid(node.at, `${NAMES} is no text`, HINT);
  if (node.text.trim() === '') return target;
  const names = node.text.split(',').map((name) => placed(node.at, () => parseReference(name.trim())));
  const repositoryOf = ({ host, repository }: Reference): string => formatReference({ host, repository });
  return (
    names.find((name) => repositoryOf(name) === repositoryOf(target)) ??
    names.find(({ host }) => host === target.host) ??
    names[0] ??
    target
  );
}
