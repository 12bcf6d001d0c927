import type { PublishError } from '../errors.ts';
import type { Descriptor } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import type { ImageManifest, Manifest } from '../model/manifest.ts';
import type { Reference } from '../model/reference.ts';
import type { SourceRequest } from './request.ts';

/** Where a manifest or blob can be read. */
export type Location = { readonly host: string; readonly repository: string };

/** An image manifest, an attestation beside an image, or something else that an index may list. */
export type ChildKind = 'image' | 'attestation' | 'artifact';

/**
 * One child of the list to be, with what is known of it before any config is read. `descriptor` is the index entry
 * as its source index has it, or made from the manifest alone.
 */
export type ResolvedChild = {
  readonly from: Location;
  /** The source in full, pinned to this child's digest: how reports and messages name it. */
  readonly name: string;
  readonly manifest: ImageManifest;
  readonly descriptor: Descriptor;
  readonly kind: ChildKind;
  /** What must be in the target before this child: an attestation's image, a manifest's `subject`. */
  readonly subjects: readonly Digest[];
};

/** One source with the children it brings, in the order of its index. */
export type ResolvedSource = {
  readonly request: SourceRequest;
  readonly root: Manifest;
  /** True when the root lists manifests only, no further index: then it can be published as it is. */
  readonly flat: boolean;
  readonly children: readonly ResolvedChild[];
};

/** What a target tag held when it was read. `unknown` is planned as absent and said in a warning. */
export type TagState = { readonly reference: Reference; readonly tag: string } & (
  | { readonly kind: 'absent' }
  | { readonly kind: 'unknown'; readonly error: PublishError }
  | {
      readonly kind: 'present';
      readonly digest: Digest;
      /** True for an image of its own: publishing there replaces it by a list. */
      readonly isImage: boolean;
      readonly children: readonly Digest[];
    }
);

/** Everything read before the first decision. Manifest bytes travel beside it, keyed by digest. */
export type Resolution = {
  readonly target: Location;
  readonly tags: readonly TagState[];
  readonly sources: readonly ResolvedSource[];
};

/** Exact bytes of manifests and indexes, keyed by digest. */
export type ManifestBytes = ReadonlyMap<Digest, Uint8Array>;
