import { type ErrorCode, PublishError } from '../../src/errors.ts';
import type { Random } from '../peers/random.ts';

/** A parser of text that others wrote, and what must hold of it whatever the text is. */
export type Target = {
  readonly name: string;
  /** Real texts and known hostile ones: what mutations start from. */
  readonly corpus: readonly string[];
  /** What mutations put in, besides what is hostile everywhere. */
  readonly words?: readonly string[];
  /** A text by the grammar, so that also the inner rules are reached. */
  readonly make?: (random: Random) => string;
  /**
   * Feeds the parser. Throws for everything but the failure that the parser declares, and where a property is broken.
   *
   * @returns whether the text was taken; such texts are mutated further
   */
  readonly check: (text: string) => boolean | Promise<boolean>;
  /** Texts of that length on which a careless parser would take long; those of {@link hostileShapes} come on top. */
  readonly shapes?: (length: number) => readonly string[];
  /** Only each nth input is tried: for parsers that take that much longer than the others. */
  readonly share?: number;
};

/** What a property was broken by. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

/** Ends the check of an input as a finding. */
export function violated(what: string, ...shown: readonly unknown[]): Violation {
  return new Violation([what, ...shown.map((value) => String(JSON.stringify(value)).slice(0, 300))].join(' '));
}

/** A property that must hold. */
export function must(holds: boolean, what: string, ...shown: readonly unknown[]): asserts holds {
  if (!holds) throw violated(what, ...shown);
}

/**
 * What the parser makes of the text; undefined when it fails as it declares. A failure must fit on one line and carry
 * nothing that a terminal would obey.
 */
export function attempt<Value>(codes: readonly ErrorCode[], parse: () => Value): Value | undefined {
  try {
    return parse();
  } catch (error) {
    checkFailure(codes, error);
    return undefined;
  }
}

/** The same for a parser that answers later. */
export async function attemptLater<Value>(
  codes: readonly ErrorCode[],
  parse: () => Promise<Value>,
): Promise<Value | undefined> {
  try {
    return await parse();
  } catch (error) {
    checkFailure(codes, error);
    return undefined;
  }
}

function checkFailure(codes: readonly ErrorCode[], error: unknown): void {
  if (!(error instanceof PublishError)) throw error;
  must(codes.includes(error.code), 'a failure of another code', error.code, error.message);
  // Other invisible characters are taken out where messages are printed; see the target "untrusted text".
  must(!/\p{Cc}/u.test(error.message), 'a failure with control characters', error.message);
  must(!/\p{Cc}/u.test(error.hint), 'a hint with control characters', error.hint);
}

/** Half of the texts as bytes that are UTF-8, half as bytes that need not be. */
export function bytesOf(text: string): Buffer {
  return Buffer.from(text, text.length % 2 === 0 ? 'utf8' : 'latin1');
}

/** Whether two plain values are the same, by what JSON makes of them. */
export function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Text that may be shown: on one line, without what terminals and runners obey. */
export function mustBeShowable(text: string | undefined, what: string): void {
  if (text === undefined) return;
  must(!/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/u.test(text), `${what}: a character that is obeyed or not seen`, text);
  must(!text.trimStart().startsWith('::') || /^\s*::\d/.test(text), `${what}: a runner's command`, text);
  must(!text.includes('##['), `${what}: a runner's old command`, text);
}
