import { describe, expect, it } from 'vitest';
import type { PublishReport } from '../../src/publish/report.ts';
import type {
  JournalEntry,
  ProfileChanges,
  RegistryOptions,
  RunningRegistry,
} from '../../src/registry-server/index.ts';
import { type BuiltManifest, seedImage } from '../helpers/images.ts';
import { type PublishOptions, publishTo } from '../helpers/publishing.ts';
import { requests, withRegistry } from '../helpers/registry.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
/** 1 MiB of the real world is 16 KiB here, so that manifests still pass every limit. */
const SCALE = 1 / 64;
const SIZES = {
  chunk: 5 * MIB * SCALE,
  tooLarge: 4 * MIB * SCALE,
  least: 512 * KIB * SCALE,
  scout: MIB * SCALE,
  uncut: MIB * SCALE,
  // Whoever runs these tests may be slow.
  patience: 20_000,
};
const [FIVE_MIB, FOUR_MIB] = [SIZES.chunk, SIZES.tooLarge];

/** What a registry of this kind was sent when images with one layer each of these sizes were copied to it. */
async function copied(
  profile: string,
  changes: ProfileChanges,
  layers: readonly number[],
  options: PublishOptions & {
    readonly prepare?: (target: RunningRegistry, source: RunningRegistry) => void;
    readonly upload?: 'auto' | 'whole' | 'chunks';
  } = {},
): Promise<{
  target: RunningRegistry;
  source: RunningRegistry;
  images: readonly BuiltManifest[];
  report: PublishReport;
}> {
  const { prepare, upload, ...rest } = options;
  const kind: RegistryOptions = {
    profile,
    scale: SCALE,
    // GHCR lets nobody cancel, which would hide what was left open by mistake.
    changes: { ...changes, auth: { scheme: 'none' }, upload: { cancel: '204', ...changes.upload } },
  };
  return withRegistry({}, (source) =>
    withRegistry({ options: kind }, async (target) => {
      const images = layers.map((layerBytes, at) =>
        seedImage(source, `t/${at}`, '1', {
          platform: { os: 'linux', architecture: `a${at}` },
          layers: 1,
          layerBytes,
        }),
      );
      prepare?.(target, source);
      const sources = images.map((_, at) => `${source.host}/t/${at}:1`);
      const hosts = upload === undefined ? {} : { [target.host]: { upload } };
      const report = await publishTo(target, 't/all:1', sources, {
        patient: true,
        ...rest,
        network: { uploadSizes: SIZES, hosts, ...rest.network },
      });
      for (const image of images) {
        for (const { descriptor } of image.blobs) expect(target.hasBlob('t/all', descriptor.digest)).toBe(true);
      }
      expect(target.missingFrom('t/all', '1')).toEqual([]);
      for (const entry of target.journal) expect(entry.headers['transfer-encoding']).toBeUndefined();
      return { target, source, images, report };
    }),
  );
}

const lengthOf = (entry: JournalEntry): number => Number(entry.headers['content-length']);
const patches = (registry: RunningRegistry) => requests(registry, 'uploadPatch');
const wholes = (registry: RunningRegistry) => requests(registry, 'uploadPut').filter((entry) => lengthOf(entry) > 0);
const layerOf = (image: BuiltManifest | undefined): number => image?.blobs.at(-1)?.descriptor.size ?? Number.NaN;
const refused = (registry: RunningRegistry, status: number): readonly number[] =>
  requests(registry, 'uploadPatch', 'uploadPut')
    .filter((entry) => entry.status === status)
    .map(lengthOf);

/** Chunks of one size with their ranges, the last one smaller, closed by an empty PUT. */
function expectChunks(registry: RunningRegistry, size: number, total: number): void {
  const taken = patches(registry).filter(({ status = 500 }) => status < 300);
  const sessions = new Map<string, JournalEntry[]>();
  for (const entry of taken) sessions.set(entry.path, [...(sessions.get(entry.path) ?? []), entry]);
  for (const chunks of sessions.values()) {
    let at = 0;
    for (const [index, chunk] of chunks.entries()) {
      const length = lengthOf(chunk);
      expect(chunk.headers['content-range']).toBe(`${at}-${at + length - 1}`);
      expect(chunk.headers['content-type']).toBe('application/octet-stream');
      if (index < chunks.length - 1) expect(length).toBe(size);
      expect(length).toBeGreaterThan(1);
      expect(length).toBeLessThanOrEqual(size);
      at += length;
    }
    const closing = requests(registry, 'uploadPut').find((put) => put.path === chunks[0]?.path);
    expect(closing?.headers['content-length']).toBe('0');
  }
  expect(taken.reduce((sum, chunk) => sum + lengthOf(chunk), 0)).toBe(total);
}

describe('a host that takes less than a whole blob', () => {
  it('is asked once for each size, by one of the blobs; the others wait for what it meets', async () => {
    const { target, images } = await copied('nginx-1m', {}, [300 * KIB, 310 * KIB, 320 * KIB, 330 * KIB]);
    const sizes = refused(target, 413);
    expect(sizes).toHaveLength(4);
    expect(sizes.slice(1)).toEqual([FIVE_MIB, FIVE_MIB / 2, FIVE_MIB / 4]);
    expectChunks(
      target,
      FIVE_MIB / 8,
      images.reduce((sum, image) => sum + layerOf(image), 0),
    );
  });

  it('by a proxy that only closes the connection', async () => {
    const { target, images } = await copied('nginx-1m', { proxy: { closeEarly: true, maxBody: MIB } }, [300 * KIB]);
    expectChunks(target, FIVE_MIB / 8, layerOf(images[0]));
  });

  it.each([FIVE_MIB + 1, 2 * FIVE_MIB + 1])(
    'is found out by cuts alone, which are refusals and no tries, for a blob of %i bytes',
    async (size) => {
      const cuts = { proxy: { closeEarly: true, maxBody: MIB } };
      const { target, images } = await copied('nginx-1m', cuts, [size], { network: { retries: 0 } });
      expect(layerOf(images[0])).toBe(size);
      const sent = requests(target, 'uploadPatch', 'uploadPut').map(lengthOf);
      const large = sent.filter((length) => length > SIZES.scout);
      // One byte less in each, which spares the last one: never one more than is wanted.
      const halves = [FIVE_MIB, FIVE_MIB / 2, FIVE_MIB / 4].filter((length) => length < size - 1);
      expect(large).toEqual([size, ...halves.map((length) => length - 1)]);
    },
  );

  it('gets whole what is known to pass', async () => {
    const { target } = await copied('cloudflare-100m', {}, [1700 * KIB, 100 * KIB]);
    expect(refused(target, 413)).toHaveLength(1);
    expect(wholes(target).some((put) => put.status === 201 && lengthOf(put) > 90 * KIB)).toBe(true);
  });

  it('is told of with the likely limit when nothing gets through', async () => {
    const run = copied('nginx-1m', { proxy: { maxBody: 100 * KIB } }, [300 * KIB]);
    await expect(run).rejects.toMatchObject({ code: 'UPLOAD_REFUSED', status: 413 });
    await expect(run).rejects.toMatchObject({ hint: expect.stringMatching(/nginx.*1m.*Cloudflare: 100 MB/) });
  });

  it('a 413 is final where blobs are to be sent whole', async () => {
    const run = copied('spec', { upload: { put: '413over(1048576)' } }, [300 * KIB], { upload: 'whole' });
    await expect(run).rejects.toMatchObject({ code: 'UPLOAD_REFUSED' });
  });
});

describe('chunks', () => {
  it('are not sent unless something asks for them', async () => {
    const { target } = await copied('ghcr', {}, [300 * KIB]);
    expect(patches(target)).toHaveLength(0);
  });

  it('that are too large for GHCR shrink to what it takes at once', async () => {
    const { target, images } = await copied('ghcr', {}, [300 * KIB, 310 * KIB], { upload: 'chunks' });
    expect(refused(target, 416)).toEqual([FIVE_MIB]);
    const layers = images.reduce((sum, image) => sum + layerOf(image), 0);
    const configs = images.reduce((sum, image) => sum + (image.blobs[0]?.descriptor.size ?? 0), 0);
    expectChunks(target, FOUR_MIB, layers + configs);
  });

  it('are sent where the session says that it takes no more, without a refusal', async () => {
    const { target, images } = await copied('serverless-2024', {}, [1600 * KIB]);
    expect(requests(target).filter(({ status = 0 }) => status >= 400 && status !== 404)).toEqual([]);
    expectChunks(target, FIVE_MIB, layerOf(images[0]));
  });

  it.each(['201', '204'] as const)(
    'are taken where a PATCH is answered %s and its Range is stuck',
    async (patchStatus) => {
      const { target, images } = await copied('ecr-off', { upload: { patchStatus } }, [300 * KIB], {
        upload: 'chunks',
        prepare: (registry) => registry.createRepository('t/all'),
      });
      const config = images[0]?.blobs[0]?.descriptor.size ?? 0;
      expectChunks(target, FIVE_MIB, layerOf(images[0]) + config);
    },
  );

  it.each(['zot', 'quay', 'gitea', 'distribution-v3', 'distribution-v2', 'serverless'])(
    'are taken by %s',
    async (name) => {
      const { target, images } = await copied(name, {}, [300 * KIB], {
        upload: 'chunks',
        prepare: (registry) => registry.createRepository('t/all'),
      });
      expectChunks(target, FIVE_MIB, layerOf(images[0]) + (images[0]?.blobs[0]?.descriptor.size ?? 0));
    },
  );

  it('give way to whole blobs where a range is refused', async () => {
    const { target } = await copied('gar', {}, [300 * KIB, 310 * KIB], { upload: 'chunks' });
    // The configs are small and wait for nobody.
    expect(refused(target, 400).length).toBeLessThanOrEqual(3);
    expect(wholes(target).filter(({ status }) => status === 201)).toHaveLength(4);
  });

  it('are not what a blob of one byte is sent in', async () => {
    const { target, images } = await copied('serverless-2024', {}, [1], { upload: 'chunks' });
    expect(layerOf(images[0])).toBe(1);
    expect(wholes(target).map(lengthOf)).toEqual([1]);
  });

  it('and whole blobs to one PATCH without a range, the last form there is', async () => {
    const { target, images } = await copied('gar', { upload: { put: '404blobUnknown' } }, [300 * KIB]);
    const stream = patches(target).filter(({ status }) => status === 202);
    expect(stream.map(lengthOf)).toContain(layerOf(images[0]));
    expect(stream.every(({ headers }) => headers['content-range'] === undefined)).toBe(true);
    expect(
      requests(target, 'uploadPut')
        .filter(({ status }) => status === 201)
        .map(lengthOf),
    ).toEqual([0, 0]);
  });
});

describe('an upload whose end is not answered 201', () => {
  it('is looked after once', async () => {
    const looks = async (put: '201' | '204') => {
      const { target } = await copied('spec', { upload: { put } }, [300 * KIB]);
      return requests(target, 'blobHead').length;
    };
    expect(await looks('204')).toBe((await looks('201')) + 2);
  });

  it('and whose blob is not there broke, and leaves no session open', async () => {
    const run = copied('spec', {}, [300 * KIB], {
      network: { retries: 1 },
      prepare: (target) =>
        target.addFault({ operation: 'uploadPut', times: 99, action: { kind: 'answer', status: 202 } }),
    });
    await expect(run).rejects.toMatchObject({ code: 'PROTOCOL_VIOLATED', exitCode: 6 });
  });
});

describe('an upload that breaks', () => {
  const cutAt = (bodyBytes: number, more: object = {}) => ({
    operation: 'uploadPut' as const,
    path: /./,
    action: { kind: 'reset' as const, when: { bodyBytes } },
    ...more,
  });
  /** The first PUT is the small config's: the layer alone is larger than what is let through. */
  const breakHalf = (target: RunningRegistry) => target.addFault(cutAt(150 * KIB, { times: 2 }));

  it('is asked for, then goes on in its session; the source is read from there', async () => {
    const { target, source, images } = await copied('spec', {}, [300 * KIB], { prepare: breakHalf });
    const order = target.journal.map(({ operation }) => operation);
    const broken = order.lastIndexOf('uploadGet');
    expect(order[broken - 1]).toBe('blobHead');
    expect(order.slice(broken + 1)).not.toContain('uploadPost');
    expect(patches(target)[0]?.headers['content-range']).toMatch(/^[1-9]\d+-/);
    const sent = requests(target, 'uploadPatch', 'uploadPut').reduce((sum, entry) => sum + entry.bytesIn, 0);
    // What the cut threw away is no more than one read of the socket.
    expect(sent).toBeLessThan(layerOf(images[0]) + 70 * KIB);
    expect(requests(source, 'blobGet').length).toBe(3);
  });

  it.each(['ecr-off', 'ghcr', 'quay', 'gitea', 'zot', 'distribution-v3', 'serverless', 'gar'])(
    'comes to its end on %s, whatever that says of the session',
    async (name) => {
      const { target } = await copied(name, {}, [300 * KIB], {
        prepare: (registry) => {
          registry.createRepository('t/all');
          breakHalf(registry);
        },
      });
      expect(target.openSessions()).toBe(0);
    },
  );

  it('chunk by chunk loses no more than a chunk, and its tries begin anew with every one that got further', async () => {
    const { target, images } = await copied('spec', {}, [1200 * KIB], {
      upload: 'chunks',
      network: { retries: 2 },
      prepare: (registry) => {
        for (const nth of [3, 5, 7, 9, 11, 13]) {
          registry.addFault({ operation: 'uploadPatch', nth, action: { kind: 'answer', status: 503 } });
        }
      },
    });
    expect(requests(target, 'uploadPost')).toHaveLength(2);
    expectChunks(target, FIVE_MIB, layerOf(images[0]) + (images[0]?.blobs[0]?.descriptor.size ?? 0));
  });

  it('in a session whose word for it was wrong is sent once more from the start before it is called corrupt', async () => {
    const { target } = await copied('spec', { upload: { status: 'plusOne', rangeCheck: 'none' } }, [300 * KIB], {
      prepare: (registry, from) => {
        breakHalf(registry);
        // Of the config, of the layer, from where it broke, and now from the start.
        from.addFault({ operation: 'blobGet', nth: 4, action: { kind: 'corrupt' } });
      },
    });
    expect(requests(target, 'uploadPut').map(({ status }) => status)).toContain(400);
  });

  it('a 429 to a chunk is waited for, in the same session', async () => {
    const { target } = await copied('spec', {}, [300 * KIB], {
      upload: 'chunks',
      network: { retries: 0 },
      prepare: (registry) =>
        registry.addFault({ operation: 'uploadPatch', nth: 3, times: 3, action: { kind: 'answer', status: 429 } }),
    });
    expect(requests(target, 'uploadPost')).toHaveLength(2);
  });

  it('and was committed all the same is done', async () => {
    const { target } = await copied('spec', { upload: { commit: 'loseAnswer' } }, [300 * KIB]);
    expect(requests(target, 'uploadPost')).toHaveLength(2);
  });

  it.each([
    'retry404present',
    'retry404lost',
    'dup400',
    'slow(50)',
    'slow+retry404present(50)',
    'slow+retry404lost(50)',
  ] as const)('ends well where commits are %s', async (commit) => {
    await copied('ghcr', { upload: { commit } }, [300 * KIB]);
  });

  it('by a closing PUT whose answer was lost is closed once more, without its bytes', async () => {
    const { target, images } = await copied('spec', { upload: { commit: 'ok' } }, [300 * KIB], {
      upload: 'chunks',
      prepare: (registry) =>
        registry.addFault({ operation: 'uploadPut', nth: 1, times: 2, action: { kind: 'reset', when: 'before' } }),
    });
    expectChunks(target, FIVE_MIB, layerOf(images[0]) + (images[0]?.blobs[0]?.descriptor.size ?? 0));
  });
});

describe('a source that breaks', () => {
  it('is read on from where it broke, and the upload does not notice', async () => {
    const { target, source, images } = await copied('spec', {}, [300 * KIB], {
      prepare: (_, from) =>
        from.addFault({ operation: 'blobGet', nth: 2, times: 3, action: { kind: 'truncate', bytes: 50 * KIB } }),
    });
    const reads = requests(source, 'blobGet').filter(({ headers }) => headers['range'] !== undefined);
    expect(reads).toHaveLength(3);
    expect(reads.map(({ status }) => status)).toEqual([206, 206, 206]);
    expect(wholes(target).map(lengthOf)).toContain(layerOf(images[0]));
    expect(wholes(target)).toHaveLength(2);
  });

  it('is asked no more often than anything is asked, however the copy is tried', async () => {
    let source: RunningRegistry | undefined;
    const run = copied('spec', {}, [300 * KIB], {
      network: { retries: 2 },
      prepare: (_, from) => {
        source = from;
        from.addFault({ operation: 'blobGet', nth: 2, times: 99, action: { kind: 'truncate', bytes: KIB } });
      },
    });
    await expect(run).rejects.toMatchObject({ code: 'NETWORK_FAILED', side: 'source' });
    if (source === undefined) throw new Error('no source');
    expect(requests(source, 'blobGet')).toHaveLength(1 + 3);
  });

  it('with another content than before is corrupt', async () => {
    const run = copied('spec', {}, [300 * KIB], {
      prepare: (_, from) => from.addFault({ operation: 'blobGet', nth: 2, times: 99, action: { kind: 'corrupt' } }),
    });
    await expect(run).rejects.toMatchObject({ code: 'DIGEST_MISMATCH', exitCode: 6 });
  });
});

describe('mounts that are off', () => {
  it('are not asked for: the target is asked for the blob, then a session is opened', () =>
    withRegistry({}, async (registry) => {
      seedImage(registry, 't/a', '1', { layers: 1 });
      const network = { hosts: { [registry.host]: { mount: 'never' as const } } };
      const report = await publishTo(registry, 't/all:1', ['t/a:1'], { network });
      expect(requests(registry, 'mount')).toHaveLength(0);
      expect(requests(registry, 'uploadPost')).toHaveLength(2);
      const blobs = report.lists[0]?.images[0]?.placed[0]?.blobs ?? [];
      expect(blobs.map(({ why }) => why)).toEqual(
        blobs.map(() => `mounts are off for ${registry.host} by the configuration`),
      );
    }));
});
