import { type Descriptor, MEDIA_TYPES } from '../model/descriptor.ts';
import { isDockerType } from '../model/manifest.ts';
import type { PartialPlatform } from '../model/platform.ts';
import type { Inspection } from '../publish/findings.ts';

/** One image as docker keeps and shows it; `bytes` are its manifest. */
export type DockerImage = {
  /** In full, with the tag or digest under which it was asked for. */
  readonly reference: string;
  readonly descriptor: Pick<Descriptor, 'mediaType' | 'digest' | 'size'>;
  readonly platform: PartialPlatform;
  readonly bytes: Uint8Array;
};

/**
 * What `docker manifest inspect` prints: an image's own document indented with tabs, a list built anew from size,
 * digest, media type and platform, indented with three spaces.
 *
 * @see docker/cli cli/command/manifest/inspect.go
 */
export function dockerText({ manifest, bytes }: Inspection): string {
  if (manifest.kind === 'image') return dockerImage(bytes);
  const platforms = platformsIn(bytes);
  return dockerList(manifest.manifests.map((entry, at) => ({ ...entry, platform: platforms[at] ?? {} })));
}

/** An image: its own document. Go's json.Indent keeps the white space that follows it. */
export function dockerImage(bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes);
  return `${harmless(indented(text))}${text.slice(text.trimEnd().length)}\n`;
}

/** An entry of a draft: docker has kept the document as Go's encoder passed it on, which escapes inside strings. */
export function dockerDraftImage({ bytes }: DockerImage): string {
  return `${harmless(indented(escapedAsGo(new TextDecoder().decode(bytes))))}\n`;
}

/** A list of these entries. */
export function dockerList(
  entries: readonly (Pick<Descriptor, 'mediaType' | 'digest' | 'size'> & { readonly platform: PartialPlatform })[],
): string {
  const [first] = entries;
  const list = {
    schemaVersion: 2,
    // Docker takes the type from the first entry, not from the list.
    mediaType: first?.mediaType === MEDIA_TYPES.ociManifest ? MEDIA_TYPES.ociIndex : MEDIA_TYPES.dockerList,
    manifests: entries.map(({ mediaType, size, digest, platform }) => ({
      mediaType,
      size,
      digest,
      platform: dockerPlatform(platform),
    })),
  };
  return `${harmless(escapedAsGo(JSON.stringify(list, null, 3)))}\n`;
}

/**
 * What `docker manifest inspect --verbose` prints: an object for an image, an array for a list, with the manifest as
 * it is, once in base64 and once as a document.
 *
 * @see docker/cli cli/manifest/types/types.go
 */
export function dockerVerbose(found: DockerImage | readonly DockerImage[]): string {
  const text = isList(found) ? `[${found.map(imageDocument).join(',')}]` : imageDocument(found);
  return `${harmless(indented(text))}\n`;
}

function isList(found: DockerImage | readonly DockerImage[]): found is readonly DockerImage[] {
  return Array.isArray(found);
}

/** Put together as text: the manifest keeps the order of its keys and the spelling of its numbers. */
function imageDocument({ reference, descriptor, platform, bytes }: DockerImage): string {
  const { mediaType, digest, size } = descriptor;
  const head = escapedAsGo(
    JSON.stringify({
      Ref: reference,
      Descriptor: { mediaType, digest, size, platform: dockerPlatform(platform) },
      Raw: Buffer.from(bytes).toString('base64'),
    }),
  );
  const document = escapedAsGo(new TextDecoder().decode(bytes));
  return `${head.slice(0, -1)},"${isDockerType(mediaType) ? 'SchemaV2Manifest' : 'OCIManifest'}":${document}}`;
}

/** Docker always prints both names, also when there are none. */
function dockerPlatform(platform: PartialPlatform): object {
  const version = platform['os.version'];
  const features = platform['os.features'];
  return {
    architecture: platform.architecture ?? '',
    os: platform.os ?? '',
    ...(version ? { 'os.version': version } : {}),
    ...(features && features.length > 0 ? { 'os.features': features } : {}),
    ...(platform.variant ? { variant: platform.variant } : {}),
  };
}

/** The platforms of an index that was read already, as they are written: one that lacks a part is shown with the other. */
export function platformsIn(bytes: Uint8Array): readonly (PartialPlatform | undefined)[] {
  const { manifests } = JSON.parse(new TextDecoder().decode(bytes)) as {
    readonly manifests: readonly { readonly platform?: PartialPlatform | null }[] | null;
  };
  return (manifests ?? []).map((entry) => entry.platform ?? undefined);
}

/** Go's json.Indent with a tab: white space is laid out anew, every other character stays as it was. */
function indented(json: string): string {
  let out = '';
  let depth = 0;
  const newLine = () => `\n${'\t'.repeat(depth)}`;
  for (const [token] of json.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{[]\s*[}\]]|[{}[\],:]|[^\s{}[\],:"]+/g)) {
    if (token === '{' || token === '[') {
      depth++;
      out += token + newLine();
    } else if (token === '}' || token === ']') {
      depth--;
      out += newLine() + token;
    } else if (token === ',') out += token + newLine();
    else if (token === ':') out += ': ';
    else out += /^[{[]/.test(token) ? token.replace(/\s/g, '') : token;
  }
  return out;
}

/** What Go's encoder escapes; all of these stand inside strings only. */
function escapedAsGo(json: string): string {
  return json.replace(/[<>&\u2028\u2029]/g, escaped);
}

/** Characters that a terminal acts on are written as escapes; in a valid document they stand only inside strings. */
function harmless(json: string): string {
  return json.replace(/[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    [...character.split('')].map(escaped).join(''),
  );
}

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
