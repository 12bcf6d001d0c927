import { readFileSync } from 'node:fs';
import { env } from 'node:process';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

type Groups = Readonly<Record<string, { readonly tests: readonly string[] }>>;

const groups: Groups = JSON.parse(readFileSync(new URL('scripts/mutation-groups.json', import.meta.url), 'utf8'));
const tests = groups[env['MUTATION_GROUP'] ?? 'origin']?.tests ?? [];

/** In the order of the list: a mutant dies of the first test that fails, so the quick ones come first. */
class InOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) =>
      moduleId.endsWith('.mutation.test.ts') ? -1 : tests.findIndex((path) => moduleId.endsWith(`/${path}`));
    return files.toSorted((one, other) => place(one) - place(other));
  }
}

/** The tests that Stryker runs: those of one group, none that takes seconds by design or depends on the time of day. */
export default defineConfig({
  test: {
    include: [...tests],
    sequence: { sequencer: InOrder },
    // A mutant may take away the check that keeps a foreign address from being connected to.
    setupFiles: ['test/helpers/seed.ts', 'test/helpers/loopback-only.ts'],
    // One worker for a run and a new one for the next mutant: what the files have in common is read once.
    isolate: false,
    fileParallelism: false,
    testTimeout: 10_000,
  },
});
