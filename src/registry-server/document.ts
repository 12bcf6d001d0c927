import { MEDIA_TYPES } from '../model/descriptor.ts';
import { type Digest, isDigest } from '../model/digest.ts';

/** An entry of a manifest or index as far as a registry looks at it. */
export type Entry = {
  readonly digest: Digest;
  readonly mediaType: string;
  readonly size: number | undefined;
  /** It lives elsewhere by right: `urls`, or a type that says so. */
  readonly foreign: boolean;
  readonly platform: { readonly os?: unknown; readonly architecture?: unknown } | undefined;
};

/** What a registry reads in a manifest body. A body that is no JSON object yields `undefined`. */
export type Document = {
  readonly mediaType: string | undefined;
  readonly blobs: readonly Entry[];
  readonly children: readonly Entry[];
  readonly subject: Digest | undefined;
  readonly artifactType: string | undefined;
  readonly annotations: Readonly<Record<string, string>> | undefined;
  /** The media type of an image's config, which stands in for an absent artifactType. */
  readonly configType: string | undefined;
  /** What is wrong with an entry, for the message of the refusal. */
  readonly faults: readonly string[];
};

/** What is read in a body that is no JSON, where a registry takes even that. */
export const NO_DOCUMENT: Document = {
  mediaType: undefined,
  blobs: [],
  children: [],
  subject: undefined,
  artifactType: undefined,
  annotations: undefined,
  configType: undefined,
  faults: [],
};

type Fields = Readonly<Record<string, unknown>>;

const FOREIGN = /nondistributable|\.foreign\./;

/** @see image-spec v1.1.1 manifest.md, image-index.md; distribution's schema 1 and the artifact manifest for `blobs` */
export function readDocument(bytes: Uint8Array): Document | undefined {
  const root = parse(bytes);
  if (root === undefined) return undefined;
  const faults: string[] = [];
  const config = root['config'] === undefined ? [] : entries('config', [root['config']], faults);
  const subject = root['subject'] === undefined ? [] : entries('subject', [root['subject']], faults);
  return {
    mediaType: text(root['mediaType']),
    blobs: [
      ...config,
      ...entries('layers', root['layers'], faults),
      ...entries('blobs', root['blobs'], faults),
      ...schema1Layers(root['fsLayers']),
    ],
    children: entries('manifests', root['manifests'], faults),
    subject: subject[0]?.digest,
    artifactType: text(root['artifactType']),
    annotations: texts(root['annotations']),
    configType: config[0]?.mediaType,
    faults,
  };
}

/** Image manifests and indexes of either family. */
export function isIndexType(mediaType: string): boolean {
  return mediaType === MEDIA_TYPES.ociIndex || mediaType === MEDIA_TYPES.dockerList;
}

/** Types of Docker's family, which some registries refuse. */
export function isDockerType(mediaType: string): boolean {
  return mediaType.startsWith('application/vnd.docker.');
}

function parse(bytes: Uint8Array): Fields | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
    return isFields(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError || error instanceof RangeError) return undefined;
    throw error;
  }
}

function entries(field: string, value: unknown, faults: string[]): Entry[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    faults.push(`${field} is not an array`);
    return [];
  }
  return value.flatMap((item: unknown) => {
    const digest = isFields(item) ? text(item['digest']) : undefined;
    if (!isFields(item) || digest === undefined || !isDigest(digest)) {
      faults.push(`${field}: ${digest === undefined ? 'an entry without a digest' : `invalid digest ${digest}`}`);
      return [];
    }
    const mediaType = text(item['mediaType']) ?? '';
    const urls = item['urls'];
    return [
      {
        digest,
        mediaType,
        size: typeof item['size'] === 'number' ? item['size'] : undefined,
        foreign: FOREIGN.test(mediaType) || (Array.isArray(urls) && urls.length > 0),
        platform: isFields(item['platform']) ? item['platform'] : undefined,
      },
    ];
  });
}

function schema1Layers(value: unknown): Entry[] {
  if (!Array.isArray(value)) return [];
  return entries(
    'fsLayers',
    value.map((item: unknown) => ({ digest: isFields(item) ? item['blobSum'] : undefined })),
    [],
  );
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function texts(value: unknown): Readonly<Record<string, string>> | undefined {
  if (!isFields(value)) return undefined;
  return Object.fromEntries(
    Object.entries(value).filter((pair): pair is [string, string] => typeof pair[1] === 'string'),
  );
}
