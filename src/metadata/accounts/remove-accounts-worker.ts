// Removes what deleted accounts have left (extensions 1.4): their buckets with all that is in them, then their users, keys,
// roles, policies and MFA devices. A bucket goes as a whole, as by a forced deletion; where something in it may not go yet, what
// may go is removed version by version, and the bucket is tried again when the rest is due. What may go the shards decide, in
// the commands that remove (types/delete-blocker.ts). How far it has come is in the account's row of removals, so that another
// node goes on there.
import type { ClockPort } from '../../ports/clock.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../../ports/metadata/port.ts';
import type { Worker } from '../../ports/worker.ts';
import type { BucketId, ObjectKey, VersionId } from '../../types/names.ts';
import {
  type AccountRemovalRecord,
  KEPT_BUCKETS_MAX,
  type RemovalPass,
} from '../../types/records/account-removal-record.ts';
import { closingCalls, stepClosing } from '../buckets/drive-closing.ts';
import { createShardWorker, doneValue, forEachJob, resting } from '../workers/shard-worker.ts';

const IDLE_MS = 5000;
/** Rest after a round, as a multiple of the time that it took: clients come first. */
const REST_SHARE = 1;
/** Rows of one look into a bucket that stays, and versions that it removes at most. */
const LOOK_ROWS = 1000;
/** Rows of identities of one step: each may hold policies of 64 KiB. */
const FORGOTTEN_ROWS = 50;
/** Nothing that has to stay is tried again sooner, or later, than after these times. */
const RETRY_MIN_MS = 60_000;
const RETRY_MAX_MS = 24 * 3600_000;
/** For names of deleted buckets, which their shards give back. */
const NAMES_WAIT_MS = 2000;

const NEW_PASS: RemovalPass = { kept: [], keptBucketCount: 0, hasRemoved: false };

interface Bucket {
  bucketId: BucketId;
  homeShard: number;
  name: string;
}

export function createAccountRemover(deps: {
  metadata: MetadataPort;
  shards(): readonly number[];
  clock: Pick<ClockPort, 'monotonicMs'>;
}): Worker {
  const { metadata, shards, clock } = deps;
  const system = { shard: SYSTEM_SHARD };

  /** True: there is more to do now; also where another one has gone on with it. `null`: nothing is left. */
  async function note(
    { accountId, stepCount }: AccountRemovalRecord,
    after: AccountRemovalRecord | null,
  ): Promise<boolean> {
    doneValue(await metadata.execute(system, 'note-account-removal', { accountId, stepCount, after }));
    return after !== null;
  }

  /** True: there is more to do now. */
  async function advance(removal: AccountRemovalRecord, nowMs: number): Promise<boolean> {
    const { accountId, pass = NEW_PASS } = removal;
    const { account } = doneValue(await metadata.query(system, 'get-account', { accountId }));
    if (account === null) return forget(removal);
    if (account.bucketCount === 0) {
      doneValue(await metadata.execute(system, 'delete-account', { accountId }));
      return true;
    }
    const { within } = pass;
    if (within !== undefined) return removeVersions(removal, { ...pass, within });
    const query = { owner: accountId, max: 1, ...(pass.after !== undefined && { after: pass.after }) };
    const { names } = doneValue(await metadata.query(system, 'list-names', query));
    const [next] = names;
    if (next === undefined) return endPass(removal, pass, nowMs);
    const { bucketId, homeShard } = next.record;
    return removeBucket(removal, pass, { bucketId, homeShard, name: next.name });
  }

  async function forget(removal: AccountRemovalRecord): Promise<boolean> {
    const { accountId } = removal;
    const command = { accountId, limit: FORGOTTEN_ROWS };
    const forgotten = doneValue(await metadata.execute(system, 'forget-identities', command));
    const isAll = forgotten.kind === 'account-exists' || forgotten.isAll;
    return isAll ? note(removal, null) : true;
  }

  /** A step of the deletion of a whole bucket. Its own job, in its shard, takes out what was in it. */
  async function removeBucket(
    removal: AccountRemovalRecord,
    pass: RemovalPass,
    bucket: Bucket,
  ): Promise<boolean> {
    const { bucketId, homeShard: shard, name } = bucket;
    const closing = doneValue(await metadata.execute({ shard }, 'close-bucket', { bucketId }));
    const outcome =
      closing.kind === 'closing'
        ? await stepClosing(closingCalls(metadata, shard), closing.job)
        : { kind: 'gone' as const };
    if (outcome.kind === 'looking') return true;
    if (outcome.kind === 'reopened') {
      await unshare(bucket);
      return note(removal, { ...removal, pass: { ...pass, within: { ...bucket, removedCount: 0 } } });
    }
    const removedBucketCount = removal.removedBucketCount + (outcome.kind === 'deleted' ? 1 : 0);
    return note(removal, { ...removal, removedBucketCount, pass: { ...pass, after: name } });
  }

  /** Nobody else gets at what stays: its owner, who had let them, is gone. */
  async function unshare({ bucketId, homeShard: shard }: Bucket): Promise<void> {
    for (const kind of ['policy', 'acl'] as const)
      doneValue(await metadata.execute({ shard }, 'set-bucket-config', { bucketId, kind, document: null }));
  }

  /** A page of the versions of a bucket that stays for now. */
  async function removeVersions(
    removal: AccountRemovalRecord,
    pass: RemovalPass & { within: NonNullable<RemovalPass['within']> },
  ): Promise<boolean> {
    const { within, keptVersionCount = 0, untilMs = Number.POSITIVE_INFINITY, ...rest } = pass;
    const { bucketId, homeShard: shard, name, after } = within;
    const query = { bucketId, limit: LOOK_ROWS, ...(after !== undefined && { after }) };
    const found = doneValue(await metadata.query({ shard }, 'find-removable', query));
    const removed = await removeItems(removal, { shard, bucketId, items: found.items });
    const removedCount = within.removedCount + removed;
    const kept = keptVersionCount + found.keptCount;
    const until = Math.min(untilMs, found.untilMs ?? Number.POSITIVE_INFINITY);
    const known = until < Number.POSITIVE_INFINITY && { untilMs: until };
    const removedVersionCount = removal.removedVersionCount + removed;
    const hasRemoved = pass.hasRemoved || removed > 0;
    if (found.next !== undefined) {
      const place = { ...within, after: found.next, removedCount };
      const now = { ...rest, hasRemoved, within: place, keptVersionCount: kept, ...known };
      return note(removal, { ...removal, removedVersionCount, pass: now });
    }
    const bucket = { name, versionCount: kept, ...known };
    const list = rest.kept.length < KEPT_BUCKETS_MAX ? [...rest.kept, bucket] : rest.kept;
    const keptBucketCount = rest.keptBucketCount + 1;
    const now = { ...rest, hasRemoved, after: name, kept: list, keptBucketCount };
    return note(removal, { ...removal, removedVersionCount, pass: now });
  }

  /** Resolves with how many have gone: another of them may be protected by now. */
  async function removeItems(
    { accountId }: AccountRemovalRecord,
    { shard, bucketId, items }: { shard: number; bucketId: BucketId; items: Item[] },
  ): Promise<number> {
    let count = 0;
    for (let at = 0; at < items.length; ) {
      const command = { bucketId, owner: accountId, items: items.slice(at) };
      const outcome = doneValue(await metadata.execute({ shard }, 'delete-versions', command));
      count += outcome.items.filter(({ kind }) => kind === 'deleted').length;
      at += outcome.items.length;
    }
    return count;
  }

  /** All buckets were met once: again at once where that may help, and else when the first of what stays is due. */
  async function endPass(removal: AccountRemovalRecord, pass: RemovalPass, nowMs: number): Promise<boolean> {
    const { pass: _, ...rest } = removal;
    const { kept, keptBucketCount, hasRemoved } = pass;
    const firstMs = Math.min(...kept.map(({ untilMs = Number.POSITIVE_INFINITY }) => untilMs));
    const isWaiting = keptBucketCount > 0 && !hasRemoved;
    const dueAtMs = Math.min(Math.max(firstMs, nowMs + RETRY_MIN_MS), nowMs + RETRY_MAX_MS);
    const nextAtMs = isWaiting ? dueAtMs : nowMs + (hasRemoved ? 0 : NAMES_WAIT_MS);
    await note(removal, { ...rest, kept, keptBucketCount, nextAtMs });
    return hasRemoved;
  }

  const steps = createShardWorker({
    name: 'remove-accounts',
    shards,
    idleMs: IDLE_MS,
    async unit(shard, signal) {
      if (shard !== SYSTEM_SHARD) return false;
      let hasMore = false;
      for (let after: AccountRemovalRecord['accountId'] | undefined, isAll = false; !isAll; ) {
        const query = { limit: KEPT_BUCKETS_MAX, ...(after !== undefined && { after }) };
        const page = doneValue(await metadata.query(system, 'list-account-removals', query));
        const { removals, nowMs, next } = page;
        const due = removals.filter(({ nextAtMs }) => nextAtMs <= nowMs);
        if (await forEachJob(due, signal, (removal) => advance(removal, nowMs))) hasMore = true;
        after = next;
        isAll = next === undefined || signal.aborted;
      }
      return hasMore;
    },
  });

  return resting(steps, { clock, restShare: REST_SHARE });
}

/** A version that may go. */
interface Item {
  key: ObjectKey;
  versionId: VersionId;
}
