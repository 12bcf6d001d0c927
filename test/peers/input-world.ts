import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { type Finished, findProgram, needProgram, run, type Variables } from '../helpers/processes.ts';
import { BIN, judged, withStranger } from '../helpers/program.ts';
import { attestedSources, type Blob, blob, debianSources, type Entry, OCI_INDEX, type Source } from './images.ts';
import { lastWords, makeHome } from './publish-command.ts';
import { pushSource } from './registry-access.ts';

/** Two registries of others with the images of {@link IMAGES} in each, and an empty home. */
export type World = {
  /** Where the test publishes to. */
  readonly host: string;
  /** One of another make. */
  readonly other: string;
  readonly home: string;
  /** Writes a file below the home; gives its name back. */
  write(name: string, text: string): Promise<string>;
  /** Runs the built program, which must succeed. */
  ours(args: readonly string[], more?: { readonly env?: Variables; readonly input?: string }): Promise<Finished>;
  /** Runs a program of others, which must succeed; gives what it prints. */
  theirs(program: string, ...args: readonly string[]): Promise<string>;
};

/** What has to be at a place afterwards. */
export type Held = {
  readonly reference: string;
  readonly index: Blob;
  readonly entries: readonly Entry[];
  /** Whether every layer is what its config says, so that `crane validate` can unpack it. */
  readonly unpacks?: boolean;
};

/** One way to say what shall be published. */
export type Form = {
  readonly name: string;
  /** Which of the two registries is published to. */
  readonly on: 'debian' | 'v3';
  /** Programs of others without which there is no such input. */
  readonly needs?: readonly string[];
  /** Publishes, and says what has to be where. */
  readonly publish: (world: World) => Promise<readonly Held[]>;
};

/** The program's names of the architectures, and what lies in a repository of each: `app/amd64:1`, `app/armv7:1`. */
const NAMES: Readonly<Record<string, string>> = {
  'debian/amd64': 'amd64',
  'debian/arm32v7': 'armv7',
  'debian/arm64v8': 'arm64v8',
  'debian/i386': '386',
};

/** Four images in repositories of their own. */
export const IMAGES: readonly Source[] = debianSources()
  .filter(({ repository }) => repository in NAMES)
  .map((source) => ({ ...source, repository: `app/${NAMES[source.repository]}`, tag: '1' }));

/** The first two with an attestation each, all in the repository `built/app`, as jobs push by digest. */
export const BUILT: readonly Source[] = attestedSources()
  .filter(({ repository }) => ['debian/attested-amd64', 'debian/attested-arm64v8'].includes(repository))
  .map((source, position) => ({ ...source, repository: 'built/app', tag: `leg-${position}` }));

/** The entry of each of {@link IMAGES}. */
export const ALL: readonly Entry[] = IMAGES.flatMap(({ images }) => images.map(({ entry }) => entry));

/** References to {@link IMAGES} in one registry. */
export function sourcesAt(host: string): readonly string[] {
  return IMAGES.map(({ repository, tag }) => `${host}/${repository}:${tag}`);
}

/** One of {@link IMAGES} by its repository. */
export function sourceOf(repository: string): Source {
  const found = IMAGES.find((source) => source.repository === repository);
  if (found === undefined) throw new Error(`there is no source ${repository}`);
  return found;
}

/** A list of these entries at a place. */
export function held(reference: string, entries: readonly Entry[], more: Partial<Held> = {}): Held {
  return { reference, entries, index: indexOf(entries), ...more };
}

/** Images of {@link IMAGES} under the name of their architecture. */
export function entryOf(name: string): Entry {
  const [image] = sourceOf(`app/${name}`).images;
  if (image === undefined) throw new Error(`app/${name} has no image`);
  return image.entry;
}

/** What an attested index lists: the image, and what speaks of it. */
export function builtEntries(): readonly Entry[] {
  return BUILT.flatMap(({ images }) => images.map(({ entry }) => entry));
}

/** The bytes that the documentation promises for these entries; written here a second time on purpose. */
export function indexOf(
  manifests: readonly Entry[],
  { annotations, mediaType = OCI_INDEX }: { annotations?: object; mediaType?: string } = {},
): Blob {
  const document = { schemaVersion: 2, mediaType, manifests, ...(annotations === undefined ? {} : { annotations }) };
  return blob(Buffer.from(JSON.stringify(document, undefined, 2)));
}

/** Puts all images into a registry. */
export async function fill(host: string): Promise<void> {
  for (const source of [...IMAGES, ...BUILT]) await pushSource(host, source);
}

/** @param folder where an empty home is made */
export async function makeWorld(folder: string, host: string, other: string): Promise<World> {
  const home = await makeHome(folder);
  const env = { HOME: home, DOCKER_CONFIG: join(home, '.docker') };
  return {
    host,
    other,
    home,
    async write(name, text) {
      await mkdir(dirname(join(home, name)), { recursive: true });
      await writeFile(join(home, name), text);
      return name;
    },
    async ours(args, more = {}) {
      const variables = withStranger({ ...env, ...more.env });
      const input = more.input === undefined ? {} : { input: more.input };
      const options = { ...input, cwd: home, env: variables };
      // The judge sees by the host that these are registries of others: a spec file hides it.
      const words = [...args, host];
      const done = await judged(() => run(process.execPath, [BIN, ...args], options), { words, folder: home });
      expect(done, `${args.join(' ')}\n${lastWords(done)}`).toMatchObject({ exitCode: 0 });
      return done;
    },
    async theirs(program, ...args) {
      const plain = [host, other].flatMap((one) => ['--host', `reg=${one},tls=disabled`]);
      const words = program === 'regctl' ? [...plain, ...args] : args;
      const done = await run(needProgram(program), words, { cwd: home, env });
      expect(done, `${program} ${args.join(' ')}\n${lastWords(done)}`).toMatchObject({ exitCode: 0 });
      return done.stdout;
    },
  };
}

/** Reads a list back with `verify` and with every program of others that is installed, all at once. */
export async function expectHeld(world: World, { reference, index, entries, unpacks = true }: Held): Promise<void> {
  const text = index.bytes.toString('utf8');
  const readings = [
    world.ours(['verify', reference, '--json']).then(({ stdout }) => {
      expect(JSON.parse(stdout)).toMatchObject({ digest: index.digest, problems: [] });
    }),
    ...having('crane', async () => {
      expect(await world.theirs('crane', 'manifest', reference), `crane manifest ${reference}`).toBe(text);
      if (unpacks) expect(await world.theirs('crane', 'validate', '--remote', reference)).toContain('PASS');
    }),
    ...having('regctl', async () => {
      const read = await world.theirs('regctl', 'manifest', 'get', '--format', 'raw-body', reference);
      expect(read, `regctl manifest get ${reference}`).toBe(text);
    }),
    ...having('docker', async () => {
      const shown = JSON.parse(await world.theirs('docker', 'manifest', 'inspect', '--insecure', reference)) as Shown;
      const listed = shown.manifests.map(({ digest, platform }) => ({ digest, platform }));
      expect(listed, `docker manifest inspect ${reference}`).toEqual(
        entries.map(({ digest, platform }) => ({ digest, platform })),
      );
    }),
  ];
  await Promise.all(readings);
}

type Shown = { readonly manifests: readonly Pick<Entry, 'digest' | 'platform'>[] };

function having(program: string, read: () => Promise<void>): readonly Promise<void>[] {
  return findProgram(program) === undefined ? [] : [read()];
}
