import { expect, test } from 'vitest';
import { kek, openMetadata } from '../../tests/support/metadata/metadata-shards.ts';
import type { MetadataPort } from '../ports/metadata/port.ts';
import type { AccountId } from '../types/names.ts';
import { createLocalIdentityFeed } from './local-identity-feed.ts';

const ANN = '000000000011' as AccountId;
const system = { shard: 0 };

test('reports changes before their commands are answered, and nothing else', async () => {
  const { shards } = await openMetadata();
  const { metadata, feed } = createLocalIdentityFeed(shards);
  const told: unknown[] = [];
  feed.listen((changes) => void told.push(changes));
  const account = { accountId: ANN, name: 'ann', email: 'ann', canonicalId: 'ann', state: 'paid' as const };
  await metadata.execute(system, 'create-account', {
    account: { ...account, bucketsMax: 1, isRoot: false },
    accessKey: { accessKey: 'AKann', sealedSecret: kek },
  });
  await metadata.execute(system, 'tick', {});
  expect([feed.isCurrent(), told]).toEqual([true, []]);
  const suspending = metadata.execute(system, 'set-account', {
    accountId: ANN,
    changes: { state: 'suspended' },
  });
  expect(told).toEqual([]);
  await suspending;
  await metadata.execute(system, 'delete-account', { accountId: ANN });
  expect(told).toEqual([[{ accountId: ANN }], [{ accountId: ANN }]]);
  expect(await metadata.query(system, 'get-account', { accountId: ANN })).toMatchObject({
    value: { account: null },
  });
});

test('counts a command with an unknown outcome as done', async () => {
  const broken = { shardCount: 1, execute: () => Promise.reject(new Error('broken')) } as never;
  const { metadata, feed } = createLocalIdentityFeed(broken as MetadataPort);
  const told: unknown[] = [];
  feed.listen((changes) => void told.push(changes));
  const deleting = metadata.execute(system, 'delete-account', { accountId: ANN });
  await expect(deleting).rejects.toThrow('broken');
  expect(told).toEqual([[{ accountId: ANN }]]);
});
