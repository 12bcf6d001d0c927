import type { Platform } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';
import type { BlobHow } from './report.ts';

/**
 * What a run tells while it works, in the order in which it happens; progress is drawn from nothing else. Sizes in
 * bytes. `repository`, as `HOST/REPOSITORY`, tells the targets of a run apart where it has several. Plain data: `--progress json` prints one a line.
 */
export type PublishEvent =
  /** Several lists are going to be published; without it there is one. */
  | { readonly kind: 'run.start'; readonly lists: number }
  /** One of several lists has ended; `error` is the message of what ended it. */
  | { readonly kind: 'list.done'; readonly target: string; readonly digest?: Digest; readonly error?: string }
  | { readonly kind: 'resolve.start'; readonly sources: number; readonly target: string }
  | { readonly kind: 'resolve.source'; readonly source: string; readonly digest: Digest; readonly images: number }
  | {
      readonly kind: 'plan';
      readonly target: string;
      readonly images: readonly PlannedImage[];
      readonly blobs: number;
      readonly bytes: number;
    }
  /** The platforms are known: what the index is going to list, and under which digest. */
  | {
      readonly kind: 'index';
      readonly digest: Digest;
      readonly mediaType: string;
      readonly images: readonly IndexedImage[];
    }
  | { readonly kind: 'blob.start'; readonly repository?: string; readonly digest: Digest; readonly size: number }
  /** The mount was not taken; the bytes will be streamed. */
  | { readonly kind: 'blob.refused'; readonly repository?: string; readonly digest: Digest; readonly why: string }
  /** `sent` counts from the start of the current try. */
  | {
      readonly kind: 'blob.progress';
      readonly repository?: string;
      readonly digest: Digest;
      readonly size: number;
      readonly sent: number;
    }
  | {
      readonly kind: 'blob.done';
      readonly repository?: string;
      readonly digest: Digest;
      readonly size: number;
      readonly how: BlobHow;
      readonly bytesSent: number;
    }
  | {
      readonly kind: 'manifest.done';
      readonly repository?: string;
      readonly digest: Digest;
      readonly manifest: 'present' | 'pushed';
    }
  | {
      readonly kind: 'tag.done';
      readonly reference: string;
      readonly digest: Digest;
      readonly action: 'created' | 'updated' | 'unchanged';
    }
  | { readonly kind: 'warning'; readonly text: string };

/** One entry of the index to be. */
export type IndexedImage = Pick<PlannedImage, 'digest' | 'platform' | 'kind'>;

/** One line of the plan. */
export type PlannedImage = {
  readonly source: string;
  readonly digest: Digest;
  readonly platform: Platform | undefined;
  readonly kind: 'image' | 'attestation' | 'artifact';
  readonly blobs: number;
  /** Sum of its blobs. */
  readonly bytes: number;
};
