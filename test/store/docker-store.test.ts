import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { buildIndex, indexTypeFor } from '../../src/model/image-index.ts';
import { platformFields } from '../../src/store/children.ts';
import { dockerFileName } from '../../src/store/docker-name.ts';
import { dockerFingerprint, readDockerDraft } from '../../src/store/docker-store.ts';
import { pushRequest } from '../../src/store/push-request.ts';
import { withDirectory } from '../helpers/registry.ts';
import { storeIn } from './drafts.ts';

// What docker 28.2.2 wrote, see fixtures/capture.ts.
const DOCKER = join(import.meta.dirname, 'fixtures', 'docker');
const HOST = '127.0.0.1:5056';
const ALL = `${HOST}/deb/all:bullseye`;
const OCI = `${HOST}/oci/all:1`;
const ARMHF = `${HOST}/deb/armhf:bullseye`;

async function readFound(
  folder: string,
  reference: string,
): Promise<NonNullable<Awaited<ReturnType<typeof readDockerDraft>>>> {
  const found = await readDockerDraft(folder, reference);
  if (found === undefined) throw new Error('docker has no such draft');
  return found;
}

/** A copy of docker's folder that a test may change. */
async function withDocker<T>(
  use: (docker: string, place: (list: string, entry?: string) => string) => Promise<T>,
): Promise<T> {
  return withDirectory(async (directory) => {
    await cp(DOCKER, directory, { recursive: true });
    return use(directory, (list, entry) =>
      join(directory, 'manifests', dockerFileName(list), ...(entry === undefined ? [] : [dockerFileName(entry)])),
    );
  });
}

type DockerFile = Record<string, unknown> & { Descriptor: Record<string, unknown> };

async function change(path: string, edit: (file: DockerFile) => unknown): Promise<void> {
  const file: DockerFile = JSON.parse(await readFile(path, 'utf8'));
  await writeFile(path, JSON.stringify(edit(file)));
}

describe("docker's own draft", () => {
  it('has its entries in the order of the file names, with what annotate said', async () => {
    const { stored, warnings } = await readFound(DOCKER, ALL);
    expect(warnings).toEqual([]);
    expect(stored.draft.reference).toBe(ALL);
    const shown = stored.draft.entries.map(({ reference, children }) => [
      reference.slice(HOST.length + 1).replace(/sha256:.*/, '…'),
      children.map(platformFields),
    ]);
    expect(shown).toEqual([
      [
        'deb/all:windows',
        [{ architecture: 'amd64', os: 'windows', 'os.version': '10.0.17763.9', 'os.features': ['win32k', 'gpu'] }],
      ],
      ['deb/amd64:bullseye', [{ architecture: 'amd64', os: 'linux' }]],
      ['deb/arm64@…', [{ architecture: 'arm64', os: 'linux', variant: 'v8' }]],
      ['deb/armhf:bullseye', [{ architecture: 'arm', os: 'linux', variant: 'v7' }]],
    ]);
  });

  it.each([ALL, OCI])('is pushed as docker pushes it, to the byte: %s', async (reference) => {
    const pushed: Record<string, string> = JSON.parse(
      await readFile(join(import.meta.dirname, 'fixtures', 'pushed.json'), 'utf8'),
    );
    const { stored } = await readFound(DOCKER, reference);
    const request = pushRequest(stored.draft);
    const manifests = request.sources.flatMap(({ known }) => known?.children ?? []);
    const mediaType = indexTypeFor(manifests, request.type);
    const { bytes } = buildIndex({ mediaType, manifests, annotations: request.annotations, layout: request.layout });
    expect(Buffer.from(bytes).toString('utf8')).toBe(pushed[reference]);
  });

  it('brings the exact bytes of the manifests', async () => {
    for (const list of [ALL, OCI]) {
      const { stored } = await readFound(DOCKER, list);
      expect(stored.manifests.size).toBe(stored.draft.entries.length);
      for (const [digest, bytes] of stored.manifests) expect(digestOf(bytes)).toBe(digest);
    }
  });

  it('can be kept as one of ours, and tells later that docker changed it', async () => {
    await withDocker(async (docker, place) => {
      const { stored } = await readFound(docker, ALL);
      const store = storeIn(join(docker, 'ours'));
      await store.change(ALL, async () => stored);
      const kept = await store.read(ALL);
      expect(kept?.draft).toEqual(stored.draft);
      expect(kept?.draft.docker).toBe(await dockerFingerprint(docker, ALL));

      await change(place(ALL, ARMHF), (file) => ({ ...file, Note: 1 }));
      expect(await dockerFingerprint(docker, ALL)).not.toBe(kept?.draft.docker);
      await rm(place(ALL), { recursive: true });
      expect(await dockerFingerprint(docker, ALL)).toBeUndefined();
    });
  });

  it('is not there when there is no folder, or an empty one', async () => {
    expect(await readDockerDraft(DOCKER, `${HOST}/deb/other:1`)).toBeUndefined();
    expect(await readDockerDraft(join(DOCKER, 'nowhere'), ALL)).toBeUndefined();
    await withDocker(async (docker, place) => {
      await mkdir(place(`${HOST}/deb/empty:1`));
      expect(await readDockerDraft(docker, `${HOST}/deb/empty:1`)).toBeUndefined();
    });
  });

  it('is not written to', async () => {
    await withDocker(async (docker, place) => {
      const before = await readdir(docker, { recursive: true });
      await readFound(docker, ALL);
      expect(await readdir(docker, { recursive: true })).toEqual(before);
      expect(await readFile(place(ALL, ARMHF))).toEqual(
        await readFile(join(DOCKER, 'manifests', dockerFileName(ALL), dockerFileName(ARMHF))),
      );
    });
  });

  it('keeps half a platform, for annotate to fill in', async () => {
    const { stored } = await readFound(DOCKER, `${HOST}/deb/half:list`);
    expect(stored.draft.entries[0]?.children[0]).toMatchObject({ changes: { platform: { os: 'linux' } } });
    expect(() => pushRequest(stored.draft)).toThrow(
      `manifest ${HOST}/deb/half:1 must have an OS and Architecture to be pushed to a registry`,
    );
  });
});

describe('what is odd is told', () => {
  it('a variant that annotate of docker let through', async () => {
    const { warnings } = await readFound(DOCKER, OCI);
    expect(warnings).toEqual([
      `${HOST}/oci/amd64:1 has the variant "armv7" in docker's draft, which no client looks for: say the right one with annotate --variant v7`,
    ]);
  });

  it('a list that shares its folder with one in the repository of the sources', async () => {
    await withDocker(async (docker, place) => {
      await cp(place(OCI), place(`${HOST}/oci/amd64-list:1`), { recursive: true });
      const found = await readFound(docker, `${HOST}/oci/amd64-list:1`);
      expect(found.warnings.slice(1)).toEqual([
        `docker keeps ${HOST}/oci/amd64:list-1 and ${HOST}/oci/amd64-list:1 in one folder; this is taken for the latter`,
      ]);
    });
  });
});

describe('what docker would not mean is refused by name', () => {
  it('the draft of another host that shares the folder', async () => {
    await expect(readDockerDraft(DOCKER, '127.0.0.1-5056/deb/all:bullseye')).rejects.toMatchObject({
      code: 'DRAFT_INVALID',
      exitCode: 8,
      message: `${join(DOCKER, 'manifests', dockerFileName(ALL))}: the entries are on ${HOST}, so it is not the draft of 127.0.0.1-5056/deb/all:bullseye`,
    });
  });

  const other = `sha256:${'0'.repeat(64)}`;
  it.each<[string, (file: DockerFile) => unknown, string]>([
    [
      'bytes that have another digest',
      (file) => ({ ...file, Raw: Buffer.from('{}').toString('base64') }),
      'Raw: the bytes have the digest',
    ],
    [
      'a digest that is not that of the bytes',
      (file) => ({ ...file, Descriptor: { ...file.Descriptor, digest: other } }),
      'Raw: the bytes have the digest',
    ],
    ['another size', (file) => ({ ...file, Descriptor: { ...file.Descriptor, size: 7 } }), 'is said to have 7'],
    [
      'another type',
      (file) => ({
        ...file,
        Descriptor: { ...file.Descriptor, mediaType: 'application/vnd.oci.image.manifest.v1+json' },
      }),
      'calls itself',
    ],
    [
      'a type of no manifest',
      (file) => ({ ...file, Descriptor: { ...file.Descriptor, mediaType: 'text/plain' } }),
      'is really',
    ],
    ['loose Base64', (file) => ({ ...file, Raw: `${String(file['Raw'])}\n` }), 'not Base64'],
    [
      'the entry of another file',
      (file) => ({ ...file, Ref: `${HOST}/deb/armel:bullseye` }),
      `the entry of ${HOST}/deb/armel:bullseye`,
    ],
    ['no Ref', (file) => ({ ...file, Ref: undefined }), 'Ref is not a reference in full'],
    ['a short Ref', (file) => ({ ...file, Ref: 'debian' }), 'Ref is not a reference in full'],
    ['a hostile Ref', (file) => ({ ...file, Ref: '../../x' }), 'not a host name'],
    ['no descriptor', (file) => ({ ...file, Descriptor: undefined }), 'Descriptor: not a descriptor'],
    ['a key that Go takes for another', (file) => ({ ...file, raw: '' }), 'differs from Raw only in case'],
    ['no manifest', (file) => ({ Ref: file['Ref'], Descriptor: file.Descriptor }), 'no manifest in it'],
    ['no object', () => [], 'not a JSON object'],
  ])('%s', async (_what, edit, words) => {
    await withDocker(async (docker, place) => {
      const file = place(ALL, ARMHF);
      await change(file, edit);
      const refused = readDockerDraft(docker, ALL);
      await expect(refused).rejects.toMatchObject({ code: 'DRAFT_INVALID', exitCode: 8 });
      await expect(refused).rejects.toThrow(words);
      await expect(refused).rejects.toThrow(`${file}: `);
    });
  });

  it('a file that is no entry, a folder, a link', async () => {
    await withDocker(async (docker, place) => {
      const file = join(place(ALL), '.DS_Store');
      const refused = (what: string) => ({ code: 'DRAFT_INVALID', message: `${file}: ${what}` });
      await writeFile(file, 'x');
      await expect(readDockerDraft(docker, ALL)).rejects.toMatchObject(refused('not JSON'));
      await rm(file);
      await mkdir(file);
      await expect(readDockerDraft(docker, ALL)).rejects.toMatchObject(refused('not a regular file'));
      await rm(file, { recursive: true });
      await symlink('/etc/hosts', file);
      await expect(readDockerDraft(docker, ALL)).rejects.toMatchObject(refused('a symbolic link'));
    });
  });

  it('an index, which docker does not keep', async () => {
    await withDocker(async (docker, place) => {
      const bytes = Buffer.from('{"schemaVersion":2,"manifests":[]}');
      const mediaType = 'application/vnd.oci.image.index.v1+json';
      await change(place(ALL, ARMHF), (file) => ({
        ...file,
        Descriptor: { mediaType, digest: digestOf(bytes), size: bytes.length },
        Raw: bytes.toString('base64'),
      }));
      await expect(readDockerDraft(docker, ALL)).rejects.toThrow('an index, not an image');
    });
  });
});

describe('files of old versions of docker', () => {
  const withoutRaw = ({ Raw: _raw, ...file }: DockerFile): DockerFile => file;

  it.each<[string, string, string]>([
    ['Docker, three spaces', ALL, `${HOST}/deb/amd64:bullseye`],
    ['Docker, compact', ALL, `${HOST}/deb/all:windows`],
    ['OCI, two spaces', OCI, `${HOST}/oci/riscv64:1`],
    ['OCI, with what Go escapes', OCI, `${HOST}/oci/amd64:1`],
  ])('without the exact bytes are read when the digest comes out: %s', async (_what, list, entry) => {
    await withDocker(async (docker, place) => {
      const before = await readFound(docker, list);
      await change(place(list, entry), withoutRaw);
      const { stored } = await readFound(docker, list);
      expect({ ...stored.draft, docker: undefined }).toEqual({ ...before.stored.draft, docker: undefined });
      expect([...stored.manifests].map(([digest, bytes]) => [digest, Buffer.from(bytes)])).toEqual(
        [...before.stored.manifests].map(([digest, bytes]) => [digest, Buffer.from(bytes)]),
      );
    });
  });

  it('are refused by name when it does not', async () => {
    await withDocker(async (docker, place) => {
      const [name = ''] = (await readdir(place(ALL))).filter((file) => file.includes('arm64@'));
      await change(join(place(ALL), name), withoutRaw);
      await expect(readDockerDraft(docker, ALL)).rejects.toMatchObject({
        code: 'DRAFT_INVALID',
        message: expect.stringContaining(`${join(place(ALL), name)}: written by an old docker without the exact bytes`),
        hint: 'Create the list again: manifest-publish create LIST SOURCE...',
      });
    });
  });

  it('with the digest and the platform beside the manifest are read too', async () => {
    await withDocker(async (docker, place) => {
      const before = await readFound(docker, ALL);
      await change(place(ALL, `${HOST}/deb/amd64:bullseye`), ({ Ref, Descriptor, SchemaV2Manifest }) => ({
        Ref,
        Digest: Descriptor['digest'],
        Platform: Descriptor['platform'],
        SchemaV2Manifest,
      }));
      const { stored } = await readFound(docker, ALL);
      expect(stored.draft.entries).toEqual(before.stored.draft.entries);
    });
  });
});
