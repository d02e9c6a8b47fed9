// Databases of a single node that cannot grow into a cluster, without etcd; the rest is tested in
// tests/cluster/grow.test.ts.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startEmbedded } from '../../../cmd/embedded.ts';
import { loadConfig } from '../../config/load.ts';
import { systemClock } from '../../platform/system-clock.ts';
import { adoptDatabases, takeStock } from './grow-databases.ts';
import { newPlan } from './grow-plan.ts';

const DAY_MS = 24 * 3600 * 1000;
const SHARDS = 2;
const log = { debug() {}, info() {}, warn() {}, error() {} };

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-grow-'));
  const flags = { dataDir: join(folder, 'data'), listen: '127.0.0.1:0', shards: String(SHARDS) };
  for (let start = 0; start < 2; start++)
    await (await startEmbedded({ config: loadConfig({ flags }), log })).stop();
  folder = join(folder, 'data');
});
afterAll(() => rm(join(folder, '..'), { recursive: true }));

const later = (ms: number) => ({ ...systemClock, wallMs: () => systemClock.wallMs() + ms });

test('gives each shard an epoch above all in which it was opened', async () => {
  const { shards } = await takeStock(folder, { shardCount: SHARDS, clock: systemClock });
  expect(shards).toEqual(Array.from({ length: SHARDS }, () => ({ incarnation: 1, epoch: 3 })));
  const again = await takeStock(folder, { shardCount: SHARDS, clock: systemClock });
  expect(again.shards[0]?.epoch).toBeGreaterThan(3);
});

test('refuses another number of shards, and a clock far ahead', async () => {
  const stock = (shardCount: number, clock = systemClock) => takeStock(folder, { shardCount, clock });
  await expect(stock(SHARDS + 1)).rejects.toThrow('shard 2 in');
  await expect(stock(SHARDS - 1)).rejects.toThrow('has more shards than format.json says');
  await expect(stock(SHARDS, later(8 * DAY_MS))).rejects.toThrow('the clock is more than 7 days ahead');
});

test('refuses the databases of a cluster, and adopts them once', async () => {
  const { shards, capacityBytes } = await takeStock(folder, { shardCount: SHARDS, clock: systemClock });
  const id = (digit: string) => digit.repeat(32);
  const plan = newPlan({
    identity: {
      clusterId: id('c'),
      shardCount: SHARDS,
      replicaCount: 3,
      chunkCopies: 3,
      masterKeyId: 'k',
      formatVersion: 1,
    },
    voter: { nodeId: id('a'), replicaId: id('b') },
    shards,
    disk: { id: id('d'), nodeId: id('e'), zone: 'z', capacityBytes, address: '127.0.0.1:0' },
  });
  for (let time = 0; time < 2; time++) await adoptDatabases(folder, plan);
  await expect(takeStock(folder, { shardCount: SHARDS, clock: systemClock })).rejects.toThrow(
    `are a disk of cluster ${id('c')} already`,
  );
});
