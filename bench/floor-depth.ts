import type { SituationId } from './situations.ts';
import type { Auth } from './token-gate.ts';

/**
 * Round trips of which each needs the answer of the one before it, at the very least; a registry wants the blobs before
 * the manifest that names them and the children before the index.
 */
const DEPTH: Readonly<Record<SituationId, number>> = {
  mounts: 4, // sources and tag; mounts, configs beside them; children; index
  refused: 5, // the blobs themselves after their mounts; 6 where a PUT cannot start before its GET has answered
  again: 1, // sources and tag
  interrupted: 4, // the tag is not there yet, so nothing is known to be there
  'interrupted-refused': 5,
  attested: 5, // the children of the sources after these
};

/** The challenge and the token, one each, before the first answer that is of use. */
const TOKEN_ROUNDS = 2;

export function floorDepth(situation: SituationId, auth: Auth): number {
  return DEPTH[situation] + (auth === 'none' ? 0 : TOKEN_ROUNDS);
}
