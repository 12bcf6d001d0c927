import type { HttpEvent } from '../http/message.ts';
import { formatDuration } from '../ui/format.ts';

/** What the transport tells of a registry that has something to say to its users. */
export type NotedEvent = Extract<HttpEvent, { readonly kind: 'warning' | 'rate' }>;

/** Notes of one run. */
export type RegistryNotes = {
  /** The sentence to tell; undefined where it was told before. */
  add(event: NotedEvent): string | undefined;
  /** For the report: every warning, and of each limit what was known last. */
  all(): readonly string[];
};

/**
 * Makes sentences of what registries say. The words are theirs: whoever prints them makes them harmless.
 *
 * @see distribution-spec v1.1.1 spec.md, section "Warnings"
 */
export function registryNotes(): RegistryNotes {
  const newest = new Map<string, string>();
  return {
    add(event) {
      const text = event.kind === 'warning' ? `${event.host} says: ${event.text}` : rateText(event);
      const subject = event.kind === 'warning' ? text : `rate ${event.host} ${event.source ?? ''}`;
      if (newest.get(subject) === text) return undefined;
      newest.set(subject, text);
      return text;
    },
    all: () => [...newest.values()],
  };
}

function rateText({ host, remaining, limit, windowSeconds, source }: Extract<NotedEvent, { kind: 'rate' }>): string {
  const window = windowSeconds === undefined ? '' : ` in ${windowOf(windowSeconds)}`;
  const whom = source === undefined ? '' : ` for ${source}`;
  return `${host} allows ${remaining} more requests of ${limit}${window}${whom}`;
}

function windowOf(seconds: number): string {
  return seconds % 3600 === 0 ? `${seconds / 3600} h` : formatDuration(seconds * 1000);
}
