import { type Descriptor, MEDIA_TYPES } from '../../src/model/descriptor.ts';
import { type Digest, digestOf } from '../../src/model/digest.ts';
import type { RunningRegistry } from '../../src/registry-server/index.ts';
import { type BuiltManifest, putBuilt } from '../helpers/images.ts';

/** `sha256-<hex>` */
export function tagOf(digest: Digest): string {
  return digest.replace(':', '-');
}

/** What {@link makeArtifact} may be told. */
export type ArtifactOptions = {
  readonly subject?: Descriptor;
  /** Default: none, so that the config's type stands for it. */
  readonly artifactType?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Annotations of one layer each; default one layer without. */
  readonly layers?: readonly Readonly<Record<string, string>>[];
};

/** An artifact as `oras attach` makes it: an image manifest with an empty config and small layers. */
export function makeArtifact(name: string, options: ArtifactOptions = {}): BuiltManifest {
  const { subject, artifactType, annotations, layers = [{}] } = options;
  const config = textBlob('application/vnd.oci.empty.v1+json', '{}');
  const contents = layers.map((_, position) => textBlob('text/plain', `${name} ${position}`));
  const mediaType = MEDIA_TYPES.ociManifest;
  return built(
    mediaType,
    {
      schemaVersion: 2,
      mediaType,
      ...(artifactType === undefined ? {} : { artifactType }),
      config: config.descriptor,
      layers: contents.map(({ descriptor }, position) => ({ ...descriptor, annotations: layers[position] })),
      ...(subject === undefined ? {} : { subject }),
      ...(annotations === undefined ? {} : { annotations }),
    },
    [config, ...contents],
  );
}

/** As `cosign sign` leaves it behind: the same payload, signed by each of these. */
export function makeSignatures(image: BuiltManifest, ...signers: readonly string[]): BuiltManifest {
  const payload = textBlob('application/vnd.dev.cosign.simplesigning.v1+json', `payload ${image.descriptor.digest}`);
  const config = textBlob(MEDIA_TYPES.ociConfig, JSON.stringify({ signers }));
  const mediaType = MEDIA_TYPES.ociManifest;
  const layers = signers.map((signer) => ({
    ...payload.descriptor,
    annotations: { 'dev.cosignproject.cosign/signature': signer },
  }));
  return built(mediaType, { schemaVersion: 2, mediaType, config: config.descriptor, layers }, [config, payload]);
}

/** An index that refers to something. */
export function makeArtifactIndex(children: readonly BuiltManifest[], subject: Descriptor): BuiltManifest {
  const mediaType = MEDIA_TYPES.ociIndex;
  const manifests = children.map(({ descriptor }) => descriptor);
  const document = { schemaVersion: 2, mediaType, artifactType: 'application/x-bundle', manifests, subject };
  return { ...built(mediaType, document, []), children };
}

/** The client's duty where there is no API: the fallback tag, written by hand. */
export function noteInTag(
  registry: RunningRegistry,
  repository: string,
  subject: Digest,
  referrers: readonly BuiltManifest[],
): void {
  const manifests = referrers.map(({ descriptor }) => descriptor);
  const document = { schemaVersion: 2, mediaType: MEDIA_TYPES.ociIndex, manifests };
  registry.putManifest(repository, Buffer.from(JSON.stringify(document)), MEDIA_TYPES.ociIndex, tagOf(subject));
}

/** Puts referrers of one subject, by the API or by hand. */
export function attach(
  registry: RunningRegistry,
  repository: string,
  subject: BuiltManifest,
  ...referrers: readonly BuiltManifest[]
): void {
  for (const referrer of referrers) putBuilt(registry, repository, referrer);
  if (registry.profile.manifest.referrers === '404') {
    noteInTag(registry, repository, subject.descriptor.digest, referrers);
  }
}

/** What a repository lists by its API or its fallback tag; undefined when it has neither. */
export async function listedAt(
  registry: RunningRegistry,
  repository: string,
  subject: Digest,
): Promise<readonly Descriptor[] | undefined> {
  const path = `/v2/${repository}/referrers/${subject}`;
  const answer = await fetch(`${registry.url}${path}`);
  const text = await answer.text();
  const bytes = answer.ok ? text : registry.manifestOf(repository, tagOf(subject))?.bytes.toString();
  return bytes === undefined ? undefined : (JSON.parse(bytes) as { manifests: readonly Descriptor[] }).manifests;
}

function textBlob(mediaType: string, text: string): BuiltManifest['blobs'][number] {
  const bytes = Buffer.from(text);
  return { descriptor: { mediaType, digest: digestOf(bytes), size: bytes.length }, content: { bytes } };
}

function built(mediaType: string, document: object, blobs: BuiltManifest['blobs']): BuiltManifest {
  const bytes = Buffer.from(JSON.stringify(document));
  return { descriptor: { mediaType, digest: digestOf(bytes), size: bytes.length }, bytes, blobs, children: [] };
}
