import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { createMemoryKv } from '../../platform/memory/memory-kv.ts';
import type { ShardRegistryPort } from '../../ports/shard-registry.ts';
import { shardBounds } from '../engine/row-keys.ts';
import { OwnDigests } from './own-digests.ts';
import type { Promises } from './promises.ts';

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };
const head = { shard: 0, incarnation: 1, from: 'p', to: 'f' };
const settle = () => new Promise((resolve) => setImmediate(resolve));

test('a replica that is reported odd twice gives up the state of the first report, not what it got since', async () => {
  const record = { isDamaged: false };
  let givenUp = 0;
  const promises = {
    counts: true,
    epoch: 4,
    record,
    async noteDamage() {
      givenUp++;
    },
  };
  const told: number[] = [];
  const digests = new OwnDigests({
    shard: 0,
    kv: createMemoryKv(['rows']),
    logger: SILENT,
    clock: createManualClock(0),
    promises: promises as unknown as Promises,
    registry: {} as ShardRegistryPort,
    report: ({ seq }) => told.push(seq),
    isLeading: () => false,
    handOver: async () => {},
    stepDown() {},
    onEvent() {},
  });
  const odd = { ...head, kind: 'odd' as const, epoch: 4, seq: 7 };
  digests.onOdd(odd);
  await settle();
  expect(givenUp).toBe(0);
  await digests.verify(7, { column: 'rows', ...shardBounds(0) });
  digests.onOdd(odd);
  await settle();
  digests.onOdd(odd);
  await settle();
  expect([told, givenUp]).toEqual([[7], 1]);
});
