// Kinds of test files: those that may run beside one another, in one process, with programs of other makers or with clusters
// that mostly wait; those that measure, kill or fill up, and want the machine for themselves; the api suite once more, with
// the shards behind a transport; and those that look at what all others have shown.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const PARALLEL = [
  'src/**/*.test.ts',
  'cmd/**/*.test.ts',
  'tests/*.test.ts',
  'tests/{contract,scenarios,api,deploy}/**/*.test.ts',
];

const CLIENTS = [
  'tests/clients/**/*.test.ts',
  'tests/cluster/{compose,damage,disks,faults,full-disks,grow,metadata-nodes,random-faults,recover,restic,run,several-disks}.test.ts',
];

/** Begun first: a long file that is begun last leaves all but one worker with nothing to do. The longest one first. */
const LONG = [
  'cluster/random-faults',
  'cluster/faults',
  'cluster/disks',
  'clients/aws-cli',
  'cluster/damage',
  'cluster/grow',
  'clients/rclone',
  'cluster/restic',
  'cluster/full-disks',
  'cluster/several-disks',
  'cluster/recover',
];

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = LONG.findIndex((name) => moduleId.endsWith(`/tests/${name}.test.ts`));
      return at === -1 ? LONG.length : at;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

const LAST = ['tests/last/**/*.test.ts'];

// Files that share a server (tests/support/given-server.ts) count what is in it, and take turns.
const sharesServer = process.env.HOLDFAST_TEST_ENDPOINT !== undefined;
const maxWorkers = sharesServer ? 1 : 2;

// Of tests that take no time to speak of: it is there for what hangs, not for machines that are slow or busy.
const TIMEOUT_MS = 60_000;

// Servers of tests leave there what their requests have shown (tests/support/operation-coverage.ts).
const coverageFolder = mkdtempSync(join(tmpdir(), 'holdfast-coverage-'));
process.on('exit', () => rmSync(coverageFolder, { recursive: true, force: true }));
const env = { OPERATION_COVERAGE_FOLDER: coverageFolder };

export default defineConfig({
  test: {
    sequence: { sequencer: LongFirst },
    projects: [
      {
        test: {
          name: 'parallel',
          include: PARALLEL,
          env,
          maxWorkers,
          testTimeout: TIMEOUT_MS,
          hookTimeout: TIMEOUT_MS,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'clients',
          include: CLIENTS,
          env,
          // Half of the time such a program starts up, on one core, while the server has nothing to do; and clusters wait
          // for promises to lapse: two cores bear three of them.
          maxWorkers: sharesServer ? 1 : 3,
          testTimeout: 180_000,
          // Three clusters may start at once.
          hookTimeout: 180_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'one by one',
          include: ['tests/**/*.test.ts'],
          exclude: [...PARALLEL, ...CLIENTS, ...LAST],
          env,
          maxWorkers: 1,
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: 'api over loopback',
          include: ['tests/api/**/*.test.ts'],
          // Every message to a shard is serialised, as between machines (tests/support/start-server.ts).
          env: { ...env, TEST_FORCE_LOOPBACK: 'true' },
          maxWorkers,
          testTimeout: TIMEOUT_MS,
          hookTimeout: TIMEOUT_MS,
          sequence: { groupOrder: 3 },
        },
      },
      { test: { name: 'last', include: LAST, env, sequence: { groupOrder: 4 } } },
    ],
  },
});
