// What the main thread and the other threads of one process ask of each other, beside the calls of the ports: the main thread
// has the chunks, the background work, the master keys' file and the certificate; a gateway thread has clients, and a metadata
// thread has shards.
import type { Config } from '../../src/config/schema.ts';
import type { Fsck } from '../../src/fsck/fsck.ts';
import type { Certificate } from '../../src/gateway/http/listener.ts';
import type { StatusReport } from '../../src/gateway/operator-api/status-report.ts';
import type { ShardStatus } from '../../src/metadata/engine/shards.ts';
import type { RotationProgress } from '../../src/metadata/master-keys/rotate-keys.ts';
import type { MasterKeyList } from '../../src/platform/memory/memory-keyring.ts';
import type { MetricFigures } from '../../src/platform/telemetry/prom-telemetry.ts';
import type { ChunkId, Fence } from '../../src/ports/chunks.ts';
import type { IdentityChange } from '../../src/ports/identity-feed.ts';
import type { WorkOutcome } from '../../src/ports/worker.ts';
import type { AcceptedJumps } from '../../src/types/accepted-jumps.ts';
import type { ThreadPulse } from './watched-threads.ts';

/** With what a gateway thread begins. */
export interface ThreadStart {
  /** With this thread's share of what is divided, and the port of the others. */
  readonly config: Config;
  readonly threads: number;
  /** From 1. */
  readonly number: number;
  readonly shardCount: number;
  /** By shard. */
  readonly fences: readonly Fence[];
  readonly masterKeys: MasterKeyList;
  readonly certificate?: Certificate;
}

export interface GatewayPulse extends ThreadPulse {
  /** Of its oldest request under way, ms; null: there is none. */
  readonly oldestRequestAgeMs: number | null;
  readonly hasRoom: boolean;
}

/** What a gateway thread does for the main thread. */
export type ThreadCalls = {
  /** Takes connections. Returns its port. Throws Refusal where the address cannot be had. */
  readonly open: (start: ThreadStart) => Promise<number>;
  readonly setReady: (isReady: boolean) => void;
  readonly pulse: () => GatewayPulse;
  /** When it has returned, nothing older is served. */
  readonly takeIdentities: (changes: readonly IdentityChange[]) => void;
  readonly takeMasterKeys: (keys: MasterKeyList) => void;
  readonly setCertificate: (certificate: Certificate) => void;
  readonly readFigures: () => Promise<MetricFigures>;
  /** Takes no more connections, and returns when all requests have ended and everything is closed. */
  readonly drain: (timeoutMs: number) => Promise<void>;
};

export const THREAD_CALLS = [
  'open',
  'setReady',
  'pulse',
  'takeIdentities',
  'takeMasterKeys',
  'setCertificate',
  'readFigures',
  'drain',
] as const satisfies readonly (keyof ThreadCalls)[];

/** What the main thread writes for every thread. */
export type LogCalls = {
  /** Lines of a thread's log, each with its end. */
  readonly writeLog: (lines: string) => void;
  /** An error that is in them. */
  readonly noteError: (error: { event: string; message: string }) => void;
};

/** What the main thread does for gateway threads. */
export type MainCalls = LogCalls & {
  readonly noteLost: (chunk: { id: ChunkId; kind: 'missing' | 'damaged' }) => void;
  readonly readStatus: () => Promise<StatusReport>;
  readonly readMetrics: () => Promise<{ contentType: string; text: string }>;
  readonly beginRotation: () => Promise<void>;
  readonly readRotation: () => RotationProgress;
  readonly removeKey: (keyId: string) => Promise<void>;
  readonly wakeRotation: () => void;
  readonly readTimeJump: () => Promise<number>;
  readonly acceptTimeJump: (atMostMs: number) => Promise<AcceptedJumps>;
  readonly beginFsck: (options: Parameters<Fsck['begin']>[0]) => number;
  readonly lookAtFsck: (asked: { id: number; from: number }) => ReturnType<Fsck['look']>;
  readonly cancelFsck: (id: number) => void;
};

export const MAIN_CALLS = [
  'writeLog',
  'noteError',
  'noteLost',
  'readStatus',
  'readMetrics',
  'beginRotation',
  'readRotation',
  'removeKey',
  'wakeRotation',
  'readTimeJump',
  'acceptTimeJump',
  'beginFsck',
  'lookAtFsck',
  'cancelFsck',
] as const satisfies readonly (keyof MainCalls)[];

/** With what a metadata thread begins. */
export interface ShardsStart {
  readonly config: Config;
  /** The data folder, whose file system has the reserve. */
  readonly folder: string;
  readonly shardCount: number;
  /** The shards of this thread. */
  readonly own: readonly number[];
  /** How many metadata threads there are. */
  readonly threads: number;
}

/** What a metadata thread does for the main thread. */
export type ShardsCalls = {
  /** Opens its shards: how each of them stands. */
  readonly open: (start: ShardsStart) => Promise<readonly ShardStatus[]>;
  readonly pulse: () => ThreadPulse;
  /** One step of a worker of the engine. */
  readonly work: (name: string) => Promise<WorkOutcome>;
  /** As KvPort's; ends early when the thread closes. */
  readonly turnOver: () => Promise<boolean>;
  /** As TimeJumps', and which shards wait on. */
  readonly acceptTimeJump: (
    atMostMs: number,
  ) => Promise<{ accepted: AcceptedJumps; status: readonly ShardStatus[] }>;
  readonly readFigures: () => Promise<MetricFigures>;
  /** Answers what was admitted, and returns when everything is closed. */
  readonly close: () => Promise<void>;
};

export const SHARDS_CALLS = [
  'open',
  'pulse',
  'work',
  'turnOver',
  'acceptTimeJump',
  'readFigures',
  'close',
] as const satisfies readonly (keyof ShardsCalls)[];

/** What the main thread does for metadata threads. */
export type ShardsMainCalls = LogCalls & {
  /** When it has returned, no thread serves anything older. */
  readonly takeIdentities: (changes: readonly IdentityChange[]) => Promise<void>;
  /** The store has failed for good (R20). */
  readonly storeFailed: (message: string) => void;
};

export const SHARDS_MAIN_CALLS = [
  'writeLog',
  'noteError',
  'takeIdentities',
  'storeFailed',
] as const satisfies readonly (keyof ShardsMainCalls)[];
