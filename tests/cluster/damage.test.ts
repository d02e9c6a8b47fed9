// More than processes that die: a disk that has lost bytes of a metadata node, and two metadata nodes that are given up
// while one of their shards has writes that nobody else has (docs/disasters.md). Four metadata nodes, so that each shard
// lacks another one, and some lose their majority while others do not.
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openMetadataKv } from '../../src/admin/metadata-folder.ts';
import { must } from '../../src/base/assert.ts';
import { formatId } from '../../src/cli/format.ts';
import { SYSTEM_SHARD } from '../../src/ports/metadata/port.ts';
import { seededBytes } from '../support/clients/tree.ts';
import { bucketsByShard, busiestNode, type Endurance, openEndurance } from '../support/cluster/endure.ts';
import { sendAgain } from '../support/cluster/send-again.ts';
import type { TestCluster } from '../support/cluster/start-cluster.ts';
import { flipBits } from '../support/disks/flip-bits.ts';
import { rewriteRows } from '../support/metadata/databases.ts';
import { isLongForm } from '../support/run/long-form.ts';
import { type RawAnswer, type RawRequest, send } from '../support/servers/raw-s3.ts';

const SEED = process.env.HOLDFAST_TEST_SEED ?? String(Date.now());
const SHARDS = 4;
const METADATA = ['metadata-1', 'metadata-2', 'metadata-3', 'metadata-4'];
const WITHIN = { timeout: 180_000, interval: 800 };
const ROWS_MAX = 1_000_000;
/** Its bytes lie in chunks. */
const LARGE_BYTES = 300_000;

let endurance: Endurance;
let cluster: TestCluster;

beforeAll(async () => {
  endurance = await openEndurance({
    seed: SEED,
    workersPerShard: 1,
    restMs: 400,
    compare: 'touched',
    betweenMs: 500,
    cluster: {
      metadata: METADATA.length,
      // What is lost here is metadata.
      storage: 1,
      shards: SHARDS,
      // What could be freed too early is.
      settings: { 'storage.readingGrace': '1s' },
    },
  });
  cluster = endurance.cluster;
});
afterAll(() => endurance?.stop());

let turn = 0;
const ask = (wanted: RawRequest): Promise<RawAnswer> =>
  sendAgain(() => must(cluster.gateways[turn++ % cluster.gateways.length], 'a gateway'), wanted);
const statusOf = async (wanted: RawRequest) => (await ask(wanted)).status;
const put = (path: string, body?: Buffer) => statusOf({ method: 'PUT', path, ...(body && { body }) });
const copy = (source: string, path: string) =>
  statusOf({ method: 'PUT', path, headers: { 'x-amz-copy-source': source } });
const remove = (path: string) => statusOf({ method: 'DELETE', path });

/** Resolves with ms until `look` says so. */
async function until(look: () => Promise<boolean> | boolean): Promise<number> {
  const sinceMs = performance.now();
  await expect.poll(look, WITHIN).toBe(true);
  return Math.round(performance.now() - sinceMs);
}

test('bits flipped in the tables of a metadata node', () =>
  endurance.endure('bits flipped in metadata', async ({ back, note }) => {
    const name = await busiestNode(cluster);
    // What is in a log goes into tables at a start.
    await cluster.kill(name);
    await cluster.run(name);
    await cluster.untilHealthy();
    await cluster.kill(name);
    const flippedCount = await flipBits(join(cluster.folder, name, 'metadata'), { shares: [0.1, 0.3, 0.5] });
    expect(flippedCount).toBeGreaterThan(0);
    await cluster.run(name);
    const sinceMs = performance.now();
    await back(`${flippedCount} bits flipped, and started again`);
    // It ends by what it reads, is started again by whoever looks after it, and begins with an empty database.
    await until(() => cluster.processId(name) === undefined);
    note(`found ${Math.round(performance.now() - sinceMs)} ms after the start`);
    const foundMs = performance.now();
    await cluster.run(name);
    await cluster.untilHealthy();
    note(`all replicas whole ${Math.round(performance.now() - foundMs)} ms later`);
    const log = await cluster.logOf(name);
    expect(log.filter(({ event }) => event === 'database-quarantined')).toHaveLength(1);
  }));

test.runIf(isLongForm)('a metadata node is lost for good and replaced', () =>
  endurance.endure('metadata node lost and replaced', async ({ back, note }) => {
    const name = await busiestNode(cluster);
    const nodeId = await nodeIdOf(name);
    const folder = join(cluster.folder, name);
    const format = await readFile(join(folder, 'format.json'));
    await cluster.kill(name);
    await rm(folder, { recursive: true });
    await back('lost');
    // As docs/operations.md says: whoever takes its place has its id.
    await mkdir(folder, { mode: 0o700 });
    await writeFile(join(folder, 'node.json'), JSON.stringify({ nodeId, role: 'metadata' }));
    await writeFile(join(folder, 'format.json'), format);
    await cluster.run(name);
    const startedMs = performance.now();
    await cluster.untilHealthy();
    note(`all replicas whole ${Math.round(performance.now() - startedMs)} ms after the start of the new one`);
  }),
);

/** Names of the nodes that vote in each shard, once they are spread evenly. */
async function voterNames(): Promise<string[][]> {
  let names: string[][] = [];
  await until(async () => {
    const { shards } = await cluster.untilHealthy();
    names = await Promise.all(
      shards.map(({ voters }) => Promise.all(voters.map(({ nodeId }) => cluster.nameOf(nodeId)))),
    );
    return METADATA.every((name) => names.filter((voters) => voters.includes(name)).length === 3);
  });
  return names;
}

const nodeIdOf = async (name: string): Promise<string> => {
  const { members } = await cluster.status();
  for (const { nodeId, role } of members)
    if (role === 'metadata' && (await cluster.nameOf(nodeId)) === name) return nodeId;
  throw new Error(`${name} is no member`);
};

/** How many rows of a node that does not run have this text in their key or value. */
async function rowsWith(folder: string, text: string): Promise<number> {
  const kv = await openMetadataKv(folder);
  try {
    const rows = await kv.range({
      column: 'rows',
      gte: new Uint8Array(),
      lt: Buffer.alloc(64, 0xff),
      limit: ROWS_MAX,
    });
    return rows.filter(({ key, value }) => Buffer.concat([key, value]).includes(text)).length;
  } finally {
    await kv.close();
  }
}

test('two metadata nodes are given up, and one shard loses its last writes', async () => {
  const { load } = endurance;
  const voters = await voterNames();
  const buckets = await bucketsByShard(cluster, 'lost');
  // Of the shard that will forget, one is down while the two that are to be lost go on.
  const shard = voters.findIndex((_, index) => index !== SYSTEM_SHARD);
  const [behind = '', ...lost] = must(voters[shard], 'voters');
  const other = must(
    METADATA.find((name) => ![behind, ...lost].includes(name)),
    'a fourth one',
  );
  const without = voters.findIndex((names) => !names.includes(behind));
  const home = must(buckets[shard], 'a bucket');
  const [elsewhere = ''] = buckets.filter((_, index) => index !== shard && index !== SYSTEM_SHARD);
  const large = (key: string) => seededBytes(key, LARGE_BYTES);
  expect(await put(`/${home}/known`, large('known'))).toBe(200);
  const ids = new Map<string, string>();
  for (const name of METADATA) ids.set(name, await nodeIdOf(name));

  // Killed, and not stopped: what has been sent to a stopped one waits in its socket, and comes to it when it goes on.
  await cluster.kill(behind);
  // What only the two have: an object that is lost, one that lives on as a copy, and the claims of both copies.
  await until(async () => (await put(`/${home}/forgotten`, large('forgotten'))) === 200);
  expect(await put(`/${home}/copied`, large('copied'))).toBe(200);
  await until(async () => (await copy(`/${home}/copied`, `/${elsewhere}/copied`)) === 200);
  await until(async () => (await copy(`/${home}/known`, `/${elsewhere}/known`)) === 200);
  // The fourth one has all that it should.
  await sleep(2000);
  for (const name of lost) await cluster.kill(name);
  await cluster.run(behind);

  const lostMs = performance.now();
  for (const [number, from] of [
    [shard, behind],
    [without, other],
  ] as const) {
    const recover = ['shard', 'recover', String(number), '--from', must(ids.get(from), 'an id')];
    await until(async () => {
      const { code } = await cluster.command(...recover, '--accept-loss');
      return code === 0;
    });
  }
  await until(async () => (await cluster.status()).shards.every(({ isOpen }) => isOpen));
  const openMs = performance.now() - lostMs;
  load.start();
  const backMs = await load.back(performance.now(), 180_000);

  const read = async (path: string) => {
    const { status, body } = await ask({ method: 'GET', path });
    return status === 200 ? body : status;
  };
  expect(await read(`/${home}/forgotten`)).toBe(404);
  expect(await read(`/${home}/copied`)).toBe(404);
  expect(await read(`/${elsewhere}/known`)).toEqual(large('known'));
  // Its source forgot that somebody holds it; nothing is freed for that.
  expect(await remove(`/${home}/known`)).toBe(204);

  // The nodes that were given up come back: their rows stay as they are, to be looked at. A node that these shards have
  // left before keeps its rows for a day (R14), and may say the same.
  for (const name of lost) await cluster.run(name);
  const givenUp = async () => {
    const { alarms } = await cluster.status();
    return alarms.filter((alarm) => alarm.includes('histories that were given up'));
  };
  const ofLost = lost.map((name) => expect.stringContaining(formatId(must(ids.get(name), 'an id'))));
  await expect.poll(givenUp, WITHIN).toEqual(expect.arrayContaining(ofLost));
  const [salvaged = ''] = lost;
  await cluster.kill(salvaged);
  const kept = join(cluster.folder, 'salvage');
  await cp(join(cluster.folder, salvaged, 'metadata'), join(kept, 'metadata'), { recursive: true });
  await cluster.run(salvaged);
  const keptCount = await rowsWith(kept, 'forgotten');
  expect(keptCount).toBeGreaterThan(0);

  const both = [shard, without].sort().join(',');
  await Promise.all(
    METADATA.map((name) =>
      until(async () => {
        const node = must(ids.get(name), 'an id');
        const { code, output } = await cluster.command('shard', 'discard', both, '--node', node);
        return code === 0 || output.includes('nothing of it is superseded');
      }),
    ),
  );
  const confirmed: string[] = [];
  await until(async () => {
    const { code, output } = await cluster.command(
      'shard',
      'confirm',
      `${[shard, without].sort().join(',')}`,
    );
    confirmed.push(output);
    return code === 0;
  });
  await cluster.untilHealthy();
  const wholeMs = performance.now() - lostMs;
  await load.stop();
  expect(load.problems.splice(0)).toEqual([]);
  // Longer than anything is kept for readers.
  await sleep(3000);
  for (const key of ['known', 'copied']) expect(await read(`/${elsewhere}/${key}`)).toEqual(large(key));
  console.log(
    `two of four metadata nodes given up: open again after ${Math.round(openMs)} ms of commands, writes ${Math.round(backMs)} ms later; ${keptCount} rows of a lost object in the files that were kept; all whole after ${Math.round(wholeMs)} ms; ${confirmed.at(-1)?.trim().replaceAll('\n', ' ')}`,
  );
});

test('all remaining data is intact', () => endurance.expectSound({ readsData: true }));

test('an object of which no disk has an intact copy is named by the alarm', async () => {
  expect(await put('/damaged')).toBe(200);
  expect(await put('/damaged/to%20be%20uploaded%20again', seededBytes('damaged', LARGE_BYTES))).toBe(200);
  await cluster.kill('storage-1');
  await rewriteRows(
    { dataDir: join(cluster.folder, 'storage-1'), database: 'chunks', column: 'data' },
    (rows) => {
      // Chunks lie in the order of their births.
      const { key, value } = must(rows.at(-1), 'a chunk');
      return [{ key, value: value.map((byte, at) => (at === 70_000 ? byte ^ 1 : byte)) }];
    },
  );
  await cluster.run('storage-1');
  const names = async () => {
    // Whoever reads it finds that it is damaged.
    await send(must(cluster.gateways[0], 'a gateway'), {
      method: 'GET',
      path: '/damaged/to%20be%20uploaded%20again',
    }).catch(() => {});
    return (await cluster.status()).damage.objects;
  };
  const object = { bucket: 'damaged', key: 'to be uploaded again', version: 'null' };
  await expect.poll(names, WITHIN).toEqual([expect.objectContaining(object)]);
  const place = 'bucket="damaged" key="to be uploaded again" version="null"';
  const { alarms } = await cluster.status();
  expect(alarms).toContainEqual(expect.stringMatching(`no intact copy is found: ${place}: .holdfast fsck`));
});
