/**
 * Stable names of everything that can go wrong and that the user can act on, each with the exit code it ends in.
 * Scripts may test for both. Exit codes are those of `docs/architecture.md`:
 * 2 usage or unsupported input, 3 authentication or permission, 4 not there, 5 registry or network, 6 integrity,
 * 7 refused by a rule, 8 local I/O, 9 some of several lists failed and the others were done, 130 and 143 signals.
 *
 * The comment on each says the cause and, after `Cure:`, what to do; `docs/errors.md` is made from them.
 */
export const EXIT_CODES = {
  /**
   * The command line asks for something that does not exist or does not go together. Cure: See `manifest-publish
   * COMMAND --help`; the message names the word.
   */
  USAGE_INVALID: 2,
  /**
   * The configuration file has an unknown key or a value of the wrong form, or sets what only a file named by
   * `--config` may set. Cure: Mend the line and column that are named; docs/config.schema.json has every key.
   */
  CONFIG_INVALID: 2,
  /**
   * A spec file, a metadata file or a digests folder does not have the form that it should. Cure: Mend the line and
   * column that are named; docs/spec.md has the forms.
   */
  SPEC_INVALID: 2,
  /** `report merge` was given a file that is no report, or of another run. Cure: Remove the file that is named. */
  REPORT_INVALID: 2,
  /**
   * A reference does not follow the grammar of `HOST/REPOSITORY:TAG@DIGEST`. Cure: Repositories are lower case; a
   * tag has at most 128 characters of letters, digits, `_`, `.` and `-`.
   */
  REFERENCE_INVALID: 2,
  /** A digest is not `sha256:` with 64 hex digits (or `sha512:` with 128). Cure: Copy the whole digest. */
  DIGEST_INVALID: 2,
  /**
   * A platform is not `OS/ARCH[/VARIANT]`, or an image does not say its own. Cure: Say it: `linux/arm/v7=SOURCE`, or
   * for a draft `annotate LIST SOURCE --os linux --arch arm --variant v7`.
   */
  PLATFORM_INVALID: 2,
  /**
   * The platform that was said is not the one in the config of the image. Cure: Leave the platform out to take the
   * one of the config, or add `--force-platform`.
   */
  PLATFORM_CONFLICT: 2,
  /**
   * Two images are for the same platform, so that a client could not choose. Cure: Leave one out, or say another
   * platform for it.
   */
  PLATFORM_DUPLICATE: 2,
  /**
   * A source is a schema 1 image or something that is no image, which no list can hold. Cure: Push it again with a
   * current tool, or leave it out.
   */
  MANIFEST_UNSUPPORTED: 2,
  /**
   * A Docker manifest list was asked for (`--type docker`, or all images are Docker), and something in it only an
   * OCI index can hold. Cure: Add `--type oci`, or leave the annotations or the OCI image out.
   */
  INDEX_TYPE_CONFLICT: 2,
  /**
   * The index would be over 4 MiB, which registries refuse. Cure: Publish several smaller lists, or shorter
   * annotations.
   */
  INDEX_TOO_LARGE: 2,
  /**
   * The registry wants a login, or does not take the one it got. Cure: `docker login HOST`; check the account with
   * `docker logout HOST` first when it has changed.
   */
  UNAUTHORIZED: 3,
  /**
   * The login is known and may not do this: read that source, or push to that target. Cure: Ask for the right that
   * the message names; registries often answer so for a repository that does not exist, too.
   */
  DENIED: 3,
  /** A file with logins cannot be read, or a credential helper failed. Cure: Mend what is named, or log in again. */
  CREDENTIALS_FAILED: 3,
  /**
   * A source is not there. Cure: Check its name and tag; `--wait-for-source 5m` waits for a job that is still
   * pushing it, `--ignore-missing` goes on without it.
   */
  SOURCE_NOT_FOUND: 4,
  /** An index, or what is to be inspected, names a manifest that is not there. Cure: Push that image again. */
  MANIFEST_NOT_FOUND: 4,
  /**
   * A source image names a config or layer that its registry does not have. Cure: Push that image again: it is
   * incomplete.
   */
  BLOB_NOT_FOUND: 4,
  /**
   * The registry has no such repository and does not make one on push (ECR, for one). Cure: Create the repository,
   * then run the same command again.
   */
  REPOSITORY_NOT_FOUND: 4,
  /**
   * A platform that was asked for is not among the images, or the set is not that of `--expect-platforms`. Cure:
   * Check which job did not push; nothing was written.
   */
  PLATFORM_NOT_FOUND: 4,
  /**
   * There is no draft of that list on this machine, neither ours nor of `docker manifest create`. Cure:
   * `manifest-publish ls` has those that are there.
   */
  DRAFT_NOT_FOUND: 4,
  /** `report merge` lacks the report of a shard. Cure: Run that shard again, with the same arguments, then merge. */
  REPORT_MISSING: 4,
  /**
   * The registry could not be reached, or a connection broke, as often as `--retries` allows. Cure: Check name,
   * proxy and network; the same command finishes what is left.
   */
  NETWORK_FAILED: 5,
  /**
   * The certificate of the registry is not trusted, or the handshake failed. Cure: Name the authority with
   * `--ca-file FILE` or a `certs.d` folder; `--insecure` leaves the check out for the target.
   */
  TLS_FAILED: 5,
  /**
   * The registry answered with an error of its own (5xx), as often as `--retries` allows. Cure: Run the same command
   * again in a while.
   */
  REGISTRY_FAILED: 5,
  /**
   * The registry answered 429 with a wait beyond two minutes, or again and again. Cure: Log in (limits for accounts
   * are higher), lower `--max-rps HOST=N`, or wait as long as it says.
   */
  RATE_LIMITED: 5,
  /**
   * The registry, or a proxy before it, does not take the bytes of a blob: too large, a quota, a form that it does
   * not know. Cure: Read the words quoted from it; `upload: chunks` with a `chunkSize` in the configuration passes
   * most size limits of proxies.
   */
  UPLOAD_REFUSED: 5,
  /**
   * The registry does not take a manifest, though everything that it names is there. Cure: Read the words quoted
   * from it; some registries take only certain media types: try `--type docker` or `--type oci`.
   */
  MANIFEST_REFUSED: 5,
  /** The run took longer than `--timeout`. Cure: Run the same command again: what is there is not sent again. */
  TIMED_OUT: 5,
  /**
   * Bytes do not have the digest under which they were asked for or pushed. Cure: Do not use that source until it
   * was pushed again; a registry or proxy that changes bytes must be mended.
   */
  DIGEST_MISMATCH: 6,
  /** A manifest or blob does not have the size that its descriptor says. Cure: Push that image again. */
  SIZE_MISMATCH: 6,
  /**
   * A manifest is no valid JSON document of its type, or beyond the limits (4 MiB, 3 levels, 1,000 entries). Cure:
   * Push that image again with a current tool, or leave it out.
   */
  MANIFEST_INVALID: 6,
  /**
   * What answers does not behave as a registry: a login page, a garbled answer, an upload without an address. Cure:
   * Check the address, and what stands between you and the registry.
   */
  PROTOCOL_VIOLATED: 6,
  /**
   * `verify` found something missing or wrong, or `mount-check --expect` found another verdict. Cure: Publish again:
   * what is missing is put back.
   */
  VERIFY_FAILED: 6,
  /** The registry does not let this tag be moved. Cure: Publish under a new tag. */
  TAG_IMMUTABLE: 7,
  /**
   * The tag exists, and `--no-clobber` (or an image in the place of TARGET) forbids to move it. Cure: Publish under
   * a new tag, or leave the flag out.
   */
  TAG_EXISTS: 7,
  /**
   * The tag does not hold what `--expect-digest` or the list to be amended said, or somebody moved it meanwhile.
   * Cure: See what it holds: `manifest-publish inspect REF --digest`.
   */
  TAG_CHANGED: 7,
  /**
   * A registry sent us to an address where a registry has no reason to send anyone: link-local, metadata or private.
   * Cure: If the registry really lies there, name it by an address of that network yourself.
   */
  ORIGIN_REFUSED: 7,
  /** There is a draft of that list already. Cure: Add `--amend` to go on with it, or `--replace` to start afresh. */
  DRAFT_EXISTS: 7,
  /** A file or folder of this machine cannot be read or written. Cure: Check path, rights and room. */
  FILE_FAILED: 8,
  /**
   * A draft on this machine is damaged, or another process holds its lock. Cure: Remove it with `manifest-publish rm
   * LIST` and create it again.
   */
  DRAFT_INVALID: 8,
  /**
   * With `--keep-going`, some lists failed; the others are published. Cure: `--report FILE` tells which and why; the
   * same command finishes the rest.
   */
  LISTS_FAILED: 9,
  /** Ctrl-C (SIGINT). Cure: Run the same command again: what is there already is not sent again. */
  INTERRUPTED: 130,
  /** SIGTERM, as CI engines send it at their own time limit. Cure: Run the same command again. */
  TERMINATED: 143,
} as const;

/** @see EXIT_CODES */
export type ErrorCode = keyof typeof EXIT_CODES;

/** Where the cause lies: the registry read from, the registry written to, or this machine and its user. */
export type ErrorSide = 'source' | 'target' | 'local';

/** What a {@link PublishError} says besides its code, message and hint; every field is safe to print. */
export type ErrorDetails = {
  readonly side?: ErrorSide;
  /** Host as the user knows it, for example `docker.io`. */
  readonly registry?: string;
  readonly repository?: string;
  /** HTTP status, to be shown; no decision outside the protocol rooms may read it. */
  readonly status?: number;
  /** Target tags that a publish had moved before it failed; absent when no publish was under way. */
  readonly moved?: readonly string[];
  /** What a run with several lists or repositories had done, a `PublishReport`; absent when there is nothing to tell. */
  readonly report?: object;
  readonly cause?: unknown;
};

/**
 * A failure the user can act on. Anything else that is thrown is a bug of ours and exits 1.
 *
 * `message` says what failed and where, in lower case and on one line; `hint` is one imperative sentence, with a
 * command where there is one.
 */
export class PublishError extends Error {
  override readonly name = 'PublishError';
  readonly code: ErrorCode;
  readonly exitCode: number;
  readonly hint: string;
  readonly side: ErrorSide;
  readonly registry: string | undefined;
  readonly repository: string | undefined;
  readonly status: number | undefined;
  readonly moved: readonly string[] | undefined;
  readonly report: object | undefined;

  constructor(code: ErrorCode, message: string, hint: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.exitCode = EXIT_CODES[code];
    this.hint = hint;
    this.side = details.side ?? 'local';
    this.registry = details.registry;
    this.repository = details.repository;
    this.status = details.status;
    this.moved = details.moved;
    this.report = details.report;
  }

  /** The same failure seen from a step further up: what is named is changed, everything else kept. */
  with(changes: {
    readonly code?: ErrorCode;
    readonly message?: string;
    readonly hint?: string;
    readonly side?: ErrorSide;
    readonly registry?: string;
    readonly repository?: string;
    readonly moved?: readonly string[];
    readonly report?: object;
  }): PublishError {
    const registry = changes.registry ?? this.registry;
    const repository = changes.repository ?? this.repository;
    const moved = changes.moved ?? this.moved;
    const report = changes.report ?? this.report;
    const copy = new PublishError(
      changes.code ?? this.code,
      changes.message ?? this.message,
      changes.hint ?? this.hint,
      {
        side: changes.side ?? this.side,
        ...(registry === undefined ? {} : { registry }),
        ...(repository === undefined ? {} : { repository }),
        ...(this.status === undefined ? {} : { status: this.status }),
        ...(moved === undefined ? {} : { moved }),
        ...(report === undefined ? {} : { report }),
        ...(this.cause === undefined ? {} : { cause: this.cause }),
      },
    );
    if (this.stack !== undefined) copy.stack = this.stack;
    return copy;
  }
}

/** What `--json` prints for a failure, on stdout, with the same exit code as without it. */
export type ErrorDocument = {
  readonly error: {
    readonly code: ErrorCode | 'BUG';
    readonly message: string;
    readonly hint: string;
    readonly side: ErrorSide;
    readonly registry?: string;
    readonly repository?: string;
    readonly status?: number;
    /** Target tags that were moved before the failure; absent when no publish was under way. */
    readonly moved?: readonly string[];
    readonly exitCode: number;
  };
  /** What was done all the same, where several lists or repositories were asked for: a `PublishReport`. */
  readonly report?: object;
};
