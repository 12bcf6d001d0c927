import type { Readable } from 'node:stream';
import type { PublishError } from '../errors.ts';
import type { CopyPlaces, Limiter, Place } from '../http/message.ts';
import type { Digest } from '../model/digest.ts';

export type { CopyPlaces, Limiter, Place };

/** Given to every verb: the run's signal and, for the ends of a copy, a place that was taken before. */
export type VerbOptions = { readonly signal: AbortSignal; readonly place?: Place };

/** For uploads: told how many bytes of the blob have been handed to the connection so far. */
export type UploadOptions = VerbOptions & { readonly progress?: (sent: number) => void };

/** A manifest or index exactly as the registry sent it; `digest` is computed over `bytes`, never taken from a header. */
export type RawManifest = {
  readonly bytes: Uint8Array;
  readonly digest: Digest;
  /** Content-Type without parameters; undefined when the registry sent none. */
  readonly contentType: string | undefined;
};

/** What a manifest GET came to. `error` is ready to be thrown by whoever cannot go on without the manifest. */
export type ManifestAnswer =
  | { readonly kind: 'found'; readonly manifest: RawManifest }
  /** 404: it is not there. */
  | { readonly kind: 'absent'; readonly error: PublishError }
  /** 403, or 5xx after all tries: it may be there. */
  | { readonly kind: 'unknown'; readonly error: PublishError };

/** What a HEAD came to. `size` in bytes as the registry claims it; HEAD lies on some registries. */
export type Presence =
  | { readonly kind: 'present'; readonly size: number | undefined }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unknown'; readonly error: PublishError };

/** An upload session. `url` is the newest Location, resolved, its query untouched. */
export type UploadSession = {
  readonly repository: string;
  readonly url: string;
};

/**
 * What the target said to a mount request; a refusal is an answer, not an error.
 *
 * @see distribution-spec v1.1.1 spec.md, section "Mounting a blob from another repository"
 */
export type MountAnswer =
  | { readonly kind: 'mounted' }
  /** 202 (also 200, 204) with a Location: an upload session is open already. */
  | { readonly kind: 'session'; readonly session: UploadSession; readonly why: string }
  /**
   * Anything else that will not change by asking again: nothing was opened. `sourceBarred` tells that the registry
   * refused the source repository as such (4xx), so that offering it again in this run is a wasted request.
   */
  | { readonly kind: 'refused'; readonly sourceBarred: boolean; readonly why: string };

/** The bytes of one upload: kept in memory, or a stream of exactly the declared size. */
export type UploadBody = Uint8Array | Readable;

/**
 * What became of an upload into a session. Unless it was stored, the session has been cancelled or is dead, but for
 * one that is told to be `alive`.
 */
export type UploadAnswer =
  | { readonly kind: 'stored'; readonly bytesSent: number }
  /**
   * The bytes do not hash to the digest or have another size, by our count or, of bytes that left as they should, by
   * the registry's; nothing was committed.
   */
  | { readonly kind: 'corrupt'; readonly error: PublishError }
  /**
   * A connection, a token or a 5xx broke it; the commit may have happened. Ask for the blob, then start anew.
   *
   * `alive`: all bytes had left, so that the registry may be committing them at this moment, and the session was not
   * cancelled. It is still the caller's, to be cancelled when nothing hangs on that commit any more.
   */
  | { readonly kind: 'broken'; readonly error: PublishError; readonly alive?: true }
  /**
   * 429: nothing was committed, and nothing is wrong with this upload. Start anew; the next request to the host waits
   * by itself for as long as the registry asked, and so would a cancellation: the session is the caller's, as above.
   */
  | { readonly kind: 'limited'; readonly error: PublishError; readonly alive: true }
  /** The registry's last word. */
  | { readonly kind: 'refused'; readonly error: PublishError };

/** What became of a manifest PUT. */
export type PutAnswer =
  | { readonly kind: 'stored' }
  /** 400 or 404 with MANIFEST_BLOB_UNKNOWN, BLOB_UNKNOWN, MANIFEST_UNKNOWN or MANIFEST_INVALID: something it names may be missing. */
  | { readonly kind: 'incomplete'; readonly error: PublishError }
  /** The tag exists and may not be moved; by ECR's, Quay's, Harbor's or Nexus's answer. */
  | { readonly kind: 'immutable'; readonly error: PublishError }
  | { readonly kind: 'refused'; readonly error: PublishError };

/** What a run is going to ask of a repository, so that tokens can be fetched side by side and ahead of need. */
export type RepositoryUse = {
  readonly repository: string;
  readonly access: 'pull' | 'push';
  /** Repositories of the same registry that will be offered to `repository` in mounts. */
  readonly mountFrom?: readonly string[];
};

/**
 * The verbs of one registry host. Answers that leave the caller a choice are unions; what leaves none is thrown:
 *
 * @throws PublishError `UNAUTHORIZED` (401 after one new authentication), `DENIED`, `CREDENTIALS_FAILED`,
 *   `NETWORK_FAILED`, `TLS_FAILED`, `TIMED_OUT`, `RATE_LIMITED`, `ORIGIN_REFUSED`, `REGISTRY_FAILED`,
 *   `DIGEST_MISMATCH`, `SIZE_MISMATCH`, `PROTOCOL_VIOLATED`
 */
export interface RegistryClient {
  /** As the user knows it, for example `docker.io`. */
  readonly host: string;

  /** Announces what follows; never fails and never waits. */
  announce(uses: readonly RepositoryUse[]): void;

  /** `reference` is a tag or a digest. A body that does not hash to an asked digest is read once more, then thrown. */
  getManifest(repository: string, reference: string, options: VerbOptions): Promise<ManifestAnswer>;
  hasManifest(repository: string, digest: Digest, options: VerbOptions): Promise<Presence>;
  hasBlob(repository: string, digest: Digest, options: VerbOptions): Promise<Presence>;

  /** A small blob, whole and checked against digest and size. @throws also PublishError `BLOB_NOT_FOUND` */
  readBlob(repository: string, blob: BlobIdentity, options: VerbOptions): Promise<Uint8Array>;
  /** A blob as it arrives, not checked: {@link RegistryClient.upload} checks. @throws also `BLOB_NOT_FOUND` */
  openBlob(repository: string, blob: BlobIdentity, options: VerbOptions): Promise<Readable>;

  mountBlob(repository: string, digest: Digest, from: string, options: VerbOptions): Promise<MountAnswer>;
  /** @throws also PublishError `REPOSITORY_NOT_FOUND`, `UPLOAD_REFUSED` */
  openUpload(repository: string, digest: Digest, options: VerbOptions): Promise<UploadSession>;
  /**
   * Sends the bytes through a hash in one PUT; the last bytes leave only when digest and size are right. A stream is
   * ended in any case. What is thrown leaves the session to the caller.
   */
  upload(session: UploadSession, blob: BlobIdentity, body: UploadBody, options: UploadOptions): Promise<UploadAnswer>;
  /** Best effort, one try: many registries have no DELETE for sessions. Never fails. */
  cancelUpload(session: UploadSession): Promise<void>;

  /** `reference` is a tag or the manifest's own digest. */
  putManifest(
    repository: string,
    reference: string,
    manifest: { readonly bytes: Uint8Array; readonly digest: Digest; readonly mediaType: string },
    options: VerbOptions,
  ): Promise<PutAnswer>;
}

/** `size` in bytes, as the manifest that names the blob declares it. */
export type BlobIdentity = { readonly digest: Digest; readonly size: number };
