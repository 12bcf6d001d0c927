import type { Platform } from '../../src/model/descriptor.ts';
import { type Digest, digestOf } from '../../src/model/digest.ts';
import type { ImageIndex } from '../../src/model/manifest.ts';
import type { Inspection, Verification } from '../../src/publish/findings.ts';
import type { BlobOutcome, ImageOutcome, ListReport, PublishReport } from '../../src/publish/report.ts';
import type { PlanEvent, Theme } from '../../src/ui/render.ts';

export const PLAIN: Theme = { color: false, unicode: true, width: Number.POSITIVE_INFINITY };
export const WIDE: Theme = { color: false, unicode: true, width: 160 };
export const NARROW: Theme = { color: false, unicode: true, width: 60 };
export const COLOR: Theme = { color: true, unicode: true, width: 110 };
export const ASCII: Theme = { color: false, unicode: false, width: 110 };

export const TARGET = 'public.ecr.aws/debian/debian:bullseye';

export function digest(seed: string): Digest {
  return digestOf(Buffer.from(seed));
}

const PLATFORMS: readonly (readonly [string, Platform])[] = [
  ['i386', { os: 'linux', architecture: '386' }],
  ['amd64', { os: 'linux', architecture: 'amd64' }],
  ['armel', { os: 'linux', architecture: 'arm', variant: 'v5' }],
  ['arm64v8', { os: 'linux', architecture: 'arm64', variant: 'v8' }],
];

function blob(seed: string, size: number, how: BlobOutcome['how'], why?: string): BlobOutcome {
  const bytesSent = how === 'copied' ? size : 0;
  return { digest: digest(seed), size, how, bytesSent, ...(why === undefined ? {} : { why }) };
}

const IMAGES: readonly ImageOutcome[] = PLATFORMS.map(([name, platform], at) => ({
  source: `public.ecr.aws/debian/${name}:bullseye@${digest(name)}`,
  digest: digest(name),
  size: 528,
  kind: 'image',
  platform,
  placed: [
    {
      repository: 'debian/debian',
      manifest: at === 3 ? 'present' : 'pushed',
      blobs:
        [
          [blob('c0', 1470, 'mounted'), blob('l0', 32_400_000, 'mounted')],
          [blob('c1', 1470, 'mounted'), blob('l1', 31_350_000, 'copied', 'mount answered 202')],
          [blob('c2', 1470, 'present'), blob('l2', 29_100_000, 'copied', 'mount answered 202')],
          [],
        ][at] ?? [],
    },
  ],
}));

const ATTESTATION: ImageOutcome = {
  source: `public.ecr.aws/debian/amd64:bullseye@${digest('attestation')}`,
  digest: digest('attestation'),
  size: 840,
  kind: 'attestation',
  platform: { os: 'unknown', architecture: 'unknown' },
  placed: [{ repository: 'debian/debian', manifest: 'pushed', blobs: [blob('a0', 900, 'copied')] }],
};

export const LIST: ListReport = {
  targets: [
    { reference: TARGET, digest: digest('index'), action: 'updated' },
    { reference: 'public.ecr.aws/debian/debian:11', digest: digest('index'), action: 'created' },
    { reference: 'public.ecr.aws/debian/debian:oldstable', digest: digest('index'), action: 'unchanged' },
  ],
  index: { mediaType: 'application/vnd.oci.image.index.v1+json', digest: digest('index'), size: 2113, manifests: [] },
  images: [...IMAGES, ATTESTATION],
};

export const REPORT: PublishReport = {
  schemaVersion: 1,
  lists: [LIST],
  totals: {
    blobs: { present: 1, mounted: 3, copied: 3, skipped: 0 },
    bytesSent: 60_450_900,
    bytesSaved: 32_404_410,
    requests: 214,
    retries: 2,
    seconds: 12.4,
  },
  warnings: ['the registry says: "this repository moves soon"'],
};

export const UNCHANGED: PublishReport = {
  ...REPORT,
  lists: [
    {
      ...LIST,
      targets: [{ reference: TARGET, digest: digest('index'), action: 'unchanged' }],
      images: IMAGES.map((image) => ({
        ...image,
        placed: [{ repository: 'debian/debian', manifest: 'present' as const, blobs: [] }],
      })),
    },
  ],
  totals: {
    blobs: { present: 0, mounted: 0, copied: 0, skipped: 0 },
    bytesSent: 0,
    bytesSaved: 0,
    requests: 25,
    retries: 0,
    seconds: 0.42,
  },
  warnings: [],
};

export const MANY: PublishReport = {
  ...REPORT,
  lists: [
    LIST,
    {
      ...LIST,
      targets: [
        {
          reference: 'public.ecr.aws/debian/debian:bookworm',
          digest: digest('other'),
          action: 'failed',
          error: { code: 'DENIED', message: 'may not push to public.ecr.aws/debian/debian', exitCode: 3 },
        },
      ],
      images: [],
    },
  ],
};

const ELSEWHERE = 'ghcr.io/acme/debian';

/** One list in three repositories; the third could not be written to. */
export const REPOSITORIES: PublishReport = {
  ...REPORT,
  lists: [
    {
      ...LIST,
      targets: [
        { reference: TARGET, digest: digest('index'), action: 'updated' },
        { reference: 'public.ecr.aws/debian/debian:11', digest: digest('index'), action: 'created' },
        { reference: `${ELSEWHERE}:bullseye`, digest: digest('index'), action: 'created' },
        {
          reference: 'docker.io/acme/debian:bullseye',
          digest: digest('index'),
          action: 'failed',
          error: { code: 'DENIED', message: 'may not push to docker.io/acme/debian', exitCode: 3 },
        },
        {
          reference: 'docker.io/acme/debian:11',
          digest: digest('index'),
          action: 'failed',
          error: { code: 'DENIED', message: 'may not push to docker.io/acme/debian', exitCode: 3 },
        },
      ],
      images: IMAGES.map((image) => ({
        ...image,
        placed: image.placed.flatMap((place) => [
          { ...place, repository: 'public.ecr.aws/debian/debian' },
          {
            repository: ELSEWHERE,
            manifest: 'pushed' as const,
            blobs: place.blobs.map(({ digest, size }) => ({ digest, size, how: 'copied' as const, bytesSent: size })),
          },
        ]),
      })),
    },
  ],
};

export const DRY: PublishReport = {
  ...REPORT,
  dryRun: true,
  lists: [{ ...LIST, images: LIST.images.map((image) => ({ ...image, placed: [] })) }],
};

export const PLAN: PlanEvent = {
  kind: 'plan',
  target: TARGET,
  blobs: 8,
  bytes: 123_000_000,
  images: IMAGES.map(({ source, digest: of, platform }) => ({
    source,
    digest: of,
    platform,
    kind: 'image',
    blobs: 2,
    bytes: 30_750_000,
  })),
};

const INDEX: ImageIndex = {
  kind: 'index',
  mediaType: 'application/vnd.oci.image.index.v1+json',
  digest: digest('index'),
  size: 2113,
  manifests: [],
};

const base = { digest: digest('base'), size: 28_000_000, foreign: false };

export const INSPECTION: Inspection = {
  reference: TARGET,
  digest: digest('index'),
  mediaType: INDEX.mediaType,
  bytes: new Uint8Array(2113),
  manifest: INDEX,
  children: [
    ...PLATFORMS.map(([name, platform], at) => ({
      digest: digest(name),
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      kind: 'image' as const,
      platform,
      config: { digest: digest(`c${at}`), size: 1470 },
      layers: [...(at < 2 ? [base] : []), { digest: digest(`l${at}`), size: 3_100_000, foreign: false }],
    })),
    {
      digest: digest('attestation'),
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      kind: 'attestation',
      platform: { os: 'unknown', architecture: 'unknown' },
      subject: digest('amd64'),
      layers: [{ digest: digest('statement'), size: 900, foreign: false }],
    },
    {
      digest: digest('orphan'),
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      kind: 'attestation',
      subject: digest('dropped'),
      layers: [],
    },
  ],
};

const CHILDREN = INSPECTION.children ?? [];

/** An index of indexes, an artifact, and an index that lies too deep. */
export const NESTED: Inspection = {
  ...INSPECTION,
  children: [
    { digest: digest('one'), mediaType: INDEX.mediaType, kind: 'index', layers: [], children: CHILDREN.slice(0, 2) },
    {
      digest: digest('chart'),
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      kind: 'artifact',
      artifactType: 'application/vnd.cncf.helm.config.v1+json',
      layers: [{ digest: digest('chart layer'), size: 12_000, foreign: false }],
    },
    {
      digest: digest('two'),
      mediaType: INDEX.mediaType,
      kind: 'index',
      layers: [],
      children: [
        ...CHILDREN.slice(2, 3),
        { digest: digest('three'), mediaType: INDEX.mediaType, kind: 'index', layers: [] },
      ],
    },
  ],
};

export const SINGLE: Inspection = {
  reference: 'docker.io/library/windows:ltsc',
  digest: digest('windows'),
  mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
  bytes: new Uint8Array(1124),
  manifest: {
    kind: 'image',
    mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
    digest: digest('windows'),
    size: 1124,
    config: { mediaType: 'application/vnd.docker.container.image.v1+json', digest: digest('wc'), size: 2300 },
    layers: [],
  },
  children: [
    {
      digest: digest('windows'),
      mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
      kind: 'image',
      config: { digest: digest('wc'), size: 2300 },
      layers: [
        { digest: digest('w0'), size: 1_700_000_000, foreign: true },
        { digest: digest('w1'), size: 4_096, foreign: false },
      ],
    },
  ],
};

export const VERIFIED: Verification = {
  reference: TARGET,
  digest: digest('index'),
  deep: true,
  manifests: 5,
  blobs: 8,
  skipped: 1,
  bytesRead: 123_000_000,
  problems: [],
  warnings: [],
};

export const BROKEN: Verification = {
  ...VERIFIED,
  deep: false,
  bytesRead: 0,
  problems: [
    { digest: digest('l1'), what: 'blob is not in public.ecr.aws/debian/debian' },
    { digest: digest('amd64'), what: 'manifest is not in public.ecr.aws/debian/debian' },
  ],
};
