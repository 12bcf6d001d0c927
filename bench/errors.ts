/** A message for the person who started the bench; anything else that is thrown is a fault of the bench. */
export class BenchError extends Error {
  override readonly name = 'BenchError';
}
