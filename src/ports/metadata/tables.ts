// The tables of all commands and queries of the metadata shards, as plain data. Each command is evaluated once, atomically, in
// one shard; queries read committed state and change nothing. How they are called is in port.ts.
import type { AccountCommands, AccountQueries } from './accounts.ts';
import type { BillingCommands, BillingQueries } from './billing.ts';
import type { BlobCommands, BlobQueries } from './blobs.ts';
import type { BucketCommands, BucketQueries } from './buckets.ts';
import type { CheckQueries } from './checks.ts';
import type { EngineCommands, EngineQueries } from './engine.ts';
import type { EventCommands, EventQueries } from './events.ts';
import type { JobCommands, JobQueries } from './jobs.ts';
import type { LifecycleCommands, LifecycleQueries } from './lifecycle.ts';
import type { MoveCommands, MoveQueries } from './moves.ts';
import type { QuotaCommands, QuotaQueries } from './quotas.ts';
import type { RepairCommands, RepairQueries } from './repair.ts';
import type { UploadCommands, UploadQueries } from './uploads.ts';
import type { UsageCommands, UsageQueries } from './usage.ts';
import type { VersionCommands, VersionQueries } from './versions.ts';

export interface CommandTable
  extends AccountCommands,
    BucketCommands,
    VersionCommands,
    UploadCommands,
    BlobCommands,
    MoveCommands,
    JobCommands,
    RepairCommands,
    QuotaCommands,
    UsageCommands,
    EventCommands,
    LifecycleCommands,
    BillingCommands,
    EngineCommands {}

export interface QueryTable
  extends AccountQueries,
    BucketQueries,
    VersionQueries,
    UploadQueries,
    BlobQueries,
    MoveQueries,
    JobQueries,
    RepairQueries,
    QuotaQueries,
    UsageQueries,
    EventQueries,
    LifecycleQueries,
    BillingQueries,
    CheckQueries,
    EngineQueries {}
