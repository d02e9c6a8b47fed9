import { expect, test } from 'vitest';
import { BUCKET, kek, OWNER, openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import { createKeyring } from '../../platform/memory/memory-keyring.ts';
import type { ObjectKey } from '../../types/names.ts';
import { driveClosing } from '../buckets/drive-closing.ts';
import { createBucketEmptier } from '../buckets/empty-buckets.ts';
import { createKeyRotation } from './rotate-keys.ts';
import { SECTION } from './wrapped-keys.ts';

const nothing = () => {};
const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };

test('rotation reaches every wrapped key, wherever it is stored', async () => {
  const world = await openMetadata({ shardCount: 2 });
  await world.createBucket();
  const keyring = createKeyring();
  const secret = Buffer.alloc(32, 5);
  const wrapped = keyring.wrap(secret);
  const before = wrapped.keyId;
  const customers = { by: 'customer' as const, keyId: before, wrapped: Uint8Array.of(1) };
  await world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'versioning',
    document: { status: 'enabled' },
  });
  for (const key of ['a', 'a', 'b\u0000', 'c']) await world.put(key, { version: { kek: wrapped } });
  await world.put('customer', { version: { kek: customers } });
  await world.remove('c');
  const accessKey = { accessKey: 'AK', sealedSecret: wrapped };
  const account = { accountId: '000000000002', name: 'n2', email: 'e2', canonicalId: 'c2', state: 'paid' };
  await world.execute('create-account', {
    account: { ...account, bucketsMax: 1, isRoot: false } as never,
    accessKey,
  });
  const upload = {
    key: 'u' as ObjectKey,
    initiator: OWNER,
    owner: OWNER,
    kek: wrapped,
    sealedHeaders: new Uint8Array(1),
  };
  await world.execute('create-upload', { bucketId: BUCKET, upload });

  const foundUnder = async (keyId: string) => {
    let count = 0;
    for (let after: Uint8Array | undefined; ; ) {
      const page = await world.query('list-wrapped-keys', {
        notKeyId: 'none',
        limit: 2,
        ...(after && { after }),
      });
      count += page.items.filter((item) => item.wrapped.keyId === keyId).length;
      if (page.next === undefined) return count;
      after = page.next;
    }
  };
  expect(await foundUnder(before)).toBe(6);
  const rotation = createKeyRotation({
    metadata: world.shards,
    keyring,
    clock: world.clock,
    log,
    oldestRequestMs: () => undefined,
  });
  await rotation.begin();
  for (let at = 0; at < 40; at++) {
    await rotation.work(new AbortController().signal);
    world.clock.advance(1);
  }
  expect(keyring.keyIds()).toEqual([keyring.activeKeyId]);
  expect(await foundUnder(keyring.activeKeyId)).toBe(6);
  const found = await world.query('get-version', {
    bucketId: BUCKET,
    key: 'a' as ObjectKey,
    includeBody: false,
  });
  if (found.kind !== 'found' || found.version.kek === undefined) throw new Error(found.kind);
  expect(keyring.unwrap(found.version.kek)).toEqual(secret);
});

test('a version whose bucket is being emptied meanwhile does not reappear', async () => {
  const world = await openMetadata();
  await world.createBucket();
  await world.put('a');
  const versions = { notKeyId: 'none', after: Uint8Array.of(SECTION.versions), limit: 10 };
  const { items } = await world.query('list-wrapped-keys', versions);
  expect(items).toHaveLength(1);
  const closing = await world.execute('close-bucket', { bucketId: BUCKET });
  if (closing.kind !== 'closing') throw new Error(closing.kind);
  const calls = {
    look: (query: never) => world.query('find-protected', query),
    step: (command: never) => world.execute('step-closing', command),
  };
  await driveClosing(calls, closing.job);
  // What the rotation has read becomes old before it writes.
  const { getMany } = world.kv;
  const reading = Promise.withResolvers<void>();
  world.kv.getMany = async (...asked) => {
    world.kv.getMany = getMany;
    const values = await getMany(...asked);
    reading.resolve();
    for (let turns = 0; turns < 100; turns++) await new Promise((resolve) => setImmediate(resolve));
    return values;
  };
  const replaced = items.map(({ row, wrapped }) => {
    return { row, expected: wrapped, replacement: { ...kek, keyId: 'k2' } };
  });
  const rewrapping = world.execute('rewrap-keys', { items: replaced });
  await reading.promise;
  const emptier = createBucketEmptier({ metadata: world.shards, shards: () => [0], clock: world.clock });
  while ((await emptier.work(new AbortController().signal)).state === 'busy');
  await rewrapping;
  const table = await world.query('check-rows', { table: 'objects', limit: 10, keyIds: ['k1', 'k2'] });
  expect(table).toMatchObject({ findings: [], rowCount: 0 });
});
