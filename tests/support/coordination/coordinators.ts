// The coordinators that the contracts of coordination are held against: in memory, and a real etcd.
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { createEtcdCoordinator, type EtcdCoordinator } from '../../../src/platform/etcd/etcd-coordinator.ts';
import { createMemoryCoordinator } from '../../../src/platform/memory/memory-coordinator.ts';
import { systemClock } from '../../../src/platform/system-clock.ts';
import type { Coordination } from '../../../src/ports/coordination.ts';
import type { Logger } from '../../../src/ports/telemetry.ts';
import { startTestEtcd } from '../cluster/etcd.ts';

/** The shortest that etcd gives. */
export const SHORT_LEASE_MS = 2000;

/** What was logged, as `[level, event]`. */
export type LoggedEvents = [string, string][];

export function eventLog(events: LoggedEvents = []): Logger {
  const at = (level: string) => (_fields: object, event: string) => void events.push([level, event]);
  return { debug: () => undefined, info: at('info'), warn: at('warn'), error: at('error') };
}

/** Connections of processes to one cluster. */
interface Cluster {
  connect(holder: string): Coordination;
  close(): void;
}

export interface Coordinators {
  /** It starts empty. */
  open(): Cluster;
  stop(): Promise<void>;
}

/** For a `describe` block, which calls it at its beginning: an empty cluster for each of its tests. */
export function useCluster(openAll: () => Promise<Coordinators>): Pick<Cluster, 'connect'> {
  let coordinators: Coordinators;
  let cluster: Cluster;
  beforeAll(async () => {
    coordinators = await openAll();
  });
  afterAll(() => coordinators.stop());
  beforeEach(() => {
    cluster = coordinators.open();
  });
  afterEach(() => cluster.close());
  return { connect: (holder) => cluster.connect(holder) };
}

async function openMemoryCoordinators(): Promise<Coordinators> {
  return {
    open() {
      const coordinator = createMemoryCoordinator({
        clock: systemClock,
        log: eventLog(),
        memberLeaseMs: SHORT_LEASE_MS,
        jobLeaseMs: SHORT_LEASE_MS,
      });
      return { connect: coordinator.connect, close: () => undefined };
    },
    stop: async () => undefined,
  };
}

async function openEtcdCoordinators(): Promise<Coordinators> {
  const etcd = await startTestEtcd();
  let clusterCount = 0;
  return {
    open() {
      const prefix = `test-${++clusterCount}`;
      const connections: EtcdCoordinator[] = [];
      return {
        connect(holder) {
          const connection = connectToEtcd(etcd.endpoint, { holder, prefix });
          connections.push(connection);
          return connection;
        },
        close() {
          for (const connection of connections) connection.close();
        },
      };
    },
    stop: () => etcd.stop(),
  };
}

/** A connection with short leases. */
export function connectToEtcd(
  endpoint: string,
  options: { holder: string; prefix?: string; events?: LoggedEvents },
): EtcdCoordinator {
  const { holder, prefix = 'holdfast', events } = options;
  return createEtcdCoordinator(
    { endpoints: [endpoint] },
    {
      holder,
      prefix,
      clock: systemClock,
      log: eventLog(events),
      memberLeaseMs: SHORT_LEASE_MS,
      jobLeaseMs: SHORT_LEASE_MS,
    },
  );
}

export const COORDINATORS: readonly (readonly [string, () => Promise<Coordinators>])[] = [
  ['memory', openMemoryCoordinators],
  ['etcd', openEtcdCoordinators],
];

/** What was reported so far, and a way to wait for what is to come. */
export interface Told<T> {
  readonly all: readonly T[];
  tell(value: T): void;
  /** Resolves with the first that fits, of those reported and those to come. */
  first(fits: (value: T) => boolean): Promise<T>;
}

export function collect<T>(): Told<T> {
  const all: T[] = [];
  let waiting: { fits: (value: T) => boolean; resolve: (value: T) => void }[] = [];
  return {
    all,
    tell(value) {
      all.push(value);
      for (const waiter of waiting) if (waiter.fits(value)) waiter.resolve(value);
      waiting = waiting.filter(({ fits }) => !fits(value));
    },
    first(fits) {
      const found = all.find(fits);
      if (found !== undefined) return Promise.resolve(found);
      return new Promise((resolve) => waiting.push({ fits, resolve }));
    },
  };
}
