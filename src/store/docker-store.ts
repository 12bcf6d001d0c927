import { join } from 'node:path';
import { PublishError } from '../errors.ts';
import { ENTRIES_MAX } from '../model/descriptor.ts';
import { type Digest, digestOf } from '../model/digest.ts';
import { isTag, parseReference } from '../model/reference.ts';
import { type DockerEntry, readDockerEntry } from './docker-entry.ts';
import { dockerFileName } from './docker-name.ts';
import type { StoredDraft } from './draft.ts';
import { codeOf, FILES, failed, readRegular } from './files.ts';

/** Largest file of docker's in bytes: a manifest of 4 MiB twice, once in Base64. */
const FILE_SIZE_MAX = 16 * 1024 * 1024;

/**
 * Reads the draft that `docker manifest create` made, if there is one; nothing is written. Entries come in docker's
 * order. What cannot be pushed as docker meant it is an error that names the file, what can is told in a warning.
 *
 * Docker's file names do not tell references apart: `q:x-1` and `q-x:1` share one. Of two such entries docker keeps
 * the first and nothing of the second, which cannot be seen here; two such lists are one to docker, and what the
 * entries tell of that is checked.
 *
 * @param folder docker's configuration folder
 * @param reference of the list, in full
 * @throws PublishError `DRAFT_INVALID` naming the file, `FILE_FAILED`
 * @see https://github.com/docker/cli/blob/v28.2.2/cli/manifest/store/store.go
 */
export async function readDockerDraft(
  folder: string,
  reference: string,
): Promise<{ readonly stored: StoredDraft; readonly warnings: readonly string[] } | undefined> {
  const place = join(folder, 'manifests', dockerFileName(reference));
  const contents = await readContents(place);
  if (contents.length === 0) return undefined;
  const read = contents.map(({ name, bytes }) => readDockerEntry(bytes, name, join(place, name)));
  const entries = read.map(({ entry }) => entry);
  refuseOtherHost(reference, read, place);
  const warnings = [...read.flatMap((one) => one.warnings), ...otherLists(reference, read)];
  const manifests = new Map(read.map(({ entry, bytes }) => [entry.root.digest, bytes]));
  return { stored: { draft: { reference, entries, docker: fingerprint(contents) }, manifests }, warnings };
}

/**
 * The hash that {@link readDockerDraft} leaves in a draft, of docker's files as they are now: another one means that
 * docker changed them. Undefined when docker has no such draft. Does not look whether the files are good.
 *
 * @throws PublishError `DRAFT_INVALID` for what is no file, `FILE_FAILED`
 */
export async function dockerFingerprint(folder: string, reference: string): Promise<Digest | undefined> {
  const contents = await readContents(join(folder, 'manifests', dockerFileName(reference)));
  return contents.length === 0 ? undefined : fingerprint(contents);
}

type Content = { readonly name: string; readonly bytes: Uint8Array };

/** Docker takes every file in there for an entry. Empty when there is no such folder. */
async function readContents(place: string): Promise<readonly Content[]> {
  const names = await namesIn(place);
  if (names.length > ENTRIES_MAX) {
    const many = `${place}: ${names.length} entries, the limit is ${ENTRIES_MAX}`;
    throw new PublishError('DRAFT_INVALID', many, 'Create several smaller lists.');
  }
  const contents: Content[] = [];
  for (const name of names) {
    const bytes = await readRegular(FILES, join(place, name), FILE_SIZE_MAX);
    if (bytes !== undefined) contents.push({ name, bytes });
  }
  return contents;
}

async function namesIn(place: string): Promise<readonly string[]> {
  try {
    return (await FILES.readdir(place)).sort();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw failed(error, `cannot read ${place}`);
  }
}

function fingerprint(contents: readonly Content[]): Digest {
  const lines = contents.map(({ name, bytes }) => `${digestOf(bytes)} ${name}\n`);
  return digestOf(new TextEncoder().encode(lines.join('')));
}

/**
 * Docker pushes a list only to the registry of its sources. Where all of them are on another host that looks the same
 * in a file name, `reg:5000` for `reg-5000`, the folder is that of another list.
 */
function refuseOtherHost(reference: string, read: readonly DockerEntry[], place: string): void {
  const { host } = parseReference(reference);
  const hosts = new Set(read.map(({ entry }) => parseReference(entry.reference).host));
  const [other] = hosts;
  if (hosts.size !== 1 || other === undefined || other === host) return;
  if (dockerFileName(other) !== dockerFileName(host)) return;
  throw new PublishError(
    'DRAFT_INVALID',
    `${place}: the entries are on ${other}, so it is not the draft of ${reference}`,
    'Docker keeps lists of both hosts in one folder; create the list again: manifest-publish create LIST SOURCE...',
  );
}

/** Lists in the repositories of the sources that docker would keep in the same folder. */
function otherLists(reference: string, read: readonly DockerEntry[]): readonly string[] {
  const folder = dockerFileName(reference);
  const { host, repository } = parseReference(reference);
  const own = `${host}/${repository}`;
  const repositories = new Set(
    read.map(({ entry }) => parseReference(entry.reference)).map((source) => `${source.host}/${source.repository}`),
  );
  if (repositories.has(own)) return [];
  return [...repositories].flatMap((other) => {
    const tag = folder.slice(dockerFileName(other).length + 1);
    const fits = folder.startsWith(`${dockerFileName(other)}-`) && isTag(tag);
    return fits ? [`docker keeps ${other}:${tag} and ${reference} in one folder; this is taken for the latter`] : [];
  });
}
