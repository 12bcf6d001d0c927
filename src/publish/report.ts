import type { ErrorCode } from '../errors.ts';
import type { Descriptor, Platform } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';

/** How a blob came to be in the target repository, or why it was left out (`skipped`: a foreign layer). */
export type BlobHow = 'present' | 'mounted' | 'copied' | 'skipped';

/** One blob of one image in one repository. `size` and `bytesSent` in bytes. */
export type BlobOutcome = {
  readonly digest: Digest;
  readonly size: number;
  readonly how: BlobHow;
  /** Blob bytes that left this process; 0 unless copied. Sums up failed tries. */
  readonly bytesSent: number;
  /** For copied blobs: what the registry answered to the mount, for example `mount answered 202`. */
  readonly why?: string;
};

/**
 * What happened to one target tag. `failed`: it was not moved by this run, or not seen to be; `digest` is then the one of
 * the index that was to be put there, where that was known.
 */
export type TargetOutcome = { readonly reference: string } & (
  | {
      readonly action: 'created' | 'updated' | 'unchanged';
      readonly digest: Digest;
      /** What the tag held before, where that was read and is another: with it an update can be taken back. */
      readonly previous?: Digest;
    }
  | { readonly action: 'failed'; readonly digest?: Digest; readonly error: TargetFailure }
);

/** Why a target failed. `NOT_RUN`: the run ended, for something else, before its list was begun or done. */
export type TargetFailure = {
  readonly code: ErrorCode | 'NOT_RUN';
  readonly message: string;
  readonly exitCode?: number;
};

/** One child of the index. */
export type ImageOutcome = {
  /** The reference it came from, in full, with its digest. */
  readonly source: string;
  readonly digest: Digest;
  /** Manifest bytes. */
  readonly size: number;
  readonly kind: 'image' | 'attestation' | 'artifact';
  readonly platform?: Platform;
  readonly placed: readonly {
    readonly repository: string;
    readonly manifest: 'present' | 'pushed';
    readonly blobs: readonly BlobOutcome[];
  }[];
};

/** One list. `index` is absent, and `images` is empty, when it failed before its index was known. */
export type ListReport = {
  readonly targets: readonly TargetOutcome[];
  /** With `--stage content`: the references for which everything was placed; they were not touched, and no index was put. */
  readonly content?: readonly string[];
  readonly index?: {
    readonly mediaType: string;
    readonly digest: Digest;
    readonly size: number;
    readonly manifests: readonly Descriptor[];
  };
  readonly images: readonly ImageOutcome[];
};

/** Sums over the run; a (repository, digest) counts once. `bytesSaved` = sizes of present and mounted blobs. */
export type ReportTotals = {
  readonly blobs: {
    readonly present: number;
    readonly mounted: number;
    readonly copied: number;
    readonly skipped: number;
  };
  readonly bytesSent: number;
  readonly bytesSaved: number;
  readonly requests: number;
  readonly retries: number;
  readonly seconds: number;
};

/** The document of `--json` and `--report`. */
export type PublishReport = {
  readonly schemaVersion: 1;
  /**
   * Which part of the run this is, of a run that was divided among workers; both count from 1. `lists` is the same for
   * workers that were given the same lists.
   */
  readonly shard?: { readonly index: number; readonly total: number; readonly lists?: Digest };
  /** What `report merge` joined. `missing`: shards without a report. */
  readonly merged?: { readonly reports: number; readonly shards?: number; readonly missing?: readonly number[] };
  readonly stage?: 'content' | 'index';
  readonly dryRun?: true;
  readonly lists: readonly ListReport[];
  readonly totals: ReportTotals;
  readonly warnings: readonly string[];
};
