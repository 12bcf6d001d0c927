/**
 * What can be turned about the embedded registry: one table holds the name, the values and the default (the first
 * value) of every switch; the type {@link Profile} and the check of foreign input are made from it. A name or value
 * that is not in the table is refused by name, so that a test never passes because a wish was silently dropped.
 */

/** One decision of the registry that profiles may turn. */
export type Switch<T> = {
  readonly initial: T;
  /** For messages and lists, in the words of the profiles. */
  readonly values: string;
  readonly accepts: (value: unknown) => boolean;
  /** Completes a value that may be given in part. */
  readonly complete?: (value: unknown) => T;
};

/** `'off(n)'` in the table stands for `'off(404)'` and the like. */
type Expanded<V extends string> = V extends `${infer Head}(n)` ? `${Head}(${number})` : V;

/** @returns a switch over words; the first is the default */
function oneOf<const V extends readonly [string, ...string[]]>(...values: V): Switch<Expanded<V[number]>> {
  const accepts = (value: unknown): boolean => {
    if (typeof value !== 'string') return false;
    const call = /^([\w+]+)\(\d+(?:\.\d+)?\)$/.exec(value);
    return call === null ? values.includes(value) && !value.endsWith('(n)') : values.includes(`${call[1]}(n)`);
  };
  return { initial: values[0] as Expanded<V[number]>, values: values.join(', '), accepts };
}

function flag(initial: boolean): Switch<boolean> {
  return { initial, values: initial ? 'true, false' : 'false, true', accepts: (value) => typeof value === 'boolean' };
}

const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0;

function count(initial: number): Switch<number> {
  return { initial, values: `${initial}, any number from 0`, accepts: isCount };
}

/** `'none'` or an object; absent fields take the given defaults. */
function noneOr<T extends object>(defaults: T): Switch<'none' | T> {
  const fields = Object.entries(defaults);
  const accepts = (value: unknown): boolean =>
    value === 'none' ||
    (isObject(value) &&
      Object.entries(value).every(([key, field]) => fields.some(([name, like]) => name === key && alike(field, like))));
  const complete = (value: unknown): 'none' | T => (isObject(value) ? { ...defaults, ...value } : 'none');
  return { initial: 'none', values: `none, {${fields.map(([name]) => name).join(', ')}}`, accepts, complete };
}

/** An object that is always there; absent fields take the given defaults. */
function record<T extends object>(defaults: T): Switch<T> {
  const inner = noneOr(defaults);
  return {
    initial: defaults,
    values: inner.values.slice('none, '.length),
    accepts: (value) => value !== 'none' && inner.accepts(value),
    complete: (value) => ({ ...defaults, ...(isObject(value) ? value : {}) }),
  };
}

function texts(): Switch<readonly string[]> {
  const accepts = (value: unknown): boolean => Array.isArray(value) && value.every((text) => typeof text === 'string');
  return { initial: [], values: '[], list of texts', accepts };
}

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

const text: Switch<string> = { initial: 'none', values: 'none, text', accepts: (value) => typeof value === 'string' };

/** Every switch, grouped as the profiles group them. Sizes are bytes before `scale`. */
export const SWITCHES = {
  mount: {
    mode: oneOf(...MOUNT_MODES),
    byDigest: modeByDigest(),
    withoutFrom: oneOf('202', 'anywhere201', 'error400'),
    fromWithoutMount: oneOf('202', '405'),
    noSourceScope: oneOf('401bearer2', '202', '401basic', '401empty', '403', 'ok'),
    noSourceRepo: oneOf('202', '401empty', '404', '400'),
    digestHeader: flag(true),
    shareAfterManifest: flag(false),
  },
  upload: {
    location: oneOf('absolute', 'relative', 'relativeNoQuery', 'otherPath', 'otherHost', 'httpScheme'),
    state: oneOf('none', '_state', '_stateHash'),
    stale: oneOf('416', '404', '500'),
    postRange: oneOf('0-0', 'bytes=0--1', 'absent'),
    postNeedsLength: oneOf('false', '411html'),
    singlePost: oneOf('202', '201'),
    put: oneOf('201', '204', '404blobUnknown', '413over(n)', 'resetOver(n)'),
    noLength: oneOf('accept', 'ignoreBody', '400', '500'),
    contentType: oneOf('any', 'octetOnly415', 'octetOnly500'),
    patch: oneOf('ranged', 'none(n)', 'streamOnly', 'firstStreamOnly'),
    patchStatus: oneOf('202', '201', '204'),
    patchRange: oneOf('right', 'stuck', 'absent', 'plusOne'),
    rangeCheck: oneOf('strict416', 'none'),
    /** 0 = no limit; `oneByte: false` refuses a chunk of one byte; `equal` = all but the last of one size. */
    chunk: record({ min: 0, max: 0, equal: false, oneByte: true, maxStatus: 416 }),
    chunkHeaders: oneOf('none', 'min', 'min+max'),
    finalPutBody: oneOf('append', 'ignore', 'needsRange416'),
    emptyBlob: oneOf('ok', '500'),
    sameSessionRestart: oneOf('ok', '416'),
    commit: oneOf('ok', 'slow(n)', 'loseAnswer', 'retry404present', 'retry404lost', 'dup400'),
    cancel: oneOf('204', '401', '405'),
    status: oneOf('right', 'plusOne', 'noLocation+plusOne', '405'),
    /** Answer to bytes that do not hash to the digest. */
    digestError: oneOf('400', '500'),
    /** A second upload of one digest to one repository while the first is under way. */
    parallelSameBlob: oneOf('ok', '500'),
    /** Seconds after which a blob that no manifest names is gone; 0 = never. */
    ttlSec: count(0),
  },
  repo: { missing: oneOf('create', '404nameUnknown', 'reset', 'createOnPushToken') },
  manifest: {
    children: platforms,
    childError: oneOf(
      '400 MANIFEST_BLOB_UNKNOWN',
      '404 MANIFEST_BLOB_UNKNOWN',
      '400 BLOB_UNKNOWN',
      '404 BLOB_UNKNOWN',
      '400 MANIFEST_INVALID',
    ),
    /** Milliseconds after its 201 during which a blob or manifest is not to be seen. */
    visibleAfterMs: count(0),
    types: oneOf('all', 'ociOnly415'),
    /** An OCI index that holds Docker children, or the other way round. */
    mixed: oneOf('accept', '400'),
    /** `explicit404`: no Accept, or one of wildcards only, accepts nothing. */
    accept: oneOf('strict404', 'lenient', 'explicit404', 'swapAmd64'),
    needMediaType: flag(false),
    needPlatform: oneOf('no', 'dockerLists', 'all'),
    nested: flag(true),
    sizeCheck: flag(false),
    subjectMustExist: flag(false),
    urls: flag(true),
    max: oneOf('4MiB/413', '4MiB/400', '10MiB/413'),
    immutable: oneOf('off', '400evenSame', '409', '412', '400redeploy'),
    headMissing: oneOf('404', '403', '500'),
    digestHeader: flag(true),
    referrers: oneOf('api', '404'),
    tagParam: flag(true),
  },
  delete: { tag: oneOf('202', '400', '405'), manifest: oneOf('202', '405'), blob: oneOf('202', '405') },
  auth: {
    scheme: oneOf('none', 'basic', 'bearer'),
    ping: oneOf('noScope', 'placeholderScope', '200'),
    /** `postStatus` answers POST when `post` is false; `ttl` in seconds. */
    token: record({ get: true, post: true, postStatus: 405, field: 'token', ttl: 300 }),
    scopes: oneOf('repeated+joined', 'repeatedOnly400', 'firstOnly', 'lastPerRepo'),
    denied: oneOf('downscope', '403', '400'),
    anonymousPull: flag(true),
    cookieCsrf: flag(false),
  },
  blob: { redirect: oneOf('none', '307otherHost', '307rejectsAuth400') },
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
  proxy: noneOr({ maxBody: 0, html: true, closeEarly: false }),
  warning: text,
  answer: {
    /** Added to every answer, as a wire of that round-trip time would. */
    latencyMs: count(0),
    /** Headers that are never sent, in any case. */
    omitHeaders: texts(),
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
    if (!Object.hasOwn(known, name)) throw new RangeError(`profile switch "${prefix}${name}" is not implemented`);
  }
}

function isSwitch(entry: object): entry is Switch<unknown> {
  return 'accepts' in entry && 'initial' in entry;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function hasOnly(value: Readonly<Record<string, unknown>>, name: string): boolean {
  return Object.keys(value).every((key) => key === name);
}

function alike(field: unknown, like: unknown): boolean {
  return typeof like === 'number' ? isCount(field) : typeof field === typeof like;
}
