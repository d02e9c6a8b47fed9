import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { createMemoryKv } from '../../platform/memory/memory-kv.ts';
import type { WitnessedPosition, WitnessPort } from '../../ports/witness.ts';
import { LOG_COLUMN } from '../engine/row-keys.ts';
import { LogStore } from './log-store.ts';
import { Promises } from './promises.ts';

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/** A replica that has promised epoch 2. */
function openPromises() {
  const written: WitnessedPosition[] = [];
  const kv = createMemoryKv(['rows', LOG_COLUMN]);
  const witness: WitnessPort = {
    read: () => undefined,
    write: (_shard, position) => void written.push(position),
    async lower(_shard, position) {
      if (position !== undefined) written.push(position);
    },
    failed: new Promise(() => {}),
    async close() {},
  };
  const log = new LogStore(0, kv, {
    base: { seq: 0, epoch: 0 },
    markBytes: 1024,
    budget: { waitingBytes: 0, tailBytes: 0 },
  });
  const clock = createManualClock(0);
  const promises = new Promises(
    { shard: 0, kv, clock, witness, logger: SILENT, log },
    {
      record: {
        clusterId: 'c',
        replicaId: 'f',
        incarnation: 1,
        promised: 2,
        state: 'live',
        isDamaged: false,
        votesFor: null,
        seen: null,
      },
      isNew: true,
    },
  );
  return { kv, promises, written };
}

test('the witness records no promise that a power loss could still revert', async () => {
  const { promises, written, kv } = openPromises();
  kv.holdCommits();
  const raising = promises.raise(3);
  promises.witness(7);
  await promises.lowerWitness(6);
  expect(written).toEqual([
    { epoch: 2, seq: 7 },
    { epoch: 2, seq: 6 },
  ]);
  kv.releaseCommits();
  await raising;
  expect(written.at(-1)).toEqual({ epoch: 3, seq: 0 });
});
