// Two kinds of test files: those that may run beside one another, and those that start servers, clients or threads
// in earnest and would only slow one another down on a small machine.
import { defineConfig } from 'vitest/config';

const PARALLEL = [
  'src/**/*.test.ts',
  'cmd/**/*.test.ts',
  'tests/*.test.ts',
  'tests/{contract,scenarios,api}/**/*.test.ts',
];

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'parallel',
          include: PARALLEL,
          maxWorkers: 2,
          testTimeout: 20_000,
          hookTimeout: 30_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'one by one',
          include: ['tests/**/*.test.ts'],
          exclude: PARALLEL,
          maxWorkers: 1,
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
