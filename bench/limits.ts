import type { SituationId } from './situations.ts';
import { bestPeer, isRight, type Measured, medians } from './table.ts';

/** One promise about time, and what came of it. */
export type Limit = { readonly text: string; readonly figure: string; readonly met: boolean };

const AT_100_MS: Readonly<Partial<Record<SituationId, { readonly name: string; readonly seconds: number }>>> = {
  mounts: { name: 'cold, mounts work', seconds: 0.8 },
  refused: { name: 'cold, mounts refused', seconds: 1.3 },
  again: { name: 'again', seconds: 0.5 },
};
const TIMES_AT_100_MS = 4.5;
const TIMES_AT_20_MS = 2;
const BEHIND_AT_0_MS = 0.2;
const TOKEN_ROUND_TRIPS = 2;

/**
 * What is promised of `publish` and of nothing else, where it was measured. Shown, not enforced: a busy machine is no
 * fault of the program, and counts, which are enforced, do not depend on it.
 */
export function judgeLimits(sections: readonly Measured[]): readonly Limit[] {
  return sections.flatMap((section) =>
    section.auth === 'none' ? timeLimits(section) : tokenLimits(section, sections),
  );
}

function timeLimits(section: Measured): readonly Limit[] {
  const { situation, delay, rows } = section;
  const named = AT_100_MS[situation.id];
  const ours = secondsOf(section);
  if (named === undefined || ours === undefined) return [];
  const best = bestPeer(rows);
  const theirs = best === undefined ? undefined : { name: best.peer.id, seconds: medians(best.runs).seconds };
  const where = `${delay} ms, ${named.name}`;
  const ratio = (least: number): readonly Limit[] =>
    theirs === undefined
      ? []
      : [
          {
            text: `${where}: at least ${least} times as fast as the fastest peer of one command`,
            figure: `${(theirs.seconds / ours).toFixed(1)} times (${theirs.name} ${theirs.seconds.toFixed(2)} s)`,
            met: theirs.seconds / ours >= least,
          },
        ];
  if (delay === 100) {
    const most = `${where}: at most ${named.seconds} s`;
    return [{ text: most, figure: `${ours.toFixed(2)} s`, met: ours <= named.seconds }, ...ratio(TIMES_AT_100_MS)];
  }
  if (delay === 20) return ratio(TIMES_AT_20_MS);
  if (delay !== 0 || theirs === undefined) return [];
  const behind = ours - theirs.seconds;
  return [
    {
      text: `${where}: at most ${BEHIND_AT_0_MS} s behind the fastest peer of one command`,
      figure: `${behind.toFixed(2)} s (${ours.toFixed(2)} s, ${theirs.name} ${theirs.seconds.toFixed(2)} s)`,
      met: behind <= BEHIND_AT_0_MS,
    },
  ];
}

function tokenLimits(section: Measured, sections: readonly Measured[]): readonly Limit[] {
  const { situation, auth, delay } = section;
  const plain = sections.find((one) => one.situation.id === situation.id && one.delay === delay && one.auth === 'none');
  const [with_, without] = [depthOf(section), plain === undefined ? undefined : depthOf(plain)];
  // Without a delay requests overlap by chance, and a chain says nothing.
  if (with_ === undefined || without === undefined || delay === 0) return [];
  const who = auth === 'login' ? 'logged in' : 'no login';
  return [
    {
      text: `${delay} ms, ${situation.id}, token server, ${who}: at most ${TOKEN_ROUND_TRIPS} round trips more`,
      figure: `${with_ - without} more (${with_} instead of ${without})`,
      met: with_ - without <= TOKEN_ROUND_TRIPS,
    },
  ];
}

/** One line a limit. */
export function renderLimits(limits: readonly Limit[]): string {
  const lines = limits.map(({ text, figure, met }) => `| ${text} | ${figure} | ${met ? 'met' : '**missed**'} |`);
  return ['### Limits', '', '| promised | measured | |', '| --- | --- | --- |', ...lines].join('\n');
}

function rowOf({ rows }: Measured) {
  return rows.find((row) => row.peer.id === 'ours' && isRight(row));
}

function secondsOf(section: Measured): number | undefined {
  const row = rowOf(section);
  return row === undefined ? undefined : medians(row.runs).seconds;
}

function depthOf(section: Measured): number | undefined {
  const row = rowOf(section);
  return row === undefined ? undefined : medians(row.runs).longestChain;
}
