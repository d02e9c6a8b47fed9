// What pages of lists take of the memory for bodies while they are made: so many are at work at a time, by tenant.
import { afterEach, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { callIam } from '../../../tests/support/servers/iam-api.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import { SIMULATION_ACTIONS } from './simulate.ts';

const MiB = 1024 * 1024;
const CROWD = 40;
/** Of one address, where each takes an eighth of the memory: with so many it has more than its share. */
const AT_ONCE = 7;

let world: GatewayWorld | undefined;
afterEach(() => world?.close());

test('a crowd of pages of IAM has its share of memory, and none is refused', async () => {
  let begun = 0;
  const full = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const intercept = (shards: MetadataPort): MetadataPort => ({
    ...shards,
    shardCount: shards.shardCount,
    execute: (target, name, command) => shards.execute(target, name, command),
    async query(target, name, query) {
      if (name === 'read-identities' && 'ranges' in query && query.ranges !== undefined) {
        if (++begun === AT_ONCE) full.resolve();
        await end.promise;
      }
      return shards.query(target, name, query);
    },
  });
  world = await openGatewayWorld({ intercept, bodyBufferBytes: 16 * MiB });
  const { endpoint } = world;
  const keys = await world.makeAccount('owner');
  const iam = (Action: string) => callIam({ ...keys, endpoint }, { Action }, { credentials: keys });
  const crowd = Array.from({ length: CROWD }, () => iam('ListUsers'));
  await full.promise;
  // What has no pages does not wait behind them.
  expect(await iam('GetUser')).toMatchObject({ status: 200 });
  expect(begun).toBe(AT_ONCE);
  expect(world.heldBytes()).toBe(AT_ONCE * 2 * MiB);
  end.resolve();
  for (const answer of await Promise.all(crowd)) expect(answer).toMatchObject({ status: 200 });
  expect(world.heldBytes()).toBe(0);
});

test('what reads or is given many policies counts as a page does', () => {
  for (const { name, isLarge } of SIMULATION_ACTIONS) expect(isLarge, name).toBe(true);
});
