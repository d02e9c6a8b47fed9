import { beforeEach, describe, expect, test } from 'vitest';
import { type MetadataShards, openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import { createSeededRandom } from '../../../tests/support/run/simulated.ts';
import { utf8 } from '../../base/bytes/bytes.ts';
import { createKeyring } from '../../platform/memory/memory-keyring.ts';
import type { IdentityChange, IdentityFeed } from '../../ports/identity-feed.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { AccountId } from '../../types/names.ts';
import { createIdentities, type Identities } from './identities.ts';

const ANN = '000000000011' as AccountId;
const BOB = '000000000022' as AccountId;

let metadata: MetadataShards;
let identities: Identities;
let tell: (changes: readonly IdentityChange[] | 'all') => void;
let isCurrent: boolean;
let isAway: boolean;
/** What was asked of the shard since it was last looked at. */
let asked: string[];
/** Answers wait for it. */
let gate: Promise<void>;
const keyring = createKeyring();

beforeEach(async () => {
  metadata = await openMetadata();
  [isCurrent, isAway, asked, gate] = [true, false, [], Promise.resolve()];
  const port: MetadataPort = {
    shardCount: 1,
    execute: metadata.shards.execute,
    async query(envelope, name, query) {
      asked.push(name);
      if (isAway) return { kind: 'unknown' };
      const reply = await metadata.shards.query(envelope, name, query);
      await gate;
      return reply;
    },
  };
  const feed: IdentityFeed = {
    isCurrent: () => isCurrent,
    listen(onChange) {
      tell = onChange;
    },
  };
  identities = createIdentities({ metadata: port, keyring, random: createSeededRandom(1), feed });
  await create(ANN, 'ann');
  await create(BOB, 'bob');
});

function create(accountId: AccountId, name: string) {
  const account = { accountId, name, email: name, canonicalId: name, state: 'paid' as const };
  return metadata.execute('create-account', {
    account: { ...account, bucketsMax: 1, isRoot: false },
    accessKey: { accessKey: `AK${name}`, sealedSecret: keyring.wrap(utf8(`secret of ${name}`)) },
  });
}

function suspend(accountId: AccountId) {
  return metadata.execute('set-account', { accountId, changes: { state: 'suspended' } });
}

const stateOf = async (accessKey: string) => (await identities.find(accessKey))?.account.state;
const takeAsked = () => asked.splice(0);

test('an identity is read once while the feed is current', async () => {
  expect([await stateOf('AKann'), await stateOf('AKann')]).toEqual(['paid', 'paid']);
  expect(await identities.account(ANN)).toEqual(await identities.account(ANN));
  expect(takeAsked()).toEqual(['get-access-key', 'get-account']);
  await suspend(ANN);
  expect(await stateOf('AKann')).toBe('paid');
});

test('a reported identity is read again, and no other', async () => {
  for (const key of ['AKann', 'AKbob']) await stateOf(key);
  for (const id of [ANN, BOB]) await identities.account(id);
  await suspend(ANN);
  tell([{ accountId: ANN }]);
  takeAsked();
  expect([await stateOf('AKann'), await stateOf('AKbob')]).toEqual(['suspended', 'paid']);
  expect((await identities.account(ANN))?.state).toBe('suspended');
  await identities.account(BOB);
  expect(takeAsked()).toEqual(['get-access-key', 'get-account']);
  tell('all');
  for (const key of ['AKann', 'AKbob']) await stateOf(key);
  expect(takeAsked()).toEqual(['get-access-key', 'get-access-key']);
});

test('a deleted identity is unknown, and found when it is created again', async () => {
  await stateOf('AKann');
  await metadata.execute('delete-account', { accountId: ANN });
  tell([{ accountId: ANN }]);
  expect(await identities.find('AKann')).toBeUndefined();
  expect(await identities.account(ANN)).toBeNull();
  await create(ANN, 'ann');
  expect(await stateOf('AKann')).toBe('paid');
  expect(await identities.account(ANN)).not.toBeNull();
});

test('an unknown key is looked up each time', async () => {
  expect(await identities.find('AKnew')).toBeUndefined();
  expect(await identities.find('AKnew')).toBeUndefined();
  expect(takeAsked()).toHaveLength(2);
});

describe('while the feed is behind', () => {
  test('each lookup reads through the cache', async () => {
    await stateOf('AKann');
    await identities.account(ANN);
    isCurrent = false;
    await suspend(ANN);
    expect([await stateOf('AKann'), await stateOf('AKann')]).toEqual(['suspended', 'suspended']);
    expect((await identities.account(ANN))?.state).toBe('suspended');
    await metadata.execute('delete-account', { accountId: ANN });
    expect(await identities.find('AKann')).toBeUndefined();
    expect(await identities.account(ANN)).toBeNull();
  });

  test('without an answer the error is 503; the cache is used again when the feed is current', async () => {
    await stateOf('AKann');
    [isCurrent, isAway] = [false, true];
    await expect(identities.find('AKann')).rejects.toMatchObject({ code: 'ServiceUnavailable' });
    await expect(identities.account(ANN)).rejects.toMatchObject({ code: 'ServiceUnavailable' });
    isCurrent = true;
    expect(await stateOf('AKann')).toBe('paid');
    await expect(identities.find('AKbob')).rejects.toMatchObject({ code: 'ServiceUnavailable' });
  });

  test('an unchanged secret keeps its signing keys', async () => {
    const before = await identities.find('AKann');
    isCurrent = false;
    expect((await identities.find('AKann'))?.secret).toBe(before?.secret);
  });
});

test('a read that a change has overtaken serves its request, and is not cached', async () => {
  const held = Promise.withResolvers<void>();
  gate = held.promise;
  const reads = [stateOf('AKann'), identities.account(ANN)] as const;
  // The shard has read, and its answer is on its way.
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
  await suspend(ANN);
  tell([{ accountId: ANN }]);
  held.resolve();
  expect([await reads[0], (await reads[1])?.state]).toEqual(['paid', 'paid']);
  expect([await stateOf('AKann'), (await identities.account(ANN))?.state]).toEqual([
    'suspended',
    'suspended',
  ]);
});

test('what is cached of users is bounded by the texts of their policies', async () => {
  const text = ' '.repeat(1 << 20);
  const users = Array.from({ length: 20 }, (_, at) => ({
    name: `u${at}`,
    id: `AIDA${at}`,
    accessKey: `AKuser${at}`,
  }));
  for (const [revision, { name, id, accessKey }] of users.entries()) {
    const user = {
      kind: 'user',
      id,
      name,
      path: '/',
      createdAtMs: 0,
      tags: [],
      groups: [],
      mfaDevices: [],
      inlinePolicies: [{ name: 'long', text }],
      attachedPolicies: [],
      accessKeys: [],
    } as const;
    const sealedSecret = keyring.wrap(utf8('secret of a user'));
    const outcome = await metadata.execute('change-identities', {
      accountId: ANN,
      ifRevision: revision,
      rows: [
        { key: `user/${name}`, record: user as never },
        { key: `id/${id}`, record: { kind: 'index', to: `user/${name}` } },
      ],
      keys: [{ kind: 'add', key: { accessKey, sealedSecret, userId: id } }],
      isSeen: false,
    });
    expect(outcome.kind).toBe('changed');
  }
  await stateOf('AKbob');
  for (const { accessKey } of users) await stateOf(accessKey);
  takeAsked();
  await stateOf('AKuser19');
  expect(takeAsked()).toEqual([]);
  await stateOf('AKuser0');
  expect(takeAsked()).toEqual(['get-access-key']);
});
