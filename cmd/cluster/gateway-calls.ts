// What the main thread of a gateway process and its gateway threads ask of each other.
import type { Config } from '../../src/config/schema.ts';
import type { MetricFigures } from '../../src/platform/telemetry/prom-telemetry.ts';
import type { LogCalls } from '../threads/thread-calls.ts';
import type { ThreadPulse } from '../threads/watched-threads.ts';

/** With what a gateway thread begins. */
export interface GatewayStart {
  /** With this thread's share of what is divided, and the port of the others. */
  readonly config: Config;
  readonly threads: number;
  /** From 1. */
  readonly number: number;
}

interface OpenedGateway {
  readonly port: number;
  readonly address: string;
  readonly nodeId: string;
  readonly clusterId: string;
}

/** What a gateway thread does for the main thread. */
export type GatewayCalls = {
  /** Resolves when it takes connections. Rejects as startGateway does. */
  readonly open: (start: GatewayStart) => Promise<OpenedGateway>;
  readonly pulse: () => ThreadPulse & { readonly isReady: boolean; readonly hasRoom: boolean };
  /** Reads certificates again. */
  readonly reload: () => Promise<void>;
  readonly readFigures: () => Promise<MetricFigures>;
  /** Lets requests end, leaves the cluster, and returns when everything is closed. */
  readonly drain: () => Promise<void>;
};

export const GATEWAY_CALLS = [
  'open',
  'pulse',
  'reload',
  'readFigures',
  'drain',
] as const satisfies readonly (keyof GatewayCalls)[];

/** What the main thread does for gateway threads. */
export type GatewayMainCalls = LogCalls & {
  readonly readMetrics: () => Promise<{ contentType: string; text: string }>;
};

export const GATEWAY_MAIN_CALLS = [
  'writeLog',
  'noteError',
  'readMetrics',
] as const satisfies readonly (keyof GatewayMainCalls)[];
