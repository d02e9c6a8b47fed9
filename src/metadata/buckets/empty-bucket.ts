// Takes out of a bucket that was deleted by force what it had, some at a time, each time as one entry: older versions
// first, for they lean on the latest ones; then these, then markers, then tokens. Links end with their versions, and
// counters follow. Its uploads go as those of every deleted bucket do (expire-uploads).
import { must } from '../../base/assert.ts';
import { fromHex, toHex } from '../../base/bytes/bytes.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { CounterDelta, RangeAddress, Row, RowPut, View } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AccountId } from '../../types/names.ts';
import { EMPTYING_STAGES, type EmptyBucketJob, type EmptyingStage } from '../../types/records/job-record.ts';
import { bucketCodec, tokenCodec } from '../../types/records/rows.ts';
import { decodeVersion } from '../../types/records/version-record.ts';
import { linksOf, type VersionRecord } from '../../types/version.ts';
import { endLinks, type LinkName } from '../blobs/links.ts';
import { joinChanges } from '../blobs/repair-entries.ts';
import { noteEvents, removalOf } from '../events/note-events.ts';
import { changeJob, findJob } from '../jobs/jobs.ts';
import { bucketTokens, dropToken, readTokenKey } from '../outcomes/tokens.ts';
import { usageDeltas } from '../schema/counters.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { bucketRow, put, REGION, remove, TABLES, versionIdRow } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findBucket } from './buckets.ts';
import { objectKeyOf, versionsBehind } from './rows-of-buckets.ts';

type Command = CommandOf<'empty-bucket'>;

/** Rows that one entry takes out, and links that it ends with them; one row at least. */
export const EMPTY_ROWS_MAX = 250;
export const EMPTY_LINKS_MAX = 1000;
/** Read at once; more are while they are small. */
const PAGE_ROWS = 50;

/** What one entry takes out. */
interface Taken {
  rowCount: number;
  versions: VersionRecord[];
  links: LinkName[];
  puts: RowPut[];
  /** Besides those of its versions. */
  counters: CounterDelta[];
}

export const emptyBucket = defineCommand<Command, OutcomeOf<'empty-bucket'>>({
  locks: ({ bucketId, jobId }) => [exclusive(LOCK.bucket(bucketId)), exclusive(LOCK.job(jobId))],

  look({ bucketId, jobId }, view) {
    findBucket(view, bucketId);
    const emptying = findEmptying(view, jobId);
    if (emptying !== undefined) nextRows(emptying, view);
  },

  decide({ bucketId, jobId, stepCount }, view, context) {
    const { nowMs } = context;
    const emptying = findEmptying(view, jobId);
    if (emptying === undefined || emptying.job.stepCount !== stepCount) return refuse({ kind: 'elsewhere' });
    const { rows, isAll } = nextRows(emptying, view);
    const bucket = must(findBucket(view, bucketId), 'a bucket row outlives what was in it');
    const taken = emptying.stage === 'tokens' ? takeTokens(rows, bucket.owner) : takeVersions(rows, emptying);
    const isWhole = isAll && taken.rowCount === rows.length;
    const job = stepped(emptying, { taken, rows, isWhole, nowMs });
    const change = changeJob(emptying.job, job);
    const puts = [...taken.puts, ...endLinks(taken.links, nowMs), ...change.puts];
    if (job.stage === 'emptied') {
      const { jobId: _, ...rest } = bucket;
      puts.push(put(bucketRow(bucketId), bucketCodec.encode(rest)));
    }
    const usage = usageDeltas(bucket, { added: [], removed: taken.versions }, context);
    const noted = noteEvents(bucket, { ...context, origin: job.origin }, () =>
      taken.versions.map((version, at) => removalOf(objectKeyOf((rows[at] as Row).key), version)),
    );
    const counters = [...usage, ...taken.counters, ...change.counters, ...noted.counters];
    return { outcome: { kind: 'stepped', job }, puts: [...puts, ...noted.puts], counters };
  },
});

interface Emptying {
  job: EmptyBucketJob;
  stage: EmptyingStage;
}

function findEmptying(view: View, jobId: Command['jobId']): Emptying | undefined {
  const job = findJob(view, jobId);
  if (job?.kind !== 'empty-bucket') return undefined;
  const stage = EMPTYING_STAGES.find((each) => each === job.stage);
  return stage && { job, stage };
}

const REGION_OF = { older: REGION.version, current: REGION.current, markers: REGION.marker } as const;

/** Behind what earlier steps took out, whose traces a scan would crawl over (B11). `isAll`: none is behind them. */
function nextRows(emptying: Emptying, view: View): { rows: Row[]; isAll: boolean } {
  const { after } = emptying.job;
  const rows: Row[] = [];
  let behind = after === undefined ? undefined : fromHex(after);
  let sizeBytes = 0;
  while (rows.length < EMPTY_ROWS_MAX && sizeBytes < LIMITS.queryPageBytesMax) {
    const page = view.range(pageBehind(emptying, behind));
    rows.push(...page);
    if (page.length < PAGE_ROWS) return { rows, isAll: true };
    sizeBytes += page.reduce((sum, { value }) => sum + value.length, 0);
    behind = page.at(-1)?.key;
  }
  return { rows, isAll: false };
}

function pageBehind({ job: { bucketId }, stage }: Emptying, after: Uint8Array | undefined): RangeAddress {
  const limit = PAGE_ROWS;
  if (stage === 'tokens') return bucketTokens(bucketId, { after, limit });
  return versionsBehind({ region: REGION_OF[stage], bucketId, after, limit });
}

function takeVersions(rows: readonly Row[], { job, stage }: Emptying): Taken {
  const taken: Taken = { rowCount: 0, versions: [], links: [], puts: [], counters: [] };
  for (const { key, value } of rows) {
    const version = decodeVersion(value);
    const links = linksOf(version.manifest);
    const linkCount = taken.links.length + links.length;
    if (taken.rowCount > 0 && linkCount > EMPTY_LINKS_MAX) break;
    taken.rowCount++;
    taken.versions.push(version);
    taken.links.push(...links);
    taken.puts.push(remove({ table: TABLES.objects, key }));
    if (stage !== 'older') continue;
    taken.puts.push(remove(versionIdRow(job.bucketId, objectKeyOf(key), version.versionId)));
  }
  return taken;
}

function takeTokens(rows: readonly Row[], owner: AccountId): Taken {
  const changes = rows.map(({ key, value }) => dropToken(readTokenKey(key), tokenCodec.decode(value), owner));
  return { rowCount: rows.length, versions: [], links: [], ...joinChanges(changes) };
}

function stepped(
  { job: before, stage }: Emptying,
  step: { taken: Taken; rows: readonly Row[]; isWhole: boolean; nowMs: number },
): EmptyBucketJob {
  const { taken, rows, isWhole, nowMs } = step;
  const { after: _, ...rest } = before;
  const job = {
    ...rest,
    stepCount: before.stepCount + 1,
    steppedAtMs: nowMs,
    removedCount: before.removedCount + taken.versions.filter((version) => !version.isDeleteMarker).length,
  };
  if (!isWhole) return { ...job, after: toHex(must(rows[taken.rowCount - 1], 'a row was taken').key) };
  const next = EMPTYING_STAGES[EMPTYING_STAGES.indexOf(stage) + 1];
  return next === undefined ? { ...job, stage: 'emptied', endedAtMs: nowMs } : { ...job, stage: next };
}
