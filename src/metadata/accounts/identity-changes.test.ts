import { beforeEach, expect, test } from 'vitest';
import { kek, type MetadataShards, openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import type { IdentityPosition } from '../../ports/identity-feed.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AccountId } from '../../types/names.ts';

const ANN = '000000000011' as AccountId;
const BOB = '000000000022' as AccountId;
const NOBODY = '000000000033' as AccountId;
let world: MetadataShards;
beforeEach(async () => {
  world = await openWorld();
});

async function openWorld(): Promise<MetadataShards> {
  const metadata = await openMetadata();
  for (const [accountId, name] of [
    [ANN, 'ann'],
    [BOB, 'bob'],
  ] as const) {
    const account = { accountId, name, email: name, canonicalId: name, state: 'paid' as const };
    await metadata.execute('create-account', {
      account: { ...account, bucketsMax: 1, isRoot: false },
      accessKey: { accessKey: `AK${name}`, sealedSecret: kek },
    });
  }
  return metadata;
}

const ask = (since?: IdentityPosition, asked = world) =>
  asked.query('identity-changes', { gateway: 'g', ...(since && { since }) });
const set = (accountId: AccountId, changes: object, changed = world) =>
  changed.execute('set-account', { accountId, changes });

test('returns the changes since a position, in order, and none twice', async () => {
  const start = await ask();
  expect(start).toEqual({ kind: 'reset', upTo: { seq: 0, mark: '' } });
  expect(await ask(start.upTo)).toEqual({ kind: 'changes', upTo: start.upTo, changes: [] });
  await set(ANN, { bucketsMax: 2 });
  // Before the first change there is no mark to tell histories apart by.
  const first = await ask(start.upTo);
  expect(first).toMatchObject({ kind: 'reset', upTo: { seq: 1 } });
  await set(BOB, { state: 'suspended' });
  await world.execute('delete-account', { accountId: ANN });
  const second = await ask(first.upTo);
  expect(second).toEqual({
    kind: 'changes',
    upTo: { seq: 3, mark: expect.stringMatching(/^[0-9a-f]{16}$/) },
    changes: [{ accountId: BOB }, { accountId: ANN }],
  });
  expect(await ask(second.upTo)).toEqual({ ...second, changes: [] });
});

test('commands that revoke rights return their change, and no others do', async () => {
  expect(await set(ANN, { bucketsMax: 2 })).not.toHaveProperty('revokedSeq');
  expect(await set(ANN, { state: 'suspended' })).toMatchObject({ revokedSeq: 2 });
  expect(await set(ANN, { state: 'paid' })).not.toHaveProperty('revokedSeq');
  // What it shares with everybody goes by it.
  expect(await set(ANN, { mayBePublic: false })).toMatchObject({ revokedSeq: 4 });
  expect(await set(ANN, { mayBePublic: true })).not.toHaveProperty('revokedSeq');
  expect(await set(BOB, { state: 'trial' })).toMatchObject({ revokedSeq: 6 });
  expect(await world.execute('delete-account', { accountId: ANN })).toMatchObject({ revokedSeq: 7 });
  expect(await ask()).toMatchObject({ upTo: { seq: 7 } });
});

test('that an account is gone is answered no sooner than its deletion', async () => {
  const gone = { kind: 'no-such-account' };
  expect(await world.execute('delete-account', { accountId: NOBODY })).toEqual(gone);
  await world.execute('delete-account', { accountId: ANN });
  expect(await world.execute('delete-account', { accountId: ANN })).toEqual({ ...gone, revokedSeq: 1 });
  expect(await set(ANN, { state: 'suspended' })).toEqual({ ...gone, revokedSeq: 1 });
  expect(await set(ANN, { state: 'paid' })).toEqual(gone);
});

test('changes of one command are numbered one after another', async () => {
  const outcomes = await Promise.all([ANN, BOB, ANN].map((id) => set(id, { state: 'suspended' })));
  expect(outcomes.map((outcome) => 'revokedSeq' in outcome && outcome.revokedSeq)).toEqual([1, 2, 3]);
});

test('a bounded number is stored; a gateway that lacks more starts again', async () => {
  await set(ANN, { bucketsMax: 1 });
  const { upTo } = await ask();
  await set(ANN, { bucketsMax: 2 });
  const next = (await ask(upTo)).upTo;
  for (let count = 1; count < LIMITS.identityChangesKept; count++) await set(BOB, { bucketsMax: count });
  expect(await ask(upTo)).toMatchObject({ kind: 'reset', upTo: { seq: LIMITS.identityChangesKept + 1 } });
  const kept = await ask(next);
  expect(kept).toMatchObject({ kind: 'changes', upTo: { seq: LIMITS.identityChangesKept + 1 } });
  expect(kept).toHaveProperty('changes.length', LIMITS.identityChangesKept - 1);
});

test('a position in an abandoned history is none in this one (R23)', async () => {
  await set(ANN, { bucketsMax: 1 });
  const other = await openMetadata();
  expect(await ask((await ask()).upTo, other)).toEqual({ kind: 'reset', upTo: { seq: 0, mark: '' } });
  const { upTo } = await ask();
  const otherMark = { ...upTo, mark: '0123456789abcdef' };
  expect(await ask(otherMark)).toEqual({ kind: 'reset', upTo });
  expect(await ask({ ...upTo, seq: upTo.seq + 1 })).toEqual({ kind: 'reset', upTo });
});
