/** What had been sent by when; times in ms, sizes in bytes. */
export type PaceSample = { readonly at: number; readonly sent: number };

/** A rate over the last seconds: the mean of a long run hides that it has come to a halt. In ms. */
const WINDOW = 5000;
/** Less than this says nothing, in ms. */
const LEAST = 500;

/** Adds to the samples what has been sent by now, and tells the bytes a second of the last seconds, where known. */
export function paceOf(samples: PaceSample[], now: number, sent: number): number | undefined {
  const last = samples.at(-1);
  // A try that began anew has taken back what it had sent.
  if (last !== undefined && sent < last.sent) samples.length = 0;
  if (samples.length === 0 || now - (samples.at(-1)?.at ?? 0) >= LEAST) samples.push({ at: now, sent });
  while (samples[1] !== undefined && samples[1].at <= now - WINDOW) samples.shift();
  const [first] = samples;
  if (first === undefined || now - first.at < LEAST || sent <= first.sent) return undefined;
  return ((sent - first.sent) / (now - first.at)) * 1000;
}
