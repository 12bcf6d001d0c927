import type { PutAnswer } from '../registry/client.ts';
import type { Clock } from './ports.ts';

/** Rounds of repair before the registry's refusal is believed. */
const ROUNDS = 3;

/** What a look at everything a refused manifest names brought. */
export type Repair = 'repaired' | 'nothing missing';

/**
 * PUTs a manifest until the registry takes it. When the answer says that something it names may be missing, `repair`
 * looks at all of that and puts it there; with nothing missing the PUT is tried once more after a second, since some
 * registries show late what they have (Nexus: estesp/manifest-tool#191).
 *
 * Never answers `incomplete`: that has become `refused`.
 */
export async function putUntilTaken<Other extends { readonly kind: 'held' }>(
  put: () => Promise<PutAnswer | Other>,
  repair: (round: number) => Promise<Repair>,
  clock: Clock,
  signal: AbortSignal,
): Promise<Exclude<PutAnswer, { kind: 'incomplete' }> | Other> {
  let askedAgain = false;
  for (let round = 0; ; round += 1) {
    const answer = await put();
    if (answer.kind !== 'incomplete') return answer;
    if (round === ROUNDS) return { kind: 'refused', error: answer.error };
    if ((await repair(round)) === 'repaired') continue;
    if (askedAgain) return { kind: 'refused', error: answer.error };
    askedAgain = true;
    await clock.sleep(1000, signal);
  }
}
