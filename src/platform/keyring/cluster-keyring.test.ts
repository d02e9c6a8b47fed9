import {
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createManualClock, type ManualClock } from '../../../tests/support/run/simulated.ts';
import type { MasterKeysRecord } from '../../types/records/master-keys-record.ts';
import { type OpenedClusterKeyring, openClusterKeyring } from './cluster-keyring.ts';
import { addMasterKey, openMasterKeys, removeMasterKey } from './file-keyring.ts';

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

test('where there is no record yet, the keys of the start are used, whatever comes into the file', async () => {
  const first = keyring.activeKeyId;
  const own = await readFile(path, 'utf8');
  await rm(path);
  const { activeKeyId: foreign } = await openMasterKeys({ path, isNew: true });
  await keyring.readAgain();
  expect(keyring.wrap(Buffer.alloc(32)).keyId).toBe(first);
  expect(keyring.newKeyIds()).toEqual([foreign]);
  expect(keyring.held()).toEqual({ keyIds: [foreign], settledKeyId: first });
  expect(warnings).toEqual([`it lacks the master key ${first}, which the cluster uses`]);
  // A new key that is withdrawn is one no more.
  await writeFile(path, own);
  await keyring.readAgain();
  expect(keyring.newKeyIds()).toEqual([]);
  expect(keyring.held()).toEqual({ keyIds: [first], settledKeyId: first });
});

test('a file behind a link is written where it is, of the same owner, and nothing is left beside it', async () => {
  const old = keyring.activeKeyId;
  const place = join(folder, 'place');
  await rename(path, place);
  await symlink('place', path);
  const owner = process.getuid?.() === 0 ? 4711 : (process.getuid?.() ?? 0);
  await chown(place, owner, process.getgid?.() ?? 0);
  const added = await addMasterKey(path);
  await writeFile(join(folder, 'place.killed.new'), 'secret');
  await utimes(join(folder, 'place.killed.new'), 1, 1);
  keyring.learn(recordOf({ activeKeyId: old }));
  await keyring.readAgain();
  keyring.learn(recordOf({ activeKeyId: added, removedKeyIds: [old] }));
  await keyring.readAgain();
  expect((await stored()).keys.map(({ id }) => id)).toEqual([added]);
  expect((await readdir(folder)).sort()).toEqual(['master-keys.json', 'place']);
  expect((await lstat(path)).isSymbolicLink()).toBe(true);
  expect(await stat(place)).toMatchObject({ uid: owner, mode: 0o100600 });
});

test('where the file cannot be written, a removed key in it is told of, and taken out by hand', async () => {
  const old = keyring.activeKeyId;
  const added = await addMasterKey(path);
  await keyring.readAgain();
  // A folder in which the temporary file cannot be made.
  await mkdir(`${path}.w.new`);
  keyring.learn(recordOf({ activeKeyId: added, olderKeyIds: [old] }));
  await keyring.readAgain();
  expect(warnings).toEqual([]);
  keyring.learn(recordOf({ activeKeyId: added, removedKeyIds: [old] }));
  await keyring.readAgain();
  expect(warnings).toEqual([
    expect.stringMatching(`^it still has the removed master key ${old}, and cannot be written here: `),
  ]);
  await removeMasterKey(path, old);
  expect(await stored()).toMatchObject({ activeKeyId: added, keys: [{ id: added }] });
  await expect(removeMasterKey(path, added)).rejects.toThrow('is the only master key');
});
