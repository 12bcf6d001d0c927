import { describe, expect, it } from 'vitest';
import { rerunConverges } from '../helpers/publishing.ts';
import type { Case, Row } from './matrix-case.ts';
import { play, TAG, TARGET, withStage } from './matrix-stage.ts';

/** One test for each arrangement of these rows: how it ends, what it says, the invariants, and that a second run mends it. */
export function runRows(rows: readonly Row[]): void {
  describe.each(rows)('row $number: $fault', ({ cases }) => {
    it.each(cases.map((one): [string, Case] => [one.name, one]))('%s', (_name, one) => runCase(one));
  });
}

function runCase(one: Case): Promise<void> {
  return withStage(one, async (stage) => {
    const { registry, source, old } = stage;
    await one.arrange?.(stage);
    const outcome = await play(stage);
    const { exit, text, report, moved } = outcome;
    if (process.env['MP_TELL']) process.stdout.write(`${one.name} => ${exit} ${outcome.code} ${text} [${moved}]\n`);
    const lost = (rule: string): boolean => Number(/^(\d+) upload sessions/.exec(rule)?.[1]) <= (one.leaves ?? 0);
    const broken = outcome.broken.filter((rule) => !lost(rule));
    const wrong = one.holds?.(outcome, stage) ?? [];
    const found = [`exit ${exit}`, ...broken, ...wrong].join('\n');
    expect(found, text).toBe(`exit ${one.exit}`);
    for (const words of one.says ?? []) expect(text).toMatch(words);
    const digest = report?.lists[0]?.index?.digest;
    // A tag holds the new list if the run was good, and the old one if the run says that none has moved.
    if (exit === 0 && one.foreign !== true) expect(registry.tagOf(TARGET, TAG)).toBe(digest);
    else if (moved?.length === 0 && one.foreign !== true)
      expect(registry.tagOf(TARGET, TAG)).toBe(old.descriptor.digest);
    if (one.again === false) return;
    registry.clearFaults();
    source.clearFaults();
    one.mend?.(stage);
    const again = async (): Promise<string> => {
      const second = await play(stage);
      expect([`exit ${second.exit}`, ...second.broken], `N8: ${second.text}`).toEqual(['exit 0']);
      return second.report?.lists[0]?.index?.digest ?? '';
    };
    await rerunConverges(registry, TARGET, again, digest);
  });
}
