// Claims that are told anew while some shard does not answer (R23).
import { beforeEach, describe, expect, test } from 'vitest';
import type { MetadataShards } from '../../../tests/support/metadata/metadata-shards.ts';
import { openBackground } from '../../../tests/support/metadata/metadata-workers.ts';
import { createSilentShards, type SilentShards } from '../../../tests/support/metadata/silent-shards.ts';
import type { Worker } from '../../ports/worker.ts';
import { LIMITS } from '../../types/limits.ts';
import { homeShardOf, makeBlobId, makeLinkId } from '../../types/names.ts';
import { blobCodec, foreignCodec } from '../../types/records/rows.ts';
import { rowKey } from '../engine/row-keys.ts';
import { blobRow, foreignRow, HISTORY_ROW } from '../schema/keyspace.ts';
import { createClaimAssertion } from './assert-claims.ts';
import { historyRow } from './history.ts';

describe('a shard that does not answer', () => {
  const [LOST, AWAY, WELL] = [0, 1, 2];
  let world: MetadataShards;
  let shards: SilentShards;
  let worker: Worker;
  beforeEach(async () => {
    ({ world } = await openBackground(3));
    shards = createSilentShards(world.shards);
    const nothing = () => {};
    worker = createClaimAssertion({
      metadata: shards.port,
      shards: () => [LOST],
      clock: world.clock,
      log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    });
    const { table, key } = HISTORY_ROW;
    await world.kv.commit([
      { column: 'rows', key: rowKey(LOST, table, key), value: historyRow.begin(2, world.clock.wallMs()) },
    ]);
  });

  async function work(): Promise<void> {
    while ((await worker.work(new AbortController().signal)).state === 'busy');
  }

  /** `holder` holds so many blobs of `home`, and of its other homes as many. */
  async function hold(holder: number, count: number): Promise<void> {
    const rows = Array.from({ length: count }, (_, serial) => {
      const random = Buffer.from(String(serial).padStart(10, '0'));
      const homeShard = (holder + 1 + (serial % 2)) % 3;
      const timeMs = world.clock.wallMs();
      const blobId = makeBlobId({ timeMs, homeShard, random: random.subarray(2) });
      const linkId = makeLinkId({ timeMs, random });
      const layout = { kind: 'data', sizeBytes: 1, storage: 'inline', chunkSizeBytes: 1 } as const;
      const { table, key } = foreignRow(blobId);
      const value = foreignCodec.encode({ homeShard, linkId, layout });
      return { blobId, row: { column: 'rows', key: rowKey(holder, table, key), value } };
    });
    // What the lost one holds is there: those homes have lost nothing.
    const blob = { kind: 'data', sizeBytes: 1, storage: 'inline', chunkSizeBytes: 1 } as const;
    const blobs = rows.map(({ blobId }) => {
      const { table, key } = blobRow(blobId);
      return { column: 'rows', key: rowKey(homeShardOf(blobId), table, key), value: blobCodec.encode(blob) };
    });
    await world.kv.commit([...rows.map(({ row }) => row), ...(holder === LOST ? blobs : [])]);
  }

  const historyOf = async () => (await world.query('get-history', {}, LOST)).history;
  const count = (call: string) => shards.asked.filter((one) => one === call).length;

  test('does not stop others from asserting, and what was asserted is not repeated', async () => {
    for (const holder of [LOST, WELL, AWAY]) await hold(holder, 1200);
    shards.refuse(AWAY);
    await work();
    expect(await historyOf()).toMatchObject({ assertedBy: [WELL], linkCount: 600 });
    // Of the pages of what the lost one holds those in which it has some.
    expect(count(`assert-links ${WELL}`)).toBe(3);
    shards.answerAgain(AWAY);
    world.clock.advance(LIMITS.shardRestMinMs);
    await work();
    expect(await historyOf()).toMatchObject({ assertedBy: [LOST, AWAY, WELL], linkCount: 1200 });
    expect(count(`assert-links ${WELL}`)).toBe(3);
    expect(count(`learn-history ${WELL}`)).toBe(1);
  });

  test('continues where it was cut off', async () => {
    await hold(WELL, 1200);
    let pages = 0;
    const { query } = shards.port;
    shards.port.query = async (envelope, name, body) => {
      if (name === 'list-claims' && envelope.shard === WELL && ++pages === 3) shards.refuse(WELL);
      return query(envelope, name, body);
    };
    await work();
    expect((await historyOf())?.assertedBy).toEqual([LOST, AWAY]);
    shards.answerAgain(WELL);
    world.clock.advance(LIMITS.shardRestMinMs);
    await work();
    expect(await historyOf()).toMatchObject({ assertedBy: [LOST, AWAY, WELL], linkCount: 600 });
    // Five pages, and the one that got no answer.
    expect(pages).toBe(6);
  });
});
