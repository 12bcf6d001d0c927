import { execFileSync } from 'node:child_process';
import { getEventListeners } from 'node:events';
import { mkdir, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { makeImage, makeIndex } from '../helpers/images.ts';
import { asOrdinaryUser } from '../helpers/other-user.ts';
import { withDirectory } from '../helpers/registry.ts';
import {
  blobFile,
  bytesOf,
  CALM,
  failureOf,
  IMAGE_NAME,
  layLayout,
  openLayout,
  placesOf,
  REF_NAME,
} from './fixture.ts';

const ONE = makeImage('one');
const TWO = makeImage('two');
const LAYER = ONE.blobs[1]?.descriptor ?? ONE.descriptor;
const LAYER_BYTES = ONE.blobs[1]?.content;
const CONFIG = ONE.blobs[0]?.descriptor ?? ONE.descriptor;
const MISSING = digestOf(Buffer.from('missing'));

/** What the tag came to: the digest, or the message. */
async function named(folder: string, tag: string): Promise<string> {
  const answer = await openLayout(folder).getManifest('', tag, CALM);
  return answer.kind === 'found' ? answer.manifest.digest : answer.error.message;
}

describe('a manifest of a layout', () => {
  it('is found by the tag of its entry, with the type that the entry says', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [
        { manifest: ONE, tag: '1.0' },
        { manifest: TWO, tag: '2.0' },
      ]);
      expect(await openLayout(folder).getManifest('', '1.0', CALM)).toEqual({
        kind: 'found',
        manifest: { bytes: ONE.bytes, digest: ONE.descriptor.digest, contentType: ONE.descriptor.mediaType },
      });
    }));

  it.each([
    ['docker and containerd name it in full beside', { [IMAGE_NAME]: 'docker.io/acme/app:1.0', [REF_NAME]: '2.0' }],
    ['podman and crane name it in full', { [REF_NAME]: 'localhost:5000/acme/app:1.0' }],
  ])('is found by the tag of its name: %s', (_title, annotations) =>
    withDirectory(async (folder) => {
      await layLayout(folder, [
        { manifest: ONE, annotations },
        { manifest: TWO, tag: 'other' },
      ]);
      expect(await named(folder, '1.0')).toBe(ONE.descriptor.digest);
      expect(await named(folder, '5000/acme/app')).toContain('is not there');
    }),
  );

  it('is the one whose tag it is before any whose name ends so', () =>
    withDirectory(async (folder) => {
      const annotations = { [REF_NAME]: 'localhost/app:1.0' };
      await layLayout(folder, [
        { manifest: TWO, annotations },
        { manifest: ONE, tag: '1.0' },
      ]);
      expect(await named(folder, '1.0')).toBe(ONE.descriptor.digest);
    }));

  it('needs no name where it is the only one, however often it is listed', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: ONE }, { manifest: ONE, tag: '1.0' }]);
      expect(await named(folder, '')).toBe(ONE.descriptor.digest);
      expect(await named(folder, 'latest')).toContain(`oci:${folder}:latest is not there: it holds`);
    }));

  it('is latest without a name, where several are there', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [
        { manifest: ONE, tag: '1.0' },
        { manifest: TWO, tag: 'latest' },
      ]);
      expect(await named(folder, '')).toBe(TWO.descriptor.digest);
    }));

  it('is not guessed among several: all are named', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: ONE, tag: '1.0' }, { manifest: TWO }]);
      const error = await failureOf(openLayout(folder).getManifest('', '', CALM));
      expect(error).toMatchObject({ code: 'USAGE_INVALID', exitCode: 2 });
      expect(error.message).toBe(
        `oci:${folder} could be several manifests: 1.0 (${ONE.descriptor.digest}), ${TWO.descriptor.digest}`,
      );
      expect(error.hint).toContain(`oci:${folder}@${ONE.descriptor.digest}`);
    }));

  it('is not guessed among several of one tag', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [
        { manifest: ONE, tag: '1.0' },
        { manifest: TWO, tag: '1.0' },
      ]);
      expect((await failureOf(openLayout(folder).getManifest('', '1.0', CALM))).exitCode).toBe(2);
    }));

  it('is found by its digest, also where no entry lists it', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: makeIndex([{ manifest: ONE }]), tag: '1.0' }]);
      expect(await openLayout(folder).getManifest('', ONE.descriptor.digest, CALM)).toEqual({
        kind: 'found',
        manifest: { bytes: ONE.bytes, digest: ONE.descriptor.digest, contentType: undefined },
      });
      expect(await named(folder, MISSING)).toContain(join(folder, 'blobs', 'sha256'));
    }));

  it.each([
    ['the file is missing', (file: string) => rm(file)],
    ['the file is empty, as after a power failure', (file: string) => truncate(file, 0)],
  ])('that is listed is absent where %s', (_title, spoil) =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: ONE, tag: '1.0' }]);
      await spoil(blobFile(folder, ONE.descriptor.digest));
      expect(await named(folder, '1.0')).toContain('index.json lists it, but');
      expect(await openLayout(folder).hasManifest('', ONE.descriptor.digest, CALM)).toEqual({ kind: 'absent' });
    }),
  );

  it('is refused where it does not hash to its digest, and has not been put for whoever writes', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: ONE, tag: '1.0' }]);
      await writeFile(blobFile(folder, ONE.descriptor.digest), TWO.bytes);
      const client = openLayout(folder);
      expect(await failureOf(client.getManifest('', '1.0', CALM))).toMatchObject({
        code: 'DIGEST_MISMATCH',
        exitCode: 6,
      });
      expect(await client.hasManifest('', ONE.descriptor.digest, CALM)).toEqual({ kind: 'absent' });
    }));

  it('is refused where index.json gives it another size', () =>
    withDirectory(async (folder) => {
      const manifests = [{ ...ONE.descriptor, size: 7, annotations: { [REF_NAME]: '1.0' } }];
      await layLayout(folder, [{ manifest: ONE }], { manifests });
      expect(await failureOf(openLayout(folder).getManifest('', '1.0', CALM))).toMatchObject({ code: 'SIZE_MISMATCH' });
    }));

  it('is there only with everything that it names, foreign layers aside', () =>
    withDirectory(async (folder) => {
      const foreign = makeImage('foreign', { foreignUrl: 'https://example.invalid/layer' });
      await layLayout(folder, [
        { manifest: ONE, tag: '1.0' },
        { manifest: foreign, tag: 'foreign' },
      ]);
      const client = openLayout(folder);
      expect((await client.hasManifest('', ONE.descriptor.digest, CALM)).kind).toBe('present');
      expect((await client.hasManifest('', foreign.descriptor.digest, CALM)).kind).toBe('present');
      await truncate(blobFile(folder, LAYER.digest), 5);
      expect((await client.hasManifest('', ONE.descriptor.digest, CALM)).kind).toBe('absent');
    }));
});

describe('a blob of a layout', () => {
  it('is there, with its size, or not', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: ONE, tag: '1.0' }]);
      const client = openLayout(folder);
      expect(await client.hasBlob('', LAYER.digest, CALM)).toEqual({ kind: 'present', size: LAYER.size });
      expect(await client.hasBlob('', MISSING, CALM)).toEqual({ kind: 'absent' });
      await truncate(blobFile(folder, LAYER.digest), 0);
      expect(await client.hasBlob('', LAYER.digest, CALM)).toEqual({ kind: 'absent' });
    }));

  it('that is empty is there', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, []);
      const empty = digestOf(Buffer.alloc(0));
      await writeFile(blobFile(folder, empty), '');
      expect(await openLayout(folder).hasBlob('', empty, CALM)).toEqual({ kind: 'present', size: 0 });
      expect(await bytesOf(await openLayout(folder).openBlob('', { digest: empty, size: 0 }, CALM))).toEqual(
        Buffer.alloc(0),
      );
    }));

  it('is read from any byte on', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: ONE, tag: '1.0' }]);
      const client = openLayout(folder);
      const bytes = LAYER_BYTES !== undefined && 'bytes' in LAYER_BYTES ? LAYER_BYTES.bytes : Buffer.alloc(0);
      for (const from of [0, 1, 1000, LAYER.size, LAYER.size + 1]) {
        const read = await bytesOf(await client.openBlob('', LAYER, { ...CALM, from }));
        expect(read.equals(bytes.subarray(from)), `from ${from}`).toBe(true);
      }
    }));

  it('of many pieces is read whole, and a reader that stops closes the file', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, []);
      const bytes = Buffer.alloc(3 * 1024 * 1024 + 17, 'manifest');
      const blob = { digest: digestOf(bytes), size: bytes.length };
      await writeFile(blobFile(folder, blob.digest), bytes);
      const client = openLayout(folder, { limiter: placesOf(2) });
      expect((await bytesOf(await client.openBlob('', blob, CALM))).equals(bytes)).toBe(true);
      // With two places, a stream that kept its own would stop the fourth.
      for (let times = 0; times < 4; times += 1) {
        const stream = await client.openBlob('', blob, CALM);
        if (times % 2 === 0) for await (const _ of stream) break;
        stream.destroy();
        await new Promise((resolve) => (stream.closed ? resolve(0) : stream.once('close', resolve)));
      }
    }));

  it('takes a place of the host, unless one is given', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: ONE, tag: '1.0' }]);
      const limiter = placesOf(2);
      const client = openLayout(folder, { limiter });
      const taken = [await limiter.take(client.host, CALM.signal), await limiter.take(client.host, CALM.signal)];
      const [place, other] = taken;
      if (place === undefined || other === undefined) throw new Error('two were taken');
      expect((await client.getManifest('', '1.0', { ...CALM, place })).kind).toBe('found');
      expect((await bytesOf(await client.openBlob('', LAYER, { ...CALM, place }))).length).toBe(LAYER.size);
      let asked = false;
      const waiting = client.hasBlob('', LAYER.digest, CALM).finally(() => {
        asked = true;
      });
      await client.hasBlob('', LAYER.digest, { ...CALM, place });
      expect(asked).toBe(false);
      other.release();
      expect((await waiting).kind).toBe('present');
    }));

  it('leaves nothing listening to the run when it has been read', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: ONE, tag: '1.0' }]);
      const { signal } = new AbortController();
      const stream = await openLayout(folder).openBlob('', LAYER, { signal });
      expect(getEventListeners(signal, 'abort')).toHaveLength(1);
      await bytesOf(stream);
      await new Promise((resolve) => (stream.closed ? resolve(0) : stream.once('close', resolve)));
      expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    }));

  it('ends in the reason of the run that stops', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: ONE, tag: '1.0' }]);
      const stop = new AbortController();
      const stream = await openLayout(folder).openBlob('', LAYER, { signal: stop.signal });
      const reason = new Error('enough');
      stop.abort(reason);
      await expect(bytesOf(stream)).rejects.toBe(reason);
    }));

  it('that is missing is named with its path', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: ONE, tag: '1.0' }]);
      await rm(blobFile(folder, LAYER.digest));
      const client = openLayout(folder);
      for (const read of [() => client.openBlob('', LAYER, CALM), () => client.readBlob('', LAYER, CALM)]) {
        const error = await failureOf(read());
        expect(error).toMatchObject({ code: 'BLOB_NOT_FOUND', exitCode: 4, side: 'source', registry: `oci:${folder}` });
        expect(error.message).toContain(blobFile(folder, LAYER.digest));
      }
    }));

  it('of another size or content is refused', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: ONE, tag: '1.0' }]);
      const client = openLayout(folder);
      expect((await client.readBlob('', CONFIG, CALM)).length).toBe(CONFIG.size);
      await writeFile(blobFile(folder, CONFIG.digest), Buffer.alloc(CONFIG.size));
      expect(await failureOf(client.readBlob('', CONFIG, CALM))).toMatchObject({ code: 'DIGEST_MISMATCH' });
      await truncate(blobFile(folder, CONFIG.digest), 3);
      expect(await failureOf(client.readBlob('', CONFIG, CALM))).toMatchObject({ code: 'SIZE_MISMATCH' });
      expect(await failureOf(client.openBlob('', CONFIG, CALM))).toMatchObject({ code: 'SIZE_MISMATCH' });
    }));
});

describe('what is no layout', () => {
  it('a folder that is not there has nothing', () =>
    withDirectory(async (folder) => {
      const nowhere = join(folder, 'nowhere');
      const client = openLayout(nowhere);
      expect(await named(nowhere, '1.0')).toBe(`oci:${nowhere}:1.0 is not there: there is no folder ${nowhere}`);
      expect(await client.hasBlob('', MISSING, CALM)).toEqual({ kind: 'absent' });
      expect(await client.hasManifest('', MISSING, CALM)).toEqual({ kind: 'absent' });
      expect((await failureOf(client.openBlob('', LAYER, CALM))).code).toBe('BLOB_NOT_FOUND');
    }));

  it('an empty folder has nothing, not even as a new volume', () =>
    withDirectory(async (folder) => {
      await mkdir(join(folder, 'lost+found'));
      expect(await named(folder, '1.0')).toContain('has no oci-layout file');
    }));

  it.each<[string, (folder: string) => Promise<string>, string, string]>([
    [
      'a folder of something else',
      async (folder) => {
        await writeFile(join(folder, 'package.json'), '{}');
        return folder;
      },
      'has no oci-layout file',
      'a folder that is empty',
    ],
    [
      'an unpacked docker save',
      async (folder) => {
        await writeFile(join(folder, 'manifest.json'), '[]');
        return folder;
      },
      'docker save',
      'skopeo copy docker-archive:FILE.tar oci:FOLDER:TAG',
    ],
    [
      'an archive',
      async (folder) => {
        await writeFile(join(folder, 'image.tar'), '');
        return join(folder, 'image.tar');
      },
      'is a file, not the folder of a layout',
      'tar -xf FILE -C FOLDER',
    ],
    [
      'a later version',
      async (folder) => {
        await writeFile(join(folder, 'oci-layout'), '{"imageLayoutVersion":"2.0.0"}');
        return folder;
      },
      'imageLayoutVersion is "2.0.0"',
      'skopeo copy',
    ],
  ])('%s is refused, with what to do', (_title, make, message, hint) =>
    withDirectory(async (folder) => {
      const error = await failureOf(openLayout(await make(folder)).getManifest('', '1.0', CALM));
      expect(error).toMatchObject({ code: 'MANIFEST_UNSUPPORTED', exitCode: 2 });
      expect(error.message).toContain(message);
      expect(error.hint).toContain(hint);
    }),
  );

  it.each([
    ['not JSON', '{', 'not JSON'],
    ['a key twice', '{"schemaVersion":2,"manifests":[],"manifests":[]}', 'twice'],
    ['no index', '{"schemaVersion":2,"config":{}}', 'it has no manifests'],
    ['another version', '{"schemaVersion":1,"manifests":[]}', 'schemaVersion'],
    ['an entry that is none', '{"schemaVersion":2,"manifests":[1]}', 'not a descriptor'],
    ['more than 4 MiB', `{"schemaVersion":2,"manifests":[]}${' '.repeat(4 * 1024 * 1024)}`, 'the limit is 4194304'],
  ])('an index.json of this kind is refused: %s', (_title, text, message) =>
    withDirectory(async (folder) => {
      await layLayout(folder, []);
      await writeFile(join(folder, 'index.json'), text);
      const error = await failureOf(openLayout(folder).getManifest('', '1.0', CALM));
      expect(error).toMatchObject({ code: 'MANIFEST_INVALID', exitCode: 6 });
      expect(error.message).toContain(message);
      expect(error.message).toContain(join(folder, 'index.json'));
    }),
  );

  it('an entry that nobody asks for may be anything', () =>
    withDirectory(async (folder) => {
      const odd = { mediaType: 'x', digest: 'blake3:00', size: 1.5, annotations: null };
      const good = { ...ONE.descriptor, annotations: { [REF_NAME]: '1.0' } };
      await layLayout(folder, [{ manifest: ONE }], { manifests: [odd, good] });
      expect(await named(folder, '1.0')).toBe(ONE.descriptor.digest);
    }));
});

describe('links and special files', () => {
  it('a link that stays in the layout is followed, one that leaves it is refused', () =>
    withDirectory(async (folder) => {
      const inside = join(folder, 'layout');
      await layLayout(inside, [{ manifest: ONE, tag: '1.0' }]);
      const file = blobFile(inside, LAYER.digest);
      await rename(file, join(inside, 'kept'));
      await symlink('../../kept', file);
      const client = openLayout(inside);
      expect((await bytesOf(await client.openBlob('', LAYER, CALM))).length).toBe(LAYER.size);
      await rename(join(inside, 'kept'), join(folder, 'outside'));
      await rm(file);
      await symlink('../../../outside', file);
      for (const read of [
        () => client.openBlob('', LAYER, CALM),
        () => client.hasBlob('', LAYER.digest, CALM),
        () => client.readBlob('', LAYER, CALM),
        () => client.hasManifest('', ONE.descriptor.digest, CALM),
      ]) {
        const error = await failureOf(read());
        expect(error).toMatchObject({ code: 'FILE_FAILED', exitCode: 8 });
        expect(error.message).toContain('leads out of the layout');
      }
    }));

  it('the folder itself may be a link', () =>
    withDirectory(async (folder) => {
      await layLayout(join(folder, 'layout'), [{ manifest: ONE, tag: '1.0' }]);
      await symlink('layout', join(folder, 'link'));
      expect(await named(join(folder, 'link'), '1.0')).toBe(ONE.descriptor.digest);
    }));

  it.each(['blobs', 'index.json', 'oci-layout'])('%s may not lead elsewhere', (name) =>
    withDirectory(async (folder) => {
      const inside = join(folder, 'layout');
      await layLayout(inside, [{ manifest: ONE, tag: '1.0' }]);
      await rename(join(inside, name), join(folder, name));
      await symlink(join(folder, name), join(inside, name));
      const error = await failureOf(openLayout(inside).getManifest('', '1.0', CALM));
      expect(error).toMatchObject({ code: 'FILE_FAILED' });
      expect(error.message).toContain('leads out of the layout');
    }),
  );

  it('a pipe in the place of a blob is refused at once, and so is a folder', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: ONE, tag: '1.0' }]);
      const client = openLayout(folder);
      const file = blobFile(folder, LAYER.digest);
      await rm(file);
      execFileSync('mkfifo', [file]);
      for (const read of [() => client.openBlob('', LAYER, CALM), () => client.hasBlob('', LAYER.digest, CALM)]) {
        expect((await failureOf(read())).message).toContain('is not a regular file');
      }
      await rm(file);
      await mkdir(file);
      expect((await failureOf(client.openBlob('', LAYER, CALM))).message).toContain('is not a regular file');
    }));

  it('what may not be read is told with its path', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: ONE, tag: '1.0' }]);
      execFileSync('chmod', ['755', folder]);
      execFileSync('chmod', ['000', join(folder, 'index.json')]);
      await asOrdinaryUser(async () => {
        const error = await failureOf(openLayout(folder).getManifest('', '1.0', CALM));
        expect(error).toMatchObject({ code: 'FILE_FAILED', exitCode: 8 });
        expect(error.message).toBe(`cannot read ${join(folder, 'index.json')} (permission denied)`);
      });
    }));
});
