import { type Blob, blob, type Image, OCI_MANIFEST, type Source } from './images.ts';

/** What the config of an image says of its platform; old tools leave fields out. */
export type ConfigPlatform = {
  readonly architecture?: string;
  readonly os?: string;
  readonly variant?: string;
  readonly 'os.version'?: string;
  readonly 'os.features'?: readonly string[];
};

/** Whose media types an image has. */
export type Family = 'docker' | 'oci';

/** How the bytes of a manifest are laid out: they must reach the target as they are, whoever wrote them. */
export type Writing = 'docker' | 'buildkit' | 'compact' | 'odd';

/** An image to be made; `tag` and `repository` also make it unlike any other. */
export type ImagePlan = {
  readonly repository: string;
  readonly tag: string;
  readonly family: Family;
  readonly platform: ConfigPlatform;
  readonly writing: Writing;
  /** Makes another image under the same name. */
  readonly edition?: string;
};

type Types = { readonly manifest: string; readonly config: string; readonly layer: string };

export const DOCKER_MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';
export const DOCKER_LIST = 'application/vnd.docker.distribution.manifest.list.v2+json';

const TYPES: Readonly<Record<Family, Types>> = {
  docker: {
    manifest: DOCKER_MANIFEST,
    config: 'application/vnd.docker.container.image.v1+json',
    layer: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
  },
  oci: {
    manifest: OCI_MANIFEST,
    config: 'application/vnd.oci.image.config.v1+json',
    layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  },
};

/** Two small layers and a config: registries do not look into either. */
export function makeSource(plan: ImagePlan): Source {
  const { repository, tag, family } = plan;
  const types = TYPES[family];
  const config = blob(
    Buffer.from(JSON.stringify({ ...plan.platform, config: {}, rootfs: { type: 'layers' }, ...plan })),
  );
  const layers = ['base', 'app'].map((name) => blob(Buffer.from(`${name} ${repository}:${tag} ${plan.edition ?? ''}`)));
  const document = {
    schemaVersion: 2,
    mediaType: types.manifest,
    config: describe(types.config, config),
    layers: layers.map((layer) => describe(types.layer, layer)),
  };
  const manifest = blob(Buffer.from(write(document, plan.writing)));
  const image: Image = {
    manifest,
    entry: { mediaType: types.manifest, size: manifest.bytes.length, digest: manifest.digest },
    blobs: [config, ...layers],
  };
  return { repository, tag, document: manifest, mediaType: types.manifest, images: [image] };
}

function describe(mediaType: string, { bytes, digest }: Blob): object {
  return { mediaType, size: bytes.length, digest };
}

/** What a reader may not touch: order of keys, white space, line ends, numbers, escapes that need not be, and Go's. */
const NOTE = String.raw`{ "plain": "a<b>&c é   🚢", "escaped": "\u003c\u0026\/\"\u2028", "none" : { }, "few":[ ], "n": 1.50e+03 }`;

function write(document: object, writing: Writing): string {
  if (writing === 'docker') return JSON.stringify(document, undefined, 3);
  if (writing === 'buildkit') return JSON.stringify(document, undefined, 2);
  if (writing === 'compact') return JSON.stringify(document);
  const reversed = Object.fromEntries(Object.entries(document).reverse());
  const text = JSON.stringify(reversed, undefined, '\t').replace('{', () => `{\n\t"note" : ${NOTE},`);
  return `${text.replaceAll('\n', '\r\n')}\r\n\r\n`;
}
