// Any process of a cluster is killed, stopped, restarted or cut off, by chance, under a continuous checked load: nothing
// acknowledged is lost, nothing is answered wrongly, and writes are back soon. Less than a minute, or as long as is asked for;
// `long` is an hour with more load:
//   HOLDFAST_TEST_CLUSTER_FAULTS=60min npm test -- tests/cluster/random-faults.test.ts
//   HOLDFAST_TEST_CLUSTER_FAULTS=long npm test -- tests/cluster/random-faults.test.ts
// The seed on the first line repeats the requests and the faults, not the moments of the kernel and the disk.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { seededNumbers } from '../support/clients/tree.ts';
import type { Endurance } from '../support/cluster/endure.ts';
import { COMPARE_MS, isLong, openFaults, RANDOM_MS, SEED } from '../support/cluster/fault-drills.ts';
import type { TestCluster } from '../support/cluster/start-cluster.ts';

const HARM_MS_MAX = 6000;

let endurance: Endurance;
let cluster: TestCluster;

beforeAll(async () => {
  endurance = await openFaults();
  ({ cluster } = endurance);
}, 180_000);

afterAll(() => endurance?.stop());

/** Each does harm to a process, and gives what takes it back. */
const HARMS: Readonly<Record<string, (name: string) => Promise<() => Promise<void>>>> = {
  async kill(name) {
    await cluster.kill(name);
    return () => cluster.run(name);
  },
  async stop(name) {
    cluster.pause(name);
    return async () => cluster.resume(name);
  },
  async restart(name) {
    await cluster.end(name);
    return () => cluster.run(name);
  },
  async cut(name) {
    cluster.network.cut(
      [name],
      cluster.names.filter((other) => other !== name),
    );
    return async () => cluster.network.heal();
  },
};

test(`any process at random, for ${RANDOM_MS / 1000} s`, { timeout: COMPARE_MS + 2 * RANDOM_MS }, () =>
  endurance.endure(`faults at random for ${RANDOM_MS / 1000} s`, async ({ back, note }) => {
    const random = seededNumbers(`faults:${SEED}`);
    const one = <T>(of: readonly T[]): T => must(of[Math.floor(random() * of.length)], 'one of them');
    const endMs = performance.now() + RANDOM_MS;
    const counts = new Map<string, number>();
    const backs: { ms: number; what: string }[] = [];
    while (performance.now() < endMs) {
      const [kind, name] = [one(Object.keys(HARMS)), one(cluster.names)];
      const undo = await must(HARMS[kind], 'a harm')(name);
      await sleep(random() * HARM_MS_MAX);
      await undo();
      const what = `${kind} ${name.replace(/-\d+$/, '')}`;
      counts.set(what, (counts.get(what) ?? 0) + 1);
      backs.push({ ms: await back(''), what: `${kind} ${name}` });
    }
    backs.sort((a, b) => a.ms - b.ms);
    const [middle, worst] = [backs[Math.floor(backs.length / 2)], backs.at(-1)];
    note(`${backs.length} faults (${[...counts].map(([what, count]) => `${count} ${what}`).join(', ')})`);
    note(`writes back after ${middle?.ms} ms in the middle, ${worst?.ms} ms after ${worst?.what}`);
  }),
);

test('all data is intact, and no client got an internal error', { timeout: COMPARE_MS }, () =>
  // In the short form what is compared has just been read.
  endurance.expectSound({ readsData: isLong }),
);
