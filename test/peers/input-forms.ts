import { expect } from 'vitest';
import type { Entry, ImagePlatform, Source } from './images.ts';
import { ELSEWHERE, FROM_INDEXES } from './input-shapes.ts';
import { ALL, BUILT, builtEntries, entryOf, type Form, held, indexOf, sourceOf, sourcesAt } from './input-world.ts';
import { DOCKER_LIST, makeSource } from './manifest-images.ts';
import { pushSource } from './registry-access.ts';

const hex = (digest: string) => digest.slice('sha256:'.length);
const PLATFORMS = 'linux/amd64,linux/arm/v7,linux/arm64/v8,linux/386';

const FROM_ARGUMENTS: readonly Form[] = [
  {
    name: 'arguments, with a second tag',
    on: 'debian',
    async publish({ host, ours }) {
      const done = await ours(['publish', `${host}/out/plain:1`, ...sourcesAt(host), '-t', 'latest']);
      expect(done.stdout).toBe(`${indexOf(ALL).digest}\n`);
      return ['1', 'latest'].map((tag) => held(`${host}/out/plain:${tag}`, ALL));
    },
  },
  {
    name: 'PLATFORM=REF picks from an index, and says what an image is for',
    on: 'v3',
    async publish({ host, ours }) {
      await ours(['publish', `${host}/app/all:1`, ...sourcesAt(host)]);
      const silent = makeSource({ repository: 'app/silent', tag: '1', family: 'oci', writing: 'odd', platform: {} });
      await pushSource(host, silent);
      const picks = [`linux/arm/v7=${host}/app/all:1`, `linux/riscv64=${host}/app/silent:1`];
      await ours(['publish', `${host}/out/picked:1`, ...picks]);
      const entries = [entryOf('armv7'), ...labelled(silent, { architecture: 'riscv64', os: 'linux' })];
      return [held(`${host}/out/picked:1`, entries, { unpacks: false })];
    },
  },
  {
    name: 'a template and platforms',
    on: 'debian',
    async publish({ host, ours }) {
      const words = ['--template', `${host}/app/ARCHVARIANT:1`, '--platforms', PLATFORMS];
      await ours(['publish', `${host}/out/template:1`, ...words]);
      return [held(`${host}/out/template:1`, ['amd64', 'armv7', 'arm64v8', '386'].map(entryOf))];
    },
  },
  {
    name: 'annotations of the index and of entries, created at SOURCE_DATE_EPOCH',
    on: 'v3',
    async publish({ host, ours }) {
      const given = ['index:k=v', 'descriptor:team=base', 'descriptor[linux/arm/v7]:abi=hard-float', CREATED];
      const flags = given.flatMap((text) => ['--annotation', text]);
      const env = { SOURCE_DATE_EPOCH: '1700000000' };
      await ours(['publish', `${host}/out/annotated:1`, `${host}/app/amd64:1`, `${host}/app/armv7:1`, ...flags], {
        env,
      });
      const entries = [
        annotated(entryOf('amd64'), { team: 'base' }),
        annotated(entryOf('armv7'), { abi: 'hard-float', team: 'base' }),
      ];
      const annotations = { k: 'v', [CREATED]: '2023-11-14T22:13:20Z' };
      return [held(`${host}/out/annotated:1`, entries, { index: indexOf(entries, { annotations }) })];
    },
  },
  {
    name: 'an amended list: one platform replaced, one added, the rest kept',
    on: 'debian',
    async publish({ host, ours }) {
      await ours(['publish', `${host}/out/amended:1`, `${host}/app/amd64:1`, `${host}/app/armv7:1`]);
      const platform = { architecture: 'arm', os: 'linux', variant: 'v7' };
      const plan = { repository: 'app/newer', tag: '1', family: 'oci', writing: 'odd', platform } as const;
      const newer = makeSource(plan);
      await pushSource(host, newer);
      await ours(['publish', `${host}/out/amended:1`, '--amend', `${host}/app/newer:1`, `${host}/app/386:1`]);
      const entries = [entryOf('amd64'), ...labelled(newer, platform), entryOf('386')];
      return [held(`${host}/out/amended:1`, entries, { unpacks: false })];
    },
  },
  {
    name: 'sources of which one is missing',
    on: 'v3',
    async publish({ host, ours }) {
      const words = [`${host}/app/amd64:1`, `${host}/app/none:1`, `${host}/app/armv7:9`, `${host}/app/386:1`];
      const done = await ours(['publish', `${host}/out/fewer:1`, ...words, '--ignore-missing']);
      for (const name of ['app/none:1', 'app/armv7:9']) expect(done.stderr).toContain(`${host}/${name}`);
      return [held(`${host}/out/fewer:1`, [entryOf('amd64'), entryOf('386')])];
    },
  },
];

const CREATED = 'org.opencontainers.image.created';

const FROM_SPECS: readonly Form[] = [
  {
    name: 'a spec file of our own with many lists, defaults, anchors and variables',
    on: 'v3',
    async publish({ host, write, ours }) {
      const lists = Array.from(
        { length: 12 },
        (_, number) => `  - { target: "${host}/out/many:${number}", sources: *all }`,
      );
      const spec = `
defaults:
  annotations: { org.opencontainers.image.vendor: Acme }
lists:
  - targets: ["${host}/out/many:all", "${host}/out/many-too:all"]
    tags: [1.20]
    sources: &all
      - ${host}/app/amd64:\${VERSION}
      - { image: "${host}/app/armv7:\${VERSION}", platform: { os: linux, architecture: arm, variant: v7 } }
${lists.join('\n')}
`;
      const file = await write('lists.yaml', spec);
      const { stdout } = await ours(['publish', '-f', file, '--var', 'VERSION=1']);
      expect(stdout.trim().split('\n')).toHaveLength(16);
      const entries = [entryOf('amd64'), entryOf('armv7')];
      const index = indexOf(entries, { annotations: { 'org.opencontainers.image.vendor': 'Acme' } });
      const targets = ['out/many:all', 'out/many-too:1.20', 'out/many:11'];
      return targets.map((target) => held(`${host}/${target}`, entries, { index }));
    },
  },
  {
    name: "manifest-tool's spec file with 386 and 3.10 unquoted, from standard input",
    on: 'debian',
    async publish({ host, ours }) {
      const input = `image: ${host}/out/tool:3.10
tags: [latest]
manifests:
  - image: ${host}/app/386:1
    platform: { architecture: 386, os: linux }
  - image: ${host}/app/armv7:1
    platform: { architecture: arm, os: linux, variant: v7 }
  - image: ${host}/app/arm64v8:1
`;
      await ours(['publish', '-f', '-'], { input });
      const entries = ['386', 'armv7', 'arm64v8'].map(entryOf);
      return ['3.10', 'latest'].map((tag) => held(`${host}/out/tool:${tag}`, entries));
    },
  },
  {
    name: 'images of Docker types, with os.version, become a list of Docker',
    on: 'debian',
    async publish({ host, write, ours }) {
      const windows = { architecture: 'amd64', os: 'windows', 'os.version': '10.0.20348.2113' };
      const plans = [windows, { architecture: 'amd64', os: 'linux' }].map((platform, number) => ({
        platform,
        source: makeSource({ repository: `old/${number}`, tag: '1', family: 'docker', writing: 'docker', platform }),
      }));
      for (const { source } of plans) await pushSource(host, source);
      const manifests = plans.map(({ source, platform }) => ({ image: `${host}/${source.repository}:1`, platform }));
      await ours([
        'publish',
        '-f',
        await write('s.json', JSON.stringify({ image: `${host}/out/docker:1`, manifests })),
      ]);
      const entries = plans.flatMap(({ source, platform }) => labelled(source, platform));
      const index = indexOf(entries, { mediaType: DOCKER_LIST });
      return [held(`${host}/out/docker:1`, entries, { index, unpacks: false })];
    },
  },
];

const FROM_BUILDS: readonly Form[] = [
  {
    name: 'a folder of digests, attested, of exactly these platforms, under the tags of metadata-action',
    on: 'debian',
    async publish({ host, write, ours }) {
      for (const { document } of BUILT) await write(`digests/${hex(document.digest)}`, '');
      const tags = ['1.2', 'latest'].map((tag) => `${host}/built/app:${tag}`);
      const env = { DOCKER_METADATA_OUTPUT_JSON: JSON.stringify({ tags, labels: {}, annotations: ['index:k=v'] }) };
      const from = ['--digests-dir', 'digests', '--from-metadata', 'env:DOCKER_METADATA_OUTPUT_JSON'];
      await ours(['publish', ...from, '--expect-platforms', 'linux/arm64,linux/amd64'], { env });
      // A folder has the order of its names.
      const named = [...BUILT].sort((one, other) => (one.document.digest < other.document.digest ? -1 : 1));
      const entries = named.flatMap(({ images }) => images.map(({ entry }) => entry));
      const index = indexOf(entries, { annotations: { k: 'v' } });
      return tags.map((reference) => held(reference, entries, { index, unpacks: false }));
    },
  },
  {
    name: 'metadata files of buildx build and bake, and a descriptor, in another repository',
    on: 'v3',
    async publish({ host, write, ours }) {
      const [first, second] = BUILT.map(({ document }) => document.digest);
      const name = `${host}/built/app`;
      const bake = { app: { 'containerimage.digest': second, 'image.name': `${name}:2` }, db: { 'image.name': 'db' } };
      const { digest, size, mediaType } = entryOf('armv7');
      await pushSource(host, { ...sourceOf('app/armv7'), repository: 'built/app', tag: 'leg-2' });
      await write('build.json', JSON.stringify({ 'containerimage.digest': first, 'image.name': `${name}:1` }));
      await write('bake.json', JSON.stringify(bake));
      await write('descriptor.json', JSON.stringify({ digest, size, mediaType }));
      const files = ['build', 'bake', 'descriptor'].flatMap((file) => ['--from-metadata', `${file}.json`]);
      const words = [...files, '--bake-target', 'app', '--digests-repository', name];
      await ours(['publish', `${host}/out/metadata:1`, ...words]);
      return [held(`${host}/out/metadata:1`, [...builtEntries(), entryOf('armv7')], { unpacks: false })];
    },
  },
];

/** All of them. */
export const FORMS: readonly Form[] = [...FROM_ARGUMENTS, ...FROM_SPECS, ...FROM_BUILDS, ...FROM_INDEXES, ...ELSEWHERE];

function annotated(entry: Entry, annotations: Readonly<Record<string, string>>): Entry {
  const { mediaType, size, digest, platform } = entry;
  return { mediaType, size, digest, annotations, ...(platform === undefined ? {} : { platform }) };
}

/** The entries of a source that says no platform of its own. */
function labelled(source: Source, platform: ImagePlatform): readonly Entry[] {
  return source.images.map(({ entry }) => ({ ...entry, platform }));
}
