import type { PublishRequest } from '../publish/request.ts';
import { check } from './check.ts';
import { invalid } from './failure.ts';
import { readJson } from './json-tree.ts';
import { type ReadList, readDefaults, readList, readManifestTool } from './list.ts';
import { LISTS, MANIFEST_TOOL, ONE_LIST } from './schema.ts';
import type { SpecBase } from './settings.ts';
import { refuseShared } from './targets.ts';
import { keyPlaceAt, nodeAt, type SpecFile, shownName, type TreeMap, type TreeNode } from './tree.ts';
import { type Variables, variableReader } from './variables.ts';
import { readYaml } from './yaml-tree.ts';

/**
 * Reads a spec file: our own format or manifest-tool's, in YAML, or in JSON where its name ends in `.json`. A file may
 * hold several documents, and a document several lists. `variables` is what `${NAME}` stands for.
 *
 * @throws PublishError `SPEC_INVALID` with file, line and column
 */
export function readSpec(
  file: SpecFile & { readonly variables?: Variables },
  base: SpecBase,
): readonly PublishRequest[] {
  return readSpecs([file], base, file.variables);
}

/**
 * Reads several spec files, which share no target.
 *
 * @throws PublishError `SPEC_INVALID` with file, line and column
 */
export function readSpecs(
  files: readonly SpecFile[],
  base: SpecBase,
  variables: Variables = {},
): readonly PublishRequest[] {
  const lists = files.flatMap((file) => documentsOf(file, variables).flatMap((document) => listsOf(document, base)));
  refuseShared(lists.map(({ targets }) => targets));
  return lists.map(({ request }) => request);
}

function documentsOf(file: SpecFile, variables: Variables): readonly TreeNode[] {
  const readText = variableReader(variables);
  const documents = file.name.endsWith('.json') ? [readJson(file, readText)] : readYaml(file, readText);
  if (documents.length > 0) return documents;
  throw invalid(`${shownName(file.name)}:1:1`, 'the file is empty', `Write what to publish: ${EXAMPLE}`);
}

const EXAMPLE = 'target: HOST/REPOSITORY:TAG, and sources below it.';

/** Keys that manifest-tool's files have, and those that only ours have. */
const THEIRS: readonly string[] = ['image', 'manifests'];
const OURS: readonly string[] = ['target', 'targets', 'sources', 'template', 'lists', 'defaults'];

function listsOf(document: TreeNode, base: SpecBase): readonly ReadList[] {
  if (document.kind !== 'map') {
    const hint = document.kind === 'list' ? 'Put "lists:" in front of it, and indent it.' : `Write ${EXAMPLE}`;
    throw invalid(document.at, 'the document must be a map', hint);
  }
  const theirs = THEIRS.find((key) => document.entries.has(key));
  const ours = OURS.find((key) => document.entries.has(key));
  if (theirs !== undefined && ours !== undefined) {
    throw invalid(
      laterOf(document, theirs, ours),
      `"${theirs}" of manifest-tool's format beside "${ours}" of ours`,
      `Write ${theirs === 'image' ? 'target instead of image' : 'sources instead of manifests'}, or put it into a document of its own.`,
    );
  }
  if (theirs !== undefined) {
    return [readManifestTool(check(MANIFEST_TOOL, document, { withoutNothing: true }), document, base)];
  }
  if (!document.entries.has('lists') && !document.entries.has('defaults')) {
    return [readList(check(ONE_LIST, document), document, undefined, base)];
  }
  const spec = check(LISTS, document);
  const defaults =
    spec.defaults === undefined ? undefined : readDefaults(spec.defaults, nodeAt(document, ['defaults']));
  return spec.lists.map((list, index) => readList(list, nodeAt(document, ['lists', index]), defaults, base));
}

/** Where the one of two keys stands that comes later. */
function laterOf(document: TreeMap, one: string, other: string): string {
  const keys = [...document.entries.keys()];
  return keyPlaceAt(document, [keys.indexOf(one) > keys.indexOf(other) ? one : other]);
}
