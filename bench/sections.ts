import type { FoundPeer } from './peers.ts';
import { MAIN_SITUATIONS, SITUATIONS, type Situation, type SituationId } from './situations.ts';
import type { Auth } from './token-gate.ts';

/** One table: a situation at one delay, with one kind of authentication. */
export type Section = { readonly situation: Situation; readonly delay: number; readonly auth: Auth };

/** What may be asked for; undefined: all, as {@link sectionsOf} chooses. */
export type Wanted = {
  readonly delays: readonly number[];
  readonly auths: readonly Auth[] | undefined;
  readonly situations: readonly SituationId[] | undefined;
  /** Undefined: as many as {@link runsOf} says. */
  readonly runs: number | undefined;
  readonly quick: boolean;
  /** Ids of peers. */
  readonly only: readonly string[] | undefined;
};

export const AUTHS: readonly Auth[] = ['none', 'token', 'login'];

/**
 * The limits speak of the main situations without authentication, so these are measured at every delay. What else there
 * is shows its cost best where a round trip counts most: it is measured at the longest delay only. What the user names
 * is measured at all.
 */
export function sectionsOf({ delays, auths, situations }: Wanted): readonly Section[] {
  const longest = Math.max(...delays);
  return AUTHS.flatMap((auth) =>
    delays.flatMap((delay) =>
      SITUATIONS.flatMap((situation) => {
        const named = { auth: auths?.includes(auth), situation: situations?.includes(situation.id) };
        if (named.auth === false || named.situation === false) return [];
        const main = MAIN_SITUATIONS.includes(situation.id);
        if (delay !== longest && !((auth === 'none' || named.auth) && (main || named.situation))) return [];
        const withToken = situation.id === 'mounts' || situation.id === 'again';
        if (auth !== 'none' && !withToken && !named.situation && !(named.auth && main)) return [];
        return [{ auth, delay, situation }];
      }),
    ),
  );
}

const QUICK_PEERS = ['ours', 'floor', 'crane', 'buildx'];

/**
 * How often a peer runs in a section; 0: not at all. Ours and the floor most often, since figures are compared with
 * theirs; whoever takes long once, since repeats of runs that wait all the time differ by a few percent. So that all of
 * it takes a quarter of an hour.
 */
export function runsOf(wanted: Wanted, { situation, auth, delay }: Section, peer: FoundPeer): number {
  const { only, quick, runs } = wanted;
  if (quick && only === undefined && !QUICK_PEERS.includes(peer.id)) return 0;
  if (runs !== undefined) return runs;
  if (quick) return 1;
  const { kind, id, pace = 'fast' } = peer;
  if (auth === 'none' && MAIN_SITUATIONS.includes(situation.id)) {
    if (kind === 'ours' || kind === 'floor') return 5;
    if (delay === 0) return kind === 'single' ? 5 : 3;
    return pace === 'fast' ? 3 : 1;
  }
  if (id === 'ours' || kind === 'floor') return 3;
  if (only !== undefined || pace === 'fast' || kind === 'single') return 1;
  if (pace === 'slowest') return 0;
  return auth === 'none' || (auth === 'token' && situation.id === 'mounts') ? 1 : 0;
}
