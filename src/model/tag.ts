import { PublishError } from '../errors.ts';
import { quoted } from './quoted.ts';

const TAG = /^\w[\w.-]{0,127}$/;

/** Whether the text can be a tag: 128 letters, digits, `_`, `.` and `-` at most, not led by `.` or `-`. */
export function isTag(text: string): boolean {
  return TAG.test(text);
}

/** @param where what it was written in */
export function badTag(tag: string, where: string): PublishError {
  return new PublishError(
    'REFERENCE_INVALID',
    `${quoted(where)}: not a tag: ${quoted(tag)}`,
    'Use at most 128 letters, digits, _ . and -, the first one a letter, a digit or _.',
  );
}
