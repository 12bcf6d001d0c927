import { join } from 'node:path';
import { formatPlatform } from './job.ts';
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

/** A program that does the job. */
export type Peer = {
  readonly id: string;
  readonly title: string;
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

const target = (task: Task) => `${task.host}/${task.repository}:${task.tag}`;
const source = (task: Task, image: SeededImage) => `${task.host}/${image.repository}:${task.tag}`;
const sources = (task: Task) => task.images.map((image) => source(task, image));
/** `debian/arm64` is tagged `arm64` on its way through the target repository. */
const shortName = (image: SeededImage) => image.repository.replace(/^.*\//, '');

const DOCKER: Peer = {
  id: 'docker',
  title: 'docker manifest',
  binaries: ['docker'],
  version: ['--version'],
  steps: (docker, task) => [
    [[docker, 'manifest', 'create', '--insecure', target(task), ...sources(task)]],
    [[docker, 'manifest', 'push', '--insecure', target(task)]],
  ],
};

const MANIFEST_TOOL: Peer = {
  id: 'manifest-tool',
  title: 'manifest-tool',
  binaries: ['manifest-tool'],
  version: ['--version'],
  files: (task) => ({ 'spec.yaml': manifestToolSpec(task) }),
  steps: (tool) => [[['sh', '-c', 'exec "$0" --plain-http push --type oci from-spec "$HOME/spec.yaml"', tool]]],
};

function manifestToolSpec(task: Task): string {
  // JSON is YAML; the keys are those of manifest-tool.
  return JSON.stringify({
    image: target(task),
    manifests: task.images.map((image) => ({ image: source(task, image), platform: image.platform })),
  });
}

const CRANE: Peer = {
  id: 'crane',
  title: 'crane index append',
  binaries: ['crane'],
  version: ['version'],
  steps: (crane, task) => [
    [[crane, 'index', 'append', '--insecure', ...sources(task).flatMap((one) => ['-m', one]), '-t', target(task)]],
  ],
};

const REGCTL: Peer = {
  id: 'regctl',
  title: 'regctl index create',
  binaries: ['regctl'],
  version: ['version'],
  files: (task) => ({ '.regctl/config.json': JSON.stringify({ hosts: { [task.host]: { tls: 'disabled' } } }) }),
  steps: (regctl, task) => [
    [[regctl, 'index', 'create', target(task), ...sources(task).flatMap((one) => ['--ref', one])]],
  ],
};

function orasCopies(oras: string, task: Task): readonly Argv[] {
  return task.images.map((image) => {
    const copy = `${task.host}/${task.repository}:${shortName(image)}`;
    return [oras, 'cp', '--from-plain-http', '--to-plain-http', source(task, image), copy];
  });
}

function orasIndex(oras: string, task: Task): Argv {
  return [oras, 'manifest', 'index', 'create', '--plain-http', target(task), ...task.images.map(shortName)];
}

const ORAS: Peer = {
  id: 'oras',
  title: 'oras cp each, then index',
  binaries: ['oras'],
  version: ['version'],
  steps: (oras, task) => [...orasCopies(oras, task).map((copy) => [copy]), [orasIndex(oras, task)]],
};

const ORAS_AT_ONCE: Peer = {
  ...ORAS,
  id: 'oras-at-once',
  title: 'the same, every cp at once',
  steps: (oras, task) => [orasCopies(oras, task), [orasIndex(oras, task)]],
};

const BUILDX: Peer = {
  id: 'buildx',
  title: 'buildx imagetools',
  binaries: ['buildx', 'docker-buildx'],
  version: ['version'],
  steps: (buildx, task) => [[[buildx, 'imagetools', 'create', '-t', target(task), ...sources(task)]]],
};

function ours(root: string, id: string, flags: readonly string[]): Peer {
  return {
    id,
    title: ['manifest-publish', ...flags].join(' '),
    binaries: ['node'],
    version: [join(root, 'bin', 'run.js'), '--version'],
    steps: (node, task) => [[[node, join(root, 'bin', 'run.js'), 'publish', ...flags, target(task), ...sources(task)]]],
  };
}

function oursInTwoSteps(root: string): Peer {
  const program = join(root, 'bin', 'run.js');
  return {
    id: 'ours-drafts',
    title: 'manifest-publish create, push',
    binaries: ['node'],
    version: [program, '--version'],
    steps: (node, task) => [
      [[node, program, 'create', '--insecure', target(task), ...sources(task)]],
      [[node, program, 'push', '--insecure', target(task)]],
    ],
  };
}

/** Ours first; the rest in the order of the table. @param root folder of package.json */
export function allPeers(root: string): readonly Peer[] {
  return [
    ours(root, 'ours', []),
    ours(root, 'ours-no-verify', ['--no-verify']),
    oursInTwoSteps(root),
    DOCKER,
    MANIFEST_TOOL,
    CRANE,
    REGCTL,
    ORAS,
    ORAS_AT_ONCE,
    BUILDX,
  ];
}

/** Splits the peers into those that this machine has and the ids of those that it lacks. */
export async function findPeers(
  peers: readonly Peer[],
  find: Finder,
): Promise<{ readonly found: readonly FoundPeer[]; readonly absent: readonly string[] }> {
  const found: FoundPeer[] = [];
  const absent: string[] = [];
  for (const peer of peers) {
    const tool = await find(peer.binaries, peer.version);
    if (tool === undefined) absent.push(peer.id);
    else found.push({ ...peer, tool });
  }
  return { found, absent };
}

/** `linux/amd64`, for checking what a list says. */
export function expectedPlatforms(task: Task): ReadonlyMap<string, string> {
  return new Map(task.images.map((image) => [image.digest, formatPlatform(image.platform)]));
}
