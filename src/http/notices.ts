import { oneLine } from './error-body.ts';
import type { HttpEvent, HttpHeaders } from './message.ts';

/** What the spec allows a registry to say in warnings at a time, in bytes. */
const WARNINGS_LIMIT = 4096;
/** A registry that says something new each time is listened to for so long. */
const MOST_WARNINGS = 20;

/** Listens to what answers say beside themselves. */
export interface Notices {
  /** `host` as the user knows it. */
  read(host: string, headers: HttpHeaders): void;
}

/**
 * Tells each warning of a host once, and a limit that is nearly used up once for each halving of what is left: a run
 * has hundreds of answers that all say the same.
 */
export function createNotices(onEvent: (event: HttpEvent) => void): Notices {
  const warned = new Map<string, Set<string>>();
  /** What was last told to be left, by host. */
  const told = new Map<string, number>();

  function warn(host: string, header: string): void {
    const texts = warned.get(host) ?? new Set();
    warned.set(host, texts);
    for (const text of warningsOf(header)) {
      if (texts.has(text) || texts.size >= MOST_WARNINGS) continue;
      texts.add(text);
      onEvent({ kind: 'warning', host, text });
    }
  }

  function measure(host: string, headers: HttpHeaders): void {
    const limit = quota(headers['ratelimit-limit']);
    const remaining = quota(headers['ratelimit-remaining']);
    if (limit === undefined || remaining === undefined) return;
    if (remaining.count > Math.max(5, limit.count / 10)) {
      told.delete(host);
      return;
    }
    const before = told.get(host);
    if (before !== undefined && (before === 0 || remaining.count > before / 2)) return;
    told.set(host, remaining.count);
    const windowSeconds = remaining.seconds ?? limit.seconds;
    const source = oneLine(headers['docker-ratelimit-source'] ?? '', 100);
    onEvent({
      kind: 'rate',
      host,
      remaining: remaining.count,
      limit: limit.count,
      ...(windowSeconds === undefined ? {} : { windowSeconds }),
      ...(source === '' ? {} : { source }),
    });
  }

  return {
    read(host, headers) {
      const { warning } = headers;
      if (warning !== undefined) warn(host, warning);
      if (headers['ratelimit-remaining'] !== undefined) measure(host, headers);
    },
  };
}

/**
 * The texts of `299 - "text"`, of one or many headers joined; other codes and agents are those of old caches.
 *
 * @see distribution-spec main spec.md, section "Warnings"
 */
function warningsOf(header: string): readonly string[] {
  const texts = header.slice(0, WARNINGS_LIMIT).matchAll(/(?:^|,)\s*299 - "((?:[^"\\]|\\.)*)"/g);
  return [...texts].map(([, text = '']) => oneLine(text.replace(/\\(.)/g, '$1'))).filter((text) => text !== '');
}

/** `100;w=21600`: so many in so many seconds. */
function quota(
  header: string | undefined,
): { readonly count: number; readonly seconds: number | undefined } | undefined {
  const [, count, seconds] = /^\s*(\d{1,9})(?:\s*;\s*w=(\d{1,9}))?/.exec(header ?? '') ?? [];
  if (count === undefined) return undefined;
  return { count: Number(count), seconds: seconds === undefined ? undefined : Number(seconds) };
}
