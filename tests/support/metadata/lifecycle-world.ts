// The lifecycle of BUCKET over the shards of metadata-shards.ts, for tests: rules in a few words, the worker run by hand.
import { createLifecycleWorker } from '../../../src/metadata/lifecycle/lifecycle-worker.ts';
import type { MetadataPort } from '../../../src/ports/metadata/port.ts';
import type { Worker } from '../../../src/ports/worker.ts';
import type { LifecycleRule } from '../../../src/types/lifecycle.ts';
import type { LifecycleRecord } from '../../../src/types/records/lifecycle-record.ts';
import { BUCKET, type MetadataShards } from './metadata-shards.ts';
import { runUntilIdle } from './run-worker.ts';

export const DAY = 24 * 3600_000;
export const HOUR = 3600_000;

export interface LifecycleWorld {
  /** Names of the commands and queries that workers have sent. */
  calls: string[];
  /** One that remembers nothing. */
  worker(mayRemoveByAge?: () => boolean): Worker;
  /** A new worker, until it is idle. */
  run(): Promise<void>;
  putRules(...rules: Partial<LifecycleRule>[]): Promise<void>;
  status(): Promise<LifecycleRecord | null>;
  /** What the last pass did. */
  done(): Promise<Record<string, number | undefined> | undefined>;
}

export function rulesFrom(rules: readonly Partial<LifecycleRule>[]): LifecycleRule[] {
  return rules.map((rule, at) => ({ id: `rule-${at}`, isEnabled: true, filter: {}, ...rule }));
}

/** `through`: what stands between the worker and the shards. */
export function createLifecycleWorld(
  world: MetadataShards,
  through: (metadata: MetadataPort) => MetadataPort = (metadata) => metadata,
): LifecycleWorld {
  const { shards, clock } = world;
  const calls: string[] = [];
  const noted = {
    shardCount: shards.shardCount,
    execute: (...call: Parameters<typeof shards.execute>) => {
      calls.push(call[1]);
      return shards.execute(...call);
    },
    query: (...call: Parameters<typeof shards.query>) => {
      calls.push(call[1]);
      return shards.query(...call);
    },
  };
  const lifecycle: LifecycleWorld = {
    calls,
    worker: (mayRemoveByAge = () => true) =>
      createLifecycleWorker({
        metadata: through(noted as typeof shards),
        shards: () => [0],
        clock,
        telemetry: { count() {}, observe() {}, gauge() {}, gaugeAll() {} },
        timeJumps: { mayRemoveByAge },
        lifecycleDayMs: DAY,
        lifecycleLookEveryMs: 60_000,
        lifecycleWorkShare: 50,
      }),
    run: () => runUntilIdle(lifecycle.worker()),
    async putRules(...rules) {
      const document = { rules: rulesFrom(rules) };
      await world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'lifecycle', document });
    },
    status: async () => (await world.query('lifecycle-status', { bucketId: BUCKET })).record,
    done: async () => (await lifecycle.status())?.last?.counts.byAction,
  };
  return lifecycle;
}
