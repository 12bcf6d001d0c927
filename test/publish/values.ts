import { type Descriptor, MEDIA_TYPES, type Platform } from '../../src/model/descriptor.ts';
import { type Digest, digestOf } from '../../src/model/digest.ts';
import type { ImageIndex, ImageManifest } from '../../src/model/manifest.ts';
import { parseReference } from '../../src/model/reference.ts';
import type { PublishRequest, SourceRequest } from '../../src/publish/request.ts';
import type { Resolution, ResolvedChild, ResolvedSource, TagState } from '../../src/publish/resolved.ts';
import { requestOf } from '../helpers/publishing.ts';

/** A digest that stands for some content, by name. */
export function digest(name: string): Digest {
  return digestOf(Buffer.from(name));
}

export function blob(name: string, size = name.length, more: Partial<Descriptor> = {}): Descriptor {
  return { mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', digest: digest(name), size, ...more };
}

export function image(name: string, layers: readonly Descriptor[], more: Partial<ImageManifest> = {}): ImageManifest {
  return {
    kind: 'image',
    mediaType: MEDIA_TYPES.ociManifest,
    digest: digest(name),
    size: 500,
    config: { ...blob(`${name}-config`), mediaType: MEDIA_TYPES.ociConfig },
    layers,
    ...more,
  };
}

export function child(repository: string, manifest: ImageManifest, more: Partial<ResolvedChild> = {}): ResolvedChild {
  return {
    from: { host: 'reg.test', repository },
    name: `reg.test/${repository}@${manifest.digest}`,
    manifest,
    descriptor: { mediaType: manifest.mediaType, digest: manifest.digest, size: manifest.size },
    kind: 'image',
    subjects: [],
    ...more,
  };
}

export function source(one: ResolvedChild, request: Partial<SourceRequest> = {}): ResolvedSource {
  const reference = parseReference(`reg.test/${one.from.repository}:1`);
  return { request: { reference, ...request }, root: one.manifest, flat: false, children: [one] };
}

/** A source whose root is an index that lists these children. */
export function indexSource(
  repository: string,
  children: readonly ResolvedChild[],
  request: Partial<SourceRequest> = {},
): ResolvedSource {
  const root: ImageIndex = {
    kind: 'index',
    mediaType: MEDIA_TYPES.ociIndex,
    digest: digest(`${repository}-index`),
    size: 900,
    manifests: children.map((one) => one.descriptor),
  };
  return {
    request: { reference: parseReference(`reg.test/${repository}:1`), ...request },
    root,
    flat: true,
    children,
  };
}

export function withPlatform(one: ResolvedChild, platform: Platform): ResolvedChild {
  return { ...one, descriptor: { ...one.descriptor, platform } };
}

export function attestation(repository: string, name: string, of: ResolvedChild): ResolvedChild {
  const manifest = image(name, [blob(`${name}-intoto`)]);
  const one = child(repository, manifest, { kind: 'attestation', subjects: [of.manifest.digest] });
  return {
    ...one,
    descriptor: {
      ...one.descriptor,
      annotations: {
        'vnd.docker.reference.type': 'attestation-manifest',
        'vnd.docker.reference.digest': of.manifest.digest,
      },
      platform: { architecture: 'unknown', os: 'unknown' },
    },
  };
}

export function resolution(sources: readonly ResolvedSource[], tag: Partial<TagState> = {}): Resolution {
  const reference = parseReference('reg.test/t/all:1');
  const state = { reference, tag: '1', kind: 'absent', ...tag } as TagState;
  return { target: { host: 'reg.test', repository: 't/all' }, tags: [state], sources };
}

export function request(more: Partial<PublishRequest> = {}): PublishRequest {
  return { ...requestOf('reg.test/t/all:1', []), ...more };
}
