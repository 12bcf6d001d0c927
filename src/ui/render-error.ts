import { type ErrorCode, type ErrorDocument, PublishError } from '../errors.ts';
import type { PublishEvent } from '../publish/events.ts';
import type { PublishReport } from '../publish/report.ts';
import { reportDocument } from './documents.ts';
import { plural } from './format.ts';
import { untrusted } from './text.ts';
import { flow, page, paint, type Theme } from './theme.ts';

/** A tag that is at its place, as `publish` announces it. */
export type TagEvent = Extract<PublishEvent, { kind: 'tag.done' }>;

/** How many blobs and manifests are at their place, and of how many where that is known. */
export type Placed = {
  readonly blobs: number;
  readonly manifests: number;
  readonly of?: { readonly blobs: number; readonly manifests: number };
};

/** What else is known when a run fails. `tags`: those done before, of all its lists, where some were to be moved. */
export type Circumstances = {
  readonly tags?: readonly TagEvent[];
  /** Told of a run that was stopped: the same command goes on from there. */
  readonly placed?: Placed;
  readonly debug?: boolean;
  /** A summary has said why each list failed. */
  readonly summarised?: boolean;
};

/** Tags that a message names at most: the summary of several lists has them all. */
const NAMES = 10;

const BUG_HINT = 'Please report it, with the output of the same command and --debug.';

/**
 * A failure for people: what failed, what is known of where, whether a tag moved, and what to do. Causes are not
 * printed, as messages of others may quote secrets (a JSON parser quotes the text it could not read).
 */
export function renderError(error: unknown, theme: Theme, circumstances: Circumstances = {}): string {
  const { message, hint } = describe(circumstances.summarised ? withoutReason(error) : error);
  const facts = flow(factsOf(error, circumstances), theme, '  ');
  const stack = circumstances.debug ? framesOf(error) : [];
  const head = `${paint(theme, 'bad', 'error:')} ${message}`;
  return page([head, ...facts, ...stack, ...(hint ? [`${paint(theme, 'strong', 'hint:')} ${hint}`] : [])], theme);
}

/** The same failure for `--json`, on stdout. */
export function errorDocument(error: unknown): ErrorDocument {
  const { message, hint } = describe(error);
  if (!(error instanceof PublishError)) {
    return { error: { code: 'BUG', message, hint, side: 'local', exitCode: 1 } };
  }
  const { code, side, registry, repository, status, moved, exitCode } = error;
  return {
    error: {
      code,
      message,
      hint,
      side,
      ...(registry === undefined ? {} : { registry }),
      ...(repository === undefined ? {} : { repository }),
      ...(status === undefined ? {} : { status }),
      ...(moved === undefined ? {} : { moved }),
      exitCode,
    },
    ...(error.report === undefined ? {} : { report: reportDocument(error.report as PublishReport) }),
  };
}

/** Warnings of a report whose events nobody drew. */
export function renderWarnings(warnings: readonly string[], theme: Theme): string {
  return page(
    warnings.map((text) => warningLine(text, theme)),
    theme,
  );
}

/** One warning, for stderr. */
export function warningLine(text: string, theme: Theme): string {
  return `${paint(theme, 'warn', 'warning:')} ${untrusted(text, 1000)}`;
}

function describe(error: unknown): { readonly message: string; readonly hint: string } {
  if (error instanceof PublishError) {
    return { message: untrusted(error.message, 2000), hint: untrusted(error.hint, 1000) };
  }
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return { message: `this is a bug of manifest-publish: ${untrusted(text, 2000)}`, hint: BUG_HINT };
}

/** Of several lists that failed only how many and which: a long reason that was said already hides that. */
function withoutReason(error: unknown): unknown {
  if (!(error instanceof PublishError) || error.code !== 'LISTS_FAILED' || !(error.cause instanceof Error))
    return error;
  return error.with({ message: error.message.replace(`; the first because ${error.cause.message}`, '') });
}

/** How a run ends that nothing went wrong with. */
const STOPPED: ReadonlySet<unknown> = new Set(['INTERRUPTED', 'TERMINATED', 'TIMED_OUT'] satisfies ErrorCode[]);

function factsOf(error: unknown, { tags, placed }: Circumstances): string[] {
  const facts: string[] = [];
  if (error instanceof PublishError) {
    const place = [error.registry, error.repository].filter((part) => part !== undefined && part !== '').join('/');
    if (place !== '') facts.push(`${error.side === 'local' ? 'registry' : error.side} ${untrusted(place, 300)}`);
    if (error.status !== undefined) facts.push(`HTTP ${error.status}`);
    facts.push(`${error.code} (exit ${error.exitCode})`);
  }
  const known = error instanceof PublishError ? error.moved : undefined;
  if (tags !== undefined || known !== undefined) facts.push(movedFact(tags ?? [], known ?? []));
  if (placed !== undefined && error instanceof PublishError && STOPPED.has(error.code)) facts.push(placedFact(placed));
  return facts;
}

function placedFact({ blobs, manifests, of }: Placed): string {
  const named = (count: number, all: number | undefined, noun: string): string =>
    all === undefined ? plural(count, noun) : `${count} of ${plural(all, noun)}`;
  return `${named(blobs, of?.blobs, 'blob')} and ${named(manifests, of?.manifests, 'manifest')} in place`;
}

function movedFact(tags: readonly TagEvent[], known: readonly string[]): string {
  const announced = tags.filter((tag) => tag.action !== 'unchanged').map((tag) => tag.reference);
  const names = [...new Set([...announced, ...known])].map((name) => untrusted(name, 300));
  if (names.length === 0) return 'no tag was moved';
  const shown = names.length > NAMES ? [...names.slice(0, NAMES - 1), `${names.length - NAMES + 1} more`] : names;
  return `moved before this: ${shown.join(', ')}`;
}

/** Where in our code it happened, without the message that a stack begins with. */
function framesOf(error: unknown): string[] {
  if (!(error instanceof Error) || error.stack === undefined) return [];
  return error.stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .map((line) => `  ${untrusted(line, 300)}`);
}
