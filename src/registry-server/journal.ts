import type { Operation } from './call.ts';

/** One request as the registry saw it. `start` and `end` are drawn from one counter, so that order can be compared. */
export type JournalEntry = {
  readonly start: number;
  /** Undefined while the request is under way. */
  readonly end: number | undefined;
  /** The registry's own address, or the second one that stands for another host. */
  readonly listener: 'registry' | 'storage';
  /** Requests that came over one TCP connection share the number. */
  readonly connection: number;
  readonly operation: Operation;
  readonly method: string;
  readonly path: string;
  /** Without the question mark, as it was sent. */
  readonly query: string;
  readonly repository: string;
  readonly reference: string;
  /** Names in lower case; the value of `authorization` as it was sent. */
  readonly headers: Readonly<Record<string, string>>;
  readonly authorization: 'none' | 'basic' | 'bearer' | 'other';
  /** Undefined when no answer was sent. */
  readonly status: number | undefined;
  /** Of the answer, as it was sent. */
  readonly location: string | undefined;
  /** Bytes of body read from the client and sent to it. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Milliseconds of the registry's clock. */
  readonly startedAt: number;
  readonly endedAt: number | undefined;
  /** What kept the registry from answering, when nothing was planned: an aborted body, a bug. */
  readonly failure: string | undefined;
};

/** An entry while it is being written. */
export type OpenEntry = { -readonly [K in keyof JournalEntry]: JournalEntry[K] };

export type Journal = {
  readonly entries: OpenEntry[];
  /** The oldest entries go when there are more than this many. */
  readonly limit: number;
  /** Told of every request when it has been answered. */
  readonly onEntry: (entry: JournalEntry) => void;
  next: number;
};

export function createJournal(limit: number, onEntry: Journal['onEntry']): Journal {
  return { entries: [], limit, onEntry, next: 1 };
}

export function openEntry(
  journal: Journal,
  facts: Pick<
    JournalEntry,
    | 'listener'
    | 'connection'
    | 'operation'
    | 'method'
    | 'path'
    | 'query'
    | 'repository'
    | 'reference'
    | 'headers'
    | 'startedAt'
  >,
): OpenEntry {
  const entry: OpenEntry = {
    ...facts,
    start: journal.next++,
    end: undefined,
    endedAt: undefined,
    authorization: schemeOf(facts.headers['authorization']),
    status: undefined,
    location: undefined,
    bytesIn: 0,
    bytesOut: 0,
    failure: undefined,
  };
  journal.entries.push(entry);
  if (journal.entries.length > journal.limit) journal.entries.shift();
  return entry;
}

/** Called before the last byte leaves, so that whoever has the answer finds it in the journal. */
export function closeEntry(journal: Journal, entry: OpenEntry, now: number): void {
  if (entry.end !== undefined) return;
  entry.end = journal.next++;
  entry.endedAt = now;
  journal.onEntry(entry);
}

function schemeOf(header: string | undefined): JournalEntry['authorization'] {
  if (header === undefined) return 'none';
  const scheme = header.split(' ', 1)[0]?.toLowerCase();
  return scheme === 'basic' || scheme === 'bearer' ? scheme : 'other';
}
