import { PublishError } from '../errors.ts';
import type { AnswerFacts } from '../registry/client.ts';
import type { LeftBehind } from './mount-check-report.ts';
import type { CheckRun } from './mount-check-run.ts';

/** Deletes what it can, and returns the rest. A refusal is told and changes no verdict. Never fails. */
export async function removeProbe(left: readonly LeftBehind[], run: CheckRun): Promise<readonly LeftBehind[]> {
  const stays: LeftBehind[] = [];
  for (const one of left) if (!(await remove(one, run))) stays.push(one);
  return stays;
}

async function remove(one: LeftBehind, run: CheckRun): Promise<boolean> {
  const { what, repository, digest } = one;
  const { registry, record, signal } = run;
  const verb = what === 'manifest' ? registry.deleteManifest : registry.deleteBlob;
  let status: number | undefined;
  const answer = await record.take(
    'DELETE',
    what,
    repository,
    ({ onAnswer }) => {
      const witness = (facts: AnswerFacts) => {
        status = facts.status;
        onAnswer(facts);
      };
      return verb(repository, digest, { signal, onAnswer: witness }).catch(failureOf);
    },
    (given) => {
      if (given instanceof PublishError) return `it stays: ${given.message}`;
      if (given === 'deleted') return status === NOT_FOUND ? 'gone already' : 'deleted';
      return status === NOT_FOUND ? 'gone, or not to be deleted' : 'not allowed: it stays';
    },
  );
  if (answer === 'deleted') return true;
  return status === NOT_FOUND && (await isGone(one, run));
}

/** A registry without deletes answers 404 too, so that one which names no reason is followed by a look. */
const NOT_FOUND = 404;

async function isGone({ what, repository, digest }: LeftBehind, run: CheckRun): Promise<boolean> {
  const { registry, record, signal } = run;
  const verb = what === 'manifest' ? registry.hasManifest : registry.hasBlob;
  const answer = await record.take(
    'HEAD',
    what,
    repository,
    (witness) => verb(repository, digest, { signal, ...witness }).catch(failureOf),
    (given) => {
      if (given instanceof PublishError) return `it may stay: ${given.message}`;
      return { present: 'it stays', absent: 'gone', unknown: 'no news: it may stay' }[given.kind];
    },
  );
  return !(answer instanceof PublishError) && answer.kind === 'absent';
}

function failureOf(error: unknown): PublishError {
  if (error instanceof PublishError) return error;
  throw error;
}
