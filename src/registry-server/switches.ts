import {
  count,
  type Expanded,
  flag,
  isObject,
  isSwitch,
  noneOr,
  oneOf,
  record,
  type Switch,
  text,
  texts,
} from './switch.ts';

/**
 * What can be turned about the embedded registry: one table holds the name, the values and the default (the first
 * value) of every switch; the type {@link Profile} and the check of foreign input are made from it. A name or value
 * that is not in the table is refused by name, so that a test never passes because a wish was silently dropped.
 */

const MOUNT_MODES = ['exists', 'ignore', 'referenced', 'anywhere', 'symlink', 'lie201', 'off(n)'] as const;

/** How a mount is answered when nothing else stands against it; `off(404)` answers every mount with that status. */
export type MountMode = Expanded<(typeof MOUNT_MODES)[number]>;

function modeByDigest(): Switch<Readonly<Record<string, MountMode>>> {
  const mode = oneOf(...MOUNT_MODES);
  const accepts = (value: unknown): boolean => isObject(value) && Object.values(value).every(mode.accepts);
  return { initial: {}, values: '{}, digest -> mount.mode', accepts };
}

const platforms: Switch<'all' | 'none' | { readonly platforms: readonly string[] }> = {
  initial: 'all',
  values: 'all, none, {platforms: [os/architecture]}',
  accepts: (value) =>
    value === 'all' ||
    value === 'none' ||
    (isObject(value) && texts().accepts(value['platforms']) && hasOnly(value, 'platforms')),
};

/** Every switch, grouped as the profiles group them. Sizes are bytes before `scale`. */
export const SWITCHES = {
  mount: {
    mode: oneOf(...MOUNT_MODES),
    byDigest: modeByDigest(),
    withoutFrom: oneOf('202', 'anywhere201', 'error400'),
    fromWithoutMount: oneOf('202', '405'),
    noSourceScope: oneOf('401bearer2', '202', '401basic', '401empty', '403', 'ok'),
    noSourceRepo: oneOf('202', '401empty', '404', '400'),
    /** A `from` that names no project, as Harbor reads it, is answered 400. */
    fromNeedsSlash: flag(false),
    digestHeader: flag(true),
    shareAfterManifest: flag(false),
    /** What is no digest in `mount`: the spec is silent (read 2026-11-30); the registries that were asked open a session. */
    malformed: oneOf('400', '202'),
    /** `mount` given more than once: the first is taken, none is, or the request is refused. */
    twice: oneOf('first', '202', '400'),
  },
  upload: {
    /** `dropPort443`: absolute, without the `:443` that the client spelled out. */
    location: oneOf('absolute', 'relative', 'relativeNoQuery', 'otherPath', 'otherHost', 'httpScheme', 'dropPort443'),
    state: oneOf('none', '_state', '_stateHash'),
    stale: oneOf('416', '404', '500'),
    postRange: oneOf('0-0', 'bytes=0--1', 'absent'),
    postNeedsLength: oneOf('false', '411html'),
    singlePost: oneOf('202', '201'),
    put: oneOf('201', '204', '404blobUnknown', '413over(n)', 'resetOver(n)'),
    /** A body of unknown length; `ignoreBody` and `500` concern PUT alone, a PATCH of that form is taken. */
    noLength: oneOf('accept', 'ignoreBody', '400', '500'),
    contentType: oneOf('any', 'octetOnly415', 'octetOnly500'),
    patch: oneOf('ranged', 'none(n)', 'streamOnly', 'firstStreamOnly'),
    patchStatus: oneOf('202', '201', '204'),
    patchRange: oneOf('right', 'stuck', 'absent', 'plusOne'),
    rangeCheck: oneOf('strict416', 'none'),
    /** Code of the 416 to a chunk out of order, and whether Location and Range come with it. */
    rangeError: oneOf('BLOB_UPLOAD_INVALID', 'RANGE_INVALID', 'RANGE_ERROR', 'BLOB_UPLOAD_UNKNOWN'),
    rangeHelp: flag(true),
    /** Range of a session that holds nothing yet. */
    emptyRange: oneOf('0-0', '0--1'),
    /** 0 = no limit; `oneByte: false` refuses a chunk of one byte; `equal` = all but the last of one size. */
    chunk: record({ min: 0, max: 0, equal: false, oneByte: true, maxStatus: 416 }),
    chunkHeaders: oneOf('none', 'min', 'min+max'),
    finalPutBody: oneOf('append', 'ignore', 'needsRange416'),
    emptyBlob: oneOf('ok', '500'),
    sameSessionRestart: oneOf('ok', '416'),
    /** `slow(n)` in ms; a PUT that repeats a commit meanwhile is 404. With `+` the first answer is lost as well. */
    commit: oneOf(
      'ok',
      'slow(n)',
      'loseAnswer',
      'retry404present',
      'retry404lost',
      'slow+retry404present(n)',
      'slow+retry404lost(n)',
      'dup400',
    ),
    /** Answer to the DELETE of a session, which goes on unless it is 204. */
    cancel: oneOf('204', '400', '401', '405'),
    status: oneOf('right', 'plusOne', 'noLocation+plusOne', '400', '405'),
    /** Answer to bytes that do not hash to the digest; `500` also to one that is absent, malformed or no sha256. */
    digestError: oneOf('400', '500'),
    /** The session after bytes that did not hash: gone, as it was before that PUT, or with those bytes in it. */
    afterBadDigest: oneOf('gone', 'before', 'keeps'),
    /** A PUT or PATCH to a session that is unknown, used or cancelled; `taken`: as if it had just been opened. */
    unknownSession: oneOf('404', '500', 'taken'),
    /** Location in the answers to blobs and manifests that were stored. */
    storedLocation: flag(true),
    /** A second upload of one digest to one repository while the first is under way. */
    parallelSameBlob: oneOf('ok', '500'),
    /** Seconds after which a blob that no manifest names is gone; 0 = never. */
    ttlSec: count(0),
  },
  repo: {
    missing: oneOf('create', '404nameUnknown', 'reset', 'createOnPushToken'),
    /** Answer to whatever would write into a repository: a proxy project, a mirror. */
    push: oneOf('taken', '403', '405'),
    /** A name that the spec does not allow; `404` as a page. */
    badName: oneOf('400', '404', 'taken'),
    /** Code for a manifest, status for a list of tags, of a repository that is not there. */
    manifestCode: oneOf('NAME_UNKNOWN', 'MANIFEST_UNKNOWN'),
    tags: oneOf('404', '200'),
  },
  manifest: {
    children: platforms,
    childError: oneOf(
      '400 MANIFEST_BLOB_UNKNOWN',
      '404 MANIFEST_BLOB_UNKNOWN',
      '400 BLOB_UNKNOWN',
      '404 BLOB_UNKNOWN',
      '400 MANIFEST_INVALID',
      '404 MANIFEST_UNKNOWN',
    ),
    /** Only the first of what is absent is named. */
    oneProblem: flag(false),
    /** Answer to what is no manifest by the rules below, and to what is no JSON. */
    shapeError: oneOf('400 MANIFEST_INVALID', '500 INTERNAL_ERROR'),
    /** Looked at: that the body is a JSON object, that Content-Type is its mediaType, that it hashes to its digest. */
    bodyCheck: flag(true),
    typeCheck: flag(true),
    digestCheck: flag(true),
    /** No Content-Type: the body's mediaType is taken, or the answer. */
    noType: oneOf('body', '400', '415'),
    /** A tag that the spec does not allow; `404` as a page. */
    badTag: oneOf('400', '404', 'taken'),
    /** Absent layers and configs are refused; false: only absent children. */
    blobs: flag(true),
    /** Milliseconds after its 201 during which a blob or manifest is not to be seen. */
    visibleAfterMs: count(0),
    types: oneOf('all', 'ociOnly415'),
    /** An OCI index that holds Docker children, or the other way round. */
    mixed: oneOf('accept', '400'),
    /** `explicit404`: no Accept, or one of wildcards only, accepts nothing. */
    accept: oneOf('strict404', 'lenient', 'explicit404', 'swapAmd64'),
    /** A Docker list by tag of a linux/amd64 image, asked for by one who names neither: it would be converted. */
    bareList: oneOf('asAccept', '400'),
    needMediaType: flag(false),
    needPlatform: oneOf('no', 'dockerLists', 'all'),
    nested: flag(true),
    sizeCheck: flag(false),
    subjectMustExist: flag(false),
    /** Layers with `urls`: need not be there, must be there like any other, or are refused. */
    urls: oneOf('accept', 'checked', '400', '500'),
    max: oneOf('4MiB/413', '4MiB/400', '10MiB/413', 'none'),
    immutable: oneOf('off', '400evenSame', '409', '412', '400redeploy'),
    headMissing: oneOf('404', '403', '500'),
    digestHeader: flag(true),
    referrers: oneOf('api', '404'),
    referrersPage: count(0),
    tagParam: flag(true),
  },
  delete: {
    tag: oneOf('202', '400', '405'),
    /** `indexed405`: not while an index names it. */
    manifest: oneOf('202', '405', 'indexed405'),
    /** `everywhere202`: from all repositories at once, where there is one heap for all. */
    blob: oneOf('202', '405', 'everywhere202'),
  },
  auth: {
    scheme: oneOf('none', 'basic', 'bearer'),
    ping: oneOf('noScope', 'placeholderScope', '200'),
    /** Realm of a Basic challenge. */
    realm: oneOf('host', 'url'),
    /**
     * `postStatus` answers POST when `post` is false, and the password grant when `password` is; `ttl` in seconds. An
     * `opaque` token holds nothing that could be decoded; others are JWTs, which no client may rely on.
     */
    token: record({ get: true, post: true, password: true, postStatus: 405, field: 'token', ttl: 300, opaque: false }),
    /** A scope whose repository cannot be one: no such grant, or no token at all (Docker Hub). */
    badName: oneOf('ignored', '400'),
    scopes: oneOf('repeated+joined', 'repeatedOnly400', 'firstOnly', 'lastPerRepo'),
    denied: oneOf('downscope', '403', '400'),
    anonymousPull: flag(true),
    cookieCsrf: flag(false),
    /** A user is good for the first pattern of its `access` alone, and unknown (401) everywhere else (Harbor robots). */
    perRepoUser: flag(false),
  },
  blob: {
    redirect: oneOf('none', '307otherHost', '307rejectsAuth400'),
    /** Whoever asks a repository for a blob that another one has is shown it, and the repository has it from then on. */
    shared: flag(false),
    /** `Range` is looked at. */
    range: flag(true),
  },
  limit: {
    /** `perSec` and `perWindow` manifest reads (0 = no limit); `retryAfter` in seconds, 0 = header absent. */
    pull: noneOr({ perSec: 0, perWindow: 0, countHead: false, headers: false, retryAfter: 1 }),
    /** Closing blob PUTs a second, and as many manifest PUTs; 0 = no limit. */
    commitPerSec: count(0),
    /** Requests of any kind a second; 0 = no limit. */
    allPerSec: count(0),
    /** Seconds in `Retry-After` of the two limits above; 0 = header absent. */
    retryAfter: count(1),
    body: oneOf('json', 'text'),
  },
  /**
   * `redirect301`: what arrives in clear is sent to https by a 301. A registry without TLS plays both ends: there it is
   * only the PATCH and PUT to a session, whose Location the registry behind the proxy had made.
   */
  proxy: noneOr({ maxBody: 0, html: true, closeEarly: false, redirect301: false }),
  warning: text,
  answer: {
    /** Added to every answer, as a wire of that round-trip time would. */
    latencyMs: count(0),
    /** Headers that are never sent, in any case. */
    omitHeaders: texts(),
    /** No answer before the whole body is in, also where it is refused. */
    afterBody: flag(false),
  },
} as const;

type Table = typeof SWITCHES;
type ValueOf<S> = S extends Switch<infer T> ? T : never;

/** The value of every switch. */
export type Profile = {
  readonly [G in keyof Table]: Table[G] extends Switch<infer T>
    ? T
    : { readonly [N in keyof Table[G]]: ValueOf<Table[G][N]> };
};

type Part<T> = T extends readonly unknown[] | string | number | boolean ? T : { readonly [K in keyof T]?: Part<T[K]> };

/** Only what differs: from `spec` in a profile, from the present values in `configure`. */
export type ProfileChanges = { readonly [G in keyof Profile]?: Part<Profile[G]> };

/** The strict registry: the first value of every switch. */
export function specProfile(): Profile {
  return applyChanges(undefined, {});
}

/**
 * The profile with these changes made.
 *
 * @throws RangeError naming the switch that does not exist, or the value that a switch does not have
 */
export function applyChanges(base: Profile | undefined, changes: ProfileChanges): Profile {
  const result: Record<string, unknown> = {};
  const wanted = changes as Readonly<Record<string, unknown>>;
  refuseUnknown('', wanted, SWITCHES);
  for (const [group, entry] of Object.entries(SWITCHES)) {
    const before = base?.[group as keyof Profile] as unknown;
    if (isSwitch(entry)) {
      result[group] = settle(group, entry, before, wanted[group]);
      continue;
    }
    const part = wanted[group] ?? {};
    if (!isObject(part)) throw new RangeError(`profile group "${group}" is an object of switches`);
    refuseUnknown(`${group}.`, part, entry);
    result[group] = Object.fromEntries(
      Object.entries(entry).map(([name, one]) => [
        name,
        settle(`${group}.${name}`, one, isObject(before) ? before[name] : undefined, part[name]),
      ]),
    );
  }
  return result as Profile;
}

/** The number in `off(404)` and the like. */
export function argumentOf(value: string): number {
  return Number(/\((\d+(?:\.\d+)?)\)$/.exec(value)?.[1] ?? 'NaN');
}

function settle(path: string, one: Switch<unknown>, before: unknown, wanted: unknown): unknown {
  if (wanted === undefined) return before === undefined ? one.initial : before;
  if (!one.accepts(wanted)) {
    throw new RangeError(`profile switch "${path}" has no value ${JSON.stringify(wanted)}; it takes: ${one.values}`);
  }
  return one.complete === undefined ? wanted : one.complete(wanted);
}

function refuseUnknown(prefix: string, given: Readonly<Record<string, unknown>>, known: object): void {
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(known, name)) throw new RangeError(`profile switch "${prefix}${name}" does not exist`);
  }
}

function hasOnly(value: Readonly<Record<string, unknown>>, name: string): boolean {
  return Object.keys(value).every((key) => key === name);
}
