import { PublishError } from '../../src/errors.ts';

/** The PublishError that the work throws; anything else it throws, or nothing, fails the test. */
export function failure(work: () => unknown): PublishError {
  try {
    work();
  } catch (error) {
    if (error instanceof PublishError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

/** Control characters as messages must not have them, one line and no escape sequence. */
export const CONTROLS: RegExp = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;
