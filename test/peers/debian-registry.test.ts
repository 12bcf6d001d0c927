import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startDebianRegistry } from '../helpers/external-registry.ts';
import { isWrite } from '../helpers/proxy.ts';
import { type Image, makeIndex } from './images.ts';
import { withPeers } from './lane.ts';
import { lastWords, type Published } from './publish-command.ts';
import { ask, digestOfTag, missingIn } from './registry-access.ts';
import { type Access, ATTESTED, SOURCES, type Stage, startStage } from './registry-stage.ts';

const IMAGES = SOURCES.flatMap((source) => source.images);
const INDEX = makeIndex(IMAGES.map(({ entry }) => entry));
const TARGETS = ['streamed', 'attested', 'watched', 'tokens'].map((name) => `debian/${name}`);

/** What the main job (registries.test.ts) does not ask: damage, attestations, onlookers, tokens, a wrong password. */
withPeers(['docker-registry', 'openssl'], "Debian's docker-registry", () => {
  describe.each<Access>(['anonymous', 'Basic', 'token'])('%s', (access) => {
    let stage: Stage;
    beforeAll(async () => {
      stage = await startStage(startDebianRegistry, access, TARGETS);
    });
    afterAll(() => stage?.stop());
    beforeEach(() => stage.forget());

    it('brings back a child that was deleted, without a blob and without moving the tag', async () => {
      const { exchanges } = stage.refusing;
      const [{ manifest }] = IMAGES as [Image];
      expect((await stage.publish(stage.refusing, 'debian/streamed')).exitCode).toBe(0);
      const deleted = await ask(stage.inside, 'DELETE', `/v2/debian/streamed/manifests/${manifest.digest}`);
      expect(deleted.status).toBe(202);
      expect(await missingIn(stage.inside, 'debian/streamed', IMAGES)).toEqual([`manifest ${manifest.digest}`]);

      stage.forget();
      const done = await stage.publish(stage.refusing, 'debian/streamed');
      await expectPublished(stage, done, 'debian/streamed');
      expect(exchanges().filter(({ path, sent }) => path.includes('/blobs/uploads/') && sent > 0)).toEqual([]);
      const puts = exchanges().filter(({ method, path }) => method === 'PUT' && path.includes('/manifests/'));
      expect(puts.map(({ path }) => path)).toEqual([`/v2/debian/streamed/manifests/${manifest.digest}`]);
    });

    it('takes attested indexes apart and keeps each attestation beside its image', async () => {
      const done = await stage.publish(stage.refusing, 'debian/attested', { sources: ATTESTED });
      const images = ATTESTED.flatMap((source) => source.images);
      const index = makeIndex(images.map(({ entry }) => entry));
      await expectPublished(stage, done, 'debian/attested', images, index);
      const kinds = done.report?.lists[0]?.images.map(({ kind }) => kind);
      expect(kinds).toEqual(ATTESTED.flatMap(() => ['image', 'attestation']));
    });

    it('never shows a tag that is not the old or the whole new index', async () => {
      const seen = await watchTag(stage.inside, 'debian/watched', async () => {
        const done = await stage.publish(stage.refusing, 'debian/watched', { sources: SOURCES.slice(0, 3) });
        expect(done.exitCode).toBe(0);
        const more = await stage.publish(stage.refusing, 'debian/watched', { sources: SOURCES.slice(0, 5) });
        expect(more.exitCode).toBe(0);
      });
      const [three, five] = [3, 5].map((count) => makeIndex(IMAGES.slice(0, count).map(({ entry }) => entry)).digest);
      expect(seen).toEqual([three, five]);
    });

    if (access === 'token') {
      it('asks for each token once, and for one repository in each scope', async () => {
        const done = await stage.publish(stage.accepting, 'debian/tokens');
        expect(done.exitCode).toBe(0);
        const asked = stage.tokens?.requests.slice(stage.tokensBefore()) ?? [];
        expect(asked.map(({ status }) => status)).toEqual(asked.map(() => 200));
        const scopes = asked.map((request) => [...request.scopes].sort().join(' '));
        expect(new Set(scopes).size).toBe(scopes.length);
        // One for each source, one for the target, and at most one more for each pair that mounts.
        expect(scopes.length).toBeLessThanOrEqual(17);
      });
    }

    if (access !== 'anonymous') {
      it('ends with 3 and writes nothing when the password is wrong', async () => {
        const done = await stage.publish(stage.accepting, 'debian/denied', { password: 'not-the-password' });
        expect(done).toMatchObject({ exitCode: 3, stdout: '' });
        expect(stage.accepting.exchanges().filter(isWrite)).toEqual([]);
      });
    }
  });
});

async function expectPublished(
  stage: Stage,
  done: Published,
  repository: string,
  images: readonly Image[] = IMAGES,
  index = INDEX,
): Promise<void> {
  expect(done, lastWords(done)).toMatchObject({ exitCode: 0, stdout: `${index.digest}\n` });
  expect(await digestOfTag(stage.inside, repository, 'bullseye')).toBe(index.digest);
  expect(await missingIn(stage.inside, repository, images)).toEqual([]);
}

/**
 * The digests that the tag held, in order and without repetitions, while `work` went on. Answers without one do not
 * count: distribution 2.8 writes the link of a tag in place, and who reads in that moment is told that there is none.
 */
async function watchTag(host: string, repository: string, work: () => Promise<void>): Promise<readonly string[]> {
  const seen: string[] = [];
  let over = false;
  const look = async () => {
    const digest = await digestOfTag(host, repository, 'bullseye');
    if (digest !== undefined && seen.at(-1) !== digest) seen.push(digest);
  };
  const watching = (async () => {
    while (!over) await look();
  })();
  await work().finally(() => {
    over = true;
  });
  await watching;
  await look();
  return seen;
}
