import { expect, test } from 'vitest';
import type { Worker } from '../src/ports/worker.ts';
import {
  metadataNodeWorkers,
  type NodeWorkDeps,
  type ServerWorkDeps,
  serverWorkers,
  storageNodeWorkers,
  WORKERS,
  type WorkerRow,
} from './workers.ts';

const worker = (name: string): Worker => ({ name, work: async () => ({ state: 'idle', idleMs: 1 }) });
const madeOf = (...names: string[]) => names.map(worker);
const ENGINE = ['forget-request-outcomes', 'keep-shard-time'];
const ON_SERVER = ['rotate-keys', 'scrub-chunks', 'reclaim-chunks', 'reclaim-metadata'];

/** Workers that are made and not run: they touch none of this. */
function depsWith(made: readonly Worker[]): NodeWorkDeps & ServerWorkDeps {
  return {
    made,
    shards: () => [],
    clock: {},
    settings: {},
    metering: {},
    metadata: { shardCount: 1 },
  } as never;
}
const namesOf = (test: (row: WorkerRow) => boolean) => WORKERS.filter(test).map(({ name }) => name);

test('each row makes a worker of its name, in its form and role', () => {
  const server = serverWorkers(depsWith(madeOf(...ENGINE, ...ON_SERVER))).map(({ name }) => name);
  expect(server).toEqual(namesOf(({ forms }) => forms !== 'cluster'));
  const node = metadataNodeWorkers(depsWith(madeOf(...ENGINE))).map(({ name }) => name);
  expect(node).toEqual(namesOf(({ role }) => role === 'shard'));
  expect(new Set(WORKERS.map(({ name }) => name)).size).toBe(WORKERS.length);
});

test('a storage node runs the workers of each of its disks', () => {
  const made = madeOf('reclaim-chunks', 'reclaim-chunks', 'scrub-chunks', 'scrub-chunks', 'report-disks');
  expect(new Set(storageNodeWorkers({ made }))).toEqual(new Set(made));
});

test('a worker that is made and has no row is refused', () => {
  expect(() => storageNodeWorkers({ made: madeOf('report-disks', 'unheard-of') })).toThrow('unheard-of');
});
