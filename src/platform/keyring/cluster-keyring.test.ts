import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createManualClock, type ManualClock } from '../../../tests/support/run/simulated.ts';
import type { MasterKeysRecord } from '../../types/records/master-keys-record.ts';
import { type OpenedClusterKeyring, openClusterKeyring } from './cluster-keyring.ts';
import { addMasterKey, openMasterKeys } from './file-keyring.ts';

let folder: string;
let path: string;
let clock: ManualClock;
let keyring: OpenedClusterKeyring;
let oldestRequestMs: number | undefined;
let warnings: string[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-keyring-'));
  path = join(folder, 'master-keys.json');
  await openMasterKeys({ path, isNew: true });
  clock = createManualClock(0);
  oldestRequestMs = undefined;
  warnings = [];
  await open();
});
afterEach(() => rm(folder, { recursive: true }));

async function open(): Promise<void> {
  const nothing = () => {};
  const warn = (fields: object) => void warnings.push((fields as { reason: string }).reason);
  const log = { debug: nothing, info: nothing, warn, error: nothing };
  keyring = await openClusterKeyring({
    path,
    writer: 'w',
    clock,
    log,
    oldestRequestMs: () => oldestRequestMs,
  });
}

const recordOf = (fields: Partial<MasterKeysRecord>): MasterKeysRecord => ({
  ...{ revision: 1, activeKeyId: '', olderKeyIds: [], removedKeyIds: [], shardsDone: 0, rewrappedCount: 0 },
  ...fields,
});

const stored = async () =>
  JSON.parse(await readFile(path, 'utf8')) as { activeKeyId: string; keys: { id: string }[] };

test('a key of the file is new until the record says that it wraps, and the file follows', async () => {
  const old = keyring.activeKeyId;
  const added = await addMasterKey(path);
  expect(keyring.keyIds()).toEqual([old]);
  await keyring.readAgain();
  expect(keyring.newKeyIds()).toEqual([added]);
  const before = keyring.wrap(Buffer.alloc(32, 1));
  expect(before.keyId).toBe(old);

  clock.advance(10);
  oldestRequestMs = 5;
  keyring.learn(recordOf({ activeKeyId: added, olderKeyIds: [old] }));
  expect(keyring.wrap(Buffer.alloc(32, 1)).keyId).toBe(added);
  expect(keyring.held()).toEqual({ keyIds: [old, added] });
  oldestRequestMs = 11;
  expect(keyring.held().settledKeyId).toBe(added);
  await keyring.readAgain();
  expect((await stored()).activeKeyId).toBe(added);

  keyring.learn(recordOf({ revision: 2, activeKeyId: added, removedKeyIds: [old] }));
  expect(keyring.keyIds()).toEqual([added]);
  await keyring.readAgain();
  expect((await stored()).keys.map(({ id }) => id)).toEqual([added]);
  // A request may have read a stored key before it was wrapped anew.
  expect(keyring.unwrap(before)).toEqual(Buffer.alloc(32, 1));
});

test('where the file lacks a key that the cluster uses, nothing is wrapped until a copy with it is there', async () => {
  const old = keyring.activeKeyId;
  const stale = await readFile(path, 'utf8');
  const added = await addMasterKey(path);
  const copy = await readFile(path, 'utf8');
  await writeFile(path, stale);
  await open();
  keyring.learn(recordOf({ activeKeyId: added, olderKeyIds: [old] }));
  expect(keyring.missing()).toEqual([added]);
  expect(() => keyring.wrap(Buffer.alloc(32))).toThrow(
    expect.objectContaining({ code: 'ServiceUnavailable' }),
  );
  expect(keyring.held()).toEqual({ keyIds: [old] });
  expect(warnings).toEqual([`it lacks the master key ${added}, which the cluster uses`]);
  await writeFile(path, copy);
  await keyring.readAgain();
  expect(keyring.missing()).toEqual([]);
  expect(keyring.wrap(Buffer.alloc(32)).keyId).toBe(added);
  // An older copy in its place, later on: what the cluster uses is put back.
  await writeFile(path, stale);
  await keyring.readAgain();
  expect((await stored()).keys.map(({ id }) => id).sort()).toEqual([old, added].sort());
});

test('a file that is broken or gone is told of once, and changes nothing', async () => {
  const { activeKeyId } = keyring;
  await writeFile(path, '{}');
  await keyring.readAgain();
  await keyring.readAgain();
  expect(warnings).toEqual([expect.stringContaining('does not hold master keys')]);
  expect(keyring.wrap(Buffer.alloc(32)).keyId).toBe(activeKeyId);
});
