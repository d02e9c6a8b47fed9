import { beforeEach, expect, test } from 'vitest';
import type { ClusterKeyring } from '../../ports/keyring.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';
import type { HeldMasterKeys, MasterKeysRecord } from '../../types/records/master-keys-record.ts';
import type { WrappedKek } from '../../types/version.ts';
import { type ClusterKeyRotation, createClusterKeyRotation } from './rotate-cluster-keys.ts';

const nothing = () => {};
const under = (keyId: string): WrappedKek => ({ by: 'master', keyId, wrapped: Uint8Array.of(7) });

let record: MasterKeysRecord | null;
/** What the system shard's primary knows of the gateways. */
let known: { holders: ({ gateway: string } & HeldMasterKeys)[]; mark: string };
/** The one row of the one shard. */
let row: WrappedKek;
/** How many changes of the record are refused. */
let conflicts: number;
/** Pages of rows that were read. */
let pages: number;
let nowMs: number;
let rotation: ClusterKeyRotation;
let look: () => Promise<number>;

const settle = (keyId: string, mark: string) => {
  known = {
    holders: ['a', 'b'].map((gateway) => ({ gateway, keyIds: ['old', 'new'], settledKeyId: keyId })),
    mark,
  };
};

beforeEach(() => {
  record = null;
  row = under('old');
  conflicts = 0;
  pages = 0;
  nowMs = 0;
  settle('old', '1');
  const done = (value: object) => ({ kind: 'done', timeMs: 0, value });
  const metadata = {
    shardCount: 1,
    async query(_envelope: object, name: string) {
      if (name === 'get-master-keys') return done({ masterKeys: record, ...known });
      pages++;
      const isOld = row.keyId !== keyring.activeKeyId;
      const items = isOld ? [{ row: Uint8Array.of(0), wrapped: row }] : [];
      return done({ items, scannedCount: 1, moveCounts: [0, 0] });
    },
    async execute(
      _envelope: object,
      name: string,
      command: { ifRevision: number; masterKeys: MasterKeysRecord },
    ) {
      if (name === 'rewrap-keys') {
        row = under(keyring.activeKeyId);
        return done({ kind: 'rewrapped', count: 1 });
      }
      if (conflicts > 0) {
        conflicts--;
        return done({ kind: 'conflict' });
      }
      if (command.ifRevision !== (record?.revision ?? 0)) return done({ kind: 'conflict' });
      record = { ...command.masterKeys, revision: command.ifRevision + 1 };
      return done({ kind: 'set', masterKeys: record });
    },
  } as unknown as MetadataPort;
  const keyring: ClusterKeyring = {
    get activeKeyId() {
      return record?.activeKeyId ?? 'old';
    },
    keyIds: () => ['old', 'new'],
    newKeyIds: () => (record === null ? ['new'] : []),
    wrap: () => under(keyring.activeKeyId),
    unwrap: () => Uint8Array.of(7),
    held: () => ({ keyIds: [] }),
    learn: nothing,
    record: () => record ?? undefined,
  };
  const clock = {
    wallMs: () => nowMs,
    monotonicMs: () => nowMs,
    async sleep(ms: number) {
      nowMs += ms;
    },
  };
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  rotation = createClusterKeyRotation({
    metadata,
    keyring,
    clock,
    log,
    nameOf: (gateway) => `host-${gateway}`,
  });
  look = rotation.drive();
});

/** A minute of the gateway that drives. */
async function drive(): Promise<void> {
  for (const endMs = nowMs + 60_000; nowMs < endMs; ) nowMs += await look();
}

test('a rotation begins when all gateways have the new key', async () => {
  // Of two threads.
  for (const gateway of ['c', 'c']) known.holders.push({ gateway, keyIds: ['old'], settledKeyId: 'old' });
  await expect(rotation.begin()).rejects.toMatchObject({
    code: 'OperationAborted',
    message: expect.stringContaining('lack the new master key new: host-c. '),
  });
  known.holders.splice(2);
  await rotation.begin();
  expect(record).toMatchObject({ revision: 1, activeKeyId: 'new', olderKeyIds: ['old'] });
  await expect(rotation.begin()).rejects.toMatchObject({ code: 'OperationAborted' });
});

test('a new key that the gateway which is asked lacks is not overlooked', async () => {
  for (const holder of known.holders) holder.keyIds = ['old', 'new', 'newer'];
  known.holders[0] = { gateway: 'a', keyIds: ['old', 'new'], settledKeyId: 'old' };
  expect(await rotation.progress()).toMatchObject({
    newKeyIds: ['newer', 'new'],
    lacking: [{ gateway: 'host-a', keyIds: ['newer'] }],
  });
});

test('the older key is unused once all gateways have settled on the new one, and is removed then', async () => {
  await rotation.begin();
  await drive();
  expect(row.keyId).toBe('new');
  // Requests that began under the old key are under way. Until they have ended nothing is looked at, or written.
  const before = { record, pages };
  await drive();
  expect({ record, pages }).toEqual(before);
  expect(await rotation.progress()).toMatchObject({ isUnused: false, isWaitingForRequests: true });
  await expect(rotation.remove('old')).rejects.toMatchObject({ code: 'OperationAborted' });
  settle('new', '2');
  await drive();
  expect(await rotation.progress()).toMatchObject({ isUnused: true, rewrappedCount: 1 });
  await rotation.remove('old');
  expect(record).toMatchObject({ olderKeyIds: [], removedKeyIds: ['old'] });
  await expect(rotation.remove('old')).rejects.toMatchObject({ code: 'NoSuchEntity' });
});

test('no pass counts before every gateway must have heard of the new key', async () => {
  await rotation.begin();
  settle('new', '2');
  while (nowMs < LIMITS.gatewayTrackedMs) {
    expect(await rotation.progress()).toMatchObject({ isUnused: false });
    nowMs += await look();
  }
  await drive();
  expect(await rotation.progress()).toMatchObject({ isUnused: true });
});

test('a gateway that has come back since may have committed under the older key, and all keys are looked at anew', async () => {
  await rotation.begin();
  settle('new', '2');
  await drive();
  row = under('old');
  settle('new', '3');
  expect(await rotation.progress()).toMatchObject({ isUnused: false });
  await expect(rotation.remove('old')).rejects.toMatchObject({ code: 'OperationAborted' });
  await drive();
  expect(row.keyId).toBe('new');
  await rotation.remove('old');
});

test('a record that another one has changed meanwhile is no failure', async () => {
  await rotation.begin();
  settle('new', '2');
  nowMs += LIMITS.gatewayTrackedMs;
  conflicts = 1;
  await drive();
  expect(conflicts).toBe(0);
  expect(await rotation.progress()).toMatchObject({ isUnused: true });
});
