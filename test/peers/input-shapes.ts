import { join } from 'node:path';
import { expect } from 'vitest';
import { makeIndex, OCI_INDEX } from './images.ts';
import { ALL, BUILT, builtEntries, entryOf, type Form, held, indexOf, sourceOf, sourcesAt } from './input-world.ts';
import { makeSource } from './manifest-images.ts';
import { getManifest, pushManifest, pushSource } from './registry-access.ts';

/** Indexes as sources, and what refers to images. */
export const FROM_INDEXES: readonly Form[] = [
  {
    name: 'attested indexes: attestations beside their images, gone with --attestations drop and with their platform',
    on: 'v3',
    async publish({ host, ours }) {
      const legs = BUILT.map(({ repository, tag }) => `${host}/${repository}:${tag}`);
      const entries = builtEntries();
      const images = entries.filter(({ annotations }) => annotations === undefined);
      await ours(['publish', `${host}/out/attested:keep`, ...legs]);
      await ours(['publish', `${host}/out/attested:drop`, ...legs, '--attestations', 'drop']);
      await ours(['publish', `${host}/out/attested:arm`, ...legs, '--platform', 'linux/arm64/v8']);
      return [
        held(`${host}/out/attested:keep`, entries, { unpacks: false }),
        held(`${host}/out/attested:drop`, images),
        held(`${host}/out/attested:arm`, entries.slice(2), { unpacks: false }),
      ];
    },
  },
  {
    name: 'an index alone keeps its bytes; an index of indexes is flattened',
    on: 'debian',
    async publish({ host, ours }) {
      const entries = [entryOf('amd64'), entryOf('386')];
      // As nobody writes it: the digest is that of these bytes and no others.
      const odd = { note: 'kept', manifests: entries, schemaVersion: 2, mediaType: OCI_INDEX };
      const bytes = Buffer.from(`${JSON.stringify(odd, undefined, '\t')}\n`);
      for (const name of ['amd64', '386'])
        await pushSource(host, { ...sourceOf(`app/${name}`), repository: 'app/odd' });
      await pushManifest(host, 'app/odd', '1', OCI_INDEX, bytes);
      await ours(['publish', `${host}/out/odd:1`, `${host}/app/odd:1`]);
      const digest = String((await getManifest(host, 'app/odd', '1')).headers['docker-content-digest']);
      const inner = { mediaType: OCI_INDEX, size: bytes.length, digest };
      const outer = makeIndex([inner]);
      await pushManifest(host, 'app/odd', 'outer', OCI_INDEX, outer.bytes);
      await ours(['publish', `${host}/out/flat:1`, `${host}/app/odd:outer`, `${host}/app/armv7:1`]);
      return [
        held(`${host}/out/odd:1`, entries, { index: { digest, bytes } }),
        held(`${host}/out/flat:1`, [...entries, entryOf('armv7')]),
      ];
    },
  },
  {
    name: 'what refers to an image, by regctl and under the tag of cosign',
    on: 'v3',
    needs: ['regctl'],
    async publish({ host, write, ours, theirs }) {
      const { digest } = entryOf('amd64');
      const subject = `${host}/app/amd64@${digest}`;
      const put = ['artifact', 'put', '--subject', subject, '--artifact-type', SBOM, '-f', await write('sbom', '{}')];
      await theirs('regctl', ...put);
      const signature = makeSource({ ...SIGNATURE, repository: 'app/amd64', tag: `${digest.replace(':', '-')}.sig` });
      await pushSource(host, signature);
      const words = [`${host}/out/signed:1`, `${host}/app/amd64:1`, `${host}/app/386:1`, '--referrers', 'all'];
      await ours(['publish', ...words]);
      const listed = await theirs(
        'regctl',
        'artifact',
        'list',
        `${host}/out/signed@${digest}`,
        '--format',
        '{{json .}}',
      );
      expect(JSON.parse(listed)).toMatchObject({ descriptors: [{ artifactType: SBOM }] });
      const tagged = await theirs('regctl', 'manifest', 'head', `${host}/out/signed:${signature.tag}`);
      expect(tagged).toBe(`${signature.document.digest}\n`);
      return [held(`${host}/out/signed:1`, [entryOf('amd64'), entryOf('386')])];
    },
  },
];

const SBOM = 'application/vnd.example.sbom';
const SIGNATURE = { family: 'oci', writing: 'compact', platform: {} } as const;

/** More places than one registry. */
export const ELSEWHERE: readonly Form[] = [
  {
    name: 'to two registries of different makes, from images in both',
    on: 'debian',
    async publish({ host, other, ours }) {
      const images = [`${host}/app/amd64:1`, `${other}/app/arm64v8:1`];
      await ours(['publish', `${host}/out/two:1`, ...images, '-t', `${other}/out/three:2`, '-t', 'stable']);
      const entries = [entryOf('amd64'), entryOf('arm64v8')];
      return [`${host}/out/two:1`, `${host}/out/two:stable`, `${other}/out/three:2`].map((at) => held(at, entries));
    },
  },
  {
    name: 'to an image layout, and from it to a registry',
    on: 'v3',
    async publish({ host, other, home, ours, theirs }) {
      await ours(['publish', 'oci:layout:1', ...sourcesAt(other)]);
      const verified = await ours(['verify', '--deep', 'oci:layout:1', '--json']);
      expect(JSON.parse(verified.stdout)).toMatchObject({ digest: indexOf(ALL).digest, problems: [] });
      const layout = `ocidir://${join(home, 'layout')}:1`;
      const raw = await theirs('regctl', 'manifest', 'get', '--format', 'raw-body', layout);
      expect(raw).toBe(indexOf(ALL).bytes.toString('utf8'));
      await ours(['publish', `${host}/out/layout:1`, 'oci:layout:1']);
      await ours(['publish', `${host}/out/layout:arm`, 'linux/arm64=oci:layout:1', `${host}/app/386:1`]);
      return [held(`${host}/out/layout:1`, ALL), held(`${host}/out/layout:arm`, [entryOf('arm64v8'), entryOf('386')])];
    },
    needs: ['regctl'],
  },
];
