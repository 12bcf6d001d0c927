import { describe, expect, it } from 'vitest';
import type { PublishReport } from '../../src/publish/report.ts';
import { seedDebian } from '../../src/registry-server/index.ts';
import { parsed } from '../cli/program.ts';
import { blobDigests, seedImage } from '../helpers/images.ts';
import { sourcesOf } from '../helpers/publishing.ts';
import { requests, withRegistry, writes } from '../helpers/registry.ts';
import {
  blobsNamed,
  loginFor,
  manifestPuts,
  program,
  publishAt,
  published,
  timesEach,
  uploads,
  withCase,
} from './report.ts';

describe('mounting and copying', () => {
  it('MNT-01: eight repositories become one list although every mount is answered 202; each blob is sent once', () =>
    withCase('MNT-01', async ({ registry, run, expect: wanted }) => {
      const list = published(registry, await run());
      expect(list.mediaType).toBe(wanted['mediaType']);
      expect(`${list.repository}:${list.tag}`).toBe(wanted['target']);
      expect(list.entries.map(({ digest, platform }) => ({ digest, platform }))).toEqual(wanted['children']);
      const digests = list.entries.map(({ digest }) => digest);
      const { kept } = blobsNamed(registry, list.repository, digests);
      expect(uploads(registry)).toEqual(timesEach(kept, Number(wanted['uploadsPerBlob'])));
      const { children, tags } = manifestPuts(registry);
      expect(children.map((put) => put.reference).sort()).toEqual([...digests].sort());
      expect(tags).toHaveLength(1);
    }));

  it('MNT-02: two refused mounts among others cost two uploads, into the sessions that the refusals opened', () =>
    withCase('MNT-02', async ({ registry, run, script, expect: wanted }) => {
      const finished = await run(`${script.trim()} --json`);
      expect(finished.exitCode, finished.stderr).toBe(wanted['exit']);
      const { totals, lists } = parsed(finished) as unknown as PublishReport;
      expect(totals.blobs).toEqual({
        present: 0,
        mounted: wanted['mounted'],
        copied: wanted['uploaded'],
        skipped: 0,
      });
      const copied = lists[0]?.images.flatMap(({ placed }) => placed.flatMap(({ blobs }) => blobs)) ?? [];
      for (const blob of copied.filter(({ how }) => how === 'copied')) expect(blob.why).toContain('202');
      expect(requests(registry, 'mount').filter(({ status }) => status === 201)).toHaveLength(
        Number(wanted['mounted']),
      );
      expect(Object.values(uploads(registry))).toEqual(Array(wanted['uploaded']).fill(1));
      expect(requests(registry, 'uploadPost')).toEqual([]);
      expect(registry.missingFrom('lab/dav', 'latest')).toEqual([]);
    }));

  it('MNT-04: ECR mounts only what a manifest of the source names; the rest is copied and the source left as it is', () =>
    withRegistry('ecr-mounting', async (registry) => {
      registry.configure({ auth: { scheme: 'none' } });
      registry.createRepository('debian/debian');
      const images = seedDebian(registry);
      const lonely = images[0]?.layers[0] ?? '';
      registry.configure({ mount: { byDigest: { [lonely]: 'ignore' } } });
      const manifests = () => images.map(({ repository, tag }) => registry.manifestOf(repository, tag)?.digest);
      const before = manifests();
      published(registry, await publishAt(registry, 'debian/debian:bullseye', sourcesOf(images)));
      expect(uploads(registry)).toEqual({ [lonely]: 1 });
      expect(new Set(writes(registry).map(({ repository }) => repository))).toEqual(new Set(['debian/debian']));
      expect(manifests()).toEqual(before);
    }));

  it('MNT-05: a mount is asked for with a token for target and source, and nothing is uploaded', () =>
    withRegistry({ options: { profile: 'docker-hub', changes: { auth: { anonymousPull: false } } } }, async (hub) => {
      const images = seedDebian(hub).slice(0, 3);
      const logins = loginFor(hub.host, 'robot', 'secret');
      published(hub, await publishAt(hub, 'debian/debian:bullseye', sourcesOf(images), { logins }));
      const mounts = requests(hub, 'mount');
      expect(mounts).toHaveLength(15);
      expect(new Set(mounts.map(({ status }) => status))).toEqual(new Set([201]));
      const scopes = requests(hub, 'token').map(({ query }) => new URLSearchParams(query).getAll('scope'));
      for (const { repository } of images) {
        expect(scopes).toContainEqual(['repository:debian/debian:pull,push', `repository:${repository}:pull`]);
      }
      expect(requests(hub, 'uploadPost', 'uploadPatch', 'uploadPut')).toEqual([]);
    }));

  it.each([403, 401])('MNT-07: a mount that is answered %i is not asked again; the blobs are uploaded', (status) =>
    withRegistry({ mount: { mode: `off(${status})` } }, async (registry) => {
      const image = seedImage(registry, 'private/app', '1');
      const finished = await publishAt(registry, 'team/app:1', ['private/app:1']);
      published(registry, finished);
      const mounts = requests(registry, 'mount').map(({ query }) => new URLSearchParams(query).get('mount'));
      expect(new Set(mounts).size).toBe(mounts.length);
      expect(uploads(registry)).toEqual(timesEach(blobDigests(image), 1));
    }),
  );

  it('MNT-08: mounts that are answered with an error body become plain uploads, each blob once', () =>
    withCase('MNT-08', async ({ registry, run }) => {
      const { repository, entries } = published(registry, await run());
      const { kept } = blobsNamed(
        registry,
        repository,
        entries.map(({ digest }) => digest),
      );
      expect(requests(registry, 'mount').every(({ status }) => status === 404)).toBe(true);
      expect(uploads(registry)).toEqual(timesEach(kept, 1));
    }));

  it('MNT-10: what was only claimed to be mounted is uploaded, and the manifests are put again within three rounds', () =>
    withCase('MNT-10', async ({ registry, run }) => {
      const { repository, entries } = published(registry, await run());
      const digests = entries.map(({ digest }) => digest);
      const { kept } = blobsNamed(registry, repository, digests);
      expect(requests(registry, 'mount').every(({ status }) => status === 201)).toBe(true);
      expect(uploads(registry)).toEqual(timesEach(kept, 1));
      for (const digest of digests) {
        const answers = manifestPuts(registry).children.filter(({ reference }) => reference === digest);
        expect(answers.at(-1)?.status).toBe(201);
        expect(answers.length).toBeLessThanOrEqual(4);
      }
    }));

  it('MNT-12: images of another registry are streamed across, each registry sees its own login alone', () =>
    withRegistry({ options: userOnly('reader', 'from-secret') }, (from) =>
      withRegistry({ options: userOnly('writer', 'to-secret') }, async (to) => {
        const images = seedDebian(from);
        const logins = {
          auths: {
            ...loginFor(from.host, 'reader', 'from-secret').auths,
            ...loginFor(to.host, 'writer', 'to-secret').auths,
          },
        };
        const sources = sourcesOf(images).map((source) => `${from.host}/${source}`);
        const words = ['publish', `${to.host}/debian/debian:bullseye`, ...sources, '--debug'];
        const finished = await program([from, to], words, { logins });
        const { entries } = published(to, { ...finished });
        expect(entries.map(({ digest }) => digest)).toEqual(images.map(({ image }) => image));
        expect(requests(to, 'mount')).toEqual([]);
        expect(writes(from)).toEqual([]);
        const reads = requests(from, 'blobGet').filter(({ status }) => status === 200);
        expect(new Set(reads.map(({ reference }) => reference)).size).toBe(reads.length);
        for (const [registry, name] of [
          [from, 'reader:from-secret'],
          [to, 'writer:to-secret'],
        ] as const) {
          const own = `Basic ${Buffer.from(name).toString('base64')}`;
          const shown = new Set(registry.journal.map(({ headers }) => headers['authorization']));
          shown.delete(undefined);
          expect(shown).toEqual(new Set([own]));
        }
        expect(finished.stderr).not.toMatch(/from-secret|to-secret/);
      }),
    ));
});

function userOnly(name: string, password: string) {
  const auth = { scheme: 'basic', anonymousPull: false } as const;
  return { users: [{ name, password }], changes: { auth } };
}
