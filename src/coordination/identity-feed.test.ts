import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { kek, type MetadataShards, openMetadata } from '../../tests/support/metadata/metadata-shards.ts';
import { createManualClock, type ManualClock } from '../../tests/support/run/simulated.ts';
import type { MetadataPort, QueryOf } from '../ports/metadata/port.ts';
import { LIMITS } from '../types/limits.ts';
import type { AccountId } from '../types/names.ts';
import { type ClusterIdentityFeed, createIdentityFeed } from './identity-feed.ts';

const ANN = '000000000011' as AccountId;
const { identityServeMs, identityAskMs } = LIMITS;

let clock: ManualClock;
let metadata: MetadataShards;
let feed: ClusterIdentityFeed;
let stopping: AbortController;
let following: Promise<void>;
/** What the listeners got. */
let told: unknown[];
let events: string[];
/** The position in each question, and its time. */
let asks: { atMs: number; seq: number | undefined }[];
/** Delays or replaces answers, in the order of the questions. */
let answer: (reply: Promise<never>) => Promise<never>;

beforeEach(async () => {
  clock = createManualClock(Date.parse('2024-01-01'));
  [told, events, asks] = [[], [], []];
  metadata = await openWorld();
  open(() => metadata);
});

afterEach(async () => {
  stopping.abort();
  await following;
});

async function openWorld(): Promise<MetadataShards> {
  const world = await openMetadata({ clock });
  const account = { accountId: ANN, name: 'ann', email: 'ann', canonicalId: 'ann', state: 'paid' as const };
  await world.execute('create-account', {
    account: { ...account, bucketsMax: 1, isRoot: false },
    accessKey: { accessKey: 'AKann', sealedSecret: kek },
  });
  await change(world);
  return world;
}

function open(world: () => MetadataShards): void {
  answer = (reply) => reply;
  const port: MetadataPort = {
    shardCount: 1,
    execute: (...call) => world().shards.execute(...call),
    query(envelope, name, query) {
      const { since } = query as QueryOf<'identity-changes'>;
      asks.push({ atMs: clock.monotonicMs(), seq: since?.seq });
      return answer(world().shards.query(envelope, name, query) as Promise<never>);
    },
  };
  const log = (_fields: object, event: string) => void events.push(event);
  feed = createIdentityFeed({
    metadata: port,
    clock,
    log: { debug: () => {}, info: log, warn: log, error: log },
    gateway: 'g1',
  });
  feed.listen((changes) => void told.push(changes));
  stopping = new AbortController();
  following = feed.follow(stopping.signal);
}

function change(world = metadata): Promise<unknown> {
  return world.execute('set-account', { accountId: ANN, changes: { bucketsMax: 7 } });
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
}

async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 100) {
    clock.advance(Math.min(100, left));
    await settle();
  }
}

test('is behind until the first answer, and then reports each change within a second', async () => {
  stopping.abort();
  await following;
  [told.length, events.length] = [0, 0];
  open(() => metadata);
  expect(feed.isCurrent()).toBe(false);
  await settle();
  expect(feed.isCurrent()).toBe(true);
  expect(told.splice(0)).toEqual(['all']);
  await pass(5 * identityAskMs);
  expect(told).toEqual([]);
  await change();
  await pass(identityAskMs);
  expect(told).toEqual([[{ accountId: ANN }]]);
  await pass(5 * identityAskMs);
  expect(told).toHaveLength(1);
  expect(events).toEqual(['identity-feed-current']);
});

test('asks each second with its position', async () => {
  await settle();
  await change();
  await pass(3 * identityAskMs);
  expect(asks).toEqual([
    { atMs: 0, seq: undefined },
    { atMs: identityAskMs, seq: 1 },
    { atMs: 2 * identityAskMs, seq: 2 },
    { atMs: 3 * identityAskMs, seq: 2 },
  ]);
});

test('reports that everything may have changed after too many changes, or in another history', async () => {
  await settle();
  told.length = 0;
  for (let count = 0; count <= LIMITS.identityChangesKept; count++) await change();
  await pass(identityAskMs);
  expect(told.splice(0)).toEqual(['all']);
  metadata = await openWorld();
  await pass(identityAskMs);
  expect(told.splice(0)).toEqual(['all']);
  await change();
  await pass(identityAskMs);
  expect(told).toEqual([[{ accountId: ANN }]]);
});

describe('without answers', () => {
  test('is current for nine seconds after the sending of the last answered question', async () => {
    await settle();
    const held = Promise.withResolvers<void>();
    answer = async (reply) => {
      const value = await reply;
      await held.promise;
      return value;
    };
    await pass(identityServeMs - 100);
    expect(feed.isCurrent()).toBe(true);
    await pass(100);
    expect(feed.isCurrent()).toBe(false);
    expect(events).toEqual(['identity-feed-current', 'identity-feed-behind']);
    // The last of these questions was sent a second ago, and the time counts from there.
    expect(asks).toHaveLength(1 + identityServeMs / identityAskMs);
    answer = async () => ({ kind: 'unknown' }) as never;
    held.resolve();
    await settle();
    expect(feed.isCurrent()).toBe(true);
    const lastSentMs = asks.at(-1)?.atMs ?? 0;
    const leftMs = lastSentMs + identityServeMs - clock.monotonicMs();
    await pass(leftMs - 100);
    expect(feed.isCurrent()).toBe(true);
    await pass(100);
    expect(feed.isCurrent()).toBe(false);
  });

  test('counts refusals and errors as no answer', async () => {
    await settle();
    let count = 0;
    answer = async () => {
      if (count++ % 2 === 0) throw new Error('cut');
      return { kind: 'busy' } as never;
    };
    await pass(identityServeMs);
    expect(feed.isCurrent()).toBe(false);
    answer = (reply) => reply;
    await pass(identityAskMs);
    expect(feed.isCurrent()).toBe(true);
  });

  test('bounds the questions under way', async () => {
    await settle();
    answer = () => new Promise(() => {});
    await pass(60 * identityAskMs);
    expect(asks).toHaveLength(1 + identityServeMs / identityAskMs);
  });
});

test('reports an overtaken answer, and does not go back', async () => {
  await settle();
  told.length = 0;
  const held = Promise.withResolvers<void>();
  answer = async (reply) => {
    const value = await reply;
    await held.promise;
    return value;
  };
  await change();
  await pass(identityAskMs);
  answer = (reply) => reply;
  await change();
  await pass(identityAskMs);
  expect(told.splice(0)).toEqual([[{ accountId: ANN }, { accountId: ANN }]]);
  held.resolve();
  await settle();
  expect(told).toEqual([[{ accountId: ANN }]]);
  await pass(identityAskMs);
  expect(asks.at(-1)?.seq).toBe(3);
});

test('does not trust its monotonic clock after the machine was suspended', async () => {
  await settle();
  clock.shiftWall(identityServeMs);
  expect(feed.isCurrent()).toBe(false);
  await pass(identityAskMs);
  expect(feed.isCurrent()).toBe(true);
});

test('reports a change of this process before its command is answered', async () => {
  await settle();
  told.length = 0;
  const changes = { state: 'suspended' as const };
  await feed.metadata.execute({ shard: 0 }, 'set-account', { accountId: ANN, changes });
  expect(told).toEqual([[{ accountId: ANN }]]);
});

test('asks and reports nothing after it has stopped', async () => {
  await settle();
  const held = Promise.withResolvers<void>();
  answer = async (reply) => {
    const value = await reply;
    await held.promise;
    return value;
  };
  await change();
  await pass(identityAskMs);
  [told.length, asks.length] = [0, 0];
  stopping.abort();
  await following;
  held.resolve();
  await pass(3 * identityAskMs);
  expect([told, asks]).toEqual([[], []]);
});
