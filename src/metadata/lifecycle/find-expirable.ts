// The queries about lifecycle: which buckets are due, what is due in one of them, how it stands, and what a rule set would do
// that is not put. They write nothing.
import { toHex } from '../../base/bytes/bytes.ts';
import type { LifecycleItem, PreviewedItem, PreviewedSum } from '../../ports/metadata/lifecycle.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, StateReader } from '../../ports/state-machine.ts';
import type { DeleteRules } from '../../types/delete-blocker.ts';
import type { BucketLifecycle } from '../../types/lifecycle.ts';
import type { BucketId } from '../../types/names.ts';
import { lifecycleCodec } from '../../types/records/lifecycle-record.ts';
import { bucketCodec } from '../../types/records/rows.ts';
import { storedVersionId } from '../../types/records/version-record.ts';
import { decodeDocument } from '../buckets/decoded-documents.ts';
import { COUNTER } from '../schema/counters.ts';
import { readU48 } from '../schema/key-parts.ts';
import { bucketConfigRow, bucketRow, lifecycleRow, TABLES, timeRange } from '../schema/keyspace.ts';
import { examinePage, type FoundItem } from './examine-page.ts';
import { LifecycleJudge } from './judge.ts';
import { changeCounters } from './lifecycle-rows.ts';

const TIME_BYTES = 6;
/** Of one step, texts that it compares: some ms. */
const STEP_COMPARISONS = 1_000_000;
const STEP_NEWER_ROWS = 2500;

export const listDueLifecycles: QuerySpec<QueryOf<'list-due-lifecycles'>, ResultOf<'list-due-lifecycles'>> = {
  async run({ limit }, state, { acceptedMs: nowMs }) {
    const rows = await state.range(timeRange({ table: TABLES.lifecycleTimes, toMs: nowMs + 1, limit }));
    const due = rows.map(({ key }) => ({
      bucketId: toHex(key.subarray(TIME_BYTES)) as BucketId,
      dueAtMs: readU48(key),
    }));
    return { due, nowMs };
  },
};

async function changeCountOf(state: StateReader, bucketId: BucketId): Promise<number> {
  return (await state.counters(changeCounters(bucketId))).reduce((sum, count) => sum + count, 0);
}

/** What a document says that may not be there. */
export function rulesOf(bucketId: BucketId, row: Uint8Array | undefined): BucketLifecycle['rules'] {
  if (row === undefined) return [];
  return (decodeDocument(row, { bucketId, kind: 'lifecycle' }) as BucketLifecycle).rules;
}

export function findExpirable(
  deleteRules: DeleteRules,
): QuerySpec<QueryOf<'find-expirable'>, ResultOf<'find-expirable'>> {
  return {
    async run(query, state, { nowMs: readAtMs, acceptedMs: nowMs }) {
      const { bucketId, dayMs, from, rowsMax, itemsMax } = query;
      // Before anything is examined: a change that comes meanwhile is seen by the next pass.
      const changeCount = await changeCountOf(state, bucketId);
      const [row, bucketBytes, configBytes] = await state.rows([
        lifecycleRow(bucketId),
        bucketRow(bucketId),
        bucketConfigRow(bucketId, 'lifecycle'),
      ]);
      const record = row && lifecycleCodec.decode(row);
      const bucket = bucketBytes && bucketCodec.decode(bucketBytes);
      if (record === undefined || bucket?.state !== 'open') return { kind: 'gone' };
      const { stepCount, pass, nothingBeforeMs = Number.POSITIVE_INFINITY } = record;
      const { cfgVersion } = bucket;
      const found = { kind: 'found' as const, cfgVersion, stepCount, changeCount, nowMs };
      const isDue = nothingBeforeMs <= nowMs || record.changeCount !== changeCount;
      if (from === undefined && pass === undefined && !isDue) return found;
      const rules = rulesOf(bucketId, configBytes);
      const judge = new LifecycleJudge({ rules, bucket, deleteRules, nowMs, readAtMs, dayMs });
      const place = from ?? pass?.place;
      const bounds = { rowsMax, itemsMax: Math.min(itemsMax, itemsOfStep(judge)) };
      const page = await examinePage(state, judge, place, bounds);
      // What comes from here on may not be seen by this pass.
      const laterMs = Math.min(page.laterMs, place === undefined ? judge.earliestOfNewMs() : Infinity);
      const { next, examinedCount, keptCount, from: begun = { stage: 'uploads' as const } } = page;
      return {
        ...found,
        page: {
          from: begun,
          items: page.found.map(itemOf),
          examinedCount,
          keptCount,
          ...(laterMs < Infinity && { laterMs }),
          ...(next && { next }),
        },
      };
    },
  };
}

/** The commit judges all of its items again in one piece, and reads for each the newer versions that rules count. */
function itemsOfStep({ comparisonsMax, newestMax }: LifecycleJudge): number {
  const most = Math.min(STEP_COMPARISONS / comparisonsMax, STEP_NEWER_ROWS / newestMax);
  return Math.max(1, Math.ceil(most));
}

function itemOf({ action, key, order, newer, uploadId, value }: FoundItem): LifecycleItem {
  if (action === 'make-marker') return { key, isMarked: true };
  if (uploadId !== undefined) return { key, uploadId };
  if (order === undefined || newer === undefined) return { key };
  return { key, order, newer, versionId: storedVersionId(value) };
}

export const lifecycleStatus: QuerySpec<QueryOf<'lifecycle-status'>, ResultOf<'lifecycle-status'>> = {
  async run({ bucketId }, state, { acceptedMs: nowMs }) {
    const [row] = await state.rows([lifecycleRow(bucketId)]);
    const [objectCount = 0] = await state.counters([COUNTER.bucketObjects(bucketId)]);
    return { record: row === undefined ? null : lifecycleCodec.decode(row), nowMs, objectCount };
  },
};

export function previewLifecycle(
  deleteRules: DeleteRules,
): QuerySpec<QueryOf<'preview-lifecycle'>, ResultOf<'preview-lifecycle'>> {
  return {
    async run(query, state, { nowMs: readAtMs, acceptedMs }) {
      const { bucketId, rules, dayMs, atMs: nowMs = acceptedMs, from, rowsMax, firstMax } = query;
      const [row] = await state.rows([bucketRow(bucketId)]);
      const bucket = row && bucketCodec.decode(row);
      if (bucket === undefined) return { examinedCount: 0, sums: [], first: [] };
      const options = { rules, bucket, deleteRules, nowMs, readAtMs, dayMs, ofRulesOnly: true };
      const kept = sumPreviewed({ isKept: true, firstMax });
      const bounds = { rowsMax, itemsMax: rowsMax, onKept: kept.add };
      const page = await examinePage(state, new LifecycleJudge(options), from, bounds);
      const { examinedCount, found, next } = page;
      const due = sumPreviewed({ isKept: false, firstMax });
      for (const item of found) due.add(item);
      const first = [...due.first, ...kept.first];
      const sums = [...due.sums.values(), ...kept.sums.values()];
      return { examinedCount, sums, first, ...(next && { next }) };
    },
  };
}

/** The sums of items, and the first of them; nothing else of an item is kept. */
function sumPreviewed({ isKept, firstMax }: { isKept: boolean; firstMax: number }) {
  const sums = new Map<string, PreviewedSum>();
  const first: PreviewedItem[] = [];
  const add = (item: FoundItem) => {
    const { ruleId = '', action, sizeBytes } = item;
    const name = `${action} ${ruleId}`;
    const sum = sums.get(name) ?? { ruleId, action, isKept, count: 0, sizeBytes: 0 };
    sum.count++;
    sum.sizeBytes += sizeBytes;
    sums.set(name, sum);
    if (first.length < firstMax) first.push(previewed(item, isKept));
  };
  return { sums, first, add };
}

function previewed(
  { ruleId = '', action, key, uploadId, sizeBytes, value }: FoundItem,
  isKept: boolean,
): PreviewedItem {
  const item = { ruleId, key, action, isKept, sizeBytes };
  return uploadId === undefined ? { ...item, versionId: storedVersionId(value) } : { ...item, uploadId };
}
