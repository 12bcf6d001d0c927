import { PublishError } from '../errors.ts';
import type { PublishPorts } from './ports.ts';
import type { PublishRequest } from './request.ts';
import type { ResolvedSource } from './resolved.ts';

/** Whether a read failed since something is not there; of several such failures all are told. */
export function isMissing(error: unknown): error is PublishError {
  return error instanceof PublishError && (error.code === 'SOURCE_NOT_FOUND' || error.code === 'MANIFEST_NOT_FOUND');
}

/**
 * All sources or one error: missing ones are named together, so that one run tells all there is to push first. With
 * `ignoreMissing` a source that is not there is left out; one that is there and lacks a child is damaged, not missing.
 *
 * @throws PublishError `SOURCE_NOT_FOUND`, and what else ended a read
 */
export function foundSources(
  outcomes: readonly PromiseSettledResult<ResolvedSource>[],
  { ignoreMissing = false, part }: Pick<PublishRequest, 'ignoreMissing' | 'part'>,
  ports: PublishPorts,
): readonly ResolvedSource[] {
  const found: ResolvedSource[] = [];
  const missing: PublishError[] = [];
  for (const outcome of outcomes) {
    if (outcome.status === 'fulfilled') found.push(outcome.value);
    else if (isMissing(outcome.reason)) missing.push(outcome.reason);
    else throw outcome.reason;
  }
  const some = found.length > 0 || part === true;
  const fatal = ignoreMissing && some ? missing.filter(({ code }) => code !== 'SOURCE_NOT_FOUND') : missing;
  const [first] = fatal;
  if (first === undefined) {
    for (const { message } of missing) ports.emit({ kind: 'warning', text: `${message}; left out` });
    return found;
  }
  const message =
    fatal.length === 1
      ? first.message
      : `${fatal.length} sources are not there: ${fatal.map((error) => error.message).join('; ')}`;
  throw first.with({ code: 'SOURCE_NOT_FOUND', message, side: 'source' });
}

/** A source's own manifest is not there; `note` is what else is to be said. */
export function sourceNotFound(reason: PublishError, note: string): PublishError {
  return reason.with({ code: 'SOURCE_NOT_FOUND', side: 'source', message: `${reason.message}${note}` });
}
