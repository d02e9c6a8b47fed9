// The list of members while the coordinator, or a member, cannot be reached. The contract is in
// tests/contract/members.test.ts.
import { expect, test } from 'vitest';
import { memberOf } from '../../tests/support/coordination/coordination-records.ts';
import {
  LEASE_MS,
  pass,
  STEP_MS,
  startCoordinatorWorld,
} from '../../tests/support/coordination/coordinator-world.ts';
import { LIMITS } from '../types/limits.ts';

const IDENTITY = { shardCount: 4, replicaCount: 3, chunkCopies: 3, masterKeyId: 'key-1', formatVersion: 1 };

test('a member that cannot reach the coordinator disappears with its lease, and returns', async () => {
  const { clock, fates, connect, ending } = startCoordinatorWorld();
  let isAway = false;
  fates.push(({ by }) => (by === 'm' && isAway ? 'lost' : undefined));
  const lists: string[] = [];
  connect('w').members.watch(
    (members) => lists.push(members.map(({ nodeId }) => nodeId).join()),
    ending.signal,
  );
  await pass(clock, 0);
  void connect('m').members.announce(memberOf('m'), ending.signal);
  await pass(clock, 5 * LEASE_MS);
  expect(lists).toEqual(['', 'm', 'm']);
  isAway = true;
  await pass(clock, LEASE_MS + STEP_MS);
  expect(lists.at(-1)).toBe('');
  isAway = false;
  await pass(clock, LIMITS.coordinatorCallMaxMs + LIMITS.coordinatorRetryMaxMs);
  expect(lists.at(-1)).toBe('m');
  ending.abort();
});

test('two processes with the same node id, one of them a copy, are reported', async () => {
  const { clock, connect, logged, ending } = startCoordinatorWorld();
  void connect('m').members.announce(memberOf('m'), ending.signal);
  await pass(clock, 3 * LEASE_MS);
  expect(logged).toEqual([]);
  void connect('n').members.announce({ ...memberOf('m'), address: '127.0.0.1:9' }, ending.signal);
  await pass(clock, 3 * LEASE_MS);
  expect(logged).toContainEqual(['error', 'member-announced-by-another']);
  ending.abort();
});

test('a lost lease is replaced before its row would disappear', async () => {
  const { clock, fates, connect, ending } = startCoordinatorWorld();
  fates.push(({ of }) => (of === 'keep' ? 'lost' : undefined));
  const lists: number[] = [];
  void connect('m').members.announce(memberOf('m'), ending.signal);
  await pass(clock, 0);
  connect('w').members.watch((members) => lists.push(members.length), ending.signal);
  await pass(clock, 5 * LEASE_MS);
  expect(lists.length).toBeGreaterThan(5);
  expect(lists).not.toContain(0);
  ending.abort();
});

test('the last list stays while the coordinator is away', async () => {
  const { clock, fates, connect, coordinator, ending } = startCoordinatorWorld();
  void connect('m').members.announce(memberOf('m'), ending.signal);
  await pass(clock, 0);
  const lists: number[] = [];
  connect('w').members.watch((members) => lists.push(members.length), ending.signal);
  await pass(clock, 0);
  fates.push(({ by }) => (by === 'w' ? 'refused' : undefined));
  coordinator.endWatches();
  await pass(clock, 10 * 60_000);
  expect(lists).toEqual([1]);
  ending.abort();
});

test.each([
  ['by hand', 'remove'],
  ['by setting the coordinator back', 'restore'],
])('a member that was removed %s is there again soon', async (_name, how) => {
  const { clock, connect, coordinator, ending } = startCoordinatorWorld();
  const empty = coordinator.copy();
  void connect('m').members.announce(memberOf('m'), ending.signal);
  await pass(clock, 0);
  if (how === 'remove') coordinator.remove('node/m');
  else coordinator.restore(empty);
  const { members } = connect('w');
  expect(await members.current()).toEqual([]);
  await pass(clock, LEASE_MS);
  expect(await members.current()).toEqual([memberOf('m')]);
  ending.abort();
});

test('a member announces itself to no other cluster, says so, and returns with its own', async () => {
  const { clock, connect, coordinator, logged, ending } = startCoordinatorWorld();
  const identity = { ...IDENTITY, clusterId: 'own' };
  const empty = coordinator.copy();
  await connect('w').identity.init(identity);
  const own = coordinator.copy();
  void connect('m').members.announce({ ...memberOf('m'), clusterId: 'own' }, ending.signal);
  await pass(clock, LEASE_MS);
  expect(await connect('w').members.current()).toHaveLength(1);
  coordinator.restore(empty);
  await pass(clock, LEASE_MS);
  expect(await connect('w').members.current()).toHaveLength(1);
  await connect('w').identity.init({ ...identity, clusterId: 'other' });
  await pass(clock, 3 * LEASE_MS);
  expect(await connect('w').members.current()).toEqual([]);
  expect(logged.filter(([, event]) => event === 'member-of-another-cluster')).toHaveLength(1);
  coordinator.restore(own);
  await pass(clock, 2 * LEASE_MS);
  expect(await connect('w').members.current()).toEqual([{ ...memberOf('m'), clusterId: 'own' }]);
  ending.abort();
});
