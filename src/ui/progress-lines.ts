import type { PublishEvent } from '../publish/events.ts';
import { formatBytes, formatClock, formatDuration, plural, shortDigest } from './format.ts';
import { paceOf } from './pace.ts';
import { warningLine } from './render-error.ts';
import { type Column, tableLines } from './table.ts';
import type { RunningBlob, Tally, TrafficEvent } from './tally.ts';
import { bareUrl, untrusted } from './text.ts';
import { cropped, paint, symbols, type Theme } from './theme.ts';

/** Rows of blobs that are drawn at most; more would push the counts off a small terminal. */
const ROWS = 8;
const BAR = 10;

const COLUMNS: readonly Column[] = [
  { title: '' },
  { title: '', drop: 2 },
  { title: '', align: 'right' },
  { title: '', align: 'right', drop: 3 },
  { title: '', align: 'right', drop: 1 },
  { title: '', drop: 4 },
];

/** While the sources are read. */
export function resolveLine(tally: Tally, now: number, theme: Theme): string {
  const { done, total } = tally.sources;
  return cropped([`reading ${done} of ${plural(total, 'source')}`, ...waiting(tally, now)].join('   '), theme);
}

/** The three counts that finished work folds into; the third are the lists where there are several. */
export function titles(tally: Tally, theme: Theme): readonly [blobs: string, manifests: string, tags: string] {
  return [
    cropped(blobsTitle(tally, theme), theme),
    cropped(manifestsTitle(tally), theme),
    cropped(isMany(tally) ? listsTitle(tally, theme) : tagsTitle(tally), theme),
  ];
}

function isMany({ lists }: Tally): boolean {
  return lists.total > 0;
}

function listsTitle({ lists: { total, done, failed } }: Tally, theme: Theme): string {
  const parts = [`${done} of ${total} lists done`, ...(failed > 0 ? [`failed ${failed}`] : [])];
  return joined(parts, theme);
}

function joined(parts: readonly string[], theme: Theme): string {
  const dot = symbols(theme).dot;
  return parts.join(dot === ',' ? ', ' : ` ${dot} `);
}

function blobsTitle(tally: Tally, theme: Theme): string {
  const { mounted, copied, present, skipped } = tally.done;
  const done = mounted + copied + present + skipped;
  const parts = [
    // Lists plan blobs that they share each for itself, and place them once: their number is known at the end only.
    isMany(tally) ? `blobs ${done}` : `blobs ${done} of ${tally.blobs}`,
    ...(mounted > 0 ? [`mounted ${mounted}`] : []),
    ...(copied > 0 ? [`copied ${copied} (${formatBytes(tally.bytesSent)})`] : []),
    ...(present > 0 ? [`present ${present}`] : []),
    ...(skipped > 0 ? [`skipped ${skipped}`] : []),
  ];
  return joined(parts, theme);
}

function manifestsTitle(tally: Tally): string {
  const done = `manifests ${tally.imagesDone.size}`;
  return isMany(tally) ? done : `${done} of ${tally.planned.size}`;
}

function tagsTitle(tally: Tally): string {
  const last = tally.tags.at(-1);
  const told = last === undefined ? '' : `   ${untrusted(last.reference, 120)} ${last.action}`;
  return `tags ${tally.tags.length}${told}`;
}

/** What is on its way: a row for each blob whose bytes are moving, their sum, and whom the run waits for. */
export function runningLines(tally: Tally, now: number, theme: Theme): string[] {
  const copied = movingBlobs(tally);
  const moving = copied.filter(({ sent, size }) => sent > 0 && sent < size);
  const rows = moving.slice(0, ROWS).map((blob) => {
    const speed = rate(blob, now);
    return [
      shortDigest(blob.digest),
      bar(blob),
      `${formatBytes(blob.sent)} of ${formatBytes(blob.size)}`,
      speed === undefined ? '' : `${formatBytes(speed)}/s`,
      speed === undefined ? '' : formatClock((blob.size - blob.sent) / speed),
      blob.why === undefined ? '' : untrusted(blob.why, 60),
    ];
  });
  const hidden = moving.length - rows.length;
  const later = copied.filter(({ sent, size }) => sent === 0 && size > 0).length;
  // The registry hashes and stores what it has got; its answer can take as long as the bytes did.
  const unanswered = copied.length - moving.length - later;
  const rest = [
    ...(hidden > 0 ? [`and ${hidden} more`] : []),
    ...(unanswered > 0 ? [`${unanswered} sent, no answer yet`] : []),
    ...(later > 0 ? [`${later} to come`] : []),
  ];
  const warning = tally.warnings.at(-1);
  const warned = warning === undefined ? [] : [`warning: ${untrusted(warning, 300)}`];
  const lines = [
    ...tableLines(COLUMNS, rows, theme, ''),
    ...(rest.length > 0 ? [joined(rest, theme)] : []),
    ...(copied.length > 0 ? [sumLine(tally, copied, now, theme)] : []),
    ...waiting(tally, now),
    ...warned,
  ];
  return lines.map((line) => cropped(line, theme));
}

/** All blobs that are known to be copied: a mount that is still being asked for may add to them. */
function sumLine(tally: Tally, copied: readonly RunningBlob[], now: number, theme: Theme): string {
  const sent = sum(copied.map((blob) => blob.sent));
  const left = sum(copied.map((blob) => blob.size)) - sent;
  const speed = paceOf(tally.pace, now, tally.bytesSent + sent);
  const parts = [
    `sent ${formatBytes(tally.bytesSent + sent)}${left > 0 ? `, ${formatBytes(left)} to go` : ''}`,
    ...(speed === undefined || left === 0 ? [] : [`${formatBytes(speed)}/s`, formatClock(left / speed)]),
    joined([plural(tally.requests, 'request'), ...(tally.retries > 0 ? [retriesOf(tally)] : [])], theme),
  ];
  return parts.join('   ');
}

function retriesOf({ retries }: Tally): string {
  return retries === 1 ? '1 retry' : `${retries} retries`;
}

/** One line for a log that stands for all that is on its way; nothing when nothing is. */
export function beatLine(tally: Tally, now: number, theme: Theme): string | undefined {
  if (tally.plans === 0) return tally.sources.total === 0 ? undefined : `  ${resolveLine(tally, now, theme)}`;
  const moving = movingBlobs(tally);
  const speed = sum(moving.map((blob) => rate(blob, now) ?? 0));
  const copying =
    moving.length === 0
      ? []
      : [
          `copying ${moving.length} (${formatBytes(sum(moving.map((blob) => blob.sent)))} of ` +
            `${formatBytes(sum(moving.map((blob) => blob.size)))}, ${formatBytes(speed)}/s)`,
        ];
  const lists = isMany(tally) ? [listsTitle(tally, theme)] : [];
  const counts = [...lists, blobsTitle(tally, theme), ...copying, manifestsTitle(tally), ...waiting(tally, now)];
  return `  ${counts.join('   ')}`;
}

/** What a log tells of an event: sources and blobs are in the counts. */
export function eventLine(event: PublishEvent, tally: Tally, theme: Theme): string | undefined {
  if (isMany(tally)) return listLine(event, tally, theme);
  switch (event.kind) {
    case 'resolve.start':
      return `reading ${plural(event.sources, 'source')} for ${untrusted(event.target, 300)}`;
    case 'plan': {
      const size = `${plural(event.images.length, 'manifest')}, ${plural(event.blobs, 'blob')}, ${formatBytes(event.bytes)}`;
      return `plan ${untrusted(event.target, 300)}: ${size}`;
    }
    case 'manifest.done': {
      const name = tally.images.get(event.digest) ?? 'manifest';
      const where = event.repository === undefined ? '' : ` in ${untrusted(event.repository, 300)}`;
      return `  ${name} ${event.digest} ${event.manifest}${where} (${tally.imagesDone.size} of ${tally.planned.size})`;
    }
    case 'tag.done':
      return `tag ${untrusted(event.reference, 300)} ${event.action}: ${event.digest}`;
    case 'warning':
      return warningLine(event.text, theme);
    default:
      return undefined;
  }
}

/** Of several lists each has one line, when it has ended. */
function listLine(event: PublishEvent, { lists: { done, total } }: Tally, theme: Theme): string | undefined {
  switch (event.kind) {
    case 'run.start':
      return `publishing ${plural(event.lists, 'list')}`;
    case 'list.done': {
      const head = `${done} of ${total} lists done: ${untrusted(event.target, 300)}`;
      if (event.error === undefined) return `${head} ${event.digest ?? ''}`.trimEnd();
      // Why, is told by the summary, once for all that one thing stopped.
      return `${head} ${paint(theme, 'bad', 'failed')}`;
    }
    case 'warning':
      return warningLine(event.text, theme);
    default:
      return undefined;
  }
}

/** `--debug`: one request a line; the query, where upload states and signatures stand, is never shown. */
export function trafficLine(event: TrafficEvent, theme: Theme): string {
  if (event.kind === 'retry') {
    const text = `retry ${event.host} in ${formatDuration(event.waitMilliseconds)}: ${event.reason}`;
    return paint(theme, 'warn', untrusted(text));
  }
  const parts = [
    event.method,
    bareUrl(event.url),
    event.status === undefined ? `failed (${event.failure ?? 'no answer'})` : String(event.status),
    `${Math.round(event.milliseconds)} ms`,
    `${event.bytesSent} B`,
    ...(event.send > 1 ? [`try ${event.send}`] : []),
  ];
  return paint(theme, 'quiet', untrusted(parts.join(' '), 2000));
}

function movingBlobs(tally: Tally): readonly RunningBlob[] {
  return [...tally.running.values()].filter((blob) => blob.since !== undefined || blob.why !== undefined);
}

/** Mean of the current try in bytes a second; nothing in its first half second, when it says nothing. */
function rate(blob: RunningBlob, now: number): number | undefined {
  if (blob.since === undefined || blob.sent === 0 || now - blob.since < 500) return undefined;
  return (blob.sent / (now - blob.since)) * 1000;
}

function bar({ sent, size }: RunningBlob): string {
  const full = size === 0 ? BAR : Math.min(BAR, Math.floor((sent / size) * BAR));
  return `[${'#'.repeat(full)}${'-'.repeat(BAR - full)}]`;
}

function waiting({ wait }: Tally, now: number): string[] {
  if (wait === undefined || wait.until <= now) return [];
  return [untrusted(`waiting ${formatDuration(wait.until - now)} for ${wait.host} (${wait.reason})`, 200)];
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
