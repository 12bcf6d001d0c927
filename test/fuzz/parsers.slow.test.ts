import { describe, expect, it } from 'vitest';
import { fuzz, measureGrowth } from './run.ts';
import { fuzzing } from './suite.ts';
import { violated } from './target.ts';
import { HEADER_TARGETS } from './targets/headers.ts';
import { NAMES_TARGETS } from './targets/names.ts';
import { PLACE_TARGETS } from './targets/places.ts';
import { TEXT_TARGETS } from './targets/texts.ts';

fuzzing([...NAMES_TARGETS, ...HEADER_TARGETS, ...TEXT_TARGETS, ...PLACE_TARGETS]);

describe('the fuzz itself', () => {
  const broken = (check: (text: string) => boolean) => ({ name: 'broken', corpus: ['a', 'b'], check });

  it('brings the same texts for the same seed, and others for another', async () => {
    const texts = async (seed: number) => {
      const seen: string[] = [];
      await fuzz(
        broken((text) => seen.push(text) > 0),
        2000,
        seed,
      );
      return seen;
    };
    expect(await texts(1)).toEqual(await texts(1));
    expect(await texts(1)).not.toEqual(await texts(2));
  });

  it('finds a text that breaks a rule, and shows it', async () => {
    const target = broken((text) => {
      if (/b.*::/.test(text)) throw violated('told');
      return true;
    });
    const { finding } = await fuzz(target, 20_000, 1);
    expect(finding?.input).toMatch(/b.*::/);
    expect(finding?.error).toMatchObject({ message: 'told' });
  });

  it('finds what takes out of proportion long', async () => {
    const target = broken((text) => {
      let sum = 0;
      if (/^a+$/.test(text)) for (let left = (text.length / 8) ** 2; left > 0; left -= 1) sum += left;
      return sum > 0;
    });
    expect((await measureGrowth(target)).map(({ shape }) => shape)).toContain('a'.repeat(80));
  });
});
