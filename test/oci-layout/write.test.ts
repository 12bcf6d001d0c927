import { chmod, mkdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { type BuiltManifest, makeImage, makeIndex } from '../helpers/images.ts';
import { asOrdinaryUser } from '../helpers/other-user.ts';
import { withDirectory } from '../helpers/registry.ts';
import {
  blobFile,
  CALM,
  failureOf,
  filesOf,
  IMAGE_NAME,
  indexFile,
  layLayout,
  openLayout,
  put,
  putImage,
  REF_NAME,
  toPut,
} from './fixture.ts';

const ONE = makeImage('one');
const TWO = makeImage('two');
const BYTES = Buffer.alloc(300_000, 'layer');
const BLOB = { digest: digestOf(BYTES), size: BYTES.length };

function entry(image: BuiltManifest, tag: string) {
  const { mediaType, digest, size } = image.descriptor;
  return { mediaType, digest, size, annotations: { [REF_NAME]: tag } };
}

/** Names that only work under way has. */
async function temporaries(folder: string): Promise<readonly string[]> {
  return (await filesOf(folder)).filter((name) => /\.tmp-|\.lock|\.new\.|\.dead\./.test(name));
}

describe('a layout that is written', () => {
  it('is made with the first blob, complete, and in a folder whose parent is there', () =>
    withDirectory(async (folder) => {
      const out = join(folder, 'out');
      const client = openLayout(out);
      await client.openUpload('', BLOB.digest, CALM);
      expect(await filesOf(folder)).toEqual([]);
      expect(await put(client, BLOB, BYTES)).toEqual({ kind: 'stored', bytesSent: BYTES.length });
      const [algorithm, hex] = BLOB.digest.split(':');
      expect(await filesOf(out)).toEqual(
        ['blobs', `blobs/${algorithm}`, `blobs/${algorithm}/${hex}`, 'index.json', 'oci-layout'].sort(),
      );
      expect(JSON.parse(await readFile(join(out, 'oci-layout'), 'utf8'))).toEqual({ imageLayoutVersion: '1.0.0' });
      expect(await indexFile(out)).toEqual({
        schemaVersion: 2,
        mediaType: 'application/vnd.oci.image.index.v1+json',
        manifests: [],
      });
    }));

  it('is not made where its parent is missing', () =>
    withDirectory(async (folder) => {
      const answer = await put(openLayout(join(folder, 'a', 'b')), BLOB, BYTES);
      expect(answer).toMatchObject({ kind: 'refused', error: { code: 'FILE_FAILED', exitCode: 8, side: 'target' } });
      if (answer.kind !== 'refused') return;
      expect(answer.error.message).toContain(`there is no folder ${join(folder, 'a')}`);
      expect(answer.error.hint).toBe(`Make it: mkdir -p ${join(folder, 'a')}`);
      expect(await filesOf(folder)).toEqual([]);
    }));

  it('is not made of a folder that holds something else', () =>
    withDirectory(async (folder) => {
      await writeFile(join(folder, 'package.json'), '{}');
      const client = openLayout(folder);
      expect(await failureOf(put(client, BLOB, BYTES))).toMatchObject({ code: 'MANIFEST_UNSUPPORTED' });
      expect(await failureOf(client.putManifest('', 'latest', toPut(ONE), CALM))).toMatchObject({ exitCode: 2 });
      expect(await filesOf(folder)).toEqual(['package.json']);
    }));

  it('may be made once more after a folder could not be', () =>
    withDirectory(async (folder) => {
      const client = openLayout(join(folder, 'a', 'b'));
      expect((await put(client, BLOB, BYTES)).kind).toBe('refused');
      await mkdir(join(folder, 'a'));
      expect((await put(client, BLOB, BYTES)).kind).toBe('stored');
    }));

  it('is open to whom new files are open to', () =>
    withDirectory(async (folder) => {
      await putImage(openLayout(folder), ONE, '1.0');
      await writeFile(join(folder, 'probe'), '');
      const { mode } = await stat(join(folder, 'probe'));
      for (const name of ['index.json', 'oci-layout', `blobs/sha256/${ONE.descriptor.digest.slice(7)}`]) {
        expect((await stat(join(folder, name))).mode, name).toBe(mode);
      }
    }));
});

describe('a blob', () => {
  it('of a stream is written with its progress, and bears its name when all of it is there', () =>
    withDirectory(async (folder) => {
      const client = openLayout(folder);
      const seen: number[] = [];
      const present: string[] = [];
      async function* halves(): AsyncGenerator<Buffer> {
        yield BYTES.subarray(0, 100_000);
        present.push((await client.hasBlob('', BLOB.digest, CALM)).kind);
        yield BYTES.subarray(100_000);
      }
      const progress = (sent: number) => seen.push(sent);
      const answer = await put(client, BLOB, Readable.from(halves(), { objectMode: false }), { progress });
      expect(answer).toEqual({ kind: 'stored', bytesSent: BYTES.length });
      expect(present).toEqual(['absent']);
      expect(seen).toEqual([100_000, 300_000]);
      expect((await readFile(blobFile(folder, BLOB.digest))).equals(BYTES)).toBe(true);
      expect(await temporaries(folder)).toEqual([]);
    }));

  it('by sha512 has a folder of its own', () =>
    withDirectory(async (folder) => {
      const blob = { digest: digestOf(BYTES, 'sha512'), size: BYTES.length };
      await put(openLayout(folder), blob, BYTES);
      expect((await readFile(blobFile(folder, blob.digest))).equals(BYTES)).toBe(true);
    }));

  it.each([
    ['too many bytes', Buffer.concat([BYTES, BYTES]), 'SIZE_MISMATCH'],
    ['too few bytes', BYTES.subarray(1), 'SIZE_MISMATCH'],
    ['other bytes', Buffer.alloc(BYTES.length), 'DIGEST_MISMATCH'],
  ])('of %s is corrupt, and nothing is kept', (_title, bytes, code) =>
    withDirectory(async (folder) => {
      const client = openLayout(folder);
      for (const body of [bytes, Readable.from([bytes], { objectMode: false })]) {
        expect(await put(client, BLOB, body)).toMatchObject({ kind: 'corrupt', error: { code, side: 'source' } });
        expect(await client.hasBlob('', BLOB.digest, CALM)).toEqual({ kind: 'absent' });
        expect(await temporaries(folder)).toEqual([]);
      }
    }),
  );

  it('whose source breaks off is broken, and nothing is kept', () =>
    withDirectory(async (folder) => {
      const client = openLayout(folder);
      async function* broken(): AsyncGenerator<Buffer> {
        yield BYTES.subarray(0, 1000);
        throw new Error('reset');
      }
      const answer = await put(client, BLOB, Readable.from(broken(), { objectMode: false }));
      expect(answer).toMatchObject({ kind: 'broken', error: { code: 'NETWORK_FAILED', side: 'source' } });
      expect(await temporaries(folder)).toEqual([]);
    }));

  it('whose run stops ends in its reason, also while the source is silent', () =>
    withDirectory(async (folder) => {
      const client = openLayout(folder);
      const stop = new AbortController();
      const reason = new Error('enough');
      const silent = new Readable({ read: () => undefined });
      silent.push(BYTES.subarray(0, 1000));
      const session = await client.openUpload('', BLOB.digest, CALM);
      const progress = () => stop.abort(reason);
      const written = client.upload(session, BLOB, silent, { signal: stop.signal, progress });
      await expect(written).rejects.toBe(reason);
      await client.cancelUpload(session);
      expect(silent.destroyed).toBe(true);
      expect(await temporaries(folder)).toEqual([]);
    }));

  it('that the disk does not take is refused for good', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, []);
      await chmod(folder, 0o755);
      await asOrdinaryUser(async () => {
        const answer = await put(openLayout(folder), BLOB, Readable.from([BYTES], { objectMode: false }));
        expect(answer).toMatchObject({ kind: 'refused', error: { code: 'FILE_FAILED', exitCode: 8, side: 'target' } });
        if (answer.kind === 'refused') expect(answer.error.message).toContain('(permission denied)');
      });
    }));

  it('is not written through a link that leaves the layout', () =>
    withDirectory(async (folder) => {
      const inside = join(folder, 'layout');
      await layLayout(inside, []);
      await rm(join(inside, 'blobs', 'sha256'), { recursive: true });
      await mkdir(join(folder, 'elsewhere'));
      await symlink(join(folder, 'elsewhere'), join(inside, 'blobs', 'sha256'));
      const answer = await put(openLayout(inside), BLOB, BYTES);
      expect(answer).toMatchObject({ kind: 'refused', error: { code: 'FILE_FAILED' } });
      expect(await filesOf(join(folder, 'elsewhere'))).toEqual([]);
    }));

  it('in the place of one that is damaged mends it', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, []);
      await writeFile(blobFile(folder, BLOB.digest), 'half');
      expect((await put(openLayout(folder), BLOB, BYTES)).kind).toBe('stored');
      expect((await readFile(blobFile(folder, BLOB.digest))).equals(BYTES)).toBe(true);
    }));

  it('is never mounted, resumed or deleted', async () => {
    const client = openLayout('/nowhere');
    expect(client.mounting).toBe('never');
    expect((await client.mountBlob('', BLOB.digest, '', CALM)).kind).toBe('refused');
    expect((await client.mountAnyBlob('', BLOB.digest, CALM)).kind).toBe('refused');
    expect(await client.deleteBlob('', BLOB.digest, CALM)).toBe('refused');
    expect(await client.deleteManifest('', BLOB.digest, CALM)).toBe('refused');
  });
});

describe('a manifest', () => {
  it('by its digest is a blob without an entry, by a tag it has one', () =>
    withDirectory(async (folder) => {
      const client = openLayout(folder);
      await client.putManifest('', ONE.descriptor.digest, toPut(ONE), CALM);
      expect((await indexFile(folder)).manifests).toEqual([]);
      expect(await client.putManifest('', '1.0', toPut(ONE), CALM)).toEqual({ kind: 'stored' });
      expect((await indexFile(folder)).manifests).toEqual([entry(ONE, '1.0')]);
      expect((await readFile(blobFile(folder, ONE.descriptor.digest))).equals(ONE.bytes)).toBe(true);
      expect(await temporaries(folder)).toEqual([]);
    }));

  it('without a tag is latest', () =>
    withDirectory(async (folder) => {
      await openLayout(folder).putManifest('', '', toPut(ONE), CALM);
      expect((await indexFile(folder)).manifests).toEqual([entry(ONE, 'latest')]);
    }));

  it('takes the place of what had its tag; all else stays as it was', () =>
    withDirectory(async (folder) => {
      const odd = { mediaType: 'x', digest: 'blake3:00', size: 12345678901234567890n, why: ['?'] };
      const named = { ...TWO.descriptor, annotations: { [REF_NAME]: 'localhost/app:1.0', [IMAGE_NAME]: 'x' } };
      const text = JSON.stringify({
        schemaVersion: 2,
        custom: { deep: [1.5] },
        manifests: ['ODD', entry(TWO, '1.0'), named, entry(TWO, '1.0'), entry(TWO, '2.0')],
        annotations: { a: 'b' },
      }).replace('"ODD"', JSON.stringify({ ...odd, size: 0 }).replace('"size":0', `"size":${odd.size}`));
      await layLayout(folder, [{ manifest: TWO }]);
      await writeFile(join(folder, 'index.json'), text);
      await openLayout(folder).putManifest('', '1.0', toPut(ONE), CALM);
      const after = await readFile(join(folder, 'index.json'), 'utf8');
      expect(after).toContain('12345678901234567890');
      const { manifests, ...rest } = JSON.parse(after);
      expect(rest).toEqual({ schemaVersion: 2, custom: { deep: [1.5] }, annotations: { a: 'b' } });
      expect(manifests.slice(1)).toEqual([entry(ONE, '1.0'), named, entry(TWO, '2.0')]);
    }));

  it('many at once all get their entries, by one client and by several', () =>
    withDirectory(async (folder) => {
      const clients = [openLayout(folder), openLayout(folder), openLayout(folder)];
      const tags = Array.from({ length: 30 }, (_, number) => `v${number}`);
      await Promise.all(
        tags.map((tag, number) => clients[number % 3]?.putManifest('', tag, toPut(number % 2 ? ONE : TWO), CALM)),
      );
      const names = (await indexFile(folder)).manifests.map((one) => Object(one['annotations'])[REF_NAME]);
      expect(names.sort()).toEqual(tags.sort());
      expect(await temporaries(folder)).toEqual([]);
    }));

  it('that is damaged is mended', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: ONE, tag: '1.0' }]);
      await writeFile(blobFile(folder, ONE.descriptor.digest), Buffer.alloc(ONE.bytes.length));
      await openLayout(folder).putManifest('', '1.0', toPut(ONE), CALM);
      expect((await readFile(blobFile(folder, ONE.descriptor.digest))).equals(ONE.bytes)).toBe(true);
    }));

  it('that the disk does not take is told with the path and what helps', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: ONE }]);
      await chmod(folder, 0o755);
      await asOrdinaryUser(async () => {
        const error = await failureOf(openLayout(folder).putManifest('', '1.0', toPut(ONE), CALM));
        expect(error).toMatchObject({ code: 'FILE_FAILED', exitCode: 8, side: 'target' });
        expect(error.message).toBe(`cannot write ${join(folder, 'index.json')} (permission denied)`);
        expect(error.hint).toContain('Give the user');
      });
      expect((await indexFile(folder)).manifests).toHaveLength(1);
    }));

  it('of an index is put whole, and read back by the verbs', () =>
    withDirectory(async (folder) => {
      const index = makeIndex([{ manifest: ONE }, { manifest: TWO }]);
      await putImage(openLayout(folder), index, 'both');
      const reader = openLayout(folder);
      expect((await reader.getManifest('', 'both', CALM)).kind).toBe('found');
      for (const image of [ONE, TWO, index]) {
        expect((await reader.hasManifest('', image.descriptor.digest, CALM)).kind).toBe('present');
      }
    }));
});

describe('what killed processes leave', () => {
  it('is swept when nobody has written to it for an hour', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, []);
      const old = join(folder, 'blobs', 'sha256', '.tmp-old');
      const fresh = join(folder, 'blobs', 'sha256', '.tmp-fresh');
      for (const file of [old, fresh]) await writeFile(file, 'half a layer');
      const then = new Date(Date.now() - 61 * 60 * 1000);
      await utimes(old, then, then);
      await openLayout(folder).putManifest('', '1.0', toPut(ONE), CALM);
      expect(await temporaries(folder)).toEqual(['blobs/sha256/.tmp-fresh']);
    }));

  it.each([
    ['nothing but an empty folder', []],
    ['blobs', ['blobs/']],
    ['an index', ['blobs/', 'index.json']],
    ['a marker under another name', ['blobs/', 'index.json', '.tmp-1']],
    ['the lock of somebody who has ended', ['blobs/', 'index.json.lock/', 'index.json.new.1/']],
  ])('of a layout in the making is completed: %s', (_title, names) =>
    withDirectory(async (folder) => {
      for (const name of names) {
        if (name.endsWith('/')) await mkdir(join(folder, name));
        else await writeFile(join(folder, name), name === 'index.json' ? '{"schemaVersion":2,"manifests":[]}' : '');
      }
      if (names.includes('index.json.lock/')) {
        const owner = { pid: 2 ** 22 + 1, host: 'here', epoch: Date.now() };
        await writeFile(join(folder, 'index.json.lock', 'owner-1'), JSON.stringify(owner));
      }
      await putImage(openLayout(folder, { isAlive: () => false }), ONE, '1.0');
      expect((await indexFile(folder)).manifests).toEqual([entry(ONE, '1.0')]);
    }),
  );
});
