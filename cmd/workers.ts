// The one list of background workers: what each does, in which forms of the server it runs, and whose work it is. Both
// wirings take their workers from here, and docs/workers.md lists them. To add a worker, add a row.
//
// Not here: the jobs that one process of a cluster does at a time, under a lock in etcd, and that have loops of their own:
// placing shards (src/coordination/place-shards.ts), placing disks (src/chunks/placement/place-disks.ts), and rotating master
// keys, which a gateway does (src/metadata/master-keys/rotate-cluster-keys.ts).
import { createMonthWorker } from '../src/accounts/close-months.ts';
import { createPlanKeeper } from '../src/accounts/plans.ts';
import { assert, must } from '../src/base/assert.ts';
import { createChunkSweep, type SweepDeps } from '../src/chunks/disk/sweep-chunks.ts';
import { createAccountRemover } from '../src/metadata/accounts/remove-accounts-worker.ts';
import { createClaimAssertion } from '../src/metadata/blobs/assert-claims.ts';
import { type BlobAuditDeps, createBlobAudit } from '../src/metadata/blobs/audit-blobs.ts';
import { createCorruptionCollector } from '../src/metadata/blobs/collect-corruption.ts';
import { createDeletionMarker } from '../src/metadata/blobs/mark-blobs-worker.ts';
import { createDamageNamer, type DamageNamerDeps } from '../src/metadata/blobs/name-damage-worker.ts';
import { type BlobReleaseDeps, createBlobRelease } from '../src/metadata/blobs/release-blobs.ts';
import { createRepairWorker } from '../src/metadata/blobs/repair-chunks-worker.ts';
import { createClaimResolver } from '../src/metadata/blobs/resolve-claims.ts';
import { createDiskSweep, type DiskSweepDeps } from '../src/metadata/blobs/sweep-disks.ts';
import { createRepairWatch } from '../src/metadata/blobs/watch-repairs.ts';
import { createBucketEmptier } from '../src/metadata/buckets/empty-buckets.ts';
import { createOutboxDelivery } from '../src/metadata/jobs/deliver-outbox.ts';
import { createJobDriver } from '../src/metadata/jobs/drive-jobs.ts';
import { createLifecycleWorker, type LifecyclePace } from '../src/metadata/lifecycle/lifecycle-worker.ts';
import { createOutcomeWatch } from '../src/metadata/outcomes/watch-outcomes.ts';
import { setAccountQuota } from '../src/metadata/quotas/operate-quotas.ts';
import { createQuotaWatch } from '../src/metadata/quotas/watch-quotas.ts';
import { createUploadExpiry } from '../src/metadata/uploads/expire-uploads-worker.ts';
import { createPartRelease } from '../src/metadata/uploads/release-parts-worker.ts';
import { createUsageCloser } from '../src/metadata/usage/close-usage-worker.ts';
import {
  createCompletedUploadForgetter,
  createJobForgetter,
  createTokenForgetter,
} from '../src/metadata/workers/forget-by-age.ts';
import type { HomeShardDeps } from '../src/metadata/workers/home-shard.ts';
import type { ClockPort } from '../src/ports/clock.ts';
import type { Logger, TelemetryPort } from '../src/ports/telemetry.ts';
import type { TimeJumps } from '../src/ports/time-jumps.ts';
import type { Worker } from '../src/ports/worker.ts';
import type { Metering } from '../src/types/metered.ts';

/** Workers that the part they belong to makes itself: the engine of shards, the store of chunks, the rotation of keys. */
export interface MadeWorkers {
  readonly made: readonly Worker[];
}

/** What the workers of shards have, in every form. */
export interface ShardWorkDeps
  extends MadeWorkers,
    BlobReleaseDeps,
    LifecyclePace,
    Pick<DamageNamerDeps, 'damage'> {
  clock: ClockPort;
  log: Logger;
  telemetry: TelemetryPort;
  timeJumps: TimeJumps;
  /** The age at which an upload expires. */
  uploadKeptMs: number;
  metering: Metering;
}

/** Of a metadata node: the disks are elsewhere. */
export type NodeWorkDeps = ShardWorkDeps &
  HomeShardDeps &
  Pick<BlobAuditDeps, 'auditEveryMs'> &
  Pick<DiskSweepDeps, 'passEveryMs'>;

/** Of the embedded form: the disk is here. */
export type ServerWorkDeps = ShardWorkDeps & Pick<SweepDeps, 'chunks'>;

/**
 * `shard`: of a shard, where its open primary is: a metadata node of a cluster, or the server. `disk`: of a disk, where its
 * chunks are: a storage node, or the server. `server`: of the whole store, by the one process of the embedded form.
 */
export type WorkerRole = 'shard' | 'disk' | 'server';

interface RowBase {
  readonly name: string;
  /** What it does: a sentence of docs/workers.md. */
  readonly help: string;
  /**
   * Of one that looks at everything there is, and not at a queue of what is to do: where it keeps how far it has come. Absent:
   * it takes its work from rows, which are all that it needs after a restart.
   */
  readonly scan?: string;
}

export type WorkerRow = RowBase &
  (
    | { readonly role: 'shard'; readonly forms: 'both'; create(deps: ShardWorkDeps): Worker }
    | { readonly role: 'shard'; readonly forms: 'cluster'; create(deps: NodeWorkDeps): Worker }
    | { readonly role: 'disk' | 'server'; readonly forms: 'embedded'; create(deps: ServerWorkDeps): Worker }
    | {
        readonly role: 'disk';
        readonly forms: 'both' | 'cluster';
        /** One for each disk, or one for all. */
        create(deps: MadeWorkers): readonly Worker[];
      }
  );

function madeOnes(name: string): (deps: MadeWorkers) => readonly Worker[] {
  return ({ made }) => made.filter((worker) => worker.name === name);
}

function madeOne(name: string): (deps: MadeWorkers) => Worker {
  return (deps) => must(madeOnes(name)(deps)[0], `nobody has made the worker ${name}`);
}

export const WORKERS: readonly WorkerRow[] = [
  {
    name: 'release-parts',
    role: 'shard',
    forms: 'both',
    help: 'Releases the parts of uploads that were aborted or have expired.',
    create: createPartRelease,
  },
  {
    name: 'mark-blobs',
    role: 'shard',
    forms: 'both',
    help: 'Marks data that no version and no upload uses any more for deletion.',
    create: createDeletionMarker,
  },
  {
    name: 'release-blobs',
    role: 'shard',
    forms: 'both',
    help: 'Deletes the chunks of data that is marked for deletion, once no reader can need them.',
    create: createBlobRelease,
  },
  {
    name: 'resolve-claims',
    role: 'shard',
    forms: 'both',
    help: 'Asks other shards whether they use data of this one that they have claimed, and drops claims that nobody uses.',
    create: createClaimResolver,
  },
  {
    name: 'assert-claims',
    role: 'shard',
    forms: 'cluster',
    help: 'After a shard was recovered from one replica: has all shards tell it which of its data they use.',
    scan: 'in memory: after a restart all is sent again, which changes nothing',
    create: createClaimAssertion,
  },
  {
    name: 'deliver-outbox',
    role: 'shard',
    forms: 'both',
    help: 'Carries out what a shard has to tell others: links to release, names of buckets to change.',
    create: createOutboxDelivery,
  },
  {
    name: 'close-usage',
    role: 'shard',
    forms: 'both',
    help: 'Writes the usage record of each bucket for each day (UTC) that is over, day by day after a pause; counts what buckets had before they were metered; measures what compositions alone keep.',
    create: createUsageCloser,
  },
  {
    name: 'close-months',
    role: 'shard',
    forms: 'both',
    help: 'Writes the invoices of each month once all of its days are over and counted, one month after the other.',
    create: createMonthWorker,
  },
  {
    name: 'keep-plans',
    role: 'shard',
    forms: 'both',
    help: 'Ends trials of sub-accounts when their time has come, and sets quotas of plans that are not set.',
    create: (deps) =>
      createPlanKeeper({
        ...deps,
        setPlanQuota: (accountId, quota) =>
          setAccountQuota(deps.metadata, { accountId, source: 'plan', quota }),
      }),
  },
  {
    name: 'expire-uploads',
    role: 'shard',
    forms: 'both',
    help: 'Ends uploads that are older than `uploads.expiry`, and those of deleted buckets.',
    create: createUploadExpiry,
  },
  {
    name: 'run-lifecycle',
    role: 'shard',
    forms: 'both',
    help: 'Carries out the lifecycle rules of buckets, each midnight (`lifecycle.day`), and deletes versions whose compliance retention has ended where the bucket asks for it.',
    scan: 'in the row of the bucket, with each entry that removes something and each 200,000 rows: after a restart or a failover it goes on there',
    create: createLifecycleWorker,
  },
  {
    name: 'forget-completed-uploads',
    role: 'shard',
    forms: 'both',
    help: 'Forgets the answers of completed uploads when no client repeats the request any more.',
    create: createCompletedUploadForgetter,
  },
  {
    name: 'forget-tokens',
    role: 'shard',
    forms: 'both',
    help: 'Forgets idempotency tokens and the answers that are stored under them.',
    create: createTokenForgetter,
  },
  {
    name: 'empty-buckets',
    role: 'shard',
    forms: 'both',
    help: 'Brings forced deletions of buckets to their end, and deletes what deleted buckets have left.',
    create: createBucketEmptier,
  },
  {
    name: 'remove-accounts',
    role: 'shard',
    forms: 'both',
    help: 'Removes what deleted accounts have left: buckets, as far as nothing in them is protected, then users, keys and policies.',
    scan: 'in the row of the account, with each step: after a restart or a failover it goes on there',
    create: createAccountRemover,
  },
  {
    name: 'drive-jobs',
    role: 'shard',
    forms: 'both',
    help: 'Brings prefix MOVEs to their end whose gateway is gone.',
    create: createJobDriver,
  },
  {
    name: 'forget-jobs',
    role: 'shard',
    forms: 'both',
    help: 'Forgets jobs that have ended, when nobody asks for their outcome any more.',
    create: createJobForgetter,
  },
  {
    name: 'repair-chunks',
    role: 'shard',
    forms: 'cluster',
    help: 'Makes copies of chunks that lack some, those with the fewest copies first.',
    create: createRepairWorker,
  },
  {
    name: 'audit-blobs',
    role: 'shard',
    forms: 'cluster',
    help: 'Asks the disks for all chunks of a shard, after a change of owners and each `storage.auditPeriod`; what lacks copies is repaired.',
    scan: 'in the shard: after a restart or a failover it goes on where it was',
    create: createBlobAudit,
  },
  {
    name: 'collect-corruption',
    role: 'shard',
    forms: 'cluster',
    help: 'Asks the disks for copies that are damaged or cannot be read, so that they are repaired.',
    create: createCorruptionCollector,
  },
  {
    name: 'sweep-disks',
    role: 'shard',
    forms: 'cluster',
    help: 'Searches all disks for chunks that no shard knows, and deletes them; copies on the wrong disk are moved.',
    scan: 'in the shard, every ten minutes: after a restart or a failover it goes on where it was',
    create: createDiskSweep,
  },
  {
    name: 'watch-repairs',
    role: 'shard',
    forms: 'cluster',
    help: 'Measures how many chunks lack copies, and how long their repair will take.',
    create: createRepairWatch,
  },
  {
    name: 'name-damage',
    role: 'shard',
    forms: 'both',
    help: 'Looks for the objects whose data is damaged or missing, so that alarms and the log name some; nothing is read while there is none.',
    scan: 'in memory: after a restart or a failover they are looked for again',
    create: createDamageNamer,
  },
  {
    name: 'watch-outcomes',
    role: 'shard',
    forms: 'both',
    help: 'Measures how much is stored of the answers of requests that have ended.',
    create: createOutcomeWatch,
  },
  {
    name: 'watch-quotas',
    role: 'shard',
    forms: 'both',
    help: 'Finishes what was begun of quotas of accounts, and reports accounts above their soft bounds.',
    create: createQuotaWatch,
  },
  {
    name: 'forget-request-outcomes',
    role: 'shard',
    forms: 'both',
    help: 'Forgets the answers of commands that no gateway repeats any more.',
    create: madeOne('forget-request-outcomes'),
  },
  {
    name: 'keep-shard-time',
    role: 'shard',
    forms: 'both',
    help: 'Commits the time of a shard once a minute, also while nothing else is committed.',
    create: madeOne('keep-shard-time'),
  },
  {
    name: 'rotate-keys',
    role: 'server',
    forms: 'embedded',
    help: 'While the master key is rotated: wraps all keys by the new one, then removes the old one.',
    scan: 'in memory: after a restart a pass begins anew, because only a pass that nothing has interrupted shows that the old key is unused',
    create: madeOne('rotate-keys'),
  },
  {
    name: 'sweep-chunks',
    role: 'disk',
    forms: 'embedded',
    help: 'Searches the disk for chunks that no shard knows, and deletes them.',
    scan: 'in memory: a pass takes minutes, and after a restart it begins anew',
    create: createChunkSweep,
  },
  {
    name: 'scrub-chunks',
    role: 'disk',
    forms: 'both',
    help: 'Reads all chunks of a disk each `storage.scrubPeriod`, so that damage is found while there are other copies. Large chunks that lie in the database are moved into extents on the way.',
    scan: 'on the disk: after a restart it goes on where it was',
    create: madeOnes('scrub-chunks'),
  },
  {
    name: 'reclaim-chunks',
    role: 'disk',
    forms: 'both',
    help: 'Gives the room of deleted chunks back to the file system.',
    create: madeOnes('reclaim-chunks'),
  },
  {
    name: 'reclaim-metadata',
    role: 'disk',
    forms: 'embedded',
    help: 'Gives the room of deleted small objects, which are stored with the metadata, back to the file system.',
    create: madeOne('reclaim-metadata'),
  },
  {
    name: 'report-disks',
    role: 'disk',
    forms: 'cluster',
    help: 'Measures the disks of a storage node, and announces their capacity when it changes.',
    create: madeOnes('report-disks'),
  },
];

/** All workers of the embedded form. */
export function serverWorkers(deps: ServerWorkDeps): Worker[] {
  const workers = WORKERS.flatMap((row) => (row.forms === 'cluster' ? [] : row.create(deps)));
  return withAllMade(workers, deps);
}

/** Those of the shards that a metadata node leads. */
export function metadataNodeWorkers(deps: NodeWorkDeps): Worker[] {
  const workers = WORKERS.flatMap((row) => (row.role === 'shard' ? [row.create(deps)] : []));
  return withAllMade(workers, deps);
}

/** Those of the disks that a storage node has. */
export function storageNodeWorkers(deps: MadeWorkers): Worker[] {
  const ofDisks = WORKERS.flatMap((row) =>
    row.role === 'disk' && row.forms !== 'embedded' ? row.create(deps) : [],
  );
  return withAllMade(ofDisks, deps);
}

/** A worker that is made and has no row would never run. */
function withAllMade(workers: Worker[], { made }: MadeWorkers): Worker[] {
  for (const worker of made) assert(workers.includes(worker), `the worker ${worker.name} is not in the list`);
  return workers;
}
