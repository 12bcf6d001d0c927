import * as v from 'valibot';
import { nearest } from '../model/nearest.ts';
import { quoted } from '../model/quoted.ts';
import { invalid } from './failure.ts';
import { splitMessage } from './schema.ts';
import { keyPlaceAt, nodeAt, placeAt, plainValue, type TreeNode } from './tree.ts';

/** Keys of other tools, or of other places, and what to say of them. */
const OTHER_KEYS: ReadonlyMap<string, string> = new Map([
  [
    'features',
    'It meant features of the CPU, and manifest-tool reads it no more. Remove it, or write os.features for those of the operating system',
  ],
  ['image', 'Write target for what is published, and sources for what is listed'],
  ['manifests', 'Write sources'],
]);

/**
 * The document as the schema reads it.
 *
 * @throws PublishError `SPEC_INVALID` with the first fault
 */
export function check<const Schema extends v.GenericSchema>(
  schema: Schema,
  node: TreeNode,
  options: { readonly withoutNothing?: boolean } = {},
): v.InferOutput<Schema> {
  const result = v.safeParse(schema, plainValue(node, options.withoutNothing));
  if (result.success) return result.output;
  const [first] = result.issues;
  const issue = isMissing(first) ? (misspelled(first, result.issues) ?? first) : first;
  const path = (issue.path ?? []).map((item) => item.key as PropertyKey);
  if (isMissing(issue)) {
    const parent = nodeAt(node, path.slice(0, -1));
    throw invalid(parent.at, `${quoted(nameOf(path))} is missing`, `Add it: ${String(path.at(-1))}: …`);
  }
  throw isOfKey(issue) ? unknownOrBadKey(schema, node, path, issue) : wrongValue(node, path, issue);
}

type Issue = v.BaseIssue<unknown>;

function isOfKey({ path }: Issue): boolean {
  const last = path?.at(-1);
  return last !== undefined && 'origin' in last && last.origin === 'key';
}

function isMissing(issue: Issue): boolean {
  return isOfKey(issue) && issue.expected !== 'never' && issue.received === 'undefined';
}

/** An unknown key of the same map: most likely the missing one, in other letters. */
function misspelled(missing: Issue, issues: readonly Issue[]): Issue | undefined {
  const parent = missing.path?.at(-1)?.input;
  return issues.find((issue) => issue.expected === 'never' && issue.path?.at(-1)?.input === parent);
}

function wrongValue(node: TreeNode, path: readonly PropertyKey[], issue: Issue) {
  const [what, hint] = splitMessage(issue.message);
  const name = path.length === 0 ? 'the document' : quoted(nameOf(path));
  return invalid(placeAt(node, path), `${name} ${what}`, hint);
}

function unknownOrBadKey(schema: v.GenericSchema, node: TreeNode, path: readonly PropertyKey[], issue: Issue) {
  const at = keyPlaceAt(node, path);
  const key = String(path.at(-1));
  if (issue.expected !== 'never') {
    const [what, hint] = splitMessage(issue.message);
    return invalid(at, `${quoted(nameOf(path))} ${what}`, hint);
  }
  const known = knownKeys(schema, path.slice(0, -1));
  const guess = nearest(key, known);
  const advice =
    OTHER_KEYS.get(key) ?? (guess === undefined ? 'Remove it' : `Did you mean ${guess}? Otherwise remove it`);
  return invalid(at, `unknown key ${quoted(nameOf(path))}`, `${advice}; known keys: ${known.join(', ')}.`);
}

/** `lists[2].sources[0].platform`. */
function nameOf(path: readonly PropertyKey[]): string {
  return path
    .map((key, index) => (typeof key === 'number' ? `[${key}]` : `${index > 0 ? '.' : ''}${String(key)}`))
    .join('');
}

/** The parts of the validator that lead from one schema to those within it. */
type Inner = v.GenericSchema & {
  readonly pipe?: readonly Inner[];
  readonly wrapped?: Inner;
  readonly options?: readonly Inner[];
  readonly item?: Inner;
  readonly value?: Inner;
  readonly entries?: Readonly<Record<string, Inner>>;
};

function knownKeys(schema: v.GenericSchema, path: readonly PropertyKey[]): readonly string[] {
  let inner: Inner | undefined = unwrapped(schema as Inner);
  for (const key of path) {
    const next: Inner | undefined = inner?.entries?.[String(key)] ?? inner?.item ?? inner?.value;
    inner = next === undefined ? undefined : unwrapped(next);
  }
  return Object.keys(inner?.entries ?? {}).filter((key) => key !== '$schema');
}

/** Without what surrounds it; of several forms the one that has keys. */
function unwrapped(schema: Inner): Inner {
  if (schema.wrapped !== undefined) return unwrapped(schema.wrapped);
  const first = schema.pipe?.[0];
  if (first !== undefined && first !== schema) return unwrapped(first);
  const map = schema.type === 'lazy' ? schema.options?.at(-1) : undefined;
  return map === undefined ? schema : unwrapped(map);
}
