import type { PublishEvent } from '../publish/events.ts';
import { jsonText } from './json.ts';
import { beatLine, eventLine, trafficLine } from './progress-lines.ts';
import { drawOn, type Every, isTerminal, type Sink } from './progress-tty.ts';
import { type Placed, type TagEvent, warningLine } from './render-error.ts';
import { count, countTraffic, newTally, type Tally, type TrafficEvent } from './tally.ts';
import { bareUrl, redact } from './text.ts';
import { page, type Theme, type ThemedStream } from './theme.ts';

/** `--progress`. `auto` draws on a terminal and writes lines elsewhere. */
export type ProgressMode = 'auto' | 'tty' | 'plain' | 'json' | 'none';

export type ProgressOptions = {
  readonly mode: ProgressMode;
  /** stderr: stdout carries the result and is never touched here. */
  readonly stream: ThemedStream;
  readonly theme: Theme;
  /** `auto` does not draw: CI is set, or the terminal is dumb. */
  readonly ci: boolean;
  /** Nothing at all, warnings included. */
  readonly quiet: boolean;
  /** One line a request; turns drawing off. */
  readonly debug: boolean;
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number;
  readonly every: Every;
};

/** Shows a run while it works. Hand `emit` to the run and `http` to the transport; `stop` before anything is printed. */
export interface Progress {
  emit(event: PublishEvent): void;
  http(event: TrafficEvent): void;
  /** Tags that are at their place by now: what a failure has to tell. */
  tags(): readonly TagEvent[];
  /** What is in place by now besides; undefined where nothing was to be placed yet. */
  placed(): Placed | undefined;
  /** Takes the drawing off the terminal. Harmless when called again. */
  stop(): Promise<void>;
}

/** How often a log says that work goes on, in ms. */
const BEAT_MS = 10_000;
/** `--progress json`: events about one blob's bytes come at most this often, in ms. */
const BYTES_MS = 1_000;

/** @see Progress */
export function createProgress(options: ProgressOptions): Progress {
  const tally = newTally();
  const sink = sinkFor(options, tally);
  const said = new Set<string>();
  let stopped = false;
  return {
    emit(event) {
      if (stopped || (event.kind === 'warning' && said.has(event.text))) return;
      if (event.kind === 'warning') said.add(event.text);
      count(tally, event, options.now());
      sink.event(event);
    },
    http(event) {
      if (stopped) return;
      countTraffic(tally, event, options.now());
      sink.http(event);
    },
    tags: () => tally.tags,
    placed: () => placedOf(tally),
    async stop() {
      stopped = true;
      await sink.stop();
    },
  };
}

function placedOf({ plans, lists, done, blobs, imagesDone, planned }: Tally): Placed | undefined {
  if (plans === 0) return undefined;
  const counted = { blobs: done.present + done.mounted + done.copied + done.skipped, manifests: imagesDone.size };
  // Lists plan what they share each for itself.
  return lists.total > 0 ? counted : { ...counted, of: { blobs, manifests: planned.size } };
}

/** What is done in a mode: drawing needs a terminal, and neither a log of requests nor a CI beside it. */
export function effectiveMode(options: ProgressOptions): Exclude<ProgressMode, 'auto'> {
  const { mode, stream, ci, quiet, debug } = options;
  if (quiet) return 'none';
  const drawable = isTerminal(stream) && !debug;
  if (mode === 'auto') return drawable && !ci ? 'tty' : 'plain';
  return mode === 'tty' && !drawable ? 'plain' : mode;
}

function sinkFor(options: ProgressOptions, tally: Tally): Sink {
  const { stream, theme, now, every } = options;
  const mode = effectiveMode(options);
  if (mode === 'tty' && isTerminal(stream)) return drawOn({ stream, theme, tally, now, every });
  if (mode === 'json') return jsonSink(options);
  return lineSink(options, tally, mode === 'plain' ? every : undefined);
}

/** Lines for a log. Without `every` only warnings are told. */
function lineSink(options: ProgressOptions, tally: Tally, every: Every | undefined): Sink {
  const { stream, theme, now, quiet, debug } = options;
  const write = (line: string | undefined) => {
    if (line !== undefined) stream.write(page([line], theme));
  };
  const end = every?.(BEAT_MS, () => write(beatLine(tally, now(), theme)));
  return {
    event(event) {
      if (every !== undefined) write(eventLine(event, tally, theme));
      else if (event.kind === 'warning' && !quiet) write(warningLine(event.text, theme));
    },
    http(event) {
      if (debug && !quiet) write(trafficLine(event, theme));
    },
    async stop() {
      end?.();
    },
  };
}

/** One event a line. Requests only with `--debug`, retries always. */
function jsonSink({ stream, now, debug }: ProgressOptions): Sink {
  const told = new Map<string, number>();
  const write = (event: PublishEvent | TrafficEvent) => stream.write(`${jsonText(event)}\n`);
  return {
    event(event) {
      if (event.kind === 'blob.progress') {
        const last = told.get(event.digest);
        if (last !== undefined && now() - last < BYTES_MS) return;
        told.set(event.digest, now());
      }
      write(event.kind === 'warning' ? { ...event, text: redact(event.text) } : event);
    },
    http(event) {
      if (event.kind === 'retry') write(event);
      else if (debug) write({ ...event, url: bareUrl(event.url) });
    },
    stop: () => Promise.resolve(),
  };
}
