import { getuid } from 'node:process';
import type { Argv, Peer, Task } from './peers.ts';
import { source, sources, target } from './references.ts';
import type { SeededImage } from './seed.ts';

// What each peer's documentation tells its user to type for this job.

/** `debian/arm64` is tagged `arm64` on its way through the target repository. */
const shortName = (image: SeededImage) => image.repository.replace(/^.*\//, '');

const DOCKER: Peer = {
  id: 'docker',
  title: 'docker manifest create, push',
  kind: 'script',
  get: 'Docker CLI 23 or later, https://docs.docker.com/engine/install/ (no engine is needed)',
  pace: 'slow',
  binaries: ['docker'],
  version: ['--version'],
  steps: (docker, task) => [
    [[docker, 'manifest', 'create', '--insecure', target(task), ...sources(task)]],
    [[docker, 'manifest', 'push', '--insecure', target(task)]],
  ],
};

const MANIFEST_TOOL: Peer = {
  id: 'manifest-tool',
  title: 'manifest-tool push',
  kind: 'single',
  get: 'git clone https://github.com/estesp/manifest-tool, then make binary',
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
  kind: 'single',
  get: 'go install github.com/google/go-containerregistry/cmd/crane@v0.22.1',
  binaries: ['crane'],
  version: ['version'],
  steps: (crane, task) => [
    [[crane, 'index', 'append', '--insecure', ...sources(task).flatMap((one) => ['-m', one]), '-t', target(task)]],
  ],
};

const REGCTL: Peer = {
  id: 'regctl',
  title: 'regctl index create',
  kind: 'single',
  get: 'go install github.com/regclient/regclient/cmd/regctl@v0.11.7',
  pace: 'slow',
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
  title: 'oras cp each, then index (a script)',
  kind: 'script',
  get: 'go install oras.land/oras/cmd/oras@v1.3.6',
  pace: 'slow',
  binaries: ['oras'],
  version: ['version'],
  steps: (oras, task) => [...orasCopies(oras, task).map((copy) => [copy]), [orasIndex(oras, task)]],
};

const ORAS_AT_ONCE: Peer = {
  ...ORAS,
  id: 'oras-at-once',
  title: 'oras, every cp at once (a script)',
  pace: 'fast',
  kind: 'script',
  steps: (oras, task) => [orasCopies(oras, task), [orasIndex(oras, task)]],
};

const BUILDX: Peer = {
  id: 'buildx',
  title: 'buildx imagetools create',
  kind: 'single',
  get: 'go install github.com/docker/buildx/cmd/buildx@v0.38.2',
  binaries: ['buildx', 'docker-buildx'],
  version: ['version'],
  steps: (buildx, task) => [[[buildx, 'imagetools', 'create', '-t', target(task), ...sources(task)]]],
};

/** What root has copied these two remember outside of HOME, and mount it the next time; other users start afresh. */
const NOT_ROOT: readonly string[] = getuid?.() === 0 ? ['env', '_CONTAINERS_ROOTLESS_UID=1000'] : [];

const SKOPEO: Peer = {
  id: 'skopeo',
  title: 'skopeo copy each (no list)',
  kind: 'copies',
  get: 'apt-get install skopeo',
  pace: 'slowest',
  binaries: ['skopeo'],
  version: ['--version'],
  steps: (skopeo, task) =>
    task.images.map((image) => {
      const copy = `docker://${task.host}/${task.repository}:${shortName(image)}`;
      const words = ['--insecure-policy', 'copy', '--all', '--src-tls-verify=false', '--dest-tls-verify=false'];
      return [[...NOT_ROOT, skopeo, ...words, `docker://${source(task, image)}`, copy]];
    }),
};

const BUILDAH: Peer = {
  id: 'buildah',
  title: 'buildah manifest (a script)',
  kind: 'script',
  get: 'apt-get install buildah',
  pace: 'slowest',
  binaries: ['buildah'],
  version: ['--version'],
  files: () => ({
    '.docker/config.json': '{}', // it insists on the file that DOCKER_CONFIG speaks of
    '.config/containers/policy.json': JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] }),
  }),
  steps: (buildah, task) => {
    const run = (...words: readonly string[]) => [[...NOT_ROOT, 'sh', '-c', BUILDAH_SCRIPT, buildah, ...words]];
    return [
      run('create', 'list'),
      ...task.images.map((image) =>
        run('add', '--all', '--tls-verify=false', 'list', `docker://${source(task, image)}`),
      ),
      run('push', '--all', '--tls-verify=false', '--format', 'oci', 'list', `docker://${target(task)}`),
    ];
  },
};

/** HOME is known to the shell alone; a store in it knows no blob yet. */
const BUILDAH_SCRIPT = 'exec "$0" --root "$HOME/store" --runroot "$HOME/run" --storage-driver vfs manifest "$@"';

/** All but ours, in the order of the table. */
export const OTHERS: readonly Peer[] = [
  CRANE,
  BUILDX,
  MANIFEST_TOOL,
  REGCTL,
  DOCKER,
  ORAS,
  ORAS_AT_ONCE,
  SKOPEO,
  BUILDAH,
];
