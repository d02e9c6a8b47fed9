// Each group of tests/support/run/groups.ts is a project of vitest, and the folder of a test file says its group. Two more: beside
// the api tests some of them run with every shard behind a transport, and behind all what all servers of the run have shown
// is judged. Within a group the files that take longest begin.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { CHOSEN_FOR_CLUSTERS } from './tests/support/run/chosen-for-clusters.ts';
import { GROUP_NAMES, GROUPS, type GroupName, orderOf } from './tests/support/run/groups.ts';
import { LongFilesFirst } from './tests/support/run/long-files-first.ts';
import { isLongForm } from './tests/support/run/long-form.ts';
import { NOT_OVER_LOOPBACK } from './tests/support/run/not-over-loopback.ts';
import { filesOf, importedBy } from './tests/support/run/test-needs.ts';

// Files that share a server (tests/support/servers/given-server.ts) count what is in it, and take turns.
const sharesServer = process.env.HOLDFAST_TEST_ENDPOINT !== undefined;

// Servers of tests leave there what their requests have shown (tests/support/run/operation-coverage.ts).
const coverageFolder = mkdtempSync(join(tmpdir(), 'holdfast-coverage-'));
process.on('exit', () => rmSync(coverageFolder, { recursive: true, force: true }));
const env = { OPERATION_COVERAGE_FOLDER: coverageFolder };

/** Every test file begins with it. */
const COMPARE_BYTES = join(import.meta.dirname, 'tests', 'support', 'run', 'compare-bytes.ts');

/** The files of a group; in the long form those of them that have one. */
function include(group: GroupName): string[] {
  if (!isLongForm) return [...GROUPS[group].include];
  return filesOf(group).filter((file) => importedBy([file]).includes('tests/support/run/long-form.ts'));
}

function project(group: GroupName, groupOrder: number): TestProjectInlineConfiguration {
  const { workers, isolate, timeoutMs } = GROUPS[group];
  return {
    test: {
      name: group,
      include: include(group),
      env,
      isolate,
      setupFiles: [COMPARE_BYTES],
      maxWorkers: sharesServer ? 1 : workers,
      testTimeout: timeoutMs,
      hookTimeout: timeoutMs,
      sequence: { groupOrder },
    },
  };
}

const loopback = project('api', orderOf('api'));
const coverage = { name: 'coverage', include: ['tests/last/**/*.test.ts'], env };

export default defineConfig({
  test: {
    // Tests run as the program does: Node itself loads their modules, and keeps what it has compiled. Vite would transform
    // each module anew for each project.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    execArgv: ['--import', join(import.meta.dirname, 'cmd', 'source-paths.ts')],
    sequence: { sequencer: LongFilesFirst },
    projects: [
      ...GROUP_NAMES.map((name) => project(name, orderOf(name))),
      {
        test: {
          ...loopback.test,
          name: 'api-loopback',
          include: [...GROUPS.api.include],
          // Those that are chosen run over the transports of a real cluster (tests/cluster/api.test.ts).
          exclude: isLongForm
            ? []
            : [...CHOSEN_FOR_CLUSTERS, ...NOT_OVER_LOOPBACK.map((name) => `api/${name}`)].map(
                (name) => `tests/${name}.test.ts`,
              ),
          // Every message to a shard is serialised, as between machines (tests/support/servers/start-server.ts).
          env: { ...env, TEST_FORCE_LOOPBACK: 'true' },
        },
      },
      ...(isLongForm ? [] : [{ test: { ...coverage, sequence: { groupOrder: GROUP_NAMES.length + 1 } } }]),
    ],
  },
});
