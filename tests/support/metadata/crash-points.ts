// Operations that are cut short before one of their commits, whichever it is: the process ends there, and another one begins
// over the same stores.
import { expect } from 'vitest';
import { CHUNK_COLUMNS } from '../../../src/chunks/disk/keyspace.ts';
import { SHARD_COLUMNS } from '../../../src/metadata/engine/shards.ts';
import { createKeyring } from '../../../src/platform/memory/memory-keyring.ts';
import { createMemoryKv } from '../../../src/platform/memory/memory-kv.ts';
import { type FsckWorld, openFsckWorld } from '../fsck/fsck-world.ts';
import { createManualClock } from '../run/simulated.ts';
import { type Life, mortal, runJobs } from './lives.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const ROUNDS_MAX = 8;

export interface Cut {
  /** It came to its end before that. */
  isWhole: boolean;
  /** The world of the next process. */
  restart(): Promise<FsckWorld>;
}

/** Cuts `run` short before its commit number `left`, in a world of `setUp`. */
export async function cutShort(options: {
  setUp(world: FsckWorld): Promise<unknown>;
  run(world: FsckWorld): Promise<unknown>;
  left: number;
}): Promise<Cut> {
  const clock = createManualClock(Date.parse('2024-01-01'));
  const [kv, chunkKv] = [createMemoryKv(SHARD_COLUMNS), createMemoryKv(CHUNK_COLUMNS)];
  const keyring = createKeyring();
  const ended = Promise.withResolvers<'ended'>();
  const life: Life = { left: Number.POSITIVE_INFINITY, commitCount: 0, end: () => ended.resolve('ended') };
  const world = await openFsckWorld({
    isEmpty: true,
    stores: { kv: mortal(kv, life), chunkKv: mortal(chunkKv, life), clock, keyring },
  });
  await options.setUp(world);
  life.left = options.left;
  const end = await Promise.race([options.run(world).then(() => 'done'), ended.promise]);
  // What was under way beside the commit that was cut off comes to its end, or to a commit of its own.
  await new Promise(setImmediate);
  const stores = { kv, chunkKv, clock, keyring };
  // Of other chance: ids must not come back.
  const restart = () => openFsckWorld({ isEmpty: true, isRestarted: true, stores, seed: 100 });
  return { isWhole: end === 'done', restart };
}

/** A day later background jobs run until nothing waits, and fsck finds nothing, in rows, chunks and bodies, without its help. */
export async function bringToRest(world: FsckWorld, what: string): Promise<void> {
  const { clock } = world.metadata;
  clock.advance(26 * HOUR);
  let pending = ['not yet'];
  for (let round = 0; round < ROUNDS_MAX && pending.length > 0; round++) {
    await runJobs(world);
    clock.advance(11 * MINUTE);
    const report = await world.fsck({ readData: true });
    expect(report.findings, what).toEqual([]);
    pending = [...report.pending, ...(await leftOpen(world))];
  }
  expect(pending, what).toEqual([]);
}

/** Uploads, all of which are too old by then, and jobs. */
async function leftOpen(world: FsckWorld): Promise<string[]> {
  const left: string[] = [];
  for (const shard of [0, 1, 2]) {
    const { jobs } = await world.metadata.query('list-jobs', { limit: 100 }, shard);
    if (jobs.some(({ endedAtMs }) => endedAtMs === undefined)) left.push('jobs');
  }
  for (const table of ['uploads', 'parts', 'deletedBuckets'] as const) {
    for (const shard of [0, 1, 2]) if ((await world.rows(table, shard)).length > 0) left.push(table);
  }
  return left;
}
