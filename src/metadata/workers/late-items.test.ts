// Work of the server on things of several owners, while a client's command holds one of them: the others are done, nothing of
// theirs is held, and what was held is done once it is let go.
import { expect, test } from 'vitest';
import { openHeldWorld } from '../../../tests/support/metadata/hold-lock.ts';
import { BUCKET, beginUpload, OWNER } from '../../../tests/support/metadata/metadata-shards.ts';
import { must } from '../../base/assert.ts';
import type { CommandName, CommandOf } from '../../ports/metadata/port.ts';
import type { Worker } from '../../ports/worker.ts';
import { LIMITS } from '../../types/limits.ts';
import { DEFAULT_METERING } from '../../types/metered.ts';
import {
  type AccountId,
  type BlobId,
  type BucketId,
  type BucketName,
  makeLinkId,
  makeOutboxId,
  type ObjectKey,
  type UploadId,
} from '../../types/names.ts';
import { outboxCodec } from '../../types/records/rows.ts';
import { DAY_MS } from '../../types/usage.ts';
import type { WrappedKek } from '../../types/version.ts';
import { createDeletionMarker } from '../blobs/mark-blobs-worker.ts';
import { rowKey } from '../engine/row-keys.ts';
import { createOutboxDelivery } from '../jobs/deliver-outbox.ts';
import { SECTION, wrappedKeyName } from '../master-keys/wrapped-keys.ts';
import { LOCK } from '../schema/define-command.ts';
import { outboxRow } from '../schema/keyspace.ts';
import { createUploadExpiry } from '../uploads/expire-uploads-worker.ts';
import { CLOSED_AFTER_MS, createUsageCloser } from '../usage/close-usage-worker.ts';
import { createTokenForgetter } from './forget-by-age.ts';

const shards = () => [0];

async function rounds(worker: Worker, count: number): Promise<void> {
  for (let round = 0; round < count; round++) await worker.work(new AbortController().signal);
}

test('a blob that is held delays the marking of no other', async () => {
  const { world, hold, letGo } = await openHeldWorld();
  await world.createBucket();
  const datas = [world.newData(), world.newData()];
  const [held, free] = datas.map(({ uses }) => must(uses[0], 'a blob').blobId);
  for (const [at, data] of datas.entries()) {
    await world.put(`k${at}`, { data });
    await world.remove(`k${at}`);
  }
  const blobs = [must(held, 'one'), must(free, 'another')];
  const holding = hold(LOCK.blob(must(held, 'one')));
  await rounds(createDeletionMarker({ metadata: world.shards, shards }), 1);
  expect(await world.stateOf(...blobs)).toEqual(['live', 'condemned']);
  letGo();
  await holding;
  await expect.poll(() => world.stateOf(...blobs)).toEqual(['condemned', 'condemned']);
});

test('an upload that is held delays the end of no other', async () => {
  const { world, hold, letGo } = await openHeldWorld();
  await world.createBucket();
  const held = await beginUpload(world, 'held');
  await beginUpload(world, 'free');
  world.clock.advance(2 * DAY_MS);
  const query = { bucketId: BUCKET, prefix: '', max: 10 };
  const open = async () => (await world.query('list-uploads', query)).uploads.map(({ key }) => key);
  const holding = hold(LOCK.upload(held));
  const timeJumps = { mayRemoveByAge: () => true };
  await rounds(createUploadExpiry({ metadata: world.shards, shards, uploadKeptMs: DAY_MS, timeJumps }), 2);
  expect(await open()).toEqual(['held']);
  letGo();
  await holding;
  await expect.poll(open).toEqual([]);
});

test('a bucket that is held delays the closing of no other', async () => {
  const { world, hold, letGo } = await openHeldWorld();
  await world.createBucket();
  const other = { bucketId: 'b000000000000002' as BucketId, accountId: '000000000002' as AccountId };
  const { bucketId, accountId: owner } = other;
  await world.execute('create-bucket', { bucketId, name: 'others' as BucketName, owner });
  const throughDay = Math.floor(world.clock.wallMs() / DAY_MS);
  world.clock.advance(DAY_MS + CLOSED_AFTER_MS);
  const open = async () => (await world.query('list-open-usage', { throughDay, limit: 10 })).buckets;
  const holding = hold(LOCK.usage(BUCKET));
  const { shards: metadata, clock } = world;
  const telemetry = { gauge() {} };
  const closer = createUsageCloser({ metadata, shards, metering: DEFAULT_METERING, clock, telemetry });
  await rounds(closer, 6);
  expect(await open()).toEqual([{ bucketId: BUCKET, accountId: OWNER }]);
  letGo();
  await holding;
  await expect.poll(open).toEqual([]);
});

const timeMs = 1;
const blobIds = ['b', 'c'].map((name) => name.repeat(22) as BlobId);
const linkId = makeLinkId({ timeMs, random: new Uint8Array(10) });
const links = blobIds.map((blobId) => ({ blobId, linkId }));
const uploadIds = ['d', 'e'].map((name) => name.repeat(44) as UploadId);
const tokens = ['f', 'g'].map((token) => ({ bucketId: BUCKET, token }));
const debts = blobIds.map((blobId) => ({ blobId, copies: 1, ranges: [], mapVersion: 1 }));
const kek: WrappedKek = { by: 'master', keyId: 'k', wrapped: Uint8Array.of(1) };
const items = uploadIds.map((id) => {
  const row = wrappedKeyName(SECTION.uploads, Buffer.from(id, 'hex'));
  return { row, expected: kek, replacement: kek };
});
const [blobLock, uploadLock] = [LOCK.blob(String(blobIds[0])), LOCK.upload(String(uploadIds[0]))];

function leaving<Name extends CommandName>(
  name: Name,
  lock: string,
  command: CommandOf<Name>,
  left: unknown,
): [string, { lock: string; command: unknown; left: unknown }] {
  return [name, { lock, command, left }];
}

test.each([
  leaving('release-links', blobLock, { links }, links[0]),
  leaving(
    'settle-claims',
    blobLock,
    { claims: links.map((link) => ({ ...link, verdict: 'dropped' })) },
    { ...links[0], verdict: 'dropped' },
  ),
  leaving('note-debts', blobLock, { debts }, blobIds[0]),
  leaving(
    'settle-debts',
    blobLock,
    { mapVersion: 1, debts: blobIds.map((blobId) => ({ blobId, mark: '' })) },
    blobIds[0],
  ),
  leaving('rewrap-keys', uploadLock, { items }, 0),
  leaving('forget-completed-uploads', uploadLock, { uploadIds }, uploadIds[0]),
  leaving('forget-tokens', LOCK.token(BUCKET, 'f'), { tokens }, tokens[0]),
])('%s waits for nothing that others hold, and says what it has left', async (name, asked) => {
  const { world, hold, letGo } = await openHeldWorld();
  await world.createBucket();
  const holding = hold(asked.lock);
  const command = { ...(asked.command as object), leavesBusy: true };
  expect(await world.execute(name as never, command as never)).toMatchObject({ left: [asked.left] });
  letGo();
  await holding;
  expect(await world.execute(name as never, command as never)).not.toHaveProperty('left');
});

test('a blob that is held delays the release of no other link, and its own comes', async () => {
  const { world, hold, letGo } = await openHeldWorld();
  const rows = links.map((link, at) => {
    const { table, key } = outboxRow(makeOutboxId({ timeMs: timeMs + at, tail: new Uint8Array(8) }));
    const value = outboxCodec.encode({ kind: 'release-link', homeShard: 0, ...link });
    return { column: table.column, key: rowKey(0, table, key), value };
  });
  await world.kv.commit(rows);
  const waiting = async () =>
    (await world.query('list-outbox', { limit: 9 })).items.map(({ record }) => record);
  const { clock, shards: metadata } = world;
  const nothing = () => {};
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const holding = hold(blobLock);
  await rounds(createOutboxDelivery({ metadata, shards, clock, log }), 2);
  expect(await waiting()).toMatchObject([links[0]]);
  letGo();
  await holding;
  await expect.poll(waiting).toEqual([]);
});

test('a token that is held delays no other, and is forgotten in the same round', async () => {
  const { world, hold, letGo } = await openHeldWorld();
  await world.createBucket();
  for (const { token } of tokens) {
    await world.put(token);
    const move = { from: token as ObjectKey, to: `to ${token}` };
    const digest = token;
    await world.execute('move-key', { bucketId: BUCKET, move, overwrites: true, token: { token, digest } });
  }
  world.clock.advance(LIMITS.idempotencyTokenKeptMs + 1);
  const kept = async () => {
    const query = { olderThanMs: 0, limit: 9 };
    return (await world.query('list-kept-tokens', query)).tokens.map(({ token }) => token);
  };
  const holding = hold(LOCK.token(BUCKET, 'f'));
  const timeJumps = { mayRemoveByAge: () => true };
  const working = rounds(createTokenForgetter({ metadata: world.shards, shards, timeJumps }), 1);
  await expect.poll(kept).toEqual(['f']);
  letGo();
  await Promise.all([holding, working]);
  expect(await kept()).toEqual([]);
});
