/** Who is waited for. Whoever kept the others waiting in vain is not waited for again until it has been in time. */
export interface Patience {
  isAwaited(member: string): boolean;
  inVain(member: string): void;
  inTime(member: string): void;
}

/** What the shared reads of a run have learnt of their members, so that a slow one costs the others little, once. */
export type Habits = {
  /** Of coming to a read, which takes an answer of the target. */
  readonly coming: Patience;
  /** Of beginning to send what is read, which takes places and a session. */
  readonly beginning: Patience;
  /** A member fell behind a shared read and reads the rest alone, until the function is called that this returns. */
  straggles(member: string): () => void;
  /** Such a member reads alone: it would hold up the next read too. */
  isStraggling(member: string): boolean;
};

/** Nothing is known yet. */
export function createHabits(): Habits {
  const straggling = new Map<string, number>();
  const add = (member: string, by: number): void => {
    const count = (straggling.get(member) ?? 0) + by;
    if (count > 0) straggling.set(member, count);
    else straggling.delete(member);
  };
  return {
    coming: createPatience(),
    beginning: createPatience(),
    straggles: (member) => {
      add(member, 1);
      return () => add(member, -1);
    },
    isStraggling: (member) => straggling.has(member),
  };
}

function createPatience(): Patience {
  const slow = new Set<string>();
  return {
    isAwaited: (member) => !slow.has(member),
    inVain: (member) => void slow.add(member),
    inTime: (member) => void slow.delete(member),
  };
}
