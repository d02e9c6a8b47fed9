// A killed gateway is missed; one that was stopped, restarted or forgotten is not.
import { expect, test } from 'vitest';
import { memberOf } from '../../tests/support/coordination/coordination-records.ts';
import { LEASE_MS, pass, startCoordinatorWorld } from '../../tests/support/coordination/coordinator-world.ts';
import type { Member } from '../ports/members.ts';

const gatewayOf = (nodeId: string, instance = 'host 1.2.3.4:9000'): Member => ({
  ...memberOf(nodeId),
  role: 'gateway',
  instance,
});

function openWorld() {
  const world = startCoordinatorWorld();
  const killed = new Set<string>();
  world.fates.push(({ by }) => (killed.has(by) ? 'lost' : undefined));
  const watcher = world.connect('w').members;
  /** Returns the controller that stops it. */
  const start = (member: Member): AbortController => {
    const stop = new AbortController();
    void world.connect(member.nodeId).members.announce(member, stop.signal);
    return stop;
  };
  /** The gateways that are listed, and those that are missed. */
  const seen = async () => {
    const both = Promise.all([watcher.current(), watcher.missingGateways()]);
    await pass(world.clock, 100);
    return (await both).map((members) => members.map(({ nodeId }) => nodeId).join(' '));
  };
  return { ...world, watcher, killed, start, seen };
}

test('a gateway that is killed is missed when its lease has ended', async () => {
  const { clock, killed, start, seen } = openWorld();
  start(gatewayOf('a'));
  start(gatewayOf('b', 'host 1.2.3.4:9001'));
  start(memberOf('c'));
  await pass(clock, 1000);
  expect(await seen()).toEqual(['a b c', '']);
  killed.add('a').add('c');
  await pass(clock, 2 * LEASE_MS);
  expect(await seen()).toEqual(['b', 'a']);
});

test('a killed gateway that restarts is listed once, at once', async () => {
  const { clock, killed, start, seen } = openWorld();
  start(gatewayOf('a'));
  await pass(clock, 1000);
  killed.add('a');
  start(gatewayOf('b'));
  await pass(clock, 1000);
  expect(await seen()).toEqual(['b', '']);
  await pass(clock, 3 * LEASE_MS);
  expect(await seen()).toEqual(['b', '']);
});

test('a stopped gateway and a forgotten one are not missed', async () => {
  const { clock, killed, start, seen, watcher } = openWorld();
  const stopped = start(gatewayOf('a'));
  start(gatewayOf('b', 'host 1.2.3.4:9001'));
  await pass(clock, 1000);
  stopped.abort();
  killed.add('b');
  await pass(clock, 2 * LEASE_MS);
  expect(await seen()).toEqual(['', 'b']);
  const forgotten = watcher.forgetGateway('b');
  await pass(clock, 100);
  await forgotten;
  expect(await seen()).toEqual(['', '']);
});
