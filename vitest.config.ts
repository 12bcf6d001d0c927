import { defineConfig } from 'vitest/config';

const SLOW = 'test/**/*.slow.test.ts';
const PEERS = 'test/peers/**/*.test.ts';
const setupFiles = ['test/helpers/seed.ts'];

/**
 * Three lanes: `fast` answers while one works; its limit is for a busy machine. `full` holds what takes seconds: sizes,
 * start-up, whole packages. `peers` needs docker, crane, regctl and others on PATH and says which are missing.
 */
export default defineConfig({
  test: {
    projects: [
      {
        test: { name: 'fast', include: ['test/**/*.test.ts'], exclude: [SLOW, PEERS], setupFiles, testTimeout: 20_000 },
      },
      {
        test: {
          name: 'full',
          include: [SLOW],
          exclude: [PEERS],
          setupFiles,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      { test: { name: 'peers', include: [PEERS], setupFiles, testTimeout: 120_000, hookTimeout: 120_000 } },
    ],
  },
});
