import type { Platform } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import type { Manifest } from '../model/manifest.ts';

/** What `inspect` read. `bytes` are the document exactly as the registry sent it. */
export type Inspection = {
  /** The reference in full. */
  readonly reference: string;
  readonly digest: Digest;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
  readonly manifest: Manifest;
  /** Read only for a tree; in the order of the index, or the one image itself. */
  readonly children?: readonly InspectedChild[];
};

/** One image, or one index, below an inspected reference. Sizes in bytes. */
export type InspectedChild = {
  readonly digest: Digest;
  readonly mediaType: string;
  /** `missing`: the index lists it, and the registry does not have it. */
  readonly kind: 'image' | 'attestation' | 'artifact' | 'index' | 'missing';
  readonly platform?: Platform;
  /** For artifacts: what they are, where they tell. */
  readonly artifactType?: string;
  /** For an index: what it lists; absent where it lies too deep to be looked into. */
  readonly children?: readonly InspectedChild[];
  /** For attestations: the image they speak of. */
  readonly subject?: Digest;
  readonly config?: { readonly digest: Digest; readonly size: number };
  readonly layers: readonly { readonly digest: Digest; readonly size: number; readonly foreign: boolean }[];
};

/** What `verify` found. The reference is good when `problems` is empty. */
export type Verification = {
  readonly reference: string;
  readonly digest: Digest;
  readonly deep: boolean;
  readonly manifests: number;
  readonly blobs: number;
  /** Foreign layers, which registries need not hold. */
  readonly skipped: number;
  /** Blob bytes that were downloaded and hashed; 0 unless deep. */
  readonly bytesRead: number;
  /** `damaged`: something is there under the digest, and it is not what belongs there. */
  readonly problems: readonly { readonly digest: Digest; readonly what: string; readonly damaged?: true }[];
  readonly warnings: readonly string[];
};
