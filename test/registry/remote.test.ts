import { describe, expect, test } from 'vitest';
import { Secret } from '../../src/http/credential.ts';
import { MEDIA_TYPES } from '../../src/model/descriptor.ts';
import { type Digest, digestOf } from '../../src/model/digest.ts';
import type { BlobIdentity, PutAnswer, RegistryClient } from '../../src/registry/client.ts';
import {
  makeImage,
  makeIndex,
  PROFILES,
  type ProfileChanges,
  putBuilt,
  type RegistryOptions,
  type RunningRegistry,
  startRegistry,
} from '../../src/registry-server/index.ts';
import { selfSigned } from '../http/certificate.ts';
import { blobOf, failure, onClose, verb, world } from './fixture.ts';

/** The user that the embedded registry knows. */
const ROBOT = { kind: 'basic', username: 'robot', password: new Secret('secret') } as const;
const TARGET = 'debian/debian';
const SOURCE = 'debian/arm64';
const IMAGE = makeImage('arm64', { platform: { os: 'linux', architecture: 'arm64' } });
const INDEX = makeIndex([{ manifest: IMAGE, platform: { os: 'linux', architecture: 'arm64' } }]);

async function start(options: RegistryOptions): Promise<RunningRegistry> {
  const registry = await startRegistry(options);
  onClose(() => registry.close());
  putBuilt(registry, SOURCE, IMAGE, 'bullseye');
  registry.createRepository(TARGET);
  return registry;
}

/** What became of a blob, by nothing but the verbs. */
async function place(client: RegistryClient, blob: BlobIdentity): Promise<string> {
  const mount = await client.mountBlob(TARGET, blob.digest, SOURCE, verb());
  if (mount.kind === 'mounted') return 'mounted';
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const session =
      mount.kind === 'session' && attempt === 0 ? mount.session : await client.openUpload(TARGET, blob.digest, verb());
    const body = await client.openBlob(SOURCE, blob, verb());
    const answer = await client.upload(session, blob, body, verb());
    if (answer.kind === 'stored') return mount.kind;
    if (answer.kind === 'otherwise') continue;
    if (answer.kind !== 'broken') return answer.error.message;
    if ((await client.hasBlob(TARGET, blob.digest, verb())).kind === 'present') return mount.kind;
  }
  return 'given up';
}

/** They take no write at all. */
const READ_ONLY: readonly string[] = ['distribution-mirror', 'harbor-proxy'];

describe.each(PROFILES.map(({ name }) => name).filter((name) => !READ_ONLY.includes(name)))(
  'all verbs against %s',
  (profile) => {
    test('an image and an index come to be in the target, byte for byte', async () => {
      let ahead = 0;
      const registry = await start({ profile, now: () => Date.now() + ahead });
      const { client: clientFor } = world(ROBOT);
      const client = clientFor(registry.host);
      client.announce([
        { repository: TARGET, access: 'push', mountFrom: [SOURCE] },
        { repository: SOURCE, access: 'pull' },
      ]);
      expect((await client.getManifest(TARGET, 'bullseye', verb())).kind).toMatch(/absent|unknown/);

      const source = await client.getManifest(SOURCE, 'bullseye', verb());
      if (source.kind !== 'found') throw source.error;
      expect(source.manifest.bytes).toEqual(IMAGE.bytes);
      expect(source.manifest.digest).toBe(IMAGE.descriptor.digest);
      const config = IMAGE.blobs[0]?.descriptor;
      if (config !== undefined) {
        const bytes = await client.readBlob(SOURCE, config, verb());
        expect(digestOf(bytes)).toBe(config.digest);
      }
      for (const { descriptor } of IMAGE.blobs) {
        expect(await place(client, descriptor)).toMatch(/^(?:mounted|session|refused)$/);
      }

      const putPatiently = async (
        reference: string,
        digest: Digest,
        bytes: Buffer,
        mediaType: string,
      ): Promise<PutAnswer> => {
        const first = await client.putManifest(TARGET, reference, { bytes, digest, mediaType }, verb());
        if (first.kind !== 'incomplete') return first;
        // What was just written shows late (Nexus).
        ahead += 5_000;
        return client.putManifest(TARGET, reference, { bytes, digest, mediaType }, verb());
      };
      for (const [reference, built] of [
        [IMAGE.descriptor.digest, IMAGE],
        ['bullseye', INDEX],
      ] as const) {
        const { digest, mediaType } = built.descriptor;
        expect(await putPatiently(reference, digest, built.bytes, mediaType)).toEqual({ kind: 'stored' });
      }
      ahead += 5_000;
      const published = await client.getManifest(TARGET, 'bullseye', verb());
      expect(published).toMatchObject({
        kind: 'found',
        manifest: { bytes: INDEX.bytes, digest: INDEX.descriptor.digest },
      });
      expect(await client.hasManifest(TARGET, IMAGE.descriptor.digest, verb())).toMatchObject({ kind: 'present' });
      for (const { descriptor } of IMAGE.blobs) {
        expect(await client.hasBlob(TARGET, descriptor.digest, verb())).toMatchObject({ kind: 'present' });
      }
      // Artifactory shows, and takes, what another repository has: then it is not linked here.
      if (!profile.startsWith('artifactory')) expect(registry.missingFrom(TARGET, 'bullseye')).toEqual([]);
      expect(registry.openSessions()).toBe(0);
      expectCleanTraffic(registry);
    });
  },
);

/** What no request may look like, whatever the registry. */
function expectCleanTraffic(registry: RunningRegistry): void {
  for (const entry of registry.journal) {
    expect(entry.headers['transfer-encoding']).toBeUndefined();
    expect(entry.headers['cookie']).toBeUndefined();
    if (['POST', 'PUT', 'PATCH'].includes(entry.method)) expect(entry.headers['content-length']).toMatch(/^\d+$/);
    if (entry.listener === 'storage') expect(entry.authorization).toBe('none');
  }
}

describe('one habit at a time', () => {
  const copied = async (changes: ProfileChanges, options: RegistryOptions = {}) => {
    const registry = await start({ profile: changes, ...options });
    const client = world(ROBOT).client(registry.host);
    const layer = IMAGE.blobs.at(-1)?.descriptor;
    if (layer === undefined) throw new Error('the image has no layer');
    const how = await place(client, layer);
    expectCleanTraffic(registry);
    return { how, registry, client, layer, stored: registry.hasBlob(TARGET, layer.digest) };
  };

  test.each(['absolute', 'relative', 'relativeNoQuery', 'otherPath', 'otherHost'] as const)(
    'Location %s, with a signed state in its query',
    async (location) => {
      const { how, stored, registry } = await copied({
        mount: { mode: 'ignore' },
        upload: { location, state: '_state' },
      });
      expect({ how, stored }).toEqual({ how: 'session', stored: true });
      expect(
        registry.journal.filter(({ operation }) => operation === 'uploadPost' || operation === 'mount').length,
      ).toBeLessThan(2);
    },
  );

  test.each(['basic', 'bearer'] as const)('Location on another host gets no %s login', async (scheme) => {
    const { stored, registry } = await copied({
      mount: { mode: 'ignore' },
      upload: { location: 'otherHost' },
      auth: { scheme },
    });
    expect(stored).toBe(true);
    const elsewhere = registry.journal.filter(({ listener }) => listener === 'storage');
    expect(elsewhere.length).toBeGreaterThan(0);
    expect(elsewhere.every(({ authorization }) => authorization === 'none')).toBe(true);
  });

  test.each(['off(400)', 'off(401)', 'off(403)', 'off(404)', 'off(405)', 'off(501)'] as const)(
    'mount %s is a refusal, and the copy goes through',
    async (mode) => {
      expect(await copied({ mount: { mode } })).toMatchObject({ how: 'refused', stored: true });
    },
  );

  test('a commit whose answer is lost is broken, and the blob is there', async () => {
    expect(await copied({ mount: { mode: 'ignore' }, upload: { commit: 'loseAnswer' } })).toMatchObject({
      how: 'session',
      stored: true,
    });
  });

  test('blobs that are served from elsewhere are fetched there without the login', async () => {
    const { stored } = await copied({
      mount: { mode: 'ignore' },
      blob: { redirect: '307rejectsAuth400' },
      auth: { scheme: 'basic', anonymousPull: false },
    });
    expect(stored).toBe(true);
  });

  test('an index with a child that is missing is incomplete', async () => {
    const registry = await start({ profile: 'spec' });
    const client = world(ROBOT).client(registry.host);
    const { digest, mediaType } = INDEX.descriptor;
    const answer = await client.putManifest(TARGET, 'v1', { bytes: INDEX.bytes, digest, mediaType }, verb());
    expect(answer).toMatchObject({ kind: 'incomplete', error: { code: 'MANIFEST_REFUSED' } });
  });

  test.each(['400evenSame', '409', '412', '400redeploy'] as const)('immutable tags, %s', async (immutable) => {
    const registry = await start({ profile: { manifest: { immutable } } });
    const client = world(ROBOT).client(registry.host);
    putBuilt(registry, TARGET, IMAGE, 'v1');
    putBuilt(registry, TARGET, INDEX);
    const { digest, mediaType } = INDEX.descriptor;
    const answer = await client.putManifest(TARGET, 'v1', { bytes: INDEX.bytes, digest, mediaType }, verb());
    expect(answer).toMatchObject({ kind: 'immutable', error: { code: 'TAG_IMMUTABLE', exitCode: 7 } });
  });

  test('a Docker type that is refused is named', async () => {
    const registry = await start({ profile: { manifest: { types: 'ociOnly415' } } });
    const image = makeImage('amd64', { docker: true });
    putBuilt(registry, TARGET, image);
    const { digest, mediaType } = image.descriptor;
    const answer = await world(ROBOT)
      .client(registry.host)
      .putManifest(TARGET, digest, { bytes: image.bytes, digest, mediaType }, verb());
    expect(answer).toMatchObject({ kind: 'refused', error: { code: 'MANIFEST_REFUSED', status: 415 } });
    expect(answer.kind === 'refused' && answer.error.message).toContain(MEDIA_TYPES.dockerManifest);
  });

  test('sha512 blobs go the same way', async () => {
    const registry = await start({ profile: 'spec' });
    const client = world(ROBOT).client(registry.host);
    const { bytes, size } = blobOf(50_000);
    const digest = digestOf(bytes, 'sha512');
    const session = await client.openUpload(TARGET, digest, verb());
    expect(await client.upload(session, { digest, size }, bytes, verb())).toMatchObject({ kind: 'stored' });
    expect(digestOf(await client.readBlob(TARGET, { digest, size }, verb()), 'sha512')).toBe(digest);
    expect(registry.journal.find(({ method }) => method === 'POST')?.query).toBe('digest-algorithm=sha512');
  });

  test('a session that is cancelled is gone', async () => {
    const registry = await start({ profile: 'spec' });
    const client = world(ROBOT).client(registry.host);
    const session = await client.openUpload(TARGET, digestOf(Buffer.from('x')), verb());
    expect(registry.openSessions()).toBe(1);
    await client.cancelUpload(session);
    expect(registry.openSessions()).toBe(0);
  });

  test('a byte that a source garbles never becomes a blob of the target', async () => {
    const registry = await start({ profile: { mount: { mode: 'ignore' } } });
    const client = world(ROBOT).client(registry.host);
    const layer = IMAGE.blobs.at(-1)?.descriptor;
    if (layer === undefined) throw new Error('the image has no layer');
    registry.addFault({ operation: 'blobGet', action: { kind: 'corrupt' } });
    const session = await client.openUpload(TARGET, layer.digest, verb());
    const body = await client.openBlob(SOURCE, layer, verb());
    expect(await client.upload(session, layer, body, verb())).toMatchObject({ kind: 'corrupt' });
    expect(registry.hasBlob(TARGET, layer.digest)).toBe(false);
    expect(registry.openSessions()).toBe(0);
  });

  test('a registry behind TLS that calls itself http is asked over https all the same', async () => {
    const tls = selfSigned(['127.0.0.1']);
    const registry = await start({ profile: { mount: { mode: 'ignore' }, upload: { location: 'httpScheme' } }, tls });
    const client = world(ROBOT, { ca: [tls.cert] }).client(registry.host);
    const layer = IMAGE.blobs.at(-1)?.descriptor;
    if (layer === undefined) throw new Error('the image has no layer');
    expect(await place(client, layer)).toBe('session');
    expect(registry.hasBlob(TARGET, layer.digest)).toBe(true);
  });

  test('without a login: the full name, and that none was found (AUT-11)', async () => {
    const registry = await start({ profile: { auth: { scheme: 'bearer' } } });
    const error = await failure(
      world()
        .client(registry.host)
        .openUpload('acme/app', digestOf(Buffer.from('x')), verb()),
    );
    expect(error).toMatchObject({ exitCode: 3 });
    expect(error.message).toContain(`${registry.host}/acme/app`);
    expect(error.message).toContain('no login was found');
  });
});
