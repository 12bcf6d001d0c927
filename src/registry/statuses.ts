/** What an answer means, by status. Data: a verb's whole rule can be read, and tested, as a table. */
export type StatusTable<Meaning extends string> = {
  readonly statuses: Readonly<Record<number, Meaning>>;
  /** Every other 4xx. */
  readonly client: Meaning;
  /** Every other 5xx. */
  readonly server: Meaning;
  /** What is left: 1xx to 3xx and whatever a broken proxy invents. */
  readonly other: Meaning;
};

/** The table's word for a status. */
export function meaningOf<Meaning extends string>(table: StatusTable<Meaning>, status: number): Meaning {
  const own = table.statuses[status];
  if (own !== undefined) return own;
  if (status >= 400 && status < 500) return table.client;
  return status >= 500 && status < 600 ? table.server : table.other;
}

/** GET of a manifest or blob. */
export const READ: StatusTable<'found' | 'absent' | 'denied' | 'unauthorized' | 'limited' | 'failed'> = {
  statuses: { 200: 'found', 401: 'unauthorized', 403: 'denied', 404: 'absent', 429: 'limited' },
  client: 'failed',
  server: 'failed',
  other: 'failed',
};

/**
 * GET of a list of referrers. `none`: there is no such API, which the spec says by 404 and others by other refusals
 * (go-containerregistry and regclient take 400 and 406 for it, too).
 *
 * @see distribution-spec v1.1.1 spec.md, section "Listing Referrers"
 */
export const REFERRERS: StatusTable<'listed' | 'none' | 'denied' | 'unauthorized' | 'limited' | 'failed'> = {
  statuses: {
    200: 'listed',
    401: 'unauthorized',
    403: 'denied',
    404: 'none',
    408: 'failed',
    425: 'failed',
    429: 'limited',
    499: 'failed',
    501: 'none',
  },
  client: 'none',
  server: 'failed',
  other: 'failed',
};

/**
 * GET of a blob from some byte on: whether that is what comes. `none`: the registry has no such part, whatever it has of
 * the whole. Any other answer is told by {@link READ}.
 */
export const READ_PART: StatusTable<'part' | 'none' | 'other'> = {
  statuses: { 206: 'part', 416: 'none' },
  client: 'other',
  server: 'other',
  other: 'other',
};

/**
 * HEAD. Only a 200 proves and only a 404 disproves: virtual repositories answer 403 for what they lack (Artifactory,
 * go-containerregistry#1691), others 405 or 500 (nexus-public#1059).
 */
export const HEAD: StatusTable<'present' | 'absent' | 'unauthorized' | 'limited' | 'denied' | 'failed'> = {
  statuses: { 200: 'present', 401: 'unauthorized', 403: 'denied', 404: 'absent', 429: 'limited' },
  client: 'failed',
  server: 'failed',
  other: 'failed',
};

/**
 * POST with mount and from. `barred`: the registry turned the source repository down. A 202 or a 5xx says nothing
 * about the next blob (ECR: only this blob is unreferenced), and a 429 nothing about mounts.
 *
 * @see distribution-spec v1.1.1 spec.md, section "Mounting a blob from another repository"
 */
export const MOUNT: StatusTable<'mounted' | 'session' | 'limited' | 'barred' | 'refused'> = {
  statuses: {
    200: 'session',
    201: 'mounted',
    202: 'session',
    204: 'session',
    408: 'refused',
    425: 'refused',
    429: 'limited',
    499: 'refused',
  },
  client: 'barred',
  server: 'refused',
  other: 'refused',
};

/** POST that opens an upload. 405 is what mirrors and read-only registries say. */
export const OPEN: StatusTable<'session' | 'unauthorized' | 'denied' | 'absent' | 'limited' | 'refused' | 'failed'> = {
  statuses: {
    200: 'session',
    202: 'session',
    204: 'session',
    401: 'unauthorized',
    403: 'denied',
    404: 'absent',
    408: 'failed',
    425: 'failed',
    429: 'limited',
    499: 'failed',
  },
  client: 'refused',
  server: 'failed',
  other: 'failed',
};

/**
 * PUT that carries a blob and closes its session. `gone`: the session is unknown or stale, which a new one cures.
 * `failed`: the answer may stand for a commit that took too long. `large`: of a proxy's limit. `formless`: blobs are not
 * taken in one PUT. `unsure`: the codes decide.
 */
export const COMMIT: StatusTable<
  'stored' | 'unauthorized' | 'denied' | 'limited' | 'failed' | 'gone' | 'large' | 'formless' | 'unsure' | 'refused'
> = {
  statuses: {
    200: 'stored',
    201: 'stored',
    202: 'stored',
    204: 'stored',
    400: 'unsure',
    401: 'unauthorized',
    403: 'denied',
    404: 'gone',
    405: 'formless',
    408: 'failed',
    409: 'gone',
    413: 'large',
    416: 'gone',
    425: 'failed',
    429: 'limited',
    499: 'failed',
  },
  client: 'refused',
  server: 'failed',
  other: 'refused',
};

/**
 * PATCH with a chunk. `large`: of a proxy, or of a registry that says it well. `range`: out of order, or too large in
 * GHCR's words. `formless`: no chunks are taken here, when it is the first one of its session.
 */
export const CHUNK: StatusTable<
  'taken' | 'unauthorized' | 'denied' | 'limited' | 'failed' | 'gone' | 'large' | 'range' | 'formless' | 'refused'
> = {
  statuses: {
    200: 'taken',
    201: 'taken',
    202: 'taken',
    204: 'taken',
    401: 'unauthorized',
    403: 'denied',
    408: 'failed',
    409: 'gone',
    413: 'large',
    416: 'range',
    425: 'failed',
    429: 'limited',
    501: 'formless',
    499: 'failed',
  },
  client: 'formless',
  server: 'failed',
  other: 'refused',
};

/** What registries say to a chunk that is larger than they take, in codes and words: GHCR, and those that imitate it. */
export const CHUNK_TOO_LARGE: RegExp = /REQUESTED_RANGE_NOT_SATISFIABLE|too (?:large|big)|exceeds|LayerPartTooLarge/i;

/** GET of a session. 202 is what some older registries say. */
export const SESSION: StatusTable<'open' | 'lost'> = {
  statuses: { 200: 'open', 202: 'open', 204: 'open' },
  client: 'lost',
  server: 'lost',
  other: 'lost',
};

/** Codes of a 400 to the closing PUT that a whole new upload may cure: Nexus, Artifactory, distribution. */
export const COMMIT_CURABLE: readonly string[] = ['BLOB_UPLOAD_INVALID', 'BLOB_UPLOAD_UNKNOWN', 'BLOB_UNKNOWN'];

/** Nexus, when two images race on one blob: the blob is there all the same (nexus-public#967). */
export const COMMIT_CURABLE_WORDS: RegExp = /cannot be updated/i;

/** Codes of a 400 that call the bytes wrong, although they were right when they left. */
export const COMMIT_WRONG_BYTES: readonly string[] = ['DIGEST_INVALID', 'SIZE_INVALID'];

/**
 * DELETE of a session. `barred`: this registry lets nobody, or not us, cancel: GHCR 405, distribution 401 without the
 * `delete` action, crane's registry 400. A 404 means only that this session is gone.
 */
export const CANCEL: StatusTable<'works' | 'barred' | 'unknown'> = {
  statuses: { 200: 'works', 202: 'works', 204: 'works', 404: 'works', 408: 'unknown', 409: 'unknown', 429: 'unknown' },
  client: 'barred',
  server: 'unknown',
  other: 'unknown',
};

/** PUT of a manifest. `doubtful` statuses are told apart by code and words, see {@link PUT_INCOMPLETE}. */
export const PUT: StatusTable<'stored' | 'unauthorized' | 'denied' | 'limited' | 'doubtful' | 'refused' | 'failed'> = {
  statuses: {
    200: 'stored',
    201: 'stored',
    202: 'stored',
    204: 'stored',
    400: 'doubtful',
    401: 'unauthorized',
    403: 'denied',
    404: 'doubtful',
    408: 'failed',
    409: 'doubtful',
    412: 'doubtful',
    425: 'failed',
    429: 'limited',
    499: 'failed',
  },
  client: 'refused',
  server: 'failed',
  other: 'refused',
};

/** Codes by which registries say that something the manifest names is missing; only with 400 and 404. */
export const PUT_INCOMPLETE: readonly string[] = [
  'MANIFEST_BLOB_UNKNOWN',
  'BLOB_UNKNOWN',
  'MANIFEST_UNKNOWN',
  'MANIFEST_INVALID',
];

/** Statuses with which a manifest PUT is turned down for something missing. */
export const INCOMPLETE_STATUSES: readonly number[] = [400, 404];

/** Statuses with which a manifest PUT is turned down because the tag may not be moved. */
export const IMMUTABLE_STATUSES: readonly number[] = [400, 403, 409, 412];

/**
 * Words of an immutable tag: ECR 400 "already exists … immutable", Quay 409 TAG_IMMUTABLE, Harbor 412 PRECONDITION,
 * Nexus 400 "does not allow updating assets".
 */
export const IMMUTABLE_WORDS: RegExp =
  /immutable|already exists|cannot be overwritten|updating assets|\bPRECONDITION\b/i;
