import { usage } from './settings.ts';

/** 9999-12-31T23:59:59Z in seconds, the last that RFC 3339 can write. */
const LAST = 253_402_300_799;

/**
 * The time that SOURCE_DATE_EPOCH tells, as the annotation `org.opencontainers.image.created` has it. Never the clock's:
 * a digest that changes with every run would move a tag each time.
 *
 * @throws PublishError `USAGE_INVALID` where the variable is not set or no whole number of seconds
 * @see https://reproducible-builds.org/specs/source-date-epoch/
 */
export function createdFrom(env: Readonly<Record<string, string | undefined>>): string {
  const text = env['SOURCE_DATE_EPOCH'] ?? '';
  if (text === '') {
    throw usage(
      '--annotation org.opencontainers.image.created has no value, and SOURCE_DATE_EPOCH is not set',
      'Write KEY=VALUE with a time such as 2026-01-31T12:00:00Z, or set SOURCE_DATE_EPOCH, for example to git log -1 --format=%ct.',
    );
  }
  if (!/^\d{1,12}$/.test(text) || Number(text) > LAST) {
    throw usage(
      'SOURCE_DATE_EPOCH must be a whole number of seconds since 1970',
      'Set it for example to the time of the last commit: SOURCE_DATE_EPOCH=$(git log -1 --format=%ct).',
    );
  }
  return new Date(Number(text) * 1000).toISOString().replace('.000Z', 'Z');
}
