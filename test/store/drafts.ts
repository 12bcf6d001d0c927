import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Descriptor, Platform } from '../../src/model/descriptor.ts';
import type { Digest } from '../../src/model/digest.ts';
import type { Clock } from '../../src/publish/ports.ts';
import { type ImageOptions, makeAttestation, makeImage, makeIndex } from '../../src/registry-server/index.ts';
import type { Draft, DraftChild, DraftEntry, StoredDraft } from '../../src/store/draft.ts';
import { createDraftStore, type DraftStoreOptions } from '../../src/store/store.ts';

/** An entry and the bytes of its manifests. */
export type MadeEntry = { readonly entry: DraftEntry; readonly bytes: ReadonlyMap<Digest, Uint8Array> };

export const linux = (architecture: string, variant?: string): Platform => ({
  architecture,
  os: 'linux',
  ...(variant === undefined ? {} : { variant }),
});

/** An entry whose source is one image. Without a platform its config tells none. */
export function imageEntry(
  reference: string,
  platform: Platform | undefined,
  options: ImageOptions & { readonly seed?: string; readonly changes?: DraftChild['changes'] } = {},
): MadeEntry {
  const { seed = reference, changes, ...more } = options;
  const image = makeImage(seed, {
    layers: 1,
    layerBytes: 64,
    ...(platform === undefined ? {} : { platform }),
    ...more,
  });
  const root = plain(image.descriptor);
  const descriptor: Descriptor = { ...root, ...(platform === undefined ? {} : { platform }) };
  const child: DraftChild = { descriptor, ...(changes === undefined ? {} : { changes }) };
  return { entry: { reference, root, children: [child] }, bytes: new Map([[root.digest, image.bytes]]) };
}

/** An entry whose source is an index: these images, each with an attestation beside it. */
export function indexEntry(reference: string, platforms: readonly Platform[]): MadeEntry {
  const listed = platforms.flatMap((platform, place) => {
    const image = makeImage(`${reference} ${place}`, { layers: 1, layerBytes: 64, platform });
    const annotations = {
      'vnd.docker.reference.digest': image.descriptor.digest,
      'vnd.docker.reference.type': 'attestation-manifest',
    };
    const unknown = { architecture: 'unknown', os: 'unknown' };
    return [
      { manifest: image, platform },
      { manifest: makeAttestation(image), platform: unknown, annotations },
    ];
  });
  const index = makeIndex(listed);
  const children = listed.map(({ manifest, platform, ...more }) => ({
    descriptor: { ...plain(manifest.descriptor), ...more, platform },
  }));
  return {
    entry: { reference, root: plain(index.descriptor), children },
    bytes: new Map([index, ...listed.map(({ manifest }) => manifest)].map((one) => [one.descriptor.digest, one.bytes])),
  };
}

/** A draft of these entries. */
export function storedDraft(reference: string, ...entries: readonly MadeEntry[]): StoredDraft {
  const draft: Draft = { reference, entries: entries.map(({ entry }) => entry) };
  return { draft, manifests: new Map(entries.flatMap(({ bytes }) => [...bytes])) };
}

/** Time that passes only while somebody sleeps. */
export function fakeClock(start = 1_700_000_000_000): Clock & { advance(milliseconds: number): void } {
  let passed = 0;
  return {
    now: () => passed,
    epoch: () => start + passed,
    async sleep(milliseconds, signal) {
      signal.throwIfAborted();
      passed += milliseconds;
      await new Promise((resolve) => setImmediate(resolve));
    },
    advance(milliseconds) {
      passed += milliseconds;
    },
  };
}

/** Time as it is. */
export const REAL_CLOCK: Clock = {
  now: () => performance.now(),
  epoch: () => Date.now(),
  sleep: (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds)),
};

/** The store of this process in a folder. */
export function storeIn(folder: string, options: Partial<DraftStoreOptions> = {}): ReturnType<typeof createDraftStore> {
  return createDraftStore({ folder, clock: REAL_CLOCK, writer: thisProcess(), token: randomUUID, ...options });
}

/** This process as a writer. */
export function thisProcess(): DraftStoreOptions['writer'] {
  return { pid: process.pid, host: hostname(), isAlive };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}

function plain({ mediaType, digest, size }: Descriptor): Descriptor {
  return { mediaType, digest, size };
}
