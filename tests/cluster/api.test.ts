// The tests of the single node, unchanged, against the gateways of a cluster of real processes, in turn: of the operations
// those that say most about a cluster. All of them, and the programs of other makers, by hand:
//   HOLDFAST_TEST_CLUSTER=all npm test -- tests/cluster/api.test.ts
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
// Files that are loaded by name below drive them.
import '../support/clients/client-programs.ts';
import { listFiles } from '../support/clients/tree.ts';
import { startCluster } from '../support/cluster/start-cluster.ts';
import { CHOSEN_FOR_CLUSTERS } from '../support/run/chosen-for-clusters.ts';
import { GIVEN_SETTINGS } from '../support/servers/given-server.ts';

const TESTS = join(import.meta.dirname, '..');
const isWhole = process.env.HOLDFAST_TEST_CLUSTER === 'all';
const ALL = ['api', 'clients'].flatMap((folder) =>
  listFiles(join(TESTS, folder))
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `${folder}/${name.replace('.test.ts', '')}`),
);
const TREE_MIB = '16';

// Before the tests are read: they skip what needs a server of its own.
const cluster = await startCluster({ settings: GIVEN_SETTINGS });
const [access] = cluster.gateways;
Object.assign(process.env, {
  HOLDFAST_TEST_ENDPOINT: cluster.gateways.map(({ endpoint }) => endpoint).join(),
  HOLDFAST_TEST_ACCESS_KEY: access?.accessKey,
  HOLDFAST_TEST_SECRET_KEY: access?.secretKey,
  HOLDFAST_TEST_DATA_DIR: join(cluster.folder, 'keys'),
  HOLDFAST_TEST_LOG: cluster.gateways
    .map((_, index) => join(cluster.folder, 'logs', `gateway-${index + 1}.log`))
    .join(),
  ...(isWhole ? {} : { HOLDFAST_TEST_TREE_MIB: TREE_MIB }),
});
afterAll(() => cluster.stop());

for (const name of isWhole ? ALL : CHOSEN_FOR_CLUSTERS)
  describe(name, async () => {
    await import(join(TESTS, `${name}.test.ts`));
  });

test('no request ended in 500, and no process ended', async () => {
  for (const name of cluster.names) {
    const lines = await cluster.logOf(name);
    expect(
      lines.filter(({ status }) => status === 500),
      name,
    ).toEqual([]);
  }
  expect(cluster.events.filter((event) => event.includes('has ended'))).toEqual([]);
  expect((await cluster.untilHealthy()).alarms).toEqual([]);
});
