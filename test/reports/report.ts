import { chmod, cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Descriptor } from '../../src/model/descriptor.ts';
import { type Digest, digestOf } from '../../src/model/digest.ts';
import { parseReference } from '../../src/model/reference.ts';
import type { JournalEntry, RegistryOptions, RunningRegistry } from '../../src/registry-server/index.ts';
import { BIN, variables } from '../cli/program.ts';
import { type LaidCase, layCase } from '../helpers/cases.ts';
import { type Finished, run, type Variables } from '../helpers/processes.ts';
import { judged, withStranger } from '../helpers/program.ts';
import { requests, withDirectory } from '../helpers/registry.ts';

/** What a process finds besides an empty home: nothing that is not said here. */
export type Surroundings = {
  /** Becomes docker's `config.json`. */
  readonly logins?: object;
  /** Shell scripts on PATH, by name. */
  readonly programs?: Readonly<Record<string, string>>;
  readonly env?: Variables;
};

/** A case on loopback, in a folder that holds its texts with their hosts replaced. */
export type Report = LaidCase & {
  /** The first of its hosts. */
  readonly registry: RunningRegistry;
  /** `run.txt`, with its hosts replaced. */
  readonly script: string;
  /** A shell runs `run.txt`, or `script` in its place, in the folder of the case. */
  run(script?: string, surroundings?: Surroundings): Promise<Finished>;
};

/** Lays a case out, hands it to `use` and takes everything down again. */
export function withCase<T>(
  id: string,
  use: (report: Report) => Promise<T>,
  options: RegistryOptions & { readonly hosts?: readonly string[] } = {},
): Promise<T> {
  return withDirectory(async (folder) => {
    const laid = await layCase(id, options);
    try {
      const registries = Object.values(laid.registries);
      const [registry] = registries;
      if (registry === undefined) throw new Error(`case ${id} has no registry`);
      const place = join(folder, id);
      await copyTexts(laid, place);
      const script = await laid.file('run.txt');
      return await use({
        ...laid,
        registry,
        script,
        run: (other = script, surroundings = {}) =>
          watch(registries, [other], folder, async () => {
            const env = await surround(folder, surroundings);
            return run('/bin/sh', ['-c', other], { cwd: place, env });
          }),
      });
    } finally {
      await laid.close();
    }
  });
}

/** Runs the program with these words. The rules that hold of every run are checked at `registries` afterwards. */
export function program(
  registries: readonly RunningRegistry[],
  words: readonly string[],
  surroundings: Surroundings = {},
): Promise<Finished> {
  return withDirectory((folder) =>
    watch(registries, words, folder, async () =>
      run(process.execPath, [BIN, ...words], { cwd: folder, env: await surround(folder, surroundings) }),
    ),
  );
}

/** A user with one home, who runs shell scripts one after another. The rules of every run are checked after each. */
export function scriptAt<T>(
  registries: readonly RunningRegistry[],
  use: (run: (script: string) => Promise<Finished>) => Promise<T>,
): Promise<T> {
  return withDirectory(async (folder) => {
    const env = await surround(folder, {});
    return use((script) =>
      watch(registries, [script], folder, () => run('/bin/sh', ['-c', script], { cwd: folder, env })),
    );
  });
}

/** `publish` at one registry: references are written without its host. */
export function publishAt(
  registry: RunningRegistry,
  target: string,
  sources: readonly string[],
  { flags = [], ...surroundings }: Surroundings & { readonly flags?: readonly string[] } = {},
): Promise<Finished> {
  const references = [target, ...sources].map((reference) => `${registry.host}/${reference}`);
  return program([registry], ['publish', ...references, ...flags], surroundings);
}

async function watch(
  registries: readonly RunningRegistry[],
  words: readonly string[],
  folder: string,
  work: () => Promise<Finished>,
): Promise<Finished> {
  const before = registries.map(({ journal }) => journal.length);
  const finished = await judged(work, { words, folder, registries });
  for (const [at, registry] of registries.entries()) checkTags(registry.journal.slice(before[at]));
  return finished;
}

/** Tags that a run has moved were written once, after everything else had been answered. */
function checkTags(journal: readonly JournalEntry[]): void {
  const puts = journal.filter((entry) => entry.operation === 'manifestPut' && !entry.reference.startsWith('sha256:'));
  if (!puts.some(({ status }) => status === 201)) return;
  expect(new Set(puts.map(({ path }) => path)).size, 'a tag was written twice').toBe(puts.length);
  // Sessions that nobody needs may be cancelled at any time.
  const others = journal.filter((entry) => !puts.includes(entry) && entry.operation !== 'uploadDelete');
  const end = Math.max(...others.map((entry) => entry.end ?? Number.POSITIVE_INFINITY));
  for (const put of puts) expect(put.start, `${put.path} was written before the rest was done`).toBeGreaterThan(end);
}

/** Makes a home below the folder and returns the variables of somebody who lives there. */
async function surround(folder: string, { logins, programs, env }: Surroundings): Promise<Variables> {
  const home = join(folder, 'home');
  const path = join(home, 'programs');
  await mkdir(path, { recursive: true });
  const scripts = { 'manifest-publish': `exec '${process.execPath}' '${BIN}' "$@"`, ...programs };
  for (const [name, script] of Object.entries(scripts)) {
    await writeFile(join(path, name), `#!/bin/sh\n${script}\n`);
    await chmod(join(path, name), 0o755);
  }
  if (logins !== undefined) {
    await mkdir(join(home, '.docker'), { recursive: true });
    await writeFile(join(home, '.docker', 'config.json'), JSON.stringify(logins));
  }
  return { ...withStranger(variables(home, env)), PATH: `${path}:${process.env['PATH'] ?? ''}` };
}

/** Everything of the case that is not content of a registry. Modes are kept: some of it is run. */
async function copyTexts(laid: LaidCase, place: string): Promise<void> {
  const content = ['manifests', 'blobs'].map((name) => join(laid.directory, name));
  await cp(laid.directory, place, { recursive: true, filter: (path) => !content.includes(path) });
  for (const entry of await readdir(place, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) await writeFile(path, laid.text(await readFile(path, 'utf8')));
  }
}

/** What stands in the registry under a tag that a run has moved. */
export type Published = {
  readonly digest: Digest;
  readonly mediaType: string;
  readonly repository: string;
  readonly tag: string;
  readonly entries: readonly Descriptor[];
};

/**
 * Asserts that the run was good and that its one line is the digest of what the tag now holds, and reads that.
 *
 * @param target `REPOSITORY:TAG`; by default the one tag that moved
 */
export function published(registry: RunningRegistry, finished: Finished, target?: string): Published {
  expect(finished.exitCode, finished.stderr).toBe(0);
  const move = registry.tagMoves.at(-1);
  const reference = parseReference(`${registry.host}/${target ?? `${move?.repository}:${move?.tag}`}`);
  const { repository, tag = '' } = reference;
  const found = registry.manifestOf(repository, tag);
  if (found === undefined) throw new Error(`nothing was published as ${repository}:${tag}\n${finished.stderr}`);
  const digest = digestOf(found.bytes);
  expect(finished.stdout).toBe(`${digest}\n`);
  expect(registry.missingFrom(repository, tag)).toEqual([]);
  const { manifests } = JSON.parse(found.bytes.toString()) as { readonly manifests: readonly Descriptor[] };
  return { digest, mediaType: found.mediaType, repository, tag, entries: manifests };
}

/** How often the bytes of each blob were sent to be kept. */
export function uploads(registry: RunningRegistry): Readonly<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (const { query } of requests(registry, 'uploadPut')) {
    const digest = new URLSearchParams(query).get('digest') ?? '';
    sums[digest] = (sums[digest] ?? 0) + 1;
  }
  return sums;
}

/** Manifest PUTs by digest and by tag, in the order in which they were sent. */
export function manifestPuts(registry: RunningRegistry): {
  readonly children: readonly JournalEntry[];
  readonly tags: readonly JournalEntry[];
} {
  const puts = requests(registry, 'manifestPut');
  const isChild = ({ reference }: JournalEntry) => reference.startsWith('sha256:');
  return { children: puts.filter(isChild), tags: puts.filter((put) => !isChild(put)) };
}

/** What the manifests name as config and layers, each once; `foreign` layers live elsewhere. */
export function blobsNamed(
  registry: RunningRegistry,
  repository: string,
  manifests: readonly string[],
): { readonly kept: readonly string[]; readonly foreign: readonly string[] } {
  const layers = manifests.flatMap((digest) => {
    const { bytes } = registry.manifestOf(repository, digest) ?? { bytes: Buffer.from('{}') };
    const document = JSON.parse(bytes.toString()) as { readonly config: Descriptor; readonly layers: Descriptor[] };
    return [document.config, ...document.layers];
  });
  const isForeign = (layer: object) => 'urls' in layer;
  const each = (some: readonly Descriptor[]) => [...new Set(some.map(({ digest }) => digest))];
  return { kept: each(layers.filter((layer) => !isForeign(layer))), foreign: each(layers.filter(isForeign)) };
}

/** The same number for each name. */
export function timesEach(names: readonly string[], times: number): Readonly<Record<string, number>> {
  return Object.fromEntries(names.map((name) => [name, times]));
}

/** What `docker login` writes. */
export function loginFor(
  host: string,
  user: string,
  password: string,
): { readonly auths: Readonly<Record<string, { readonly auth: string }>> } {
  return { auths: { [host]: { auth: Buffer.from(`${user}:${password}`).toString('base64') } } };
}

/** Asserts that the text holds every word of an `expect.json`'s list. */
export function expectWords(text: string, words: unknown): void {
  expect(Array.isArray(words) && words.length > 0).toBe(true);
  for (const word of words as readonly string[]) expect(text).toContain(word);
}

/** Every request needs a login, Basic. */
export const PRIVATE = { auth: { scheme: 'basic', anonymousPull: false } } as const;

/** `user:password` of every Basic header that came, each once. */
export function loginsShown(registry: RunningRegistry): readonly string[] {
  const headers = registry.journal.map(({ headers: { authorization = '' } }) => authorization);
  const basic = headers.filter((header) => header.startsWith('Basic ')).map((header) => header.slice('Basic '.length));
  return [...new Set(basic)].map((text) => Buffer.from(text, 'base64').toString());
}
