import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PartialPlatform } from '../../src/model/platform.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import type { BuiltManifest } from '../helpers/images.ts';
import type { Finished } from '../helpers/processes.ts';
import { COMPILED, cli, emptyFolder, parsed } from './program.ts';

/** A user of this machine with a home of its own. */
export type User = {
  readonly home: string;
  /** Runs the program. Words that name a repository of the registry, `t/a:1` or `linux/arm=t/a:1`, get its host. */
  run(...words: readonly string[]): Promise<Finished>;
  /** As {@link User.run}, and asserts that it ended well and wrote this to stdout. */
  does(stdout: string, ...words: readonly string[]): Promise<Finished>;
  /** What `inspect` shows of a draft: the entries of the list. */
  entries(list: string): Promise<readonly Entry[]>;
  /** References of all drafts. */
  drafts(): Promise<readonly string[]>;
};

export type Entry = { readonly digest: string; readonly mediaType: string; readonly platform: PartialPlatform };

/** A new user. `env` besides the home. */
export function newUser(registry: RunningRegistry, env: Readonly<Record<string, string>> = {}): User {
  const home = emptyFolder();
  const run = (...words: readonly string[]) =>
    cli(
      home,
      words.map((word) => withHost(registry, word)),
      { env },
    );
  return {
    home,
    run,
    async does(stdout, ...words) {
      const finished = await run(...words);
      if (finished.exitCode !== 0) throw new Error(`${words.join(' ')}: exit ${finished.exitCode}\n${finished.stderr}`);
      if (finished.stdout !== stdout) throw new Error(`${words.join(' ')} wrote ${JSON.stringify(finished.stdout)}`);
      return finished;
    },
    async entries(list) {
      const { stdout, stderr, exitCode } = await run('inspect', '--local', list);
      if (exitCode !== 0) throw new Error(stderr);
      return (JSON.parse(stdout) as { readonly manifests: readonly Entry[] }).manifests;
    },
    async drafts() {
      const { drafts } = parsed(await run('ls', '--json')) as { readonly drafts: readonly { reference: string }[] };
      return drafts.map(({ reference }) => reference);
    },
  };
}

/** What `create` writes to stdout. */
export function created(registry: RunningRegistry, list: string): string {
  return `Created manifest list ${registry.host}/${list}\n`;
}

function withHost(registry: RunningRegistry, word: string): string {
  return word.replace(/^([\w/]+=)?(?=t\/)/, `$1${registry.host}/`);
}

/**
 * Writes a draft as `docker manifest create` of 28.2.2 leaves it.
 *
 * @param folder docker's configuration folder
 */
export function writeDockerDraft(
  folder: string,
  list: string,
  entries: readonly {
    readonly reference: string;
    readonly image: BuiltManifest;
    readonly platform: PartialPlatform;
  }[],
): void {
  const place = join(folder, 'manifests', safe(list));
  mkdirSync(place, { recursive: true });
  for (const { reference, image, platform } of entries) {
    const { mediaType, digest, size } = image.descriptor;
    const kind = mediaType.includes('docker') ? 'SchemaV2Manifest' : 'OCIManifest';
    const document = {
      Ref: reference,
      Descriptor: { mediaType, digest, size, platform },
      Raw: image.bytes.toString('base64'),
      [kind]: JSON.parse(image.bytes.toString()),
    };
    writeFileSync(join(place, safe(reference)), JSON.stringify(document));
  }
}

/** Every file below a folder with its content, but for the program as Node compiled it. */
export function filesIn(folder: string): Readonly<Record<string, string>> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    files
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => COMPILED === undefined || !path.startsWith(join(folder, COMPILED, '/')))
      .sort()
      .map((path) => [path, readFileSync(path, 'utf8')]),
  );
}

function safe(reference: string): string {
  return reference.replaceAll(':', '-').replaceAll('/', '_');
}
