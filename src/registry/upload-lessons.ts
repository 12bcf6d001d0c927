import type { Clock } from '../http/clock.ts';
import { orAborted } from '../http/promises.ts';
import type { UploadSession } from './client.ts';
import { UPLOAD_SIZES, type UploadSizes } from './upload-sizes.ts';

/** How blobs are sent, as the configuration has it; `chunkSize` in bytes. */
export type UploadMode = { readonly mode: 'auto' | 'whole' | 'chunks'; readonly chunkSize?: number };

/** ECR Public takes a thousand parts, serverless-registry ten thousand: a very large blob gets larger chunks. */
const PARTS = 1000;

/** How a blob is sent: in one PUT, in chunks of a size, or in one PATCH without a range, closed by an empty PUT. */
export type UploadForm =
  | { readonly kind: 'whole' | 'stream' }
  | { readonly kind: 'chunks'; readonly size: number; readonly most: number };

/** More than these no blob is cut into, whatever the host wants: each is a request, and that is what registries take. */
const PARTS_MOST = 10_000;

/** What the uploads of this process have taught of one host. */
export interface UploadLessons {
  /** `cautious`: chunks if they are known to be no trouble, for a blob that broke before. */
  formOf(size: number, session: UploadSession, cautious: boolean): UploadForm;
  /** Whether a broken upload may go on: that takes a PATCH. */
  resumes(): boolean;
  /** Whether the blob is worth chunks when it has to be sent once more. */
  worthChunks(size: number): boolean;
  /** A body of so many bytes was taken. */
  taken(bytes: number): void;
  /** A body was too large, by a 413 or by a connection that was cut. Whether there is a smaller form. */
  tooLarge(bytes: number, session: UploadSession): boolean;
  /** A chunk was too large though a body of that size may not be (GHCR's 416). Whether there is a smaller one. */
  chunkTooLarge(bytes: number, session: UploadSession): boolean;
  /**
   * The connection was cut in mid-body and nothing had arrived, as with proxies that do not even say 413. Whether less
   * is sent at a time from now on.
   */
  cut(bytes: number): boolean;
  /** The host takes no blob in one PUT. Whether another form may be used. */
  noWhole(): boolean;
  /** The host takes no PATCH with a range: there is always another form left to try. */
  noChunks(): void;
  /** @see RegistryClient.uploadTurn */
  turn(size: number, signal: AbortSignal, together?: object): Promise<{ release(): void }>;
}

type ChunkLimits = NonNullable<UploadSession['chunk']>;

/** The least size of a chunk; one above the largest is a mistake. */
function minOf({ min = 0, max = Number.POSITIVE_INFINITY }: ChunkLimits): number {
  return min > max ? 0 : min;
}

/** Google documents that it takes no chunks, and lets nobody in between. */
function isGoogle(host: string): boolean {
  return /(?:^|\.)(?:pkg\.dev|gcr\.io)$/.test(host);
}

/** Nothing is known yet. One for each host and process. */
export function createUploadLessons(
  host: string,
  clock: Clock,
  { mode, chunkSize }: UploadMode = { mode: 'auto' },
  given: Partial<UploadSizes> = {},
): UploadLessons {
  const sizes = { ...UPLOAD_SIZES, ...given };
  const whole = mode === 'whole' || isGoogle(host);
  /** The smallest body that was refused for its size, the largest that was taken. */
  let refusedFrom = Number.POSITIVE_INFINITY;
  let largest = 0;
  let chunkMost = Number.POSITIVE_INFINITY;
  let ranged = true;
  let barred = false;
  let hint: UploadSession['chunk'];

  /** Half of what was refused is worth a try of its own, what comes near it is not. */
  const wholeMay = (size: number): boolean =>
    !barred && (size <= largest || refusedFrom === Number.POSITIVE_INFINITY || size <= refusedFrom / 2);
  const floorOf = (limits: ChunkLimits): number => Math.max(sizes.least, minOf(limits));

  function chunkOf(size: number, limits: ChunkLimits): { size: number; most: number } {
    const floor = floorOf(limits);
    const min = minOf(limits);
    // A maximum that is absurdly small is a mistake, but it does speak for small chunks.
    const max = Math.max(limits.max ?? Number.POSITIVE_INFINITY, sizes.least);
    const wanted = chunkSize ?? Math.max(sizes.chunk, Math.ceil(size / PARTS));
    let chunk = Math.min(Math.max(wanted, min), max, Math.max(chunkMost, min));
    // One byte less than what was refused is not worth a try: that byte may be the one that spared a last chunk of one.
    while (chunk + 1 >= refusedFrom && chunk > floor) chunk = Math.max(floor, Math.floor(chunk / 2));
    chunk = Math.max(1, chunk, Math.ceil(size / PARTS_MOST));
    const most = Math.max(chunk, Math.min(max, chunkMost, refusedFrom - 1));
    const limited = refusedFrom < Number.POSITIVE_INFINITY || chunkMost < Number.POSITIVE_INFINITY;
    // Where something was too large a byte less is safer than one more, unless the session asks for all of them.
    return { size: chunk, most: limited && chunk > min ? chunk : most };
  }

  function decide(size: number, limits: ChunkLimits = {}, cautious = false): UploadForm {
    if (whole || size === 0) return { kind: 'whole' };
    // serverless-registry takes no chunk of one byte.
    if (size === 1 && !barred) return { kind: 'whole' };
    const { max = Number.POSITIVE_INFINITY } = limits;
    const wanted = mode === 'chunks' || cautious || (size > max && max >= sizes.least);
    if (!wanted && wholeMay(size)) return { kind: 'whole' };
    if (!ranged) return { kind: wholeMay(size) ? 'whole' : 'stream' };
    return { kind: 'chunks', ...chunkOf(size, limits) };
  }

  function isKnown(size: number): boolean {
    // A small body that is refused is cheap to send again, but not as often as there are of them.
    const small = size <= sizes.scout && refusedFrom === Number.POSITIVE_INFINITY && !barred;
    if (whole || small || size <= assumed) return true;
    const form = decide(size, hint);
    return form.kind === 'chunks' ? Math.min(form.size, size) <= largest : size <= largest;
  }

  let scout: { readonly size: number; readonly together: object | undefined; readonly done: Promise<void> } | undefined;
  /** A blob of this size had been on its way for so long that nobody waits for its like again. */
  let assumed = 0;

  function startScout(size: number, together: object | undefined): { release(): void } {
    let end: () => void = () => undefined;
    const own = { size, together, done: new Promise<void>((resolve) => (end = resolve)) };
    scout = own;
    const release = (): void => {
      if (scout === own) scout = undefined;
      end();
    };
    return { release };
  }

  async function turn(size: number, signal: AbortSignal, together?: object): Promise<{ release(): void }> {
    const free = { release: () => undefined };
    // A scout that waits for it would wait in vain.
    const goes = (): boolean => isKnown(size) || (together !== undefined && scout?.together === together);
    if (goes()) return free;
    if (scout === undefined) return startScout(size, together);
    const over = new AbortController();
    let late = false;
    const timer = clock.sleep(sizes.patience, over.signal).then(
      () => {
        late = true;
      },
      // Stopping is the only way in which this sleep fails.
      () => undefined,
    );
    try {
      while (scout !== undefined && !late && !goes()) {
        await orAborted(Promise.race([scout.done, timer]), signal);
      }
      if (late) assumed = Math.max(assumed, scout?.size ?? 0);
      return late || goes() ? free : startScout(size, together);
    } finally {
      over.abort();
    }
  }

  return {
    formOf: (size, session, cautious) => {
      hint = session.chunk;
      return decide(size, session.chunk, cautious);
    },
    resumes: () => !whole && ranged,
    worthChunks: (size) => !whole && ranged && size > chunkOf(size, hint ?? {}).size,
    taken: (bytes) => {
      largest = Math.max(largest, bytes);
    },
    tooLarge: (bytes, session) => {
      refusedFrom = Math.min(refusedFrom, bytes);
      largest = Math.min(largest, refusedFrom - 1);
      return !whole && bytes > floorOf(session.chunk ?? {});
    },
    chunkTooLarge: (bytes, session) => {
      const floor = floorOf(session.chunk ?? {});
      const next = bytes > sizes.tooLarge ? sizes.tooLarge : Math.floor(bytes / 2);
      chunkMost = Math.min(chunkMost, Math.max(floor, next));
      return bytes > Math.max(floor, chunkMost);
    },
    cut: (bytes) => {
      // What was taken before is no larger than the limit, if there is one.
      if (bytes > sizes.uncut && bytes > largest) refusedFrom = Math.min(refusedFrom, bytes);
      return !whole && ranged && bytes >= refusedFrom && chunkOf(bytes, hint ?? {}).size < bytes;
    },
    noWhole: () => {
      barred = !whole;
      return barred;
    },
    noChunks: () => {
      ranged = false;
    },
    turn,
  };
}
