import { type Digest, isDigest } from '../model/digest.ts';
import { quoted } from '../model/quoted.ts';
import { formatReference, type Reference, withDigest } from '../model/reference.ts';
import type { SourceRequest } from '../publish/request.ts';
import { readDescriptorMap, readDigestText } from './descriptor.ts';
import { invalid } from './failure.ts';
import { readJson } from './json-tree.ts';
import { shownName } from './tree.ts';

/** A file of the folder: its name without a path, and its text unless it is empty. */
export type DigestFile = { readonly name: string; readonly content?: string };

/** Where the digests are. */
export type DigestsOptions = {
  /** As the user named it, for messages. */
  readonly folder: string;
  readonly target: Reference;
  /** Where the digests lie; default: the repository of the target. */
  readonly repository?: Reference;
};

const HEX_NAME = /^(?:(sha256|sha512)[-:])?([a-f0-9]{64}|[a-f0-9]{128})$/;

const FORMS =
  'Name files by the hex digits of a digest, or put sha256:…, REPOSITORY@sha256:… or a descriptor into them';

/**
 * The sources of a folder that build jobs left one file each in: named by the hex digits of the digest and empty, as in
 * docker's workflow, or holding a digest, `REPOSITORY@DIGEST` or a descriptor. Files whose names begin with a dot are
 * passed over. The order is that of the names.
 *
 * @throws PublishError `SPEC_INVALID` that names the file; also for a folder without a digest
 */
export function digestsFolder(
  entries: readonly DigestFile[],
  { folder, target, repository = target }: DigestsOptions,
): readonly SourceRequest[] {
  const shown = shownName(folder.replace(/(?<=.)\/+$/, ''));
  const files = entries
    .filter(({ name }) => !name.startsWith('.'))
    .sort((one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : 0));
  if (files.length === 0) {
    throw invalid(
      shown,
      `no digest in ${shown}`,
      'Look at the job that fills the folder, and at the pattern it is downloaded by.',
    );
  }
  const sources = new Map<string, SourceRequest>();
  for (const file of files) {
    const source = readFile(file, `${shown}/${shownName(file.name)}`, repository);
    const key = formatReference(source.reference);
    if (!sources.has(key)) sources.set(key, source);
  }
  return [...sources.values()];
}

function readFile({ name, content = '' }: DigestFile, at: string, repository: Reference): SourceRequest {
  const named = digestOfName(name);
  const text = content.trim();
  if (text === '') {
    if (named !== undefined) return { reference: withDigest(repository, named), origin: at };
    throw invalid(at, 'neither the name nor the content is a digest', `${FORMS}; remove other files.`);
  }
  const source = readContent(text, at, repository);
  if (named === undefined || source.reference.digest === named) return source;
  throw invalid(at, `the file holds another digest than its name: ${quoted(text)}`, 'Remove the file, or build again.');
}

function readContent(text: string, at: string, repository: Reference): SourceRequest {
  if (!text.startsWith('{')) {
    if (!/\s/.test(text)) return readDigestText(text, at, repository);
    throw invalid(at, 'the file holds more than one word', `${FORMS}.`);
  }
  const node = readJson({ name: at, text });
  if (node.kind !== 'map') throw invalid(at, 'not a descriptor', `${FORMS}.`);
  return { ...readDescriptorMap(node, repository), origin: at };
}

function digestOfName(name: string): Digest | undefined {
  const [, algorithm, hex = ''] = HEX_NAME.exec(name) ?? [];
  const digest = `${algorithm ?? (hex.length === 64 ? 'sha256' : 'sha512')}:${hex}`;
  return isDigest(digest) ? digest : undefined;
}
