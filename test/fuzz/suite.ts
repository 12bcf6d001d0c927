import { describe, expect, it } from 'vitest';
import { wantedInputs, wantedSeed } from './lane.ts';
import { fuzz, measureGrowth } from './run.ts';
import type { Target } from './target.ts';

const INPUTS = wantedInputs('MP_FUZZ', 5_000);
const SEED = wantedSeed();

/** In ms; the slowest parsers take a tenth of that for an input. */
const LIMIT = 120_000 + INPUTS;

/** The tests of these parsers. Two files share them, so that both cores of a machine have work. */
export function fuzzing(targets: readonly Target[]): void {
  describe.each(targets.map((target) => [target.name, target] as const))('%s', (_name, target) => {
    it(
      `holds its rules on generated texts, fails only as it declares and always ends (seed ${SEED})`,
      async () => {
        const { finding, taken } = await fuzz(target, INPUTS, SEED);
        expect(finding).toBeUndefined();
        // Texts that are all refused at once would test nothing.
        expect(taken).toBeGreaterThan(0);
      },
      LIMIT,
    );

    it('takes eight times as long for eight times the text, not more', async () => {
      expect(await measureGrowth(target)).toEqual([]);
    });
  });
}
