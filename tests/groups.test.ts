// Each test file belongs to one group by its folder, and a run installs what its files need and no more.
import { globSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { CHOSEN_FOR_CLUSTERS } from './support/run/chosen-for-clusters.ts';
import { GROUP_NAMES } from './support/run/groups.ts';
import { NOT_OVER_LOOPBACK } from './support/run/not-over-loopback.ts';
import { ROOT } from './support/run/root.ts';
import { filesOf, importedBy, needsOf } from './support/run/test-needs.ts';

const LAST = 'tests/last/';

test('each test file belongs to one group', () => {
  const all = globSync('{src,cmd,tests,bench,tools}/**/*.test.ts', { cwd: ROOT });
  const ofGroups = GROUP_NAMES.flatMap(filesOf);
  expect(ofGroups.toSorted()).toEqual(all.filter((path) => !path.startsWith(LAST)).toSorted());
});

test('files that are chosen by name are there', () => {
  const named = [...CHOSEN_FOR_CLUSTERS, ...NOT_OVER_LOOPBACK.map((name) => `api/${name}`)];
  const files = [...filesOf('api'), ...filesOf('clients')];
  expect(named.map((name) => `tests/${name}.test.ts`).filter((path) => !files.includes(path))).toEqual([]);
});

describe('needs', () => {
  test.each([
    ['tests/clients/rclone.test.ts', ['client programs']],
    ['tests/contract/members.test.ts', ['etcd']],
    ['tests/cluster/restic.test.ts', ['client programs', 'etcd']],
    ['tests/cluster/api.test.ts', ['client programs', 'etcd']],
    ['tests/faults/kill.test.ts', []],
    ['tests/simulation/world.test.ts', []],
  ])('of %s: %j', (path, needs) => {
    expect([...needsOf([path])].toSorted()).toEqual(needs);
  });

  test.each(['models', 'programs', 'api', 'sim'] as const)('of the group %s: none', (group) => {
    expect([...needsOf(filesOf(group))]).toEqual([]);
  });
});

test('modules that a file imports in any form are found', () => {
  expect(importedBy(['tests/support/run/long-form.ts', 'tests/groups.test.ts'])).toEqual(
    expect.arrayContaining([
      'tests/support/run/long-form.ts',
      'tests/support/run/groups.ts',
      'tests/support/run/root.ts',
    ]),
  );
});
