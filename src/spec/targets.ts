import { imageReference } from '../model/image-reference.ts';
import { quoted } from '../model/quoted.ts';
import { formatReference, isLayoutHost, isTag, type Reference, withTag, writtenReference } from '../model/reference.ts';
import { invalid, placed } from './failure.ts';

/** A target and where it was written. */
export type PlacedTarget = { readonly reference: Reference; readonly at: string };

/** A text and where it was written. */
export type PlacedText = { readonly text: string; readonly at: string };

/**
 * A reference that can be written to. It must have a tag: in a file, one that was forgotten would move `latest`.
 *
 * @throws PublishError `SPEC_INVALID`
 */
export function readTarget({ text, at }: PlacedText): PlacedTarget {
  const reference = placed(at, () => imageReference(text));
  if (reference.digest !== undefined) {
    throw invalid(
      at,
      `a target cannot have a digest: ${quoted(text)}`,
      'Write HOST/REPOSITORY:TAG; the digest of the index is what publish prints.',
    );
  }
  if (!isLayoutHost(text) && !text.slice(text.lastIndexOf('/') + 1).includes(':')) {
    throw invalid(at, `the target ${quoted(text)} has no tag`, `Write ${text}:latest, if that is the one to move.`);
  }
  return { reference: writtenReference(reference), at };
}

/**
 * The targets of a list, each once: those that were named, then the tags in the repository of each.
 *
 * @param tags of the file: tags alone
 * @param flags of the command line: tags, or references
 * @throws PublishError `SPEC_INVALID`
 */
export function allTargets(
  named: readonly PlacedText[],
  tags: readonly PlacedText[],
  flags: readonly string[],
): readonly PlacedTarget[] {
  const first = named.map(readTarget);
  const tagged = (text: string, at: string): readonly PlacedTarget[] =>
    first.map(({ reference }) => ({ reference: withTag(reference, text), at }));
  for (const { text, at } of tags) {
    if (isTag(text)) continue;
    const hint = /[/:@]/.test(text)
      ? 'Write references into targets; tags holds tags alone.'
      : 'Use at most 128 letters, digits, _ . and -, the first one a letter, a digit or _.';
    throw invalid(at, `not a tag: ${quoted(text)}`, hint);
  }
  const all = [
    ...first,
    ...tags.flatMap(({ text, at }) => tagged(text, at)),
    ...flags.flatMap((text) =>
      /[/:@]/.test(text) ? [readTarget({ text, at: '--tag' })] : placed('--tag', () => tagged(text, '--tag')),
    ),
  ];
  const once = new Map<string, PlacedTarget>();
  for (const target of all) {
    const name = formatReference(target.reference);
    if (!once.has(name)) once.set(name, target);
  }
  return [...once.values()];
}

/**
 * Which of two lists a tag would end up with, nobody could tell.
 *
 * @throws PublishError `SPEC_INVALID` that names both places
 */
export function refuseShared(lists: readonly (readonly PlacedTarget[])[]): void {
  const owners = new Map<string, string>();
  for (const targets of lists) {
    for (const { reference, at } of targets) {
      const name = formatReference(reference);
      const other = owners.get(name);
      if (other !== undefined) {
        throw invalid(
          at,
          `${name} is the target of two lists, the other at ${other}`,
          'Join the lists, or give one of them another tag.',
        );
      }
      owners.set(name, at);
    }
  }
}
