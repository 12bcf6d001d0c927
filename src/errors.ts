/**
 * Stable names of everything that can go wrong and that the user can act on, each with the exit code it ends in.
 * Scripts may test for both. Exit codes are those of `docs/architecture.md`:
 * 2 usage or unsupported input, 3 authentication or permission, 4 not there, 5 registry or network, 6 integrity,
 * 7 refused by a rule, 8 local I/O, 9 some of several lists failed and the others were done, 130 and 143 signals.
 */
export const EXIT_CODES = {
  USAGE_INVALID: 2,
  CONFIG_INVALID: 2,
  SPEC_INVALID: 2,
  REFERENCE_INVALID: 2,
  DIGEST_INVALID: 2,
  PLATFORM_INVALID: 2,
  PLATFORM_CONFLICT: 2,
  PLATFORM_DUPLICATE: 2,
  MANIFEST_UNSUPPORTED: 2,
  INDEX_TYPE_CONFLICT: 2,
  INDEX_TOO_LARGE: 2,
  UNAUTHORIZED: 3,
  DENIED: 3,
  CREDENTIALS_FAILED: 3,
  SOURCE_NOT_FOUND: 4,
  MANIFEST_NOT_FOUND: 4,
  BLOB_NOT_FOUND: 4,
  REPOSITORY_NOT_FOUND: 4,
  PLATFORM_NOT_FOUND: 4,
  DRAFT_NOT_FOUND: 4,
  NETWORK_FAILED: 5,
  TLS_FAILED: 5,
  REGISTRY_FAILED: 5,
  RATE_LIMITED: 5,
  UPLOAD_REFUSED: 5,
  MANIFEST_REFUSED: 5,
  TIMED_OUT: 5,
  DIGEST_MISMATCH: 6,
  SIZE_MISMATCH: 6,
  MANIFEST_INVALID: 6,
  PROTOCOL_VIOLATED: 6,
  VERIFY_FAILED: 6,
  TAG_IMMUTABLE: 7,
  TAG_EXISTS: 7,
  TAG_CHANGED: 7,
  ORIGIN_REFUSED: 7,
  DRAFT_EXISTS: 7,
  FILE_FAILED: 8,
  DRAFT_INVALID: 8,
  LISTS_FAILED: 9,
  INTERRUPTED: 130,
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
