import { readFileSync } from 'node:fs';
import { env } from 'node:process';

// `npm run mutation` sets the group: one run mutates one group and runs that group's tests only.
const groups = JSON.parse(readFileSync(new URL('scripts/mutation-groups.json', import.meta.url), 'utf8'));
const name = env['MUTATION_GROUP'] ?? 'origin';
const group = groups[name];
if (group === undefined) throw new Error(`MUTATION_GROUP is one of ${Object.keys(groups).join(', ')}`);

/** @type {import('@stryker-mutator/api/core').PartialStrykerOptions} */
export default {
  mutate: group.mutate,
  testRunner: 'vitest',
  vitest: { configFile: 'vitest.mutation.config.ts' },
  plugins: ['@stryker-mutator/vitest-runner'],
  coverageAnalysis: 'perTest',
  ignorePatterns: ['lib', 'coverage', 'bench', 'docs', '*.tgz'],
  concurrency: 2,
  // Tests open real connections; on a busy machine one may take seconds for nothing.
  timeoutMS: 15_000,
  timeoutFactor: 3,
  dryRunTimeoutMinutes: 10,
  reporters: ['json', 'html'],
  jsonReporter: { fileName: `reports/mutation/${name}.json` },
  htmlReporter: { fileName: `reports/mutation/${name}.html` },
  thresholds: { high: 95, low: 85, break: 85 },
  tempDirName: '.stryker-tmp',
  // Only exactly pinned tools run here; nothing is asked of the network.
  checkers: [],
  allowConsoleColors: false,
};
