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
  /** Where the source was named, for messages. */
  readonly origin?: string;
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
  /** Entries of what TARGET holds whose manifests are not there any more; any other source with such an entry is damaged. */
  readonly gone?: readonly GoneEntry[];
};

/** An entry without its manifest: `at` counts the children that stand before it. */
export type GoneEntry = { readonly entry: Descriptor; readonly at: number; readonly error: PublishError };

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

/** One repository that is published to, with its target tags; the first of them moves first. */
export type TargetRepository = { readonly target: Location; readonly references: readonly Reference[] };

/**
 * Everything read before the first decision, as far as it concerns one target repository; `sources` are the same for
 * all of them. Manifest bytes travel beside it, keyed by digest.
 */
export type Resolution = {
  readonly target: Location;
  readonly tags: readonly TagState[];
  readonly sources: readonly ResolvedSource[];
  /** What TARGET holds, where it is amended. */
  readonly present?: ResolvedSource;
};

/** Exact bytes of manifests and indexes, keyed by digest. */
export type ManifestBytes = ReadonlyMap<Digest, Uint8Array>;
