// The placer's requests by the operator's commands. Which node gets which shard is tested in plan-shards.test.ts.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { pass, startCoordinatorWorld } from '../../tests/support/coordination/coordinator-world.ts';
import { eventLog, type LoggedEvents } from '../../tests/support/coordination/coordinators.ts';
import type { ClusterState } from '../ports/cluster-identity.ts';
import type { Coordination, NodeLeave } from '../ports/coordination.ts';
import { createShardPlacer, type ShardsSeen } from './place-shards.ts';

const LOOK_MS = 3000;
const SHARDS = 4;

let world: ReturnType<typeof startCoordinatorWorld>;
let coordination: Coordination;
let there: string[] = [];
let seen: ShardsSeen | undefined;
let leavingVoters: ShardsSeen['leavingVoters'] | undefined;
let cluster: ClusterState = 'as-made';
let promised = new Map<number, number>();
let logged: LoggedEvents = [];

beforeEach(() => start(['a', 'b', 'c']));
afterEach(() => world.ending.abort());

async function start(nodes: string[]): Promise<void> {
  world = startCoordinatorWorld();
  cluster = 'as-made';
  promised = new Map();
  logged = [];
  coordination = world.connect('placer');
  there = nodes;
  const placer = createShardPlacer({
    shardCount: SHARDS,
    replicaCount: 3,
    clock: world.clock,
    log: eventLog(logged),
    ...coordination,
    cluster: async () => cluster,
    promised: () => promised,
    members: () =>
      there.map((nodeId) => ({
        nodeId,
        role: 'metadata',
        address: `${nodeId}:1`,
        zone: nodeId.toLowerCase(),
        version: '0',
        disks: [{ diskId: `database of ${nodeId}`, capacityBytes: 0 }],
      })),
    onLook(found) {
      seen = found;
      leavingVoters = found?.leavingVoters;
    },
  });
  void placer.run(world.ending.signal);
  await pass(world.clock, LOOK_MS);
}

async function say(...nodes: { nodeId: string; leave: NodeLeave }[]): Promise<void> {
  const { leavingNodes } = coordination;
  const { revision } = await leavingNodes.read();
  await leavingNodes.swap({ expected: revision, nodes });
  await pass(world.clock, LOOK_MS);
}

/** The wanted voters of each shard, and its wanted primary. */
async function wanted(): Promise<{ voters: string[]; leaders: string[] }> {
  const voters = new Set<string>();
  const leaders = new Set<string>();
  for (let shard = 0; shard < SHARDS; shard++) {
    const wish = (await coordination.registry.read(shard))?.record.wanted;
    voters.add(
      (wish?.voters ?? [])
        .map(({ nodeId }) => nodeId)
        .sort()
        .join(''),
    );
    leaders.add(wish?.primary ?? 'nobody');
  }
  return { voters: [...voters], leaders: [...leaders] };
}

test('a removed node is replaced, and stays out when it returns', async () => {
  expect((await wanted()).voters).toEqual(['abc']);
  there = ['a', 'b', 'd'];
  await pass(world.clock, LOOK_MS);
  expect((await wanted()).voters).not.toContain('abd');
  await say({ nodeId: 'c', leave: 'gone' });
  expect((await wanted()).voters).toEqual(['abd']);
  there = ['a', 'b', 'c', 'd'];
  await pass(world.clock, LOOK_MS);
  expect((await wanted()).voters).toEqual(['abd']);
  await say();
  expect((await wanted()).voters.some((names) => names.includes('c'))).toBe(true);
});

test('nobody is put into the zone of a voter that is away', async () => {
  there = ['a', 'B', 'c', 'd'];
  await say({ nodeId: 'c', leave: 'draining' });
  expect((await wanted()).voters).toEqual(['abd']);
});

test('a draining node leads nothing; with too few others nothing changes', async () => {
  expect(leavingVoters).toEqual({ draining: 0, gone: 0 });
  await say({ nodeId: 'a', leave: 'draining' });
  expect(leavingVoters).toEqual({ draining: SHARDS, gone: 0 });
  expect(await wanted()).toMatchObject({ voters: ['abc'] });
  there = ['a', 'b', 'c', 'd'];
  await pass(world.clock, LOOK_MS);
  const { voters, leaders } = await wanted();
  expect(voters).toEqual(['bcd']);
  expect(leaders).not.toContain('database of a');
});

test('voters on leaving nodes are counted, previous ones, too', async () => {
  await say({ nodeId: 'c', leave: 'gone' });
  expect(leavingVoters).toEqual({ draining: 0, gone: SHARDS });
  // Half-way: the leaving node is a previous voter, and another node takes its place.
  const found = await coordination.registry.read(0);
  const [a, b, c] = found?.record.voters ?? [];
  const ref = (nodeId: string) => ({ nodeId, replicaId: `database of ${nodeId}` });
  const [voters, prevVoters] = [
    [a ?? ref('a'), b ?? ref('b'), ref('d')],
    [a, b, c].map((one) => one ?? ref('c')),
  ];
  if (found === undefined) throw new Error('there are shards');
  await coordination.registry.swap(0, {
    expected: found.revision,
    record: { ...found.record, voters, prevVoters },
  });
  await say({ nodeId: 'c', leave: 'gone' }, { nodeId: 'd', leave: 'draining' });
  expect(leavingVoters).toEqual({ draining: 1, gone: SHARDS });
});

test('only the placer counts the shards that are not as they should be', async () => {
  const settled = { nodeless: 0, fewVoters: 0, changing: 0 };
  expect(seen).toMatchObject({ unsettled: settled, lackingNodeCount: 0 });
  there = ['a', 'b'];
  await pass(world.clock, LOOK_MS);
  expect(seen).toMatchObject({ unsettled: settled, lackingNodeCount: 1 });
  const { registry } = coordination;
  const [first, second] = [await registry.read(0), await registry.read(1)];
  if (first === undefined || second === undefined) throw new Error('there are shards');
  const { voters } = first.record;
  await registry.swap(0, {
    expected: first.revision,
    record: { ...first.record, voters: voters.slice(1), prevVoters: voters },
  });
  await registry.swap(1, { expected: second.revision, record: { ...second.record, prevVoters: voters } });
  await pass(world.clock, LOOK_MS);
  expect(seen).toMatchObject({ unsettled: { nodeless: 0, fewVoters: 1, changing: 2 } });
  world.ending.abort();
  await pass(world.clock, LOOK_MS);
  expect(seen).toBeUndefined();
});

test('records that etcd has lost are not made anew', async () => {
  const makeAnew = async (found: ClusterState, epochs: [number, number][]) => {
    world.ending.abort();
    await start([]);
    cluster = found;
    promised = new Map(epochs);
    there = ['a', 'b', 'c'];
    await pass(world.clock, LOOK_MS);
    return (await wanted()).voters;
  };
  expect(await makeAnew('unknown', [])).toEqual(['']);
  expect(await makeAnew('rebuilt', [])).toEqual(['']);
  // Etcd has the cluster, and not an epoch that was promised.
  expect(await makeAnew('as-made', [[1, 4]])).toEqual(['']);
  expect(await makeAnew('as-made', [[1, 0]])).toEqual(['abc']);
});

test('a record that etcd has is changed after it was rebuilt, and not for another cluster', async () => {
  there = ['a', 'b', 'd'];
  cluster = 'unknown';
  await say({ nodeId: 'c', leave: 'gone' });
  expect((await wanted()).voters).toEqual(['abc']);
  cluster = 'rebuilt';
  await pass(world.clock, LOOK_MS);
  expect((await wanted()).voters).toEqual(['abd']);
});

test('shards have no voters while there are no nodes', async () => {
  world.ending.abort();
  await start(['a']);
  expect(seen).toMatchObject({
    unsettled: { nodeless: SHARDS, fewVoters: 0, changing: 0 },
    lackingNodeCount: 2,
  });
});

test('shards that may not begin, because etcd has lost records, are named once', async () => {
  const isLogged = () => logged.filter(([, event]) => event === 'shards-not-begun').length;
  await pass(world.clock, 2 * LOOK_MS);
  expect(isLogged()).toBe(0);
  world.coordinator.remove('shard/2');
  cluster = 'rebuilt';
  await pass(world.clock, 3 * LOOK_MS);
  expect(await coordination.registry.read(2)).toBeUndefined();
  expect(isLogged()).toBe(1);
});
