import { join } from 'node:path';
import { formatPlatform } from './job.ts';
import { OTHERS } from './peer-commands.ts';
import { sources, target } from './references.ts';
import type { SeededImage } from './seed.ts';
import type { Finder, Tool } from './tools.ts';

/** One thing to do: the images that are there, the reference that shall be there. */
export type Task = {
  /** The proxy as it is written into references: `127.0.0.1:40000`. */
  readonly host: string;
  readonly images: readonly SeededImage[];
  readonly tag: string;
  /** Repository of the target, in which nothing else happens. */
  readonly repository: string;
};

/** A program and its arguments. */
export type Argv = readonly string[];

/** Commands that run side by side. */
export type Step = readonly Argv[];

/**
 * How a program does the job: `single` by one command, `script` by several, `copies` without the list at the end, which
 * it cannot make. `floor` is the reference in bench/floor.ts.
 */
export type PeerKind = 'ours' | 'single' | 'script' | 'copies' | 'floor';

/** A program that does the job. */
export type Peer = {
  readonly id: string;
  readonly title: string;
  readonly kind: PeerKind;
  /** How to get it, where it is missing. */
  readonly get: string;
  /** `slow` takes so long at 100 ms a request that one run must do; `slowest` is left out where no limit is set. */
  readonly pace?: 'fast' | 'slow' | 'slowest';
  readonly binaries: readonly string[];
  /** Arguments that print the version. */
  readonly version: readonly string[];
  /** What its user would have in HOME, by path below it; put there before the clock starts. */
  readonly files?: (task: Task) => Readonly<Record<string, string>>;
  /** One step after another. */
  readonly steps: (tool: string, task: Task) => readonly Step[];
};

/** @see findPeers */
export type FoundPeer = Peer & { readonly tool: Tool };

const NODE = { binaries: ['node'], get: 'https://nodejs.org' } as const;

function ours(root: string, id: string, flags: readonly string[]): Peer {
  const program = join(root, 'bin', 'run.js');
  return {
    ...NODE,
    id,
    title: ['manifest-publish', ...flags].join(' '),
    kind: 'ours',
    version: [program, '--version'],
    steps: (node, task) => [[[node, program, 'publish', ...flags, target(task), ...sources(task)]]],
  };
}

function oursInTwoSteps(root: string): Peer {
  const program = join(root, 'bin', 'run.js');
  return {
    ...NODE,
    id: 'ours-drafts',
    title: 'manifest-publish create, push',
    kind: 'ours',
    version: [program, '--version'],
    steps: (node, task) => [
      [[node, program, 'create', '--insecure', target(task), ...sources(task)]],
      [[node, program, 'push', '--insecure', target(task)]],
    ],
  };
}

/** Where `buildFloor` puts the reference. */
export function floorFile(root: string): string {
  return join(root, 'node_modules', '.cache', 'bench', 'floor.mjs');
}

function floor(root: string): Peer {
  return {
    ...NODE,
    id: 'floor',
    title: 'floor (bench/floor.ts)',
    kind: 'floor',
    version: ['-e', '0'], // it has none
    steps: (node, task) => [[[node, floorFile(root), target(task), ...sources(task)]]],
  };
}

/** Ours first, then the floor; the rest in the order of the table. @param root folder of package.json */
export function allPeers(root: string): readonly Peer[] {
  return [
    ours(root, 'ours', []),
    ours(root, 'ours-no-verify', ['--no-verify']),
    oursInTwoSteps(root),
    floor(root),
    ...OTHERS,
  ];
}

/** Splits the peers into those that this machine has and those that it lacks. */
export async function findPeers(
  peers: readonly Peer[],
  find: Finder,
): Promise<{
  readonly found: readonly FoundPeer[];
  readonly absent: readonly string[];
  readonly hints: readonly string[];
}> {
  const found: FoundPeer[] = [];
  const absent: Peer[] = [];
  for (const peer of peers) {
    const tool = await find(peer.binaries, peer.version);
    if (tool === undefined) absent.push(peer);
    else found.push({ ...peer, tool });
  }
  const hints = absent.map(({ id, get }) => `${id}: ${get}`);
  return { found, absent: absent.map(({ id }) => id), hints };
}

/** What the list must hold: `linux/amd64` by digest, for checking what it says. */
export function expectedPlatforms(task: Task): ReadonlyMap<string, string> {
  return new Map(
    task.images.flatMap(({ digest, platform, attestation }): [string, string][] => [
      [digest, formatPlatform(platform)],
      ...(attestation === undefined ? [] : ([[attestation.digest, 'unknown/unknown']] satisfies [string, string][])),
    ]),
  );
}
