import type { Hash } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { PublishError } from '../errors.ts';
import type { CopyPlaces, Limiter, Place } from '../http/message.ts';
import type { Descriptor } from '../model/descriptor.ts';
import type { Digest } from '../model/digest.ts';

export type { CopyPlaces, Limiter, Place };

/** Given to every verb: the run's signal and, for the ends of a copy, a place that was taken before. */
export type VerbOptions = {
  readonly signal: AbortSignal;
  readonly place?: Place;
  /** Without a place: it goes when nobody else wants to. */
  readonly last?: boolean;
  /** Told of every answer of the registry itself, for people to read. */
  readonly onAnswer?: (facts: AnswerFacts) => void;
};

/** What an answer looked like. It is to be shown, never to be decided by, and nothing in it is secret. */
export type AnswerFacts = {
  readonly status: number;
  /** Headers by which registries and what stands before them can be told; names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** How the address of a session or blob was given, if one was. */
  readonly location?: 'absolute' | 'relative' | 'on another host';
};

/** `once`: it is not sent again, whatever happens to it; the caller looks first and asks again. */
export type PutOptions = VerbOptions & { readonly once?: true };

/** `from`: the first byte that is wanted, counted from 0. `reads`: kept by whoever reads one blob several times. */
export type BlobOptions = VerbOptions & { readonly from?: number; readonly reads?: BlobReads };

/** How often reads of one blob broke off without having brought anything to speak of: no more than the retries. */
export type BlobReads = { fruitless: number };

export type UploadOptions = VerbOptions & {
  /** Told how many bytes this call has handed to the connection so far; bytes that were sent again count again. */
  readonly progress?: (sent: number) => void;
  /** Told the session's newest Location, which is the one to cancel. */
  readonly moved?: (session: UploadSession) => void;
  /** Goes on with an upload that broke; the body then starts at `resume.mark.offset` of the blob. */
  readonly resume?: ResumePoint;
  /** This blob broke before: chunks where the registry takes them, so that little is lost if it breaks again. */
  readonly chunked?: boolean;
};

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

/**
 * What a manifest's referrers are. `tag`: the registry has no API for them, and this is what the fallback tag lists,
 * each once; `annotations` are those of its index. `odd`: the tag holds something else, which lists nobody.
 */
export type ReferrersAnswer =
  | { readonly kind: 'listed'; readonly via: 'api'; readonly referrers: readonly Descriptor[] }
  | {
      readonly kind: 'listed';
      readonly via: 'tag';
      readonly tag: string;
      readonly referrers: readonly Descriptor[];
      readonly annotations?: Readonly<Record<string, string>>;
      readonly odd?: PublishError;
    }
  /** 403, or 5xx after all tries: there may be some. */
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
  /** What the answer that opened it said of chunk sizes, in bytes: `OCI-Chunk-Min-Length`, `OCI-Chunk-Max-Length`. */
  readonly chunk?: { readonly min?: number; readonly max?: number };
};

/** The state of a hash over the first `offset` bytes of a blob. */
export type HashMark = { readonly offset: number; readonly hash: Hash };

/** An upload that broke, in a session that may still be open. */
export type Interrupted = {
  /** With the newest Location. */
  readonly session: UploadSession;
  /** How many bytes of the blob had been handed to the connection: a registry cannot have more. */
  readonly sent: number;
  /** In ascending order; the first is at 0. */
  readonly marks: readonly HashMark[];
  /** Where the session stands by its own word, if it has been told already. */
  readonly offset?: number;
  /** The registry and we do not agree where the session stands. */
  readonly disputed?: true;
  /** How long the body was that the registry, or what stands before it, cut off. */
  readonly cut?: number;
};

/** Where such an upload goes on: the registry has the bytes before `offset`, the hash is known up to the mark before. */
export type ResumePoint = { readonly session: UploadSession; readonly offset: number; readonly mark: HashMark };

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
   * `interrupted`: bytes may be missing, and the session, which is the caller's then, may know how many: ask by
   * {@link RegistryClient.resumeUpload}. `chunked`: the next try had better send chunks.
   *
   * `alive`: all bytes had left, so that the registry may be committing them at this moment, and the session was not
   * cancelled. It is still the caller's, to be cancelled when nothing hangs on that commit any more.
   */
  | {
      readonly kind: 'broken';
      readonly error: PublishError;
      readonly alive?: true;
      readonly interrupted?: Interrupted;
      readonly chunked?: true;
    }
  /**
   * The registry does not take the bytes in this form, and the client has learnt another: chunks, smaller chunks. Start
   * anew with a new session; that costs no try and comes to an end. `error` is what the registry said.
   */
  | { readonly kind: 'otherwise'; readonly error: PublishError }
  /**
   * 429: nothing was committed, and nothing is wrong with this upload. Start anew; the next request to the host waits
   * by itself for as long as the registry asked, and so would a cancellation: the session is the caller's, as above.
   */
  | {
      readonly kind: 'limited';
      readonly error: PublishError;
      readonly alive: true;
      readonly interrupted?: Interrupted;
    }
  /** The registry's last word. */
  | { readonly kind: 'refused'; readonly error: PublishError };

/** What became of a manifest PUT. */
export type PutAnswer =
  /**
   * `doubt`: the answer was a success, but not the spec's 201, and proves little: look before relying on it. It is ready
   * to be thrown by whoever finds that the manifest is not there. `listed`: the registry says that it has taken note of
   * the manifest's subject (`OCI-Subject`), so that nobody else need list it.
   */
  | { readonly kind: 'stored'; readonly doubt?: PublishError; readonly listed?: true }
  /** 400 or 404 with MANIFEST_BLOB_UNKNOWN, BLOB_UNKNOWN, MANIFEST_UNKNOWN or MANIFEST_INVALID: something it names may be missing. */
  | { readonly kind: 'incomplete'; readonly error: PublishError }
  /** The tag exists and may not be moved; by ECR's, Quay's, Harbor's or Nexus's answer. */
  | { readonly kind: 'immutable'; readonly error: PublishError }
  /**
   * `passing`: only of a PUT that went out `once`, which may succeed a little later; it may have been carried out all the
   * same. `wait` in ms, where the registry asked for it.
   */
  | { readonly kind: 'refused'; readonly error: PublishError; readonly passing?: { readonly wait?: number } };

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
  /** `never`: the configuration wants no mount asked for on this host. */
  readonly mounting: 'auto' | 'never';

  /** Announces what follows; never fails and never waits. */
  announce(uses: readonly RepositoryUse[]): void;

  /** `reference` is a tag or a digest. A body that does not hash to an asked digest is read once more, then thrown. */
  getManifest(repository: string, reference: string, options: VerbOptions): Promise<ManifestAnswer>;
  /**
   * Everything that names this manifest as its subject, by the registry's word: what a referrer is must be read. All
   * pages are read. @throws also PublishError `MANIFEST_INVALID` for a list that is none, too large or without end
   */
  listReferrers(repository: string, subject: Digest, options: VerbOptions): Promise<ReferrersAnswer>;
  hasManifest(repository: string, digest: Digest, options: VerbOptions): Promise<Presence>;
  hasBlob(repository: string, digest: Digest, options: VerbOptions): Promise<Presence>;

  /** A small blob, whole and checked against digest and size. @throws also PublishError `BLOB_NOT_FOUND` */
  readBlob(repository: string, blob: BlobIdentity, options: VerbOptions): Promise<Uint8Array>;
  /**
   * A blob as it arrives, not checked: {@link RegistryClient.upload} checks. A connection that breaks is taken up again
   * where it broke. @throws also `BLOB_NOT_FOUND`
   */
  openBlob(repository: string, blob: BlobIdentity, options: BlobOptions): Promise<Readable>;

  mountBlob(repository: string, digest: Digest, from: string, options: VerbOptions): Promise<MountAnswer>;
  /**
   * A mount without a source: the registry may look for the blob by itself. Only `mount-check` asks it, since old Quay
   * answers it with an error and most registries with a 202.
   *
   * @see distribution-spec v1.1.1 spec.md, section "Mounting a blob from another repository"
   */
  mountAnyBlob(repository: string, digest: Digest, options: VerbOptions): Promise<MountAnswer>;
  /** @throws also PublishError `REPOSITORY_NOT_FOUND`, `UPLOAD_REFUSED` */
  openUpload(repository: string, digest: Digest, options: VerbOptions): Promise<UploadSession>;
  /**
   * A turn to send a blob of this size, given back when the try has its answer. While it is not known how large a body
   * the host takes, one large blob goes ahead and the others wait for what it meets, a second at most. `together`: the
   * same for all who wait for one another, since they send what is read once for all of them; they go ahead together. To
   * be taken before any place.
   */
  uploadTurn(size: number, signal: AbortSignal, together?: object): Promise<{ release(): void }>;
  /**
   * Sends the bytes through a hash, in one PUT unless the registry is known to want chunks; nothing is committed unless
   * digest and size are right. A stream is ended in any case. What is thrown leaves the session to the caller.
   */
  upload(session: UploadSession, blob: BlobIdentity, body: UploadBody, options: UploadOptions): Promise<UploadAnswer>;
  /**
   * Asks the session how far it got; undefined when it cannot be gone on with, and then it had better be cancelled.
   * `smaller` is the same, but the client has learnt that it must send less at a time: that break costs no try.
   */
  resumeUpload(interrupted: Interrupted, options: VerbOptions): Promise<ResumePoint | 'smaller' | undefined>;
  /** Best effort, one try: many registries have no DELETE for sessions. Never fails. */
  cancelUpload(session: UploadSession): Promise<void>;

  /** `reference` is a tag or the manifest's own digest. */
  putManifest(
    repository: string,
    reference: string,
    manifest: { readonly bytes: Uint8Array; readonly digest: Digest; readonly mediaType: string },
    options: PutOptions,
  ): Promise<PutAnswer>;

  /** `refused` for every answer but a yes, since many registries have no deletes or want a right of their own for them. */
  deleteManifest(repository: string, digest: Digest, options: VerbOptions): Promise<'deleted' | 'refused'>;
  /** As {@link RegistryClient.deleteManifest}. */
  deleteBlob(repository: string, digest: Digest, options: VerbOptions): Promise<'deleted' | 'refused'>;
}

/** `size` in bytes, as the manifest that names the blob declares it. */
export type BlobIdentity = { readonly digest: Digest; readonly size: number };
