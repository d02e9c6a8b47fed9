// What pages of lists take of the memory for bodies while they are made: so many are at work at a time, by tenant.
import { afterEach, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { callIam } from '../../../tests/support/servers/iam-api.ts';
import type { IdentityStore } from '../../accounts/identity-store.ts';
import { nextTurn } from '../../base/async/next-turn.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import { ACCOUNT_ACTIONS } from './account-settings.ts';
import { listBelow, PAGE_CHARACTERS_MAX, pageOfRows } from './list-pages.ts';
import { SIMULATION_ACTIONS } from './simulate.ts';

const MiB = 1024 * 1024;
const CROWD = 40;
/** Of one address, where each takes an eighth of the memory: its share has no room for more. */
const AT_ONCE = 6;

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

test('of one account one list has a look in a turn of the loop, however many are made at once', async () => {
  let ofTurn = 0;
  let ofTurnMax = 0;
  let looks = 0;
  const intercept = (shards: MetadataPort): MetadataPort => ({
    ...shards,
    shardCount: shards.shardCount,
    execute: (target, name, command) => shards.execute(target, name, command),
    query(target, name, query) {
      if (name === 'read-identities' && 'ranges' in query && query.ranges !== undefined) {
        if (ofTurn === 0) setImmediate(() => (ofTurn = 0));
        ofTurnMax = Math.max(ofTurnMax, ++ofTurn);
        looks++;
      }
      return shards.query(target, name, query);
    },
  });
  world = await openGatewayWorld({ intercept });
  const { endpoint } = world;
  const keys = await world.makeAccount('owner');
  const iam = (parameters: Parameters<typeof callIam>[1]) =>
    callIam({ ...keys, endpoint }, parameters, { credentials: keys });
  for (let at = 0; at < 61; at++) await iam({ Action: 'CreateUser', UserName: `user-${at}` });
  looks = 0;
  const lists = Array.from({ length: 12 }, () => iam({ Action: 'ListUsers', MaxItems: 1000 }));
  for (const { status, texts } of await Promise.all(lists))
    expect([status, texts('UserName')]).toMatchObject([200, { length: 61 }]);
  expect(looks).toBe(12 * 4);
  // What is counted may be of the end of a turn and of the next one.
  expect(ofTurnMax).toBeLessThanOrEqual(2);
});

test('what reads or is given many policies, or counts an account, counts as a page does', () => {
  const summary = ACCOUNT_ACTIONS.filter(({ name }) => name === 'GetAccountSummary');
  expect(summary).toHaveLength(1);
  for (const { name, isLarge } of [...SIMULATION_ACTIONS, ...summary]) expect(isLarge, name).toBe(true);
});

test('a list keeps of its rows what it shows, and lets others go on between its looks', async () => {
  let turns = 0;
  const count = () => {
    turns++;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  const looks: number[] = [];
  const user = (at: number) => ({
    kind: 'user' as const,
    name: `u${String(at).padStart(4, '0')}`,
    path: at % 2 === 0 ? '/shown/' : '/',
    inlinePolicies: [{ name: 'long', text: 'x'.repeat(65_536) }],
  });
  const store = {
    turn: nextTurn,
    async range({ after = 'user/', limit }: { after?: string; limit: number }) {
      looks.push(turns);
      const from = after === 'user/' ? 0 : Number(after.slice('user/u'.length)) + 1;
      return Array.from({ length: limit }, (_, at) => ({
        key: `user/${user(from + at).name}`,
        record: user(from + at),
      }));
    },
  } as unknown as IdentityStore;
  const shown = listBelow({ kind: 'user', pathPrefix: '/shown/' }, ({ name }) => name.repeat(1000));
  const { items, next } = await pageOfRows(store, shown, { Marker: undefined, MaxItems: 1000 });
  clearImmediate(counting);
  expect(new Set(looks).size).toBe(looks.length);
  // Each has 5,000 characters, and one goes beyond the bound of a page.
  expect(items).toHaveLength(Math.floor(PAGE_CHARACTERS_MAX / 5000) + 1);
  expect(next).toBe(`user/u${String((items.length - 1) * 2).padStart(4, '0')}`);
});
