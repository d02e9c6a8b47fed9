// restic against a whole server: a repository from its first backup to its pruning, over HTTP with a full tree and
// over TLS with a small one.
// By hand, with a tree of 1 GiB: HOLDFAST_TEST_TREE_MIB=1024 npm test -- tests/clients/restic.test.ts
import { afterAll, beforeAll, describe, expect } from 'vitest';
import {
  type ClientWorld,
  openWorld,
  PROGRAMS,
  type Transport,
  testOver,
} from '../support/clients/clients.ts';
import { fullTreeMiB } from '../support/clients/full-tree.ts';
import { changeTree, compareTrees, hashTree, writeTree } from '../support/clients/tree.ts';
import { casesOf } from '../support/run/long-form.ts';

const RUNS = casesOf<{ transport: Transport; sizeMiB: number }>({
  short: [{ transport: 'http', sizeMiB: fullTreeMiB() }],
  longOnly: [{ transport: 'https', sizeMiB: 32 }],
});

describe.each(RUNS)('restic over $transport with $sizeMiB MiB', ({ transport, sizeMiB }) => {
  const test = testOver(transport);
  let world: ClientWorld;
  let firstState: Map<string, string>;
  const tree = () => world.path('tree');
  const restic = async (...args: string[]) => {
    const trust = world.caFile === undefined ? [] : ['--cacert', world.caFile];
    const ran = await world.run(PROGRAMS.restic, [...trust, ...args], {
      cwd: tree(),
      env: {
        AWS_ACCESS_KEY_ID: world.server.accessKey,
        AWS_SECRET_ACCESS_KEY: world.server.secretKey,
        RESTIC_PASSWORD: 'a password of the repository',
        RESTIC_REPOSITORY: `s3:${world.server.endpoint}/restic-repository/in a folder`,
      },
    });
    return ran.stdout;
  };
  const snapshotCount = async () => (JSON.parse(await restic('snapshots', '--json')) as unknown[]).length;

  beforeAll(async () => {
    world = await openWorld({ transport });
    writeTree({ folder: tree(), seed: `restic-${transport}`, sizeMiB });
    firstState = hashTree(tree());
  });
  afterAll(() => world.close());

  test('makes its bucket and takes a first backup', async () => {
    await restic('init');
    await restic('backup', '--tag', 'first', '.');
    expect(await snapshotCount()).toBe(1);
  });

  test('takes a second backup of the changed tree', async () => {
    changeTree({ folder: tree(), seed: `restic-${transport}` });
    await restic('backup', '--tag', 'second', '.');
    expect(await snapshotCount()).toBe(2);
  });

  test('finds every byte of the repository intact', async () => {
    expect(await restic('check', '--read-data')).toContain('no errors were found');
  });

  test('restores both states unchanged', async () => {
    await restic('restore', 'latest', '--tag', 'first', '--target', world.path('first'));
    expect(hashTree(world.path('first'))).toEqual(firstState);
    await restic('restore', 'latest', '--tag', 'second', '--target', world.path('second'));
    expect(compareTrees({ expected: tree(), actual: world.path('second') })).toEqual([]);
  });

  test('forgets and prunes, and the rest is intact', async () => {
    await restic('forget', '--keep-last', '1', '--group-by', '', '--prune');
    expect(await snapshotCount()).toBe(1);
    expect(await restic('check', '--read-data')).toContain('no errors were found');
  });
});
