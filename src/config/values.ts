import { PublishError } from '../errors.ts';
import { parseReference } from '../model/reference.ts';

export { nearest } from '../model/nearest.ts';

/** The values of `--progress`. */
export const PROGRESS_MODES = ['auto', 'tty', 'plain', 'json', 'none'] as const;

/** @see PROGRESS_MODES */
export type ProgressMode = (typeof PROGRESS_MODES)[number];

/** The values of `--type`. */
export const INDEX_TYPES = ['auto', 'oci', 'docker'] as const;

/** The values of `--attestations`. */
export const ATTESTATIONS = ['keep', 'drop'] as const;

/** The values of `--referrers`. */
export const REFERRERS = ['none', 'all'] as const;

/** Values of `--stage`. */
export const STAGES = ['content', 'index'] as const;

/** The values of `mount`. */
export const MOUNT_MODES = ['auto', 'never'] as const;

/** @see MOUNT_MODES */
export type MountMode = (typeof MOUNT_MODES)[number];

/** The values of `upload`. */
export const UPLOAD_MODES = ['auto', 'whole', 'chunks'] as const;

/** @see UPLOAD_MODES */
export type UploadMode = (typeof UPLOAD_MODES)[number];

/** Data files only: a publisher holds push credentials and runs in checkouts of other people's branches. */
export const SEARCH_PLACES = [
  'manifest-publish.yaml',
  'manifest-publish.yml',
  'manifest-publish.json',
  '.manifest-publishrc',
  '.manifest-publishrc.json',
  '.manifest-publishrc.yaml',
  '.manifest-publishrc.yml',
  '.config/manifest-publish.yaml',
  '.config/manifest-publish.yml',
  '.config/manifest-publish.json',
  '.config/manifest-publishrc',
  '.config/manifest-publishrc.json',
  '.config/manifest-publishrc.yaml',
  '.config/manifest-publishrc.yml',
  'package.json',
] as const;

/** `setTimeout` fires at once beyond 2^31 - 1 ms, so no duration may be longer (24 days). */
const LONGEST_MILLISECONDS = 2 ** 31 - 1;

const DURATION = /^(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?$/;

/** How a duration is written, for messages. */
export const DURATION_FORM = 'a duration such as 90s, 10m or 1h30m';

/** Milliseconds of `90s`, `10m`, `1h30m` or `500ms`; undefined for anything else and beyond 24 days. */
export function parseDuration(text: string): number | undefined {
  const match = DURATION.exec(text);
  if (match === null || text === '') return undefined;
  const [, hours = '0', minutes = '0', seconds = '0', rest = '0'] = match;
  const milliseconds = Number(hours) * 3_600_000 + Number(minutes) * 60_000 + Number(seconds) * 1000 + Number(rest);
  return milliseconds <= LONGEST_MILLISECONDS ? milliseconds : undefined;
}

/**
 * Bounds of `chunkSize` in bytes. Below 64 KiB a layer of a gigabyte takes 16,000 requests and more; a piece beyond
 * 1 GiB is no piece to a proxy that limits the size of a request, and Node's longest write is 2 GiB.
 */
export const CHUNK_BOUNDS = { least: 64 * 1024, most: 1024 ** 3 } as const;

/** How a chunk size is written, for messages. */
export const CHUNK_FORM = 'a size from 64KiB to 1GiB, such as 8MiB or a number of bytes';

const UNITS: Readonly<Record<string, number>> = { '': 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };

/** Bytes of `8MiB`, `512 KiB` or `1048576`; undefined for anything else and out of {@link CHUNK_BOUNDS}. */
export function parseChunkSize(value: string | number): number | undefined {
  const [, number = '', unit = ''] = /^(\d{1,10}) ?([KMG]iB|)$/.exec(String(value)) ?? [];
  const size = number === '' ? 0 : Number(number) * (UNITS[unit] ?? 0);
  return size >= CHUNK_BOUNDS.least && size <= CHUNK_BOUNDS.most ? size : undefined;
}

/** A whole number between the bounds, written in digits only; undefined for anything else. */
export function parseCount(text: string, least: number, most: number): number | undefined {
  if (!/^\d{1,9}$/.test(text)) return undefined;
  const count = Number(text);
  return count >= least && count <= most ? count : undefined;
}

/** The normalised host when the text is one by Docker's rule (a dot, a colon, or `localhost`). */
export function hostOf(text: string): string | undefined {
  try {
    const reference = parseReference(`${text}/probe`);
    return reference.repository === 'probe' || reference.repository === 'library/probe' ? reference.host : undefined;
  } catch (error) {
    if (error instanceof PublishError) return undefined;
    throw error;
  }
}
