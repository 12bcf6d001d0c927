import { defineConfig } from 'vitest/config';

const SLOW = 'test/**/*.slow.test.ts';
const PEERS = 'test/peers/**/*.test.ts';
const FAULTS = [
  'test/reliability/**/*.slow.test.ts',
  'test/fuzz/**/*.slow.test.ts',
  'test/publish/registries.slow.test.ts',
];
const setupFiles = ['test/helpers/seed.ts'];

/**
 * Four lanes: `fast` answers while one works; its limit is for a busy machine. `full` holds what takes seconds: sizes,
 * start-up, whole packages. `faults` holds what takes minutes: every profile, faults, kills, races, fuzzing. `peers`
 * needs docker, crane, regctl and others on PATH and says which are missing.
 */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'fast',
          include: ['test/**/*.test.ts'],
          exclude: [SLOW, PEERS],
          setupFiles,
          testTimeout: 20_000,
          // By itself vitest leaves one of two cores idle. The other lanes measure, and start programs on both.
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'full',
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
          include: [SLOW],
          exclude: [PEERS, ...FAULTS],
          setupFiles,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'faults',
          include: FAULTS,
          setupFiles,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: 'peers',
          include: [PEERS],
          setupFiles,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
