/** Runs `work` once per key, however many ask; all get the same promise. */
export function oncePerKey<K, V>(work: (key: K) => Promise<V>): (key: K) => Promise<V> {
  const flights = new Map<K, Promise<V>>();
  return (key) => {
    const known = flights.get(key);
    if (known !== undefined) return known;
    const flight = work(key);
    flights.set(key, flight);
    return flight;
  };
}

/**
 * Waits for all, also when one fails: nothing of a failed run goes on behind its back. The first failure stops the
 * others through `stop` and is what is thrown.
 */
export async function allOrNone<V>(promises: readonly Promise<V>[], stop: (reason: unknown) => void): Promise<V[]> {
  let failed = false;
  let first: unknown;
  const watched = promises.map((promise) =>
    promise.catch((error: unknown) => {
      if (!failed) {
        failed = true;
        first = error;
        stop(error);
      }
      throw error;
    }),
  );
  const settled = await Promise.allSettled(watched);
  if (failed) throw first;
  return settled.map((outcome) => {
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  });
}
