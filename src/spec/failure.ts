import { PublishError } from '../errors.ts';

/**
 * What is wrong with a file that was handed in, and where.
 *
 * @param at `file:line:column`, or the file alone where no place in it is meant
 */
export function invalid(at: string, message: string, hint: string, cause?: unknown): PublishError {
  return new PublishError('SPEC_INVALID', `${at}: ${message}`, hint, cause === undefined ? {} : { cause });
}

/** Reads a part with one of the model's parsers, whose failures do not know the place. */
export function placed<Value>(at: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof PublishError) || error.code === 'SPEC_INVALID') throw error;
    throw error.with({ code: 'SPEC_INVALID', message: `${at}: ${error.message}` });
  }
}
