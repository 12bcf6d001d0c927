import { execFileSync } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/model/digest.ts';
import { parseReference } from '../../src/model/reference.ts';
import { inspect } from '../../src/publish/inspect.ts';
import { publish } from '../../src/publish/publish.ts';
import type { PublishReport } from '../../src/publish/report.ts';
import { verify } from '../../src/publish/verify.ts';
import { type RunningRegistry, seedDebian } from '../../src/registry-server/index.ts';
import {
  blobDigests,
  MEDIA_TYPES,
  makeAttestedIndex,
  makeImage,
  makeIndex,
  putBuilt,
  seedImage,
} from '../helpers/images.ts';
import { counts, type PublishOptions, requestOf, sourcesOf, withPorts } from '../helpers/publishing.ts';
import { requests, withDirectory, withRegistry, writes } from '../helpers/registry.ts';
import { blobFile, failureOf, filesOf, indexFile, layLayout, REF_NAME } from '../oci-layout/fixture.ts';

const AMD64 = { os: 'linux', architecture: 'amd64' };
const ARM64 = { os: 'linux', architecture: 'arm64' };
const INTEL = makeImage('intel', { platform: AMD64, base: 'shared' });
const ARM = makeImage('arm', { platform: ARM64, base: 'shared' });
const DEBIAN = 'debian/debian:bullseye';

function run(
  target: string,
  sources: readonly string[],
  registries: readonly RunningRegistry[] = [],
  options: PublishOptions = {},
): Promise<PublishReport> {
  const request = requestOf(target, sources, options);
  return withPorts(options, (ports, signal) => publish(request, ports, signal), registries);
}

const verified = (reference: string, registries: readonly RunningRegistry[] = []) =>
  withPorts({}, (ports, signal) => verify(parseReference(reference), { deep: true }, ports, signal), registries);

async function tagsOf(folder: string): Promise<Record<string, unknown>> {
  const { manifests } = await indexFile(folder);
  return Object.fromEntries(manifests.map((entry) => [Object(entry['annotations'])[REF_NAME], entry['digest']]));
}

function indexOf(report: PublishReport): string {
  return report.lists[0]?.index?.digest ?? 'no index';
}

describe('from layouts to a registry', () => {
  it('every blob is asked for and sent once, no mount is asked for, and a second run sends nothing', () =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        await layLayout(join(folder, 'intel'), [{ manifest: INTEL, tag: 'v1' }]);
        await layLayout(join(folder, 'arm'), [{ manifest: ARM }]);
        const sources = [`oci:${folder}/intel:v1`, `oci:${folder}/arm`];
        const target = `${registry.host}/acme/app:1`;
        const report = await run(target, sources, [registry]);
        expect(report.totals.blobs).toEqual({ present: 0, mounted: 0, copied: 5, skipped: 0 });
        expect(report.lists[0]?.images.map(({ source }) => source)).toEqual([
          `oci:${folder}/intel:v1@${INTEL.descriptor.digest}`,
          `oci:${folder}/arm@${ARM.descriptor.digest}`,
        ]);
        expect(report.lists[0]?.images[0]?.placed[0]?.repository).toBe(`${registry.host}/acme/app`);
        const { mount = 0, blobHead, uploadPut } = counts(registry);
        expect({ mount, blobHead, uploadPut }).toEqual({ mount: 0, blobHead: 5, uploadPut: 5 });
        expect(registry.tagOf('acme/app', '1')).toBe(indexOf(report));
        expect((await verified(target, [registry])).problems).toEqual([]);
        const before = writes(registry).length;
        const again = await run(target, sources, [registry]);
        expect(again.lists[0]?.targets[0]?.action).toBe('unchanged');
        expect(writes(registry)).toHaveLength(before);
      }),
    ));

  it('an index in a layout is flattened, its attestations beside the images, or copied as it is', () =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        const attested = makeAttestedIndex(INTEL, AMD64);
        const both = makeIndex([
          { manifest: INTEL, platform: AMD64 },
          { manifest: ARM, platform: ARM64 },
        ]);
        await layLayout(folder, [
          { manifest: attested, tag: 'attested' },
          { manifest: ARM, tag: 'arm' },
          { manifest: both, tag: 'both' },
        ]);
        const flat = await run(
          `${registry.host}/acme/flat:1`,
          [`oci:${folder}:attested`, `oci:${folder}:arm`],
          [registry],
        );
        expect(flat.lists[0]?.images.map(({ kind }) => kind)).toEqual(['image', 'attestation', 'image']);
        const same = await run(`${registry.host}/acme/same:1`, [`oci:${folder}:both`], [registry]);
        expect(indexOf(same)).toBe(both.descriptor.digest);
        const picked = await run(`${registry.host}/acme/arm:1`, [`linux/arm64=oci:${folder}:both`], [registry]);
        expect(picked.lists[0]?.images.map(({ digest }) => digest)).toEqual([ARM.descriptor.digest]);
      }),
    ));

  it('a source of the target registry is mounted beside one of a layout', () =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        await layLayout(folder, [{ manifest: ARM, tag: 'arm' }]);
        seedImage(registry, 'acme/intel', '1', { platform: AMD64 });
        const sources = [`${registry.host}/acme/intel:1`, `oci:${folder}:arm`];
        const report = await run(`${registry.host}/acme/app:1`, sources, [registry]);
        expect(report.totals.blobs).toEqual({ present: 0, mounted: 3, copied: 3, skipped: 0 });
      }),
    ));

  it('a blob that the layout lacks ends the run before the tag, and is named with its path', () =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        await layLayout(folder, [{ manifest: ARM, tag: 'arm' }]);
        const layer = ARM.blobs[1]?.descriptor.digest ?? ARM.descriptor.digest;
        await rm(blobFile(folder, layer));
        const error = await failureOf(run(`${registry.host}/acme/app:1`, [`oci:${folder}:arm`], [registry]));
        expect(error).toMatchObject({ code: 'BLOB_NOT_FOUND', exitCode: 4, side: 'source' });
        expect(error.message).toContain(blobFile(folder, layer));
        expect(registry.tagOf('acme/app', '1')).toBeUndefined();
      }),
    ));

  it('a blob that is damaged is never committed', () =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        await layLayout(folder, [{ manifest: ARM, tag: 'arm' }]);
        const layer = ARM.blobs[1]?.descriptor ?? ARM.descriptor;
        await writeFile(blobFile(folder, layer.digest), Buffer.alloc(layer.size));
        const work = run(`${registry.host}/acme/app:1`, [`oci:${folder}:arm`], [registry], { patient: true });
        expect((await failureOf(work)).exitCode).toBe(6);
        expect(registry.hasBlob('acme/app', layer.digest)).toBe(false);
      }),
    ));

  it('a source that is not there is exit 4, with what the layout holds', () =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        await layLayout(folder, [{ manifest: ARM, tag: 'arm' }]);
        const error = await failureOf(run(`${registry.host}/acme/app:1`, [`oci:${folder}:intel`], [registry]));
        expect(error).toMatchObject({ code: 'SOURCE_NOT_FOUND', exitCode: 4, side: 'source' });
        expect(error.message).toBe(`oci:${folder}:intel is not there: it holds arm (${ARM.descriptor.digest})`);
      }),
    ));
});

describe('from a registry to a layout', () => {
  it('all of it is written, and the layout is read by the verbs', () =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        const out = join(folder, 'out');
        const target = `oci:${out}:bullseye`;
        const sources = sourcesOf(seedDebian(registry)).map((source) => `${registry.host}/${source}`);
        const report = await run(target, sources, [registry]);
        expect(report.totals.blobs).toEqual({ present: 0, mounted: 0, copied: 40, skipped: 0 });
        expect(report.lists[0]?.targets).toEqual([{ reference: target, digest: indexOf(report), action: 'created' }]);
        expect(report.lists[0]?.images[0]?.placed[0]?.repository).toBe(`oci:${out}`);
        expect(await tagsOf(out)).toEqual({ bullseye: indexOf(report) });
        expect((await filesOf(out)).filter((name) => /tmp|lock|new/.test(name))).toEqual([]);
        expect(writes(registry)).toEqual([]);
        const checked = await verified(target);
        expect(checked).toMatchObject({ reference: target, manifests: 9, blobs: 40, problems: [] });
        const before = requests(registry, 'blobGet').length;
        const again = await run(target, sources, [registry]);
        expect(again.lists[0]?.targets[0]?.action).toBe('unchanged');
        // The configs tell the platforms; no layer is read again.
        expect(requests(registry, 'blobGet')).toHaveLength(before + 8);
      }),
    ));

  it('the same index as in a registry', () =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        const sources = sourcesOf(seedDebian(registry)).map((source) => `${registry.host}/${source}`);
        const there = await run(`${registry.host}/${DEBIAN}`, sources, [registry]);
        expect(indexOf(await run(`oci:${folder}:x`, sources, [registry]))).toBe(indexOf(there));
      }),
    ));

  it('several tags are several entries', () =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        seedImage(registry, 'acme/app', '1', { platform: AMD64 });
        const report = await run(`oci:${folder}:1`, [`${registry.host}/acme/app:1`], [registry], {
          tags: ['2', 'latest'],
        });
        const digest = indexOf(report);
        expect(await tagsOf(folder)).toEqual({ 1: digest, 2: digest, latest: digest });
      }),
    ));

  it('a dry run makes nothing', () =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        seedImage(registry, 'acme/app', '1', { platform: AMD64 });
        const work = run(`oci:${folder}/out:1`, [`${registry.host}/acme/app:1`], [registry], { dryRun: true });
        expect((await work).lists[0]?.targets[0]?.action).toBe('created');
        expect(await filesOf(folder)).toEqual([]);
      }),
    ));

  it('a layer over what one piece holds is streamed, and right', () =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        const image = seedImage(registry, 'acme/app', '1', { layers: 1, layerBytes: 20 * 1024 * 1024 });
        await run(`oci:${folder}:1`, [`${registry.host}/acme/app:1`], [registry]);
        const layer = image.blobs[1]?.descriptor.digest ?? image.descriptor.digest;
        expect(digestOf(await readFile(blobFile(folder, layer)))).toBe(layer);
      }),
    ));

  it('a tag that is moved keeps the others; what it held is told', () =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        await layLayout(folder, [
          { manifest: INTEL, tag: 'other' },
          { manifest: ARM, tag: '1' },
        ]);
        seedImage(registry, 'acme/app', '1', { platform: AMD64 });
        const report = await run(`oci:${folder}:1`, [`${registry.host}/acme/app:1`], [registry]);
        expect(report.lists[0]?.targets[0]).toMatchObject({ action: 'updated', previous: ARM.descriptor.digest });
        expect(await tagsOf(folder)).toEqual({ other: INTEL.descriptor.digest, 1: indexOf(report) });
      }),
    ));

  it('a tag that is guarded stays', () =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        await layLayout(folder, [{ manifest: ARM, tag: '1' }]);
        seedImage(registry, 'acme/app', '1', { platform: AMD64 });
        const work = run(`oci:${folder}:1`, [`${registry.host}/acme/app:1`], [registry], { noClobber: true });
        expect(await failureOf(work)).toMatchObject({ code: 'TAG_EXISTS', exitCode: 7 });
        expect(await tagsOf(folder)).toEqual({ 1: ARM.descriptor.digest });
      }),
    ));

  it('a list of which blobs were removed heals', () =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        const image = seedImage(registry, 'acme/app', '1', { platform: AMD64 });
        const source = [`${registry.host}/acme/app:1`];
        await run(`oci:${folder}:1`, source, [registry]);
        const layer = image.blobs[1]?.descriptor.digest ?? image.descriptor.digest;
        await rm(blobFile(folder, layer));
        const report = await run(`oci:${folder}:1`, source, [registry]);
        expect(report.totals.blobs).toMatchObject({ copied: 1 });
        expect((await verified(`oci:${folder}:1`)).problems).toEqual([]);
      }),
    ));

  it('a full disk is exit 8, with the path; nothing is half there, and the next run completes it', (context) =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        const image = seedImage(registry, 'acme/app', '1', { layers: 3, layerBytes: 100_000 });
        const disk = join(folder, 'disk');
        await mkdir(disk);
        try {
          execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', disk], { stdio: 'ignore' });
        } catch {
          context.skip('only root may mount a small disk');
        }
        try {
          const error = await failureOf(run(`oci:${disk}/out:1`, [`${registry.host}/acme/app:1`], [registry]));
          expect(error).toMatchObject({ code: 'FILE_FAILED', exitCode: 8 });
          expect(error.message).toContain(`cannot write to ${disk}/out/blobs/sha256 (no space left on the device)`);
          expect(error.hint).toContain('Free some space');
          expect((await filesOf(disk)).filter((name) => name.includes('.tmp-'))).toEqual([]);
          expect((await indexFile(join(disk, 'out'))).manifests).toEqual([]);
          execFileSync('mount', ['-o', 'remount,size=4m', disk]);
          const report = await run(`oci:${disk}/out:1`, [`${registry.host}/acme/app:1`], [registry]);
          expect(report.totals.blobs.present + report.totals.blobs.copied).toBe(image.blobs.length);
          expect((await verified(`oci:${disk}/out:1`)).problems).toEqual([]);
        } finally {
          execFileSync('umount', [disk]);
        }
      }),
    ));

  it('what is no layout is refused before anything is read or written', () =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        await writeFile(join(folder, 'package.json'), '{}');
        seedImage(registry, 'acme/app', '1', { platform: AMD64 });
        const error = await failureOf(run(`oci:${folder}:1`, [`${registry.host}/acme/app:1`], [registry]));
        expect(error).toMatchObject({ code: 'MANIFEST_UNSUPPORTED', exitCode: 2 });
        expect(await filesOf(folder)).toEqual(['package.json']);
      }),
    ));
});

describe('between layouts', () => {
  it('all is copied from one to the other', () =>
    withDirectory(async (folder) => {
      const both = makeIndex([
        { manifest: INTEL, platform: AMD64 },
        { manifest: ARM, platform: ARM64 },
      ]);
      await layLayout(join(folder, 'a'), [{ manifest: both, tag: 'both' }]);
      const report = await run(`oci:${folder}/b:copy`, [`oci:${folder}/a:both`]);
      expect(report.totals.blobs.copied).toBe(blobDigests(both).length);
      expect(await tagsOf(join(folder, 'b'))).toEqual({ copy: both.descriptor.digest });
      expect((await verified(`oci:${folder}/b:copy`)).problems).toEqual([]);
    }));

  it('within one layout nothing is copied: it gets an index', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [
        { manifest: INTEL, tag: 'intel' },
        { manifest: ARM, tag: 'arm' },
      ]);
      const before = await filesOf(folder);
      const report = await run(`oci:${folder}:both`, [`oci:${folder}:intel`, `oci:${folder}:arm`]);
      expect(report.totals).toMatchObject({ bytesSent: 0, requests: 0 });
      const added = (await filesOf(folder)).filter((name) => !before.includes(name));
      expect(added).toEqual([join('blobs', 'sha256', indexOf(report).slice('sha256:'.length))]);
      expect(Object.keys(await tagsOf(folder))).toEqual(['intel', 'arm', 'both']);
    }));

  it('a list of Docker images is a Docker list there too', () =>
    withDirectory(async (folder) => {
      await layLayout(join(folder, 'a'), [{ manifest: makeImage('docker', { docker: true }), tag: '1' }]);
      const report = await run(`oci:${folder}/b:1`, [`oci:${folder}/a:1`]);
      expect((await indexFile(join(folder, 'b'))).manifests[0]).toMatchObject({
        mediaType: report.lists[0]?.index?.mediaType,
      });
      expect(report.lists[0]?.index?.mediaType).toBe(MEDIA_TYPES.dockerList);
    }));
});

describe('a layout is looked at', () => {
  it('by inspect, down to the platforms', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: makeAttestedIndex(INTEL, AMD64), tag: '1' }]);
      const look = (reference: string) =>
        withPorts({}, (ports, signal) => inspect(parseReference(reference), { tree: true }, ports, signal));
      const found = await look(`oci:${folder}`);
      expect(found.reference).toBe(`oci:${folder}`);
      expect(found.children?.map(({ kind }) => kind)).toEqual(['image', 'attestation']);
      expect((await look(`oci:${folder}@${INTEL.descriptor.digest}`)).digest).toBe(INTEL.descriptor.digest);
    }));

  it('by verify, which finds what is missing and what is damaged', () =>
    withDirectory(async (folder) => {
      await layLayout(folder, [{ manifest: INTEL, tag: '1' }]);
      const [, first, second] = INTEL.blobs.map(({ descriptor }) => descriptor);
      if (first === undefined || second === undefined) throw new Error('two layers are needed');
      await rm(blobFile(folder, first.digest));
      await writeFile(blobFile(folder, second.digest), Buffer.alloc(second.size));
      const { problems } = await verified(`oci:${folder}:1`);
      expect(problems.map(({ digest }) => digest).sort()).toEqual([first.digest, second.digest].sort());
    }));
});

describe('a registry and a layout of one run', () => {
  it('hold the same, though the images lie in both', () =>
    withDirectory((folder) =>
      withRegistry({}, async (registry) => {
        putBuilt(registry, 'acme/intel', INTEL, '1');
        await layLayout(folder, [{ manifest: ARM, tag: 'arm' }]);
        const report = await run(
          `oci:${folder}:both`,
          [`${registry.host}/acme/intel:1`, `oci:${folder}:arm`],
          [registry],
        );
        expect(report.lists[0]?.images.map(({ placed }) => placed[0]?.manifest)).toEqual(['pushed', 'present']);
        // The layer that both share is in the layout, since its own image is.
        expect(report.totals.blobs).toEqual({ present: 3, mounted: 0, copied: 2, skipped: 0 });
      }),
    ));
});
