import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemRandom } from '../platform/system-clock.ts';
import type { KvPort } from '../ports/kv.ts';
import { markUnreadable, openOwnDatabase } from './metadata-folder.ts';

let folder: string;
let opened: KvPort | undefined;
const logged: string[] = [];
const log = {
  debug() {},
  info() {},
  warn() {},
  error: (_fields: object, event: string) => void logged.push(event),
};

async function open(): Promise<string> {
  const { kv, replicaId } = await openOwnDatabase(folder, { log, random: systemRandom });
  opened = kv;
  return replicaId;
}

async function close(): Promise<void> {
  await opened?.close();
  opened = undefined;
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-aside-'));
  logged.length = 0;
});

afterEach(async () => {
  await close();
  await rm(folder, { recursive: true });
});

test('a database is the same replica each time it is opened', async () => {
  const replicaId = await open();
  await close();
  expect(await open()).toBe(replicaId);
  expect(logged).toEqual([]);
});

test('a database that was found unreadable is quarantined with its witness, and a new replica begins', async () => {
  const replicaId = await open();
  await writeFile(join(folder, 'witness'), 'of the old one');
  await markUnreadable(folder, new Error('block checksum mismatch'));
  await close();
  const next = await open();
  expect(next).not.toBe(replicaId);
  expect(logged).toEqual(['database-quarantined']);
  expect(await readFile(join(folder, 'witness.unreadable'), 'utf8')).toBe('of the old one');
  await close();
  expect(await open()).toBe(next);
  expect((await readdir(folder)).sort()).toEqual(['metadata', 'metadata.unreadable', 'witness.unreadable']);
});

test('so is one that does not open; a second one is not quarantined beside it', async () => {
  const replicaId = await open();
  await close();
  const spoil = async () => {
    const database = join(folder, 'metadata');
    const manifest = (await readdir(database)).find((name) => name.startsWith('MANIFEST')) ?? '';
    await writeFile(join(database, manifest), 'nothing that can be read');
  };
  await spoil();
  expect(await open()).not.toBe(replicaId);
  await close();
  await spoil();
  await expect(open()).rejects.toThrow(/cannot be read, and .*metadata\.unreadable is there/);
  // Neither is touched.
  await expect(open()).rejects.toThrow(/replace the disk/);
});
