// The last checks of a seed: the answers of all clients, as a whole (I7), and that nothing failed for no reason (I15).
import { BUCKET, type BucketRecord, byKinship } from './bucket-operations.ts';
import { checkCommittedOrder, checkRaces } from './committed-order.ts';
import type { FaultName } from './faults.ts';
import { byKey, linearize, linearizeObject } from './linearizability.ts';
import { describeRecord, type HistoryRecord } from './operations.ts';
import { SimulationFailure } from './scheduler.ts';
import type { ShardHistory } from './shard-history.ts';

/** What a fault leaves behind may be felt for so long (I15). */
const AFTERMATH_MS = 15_000;
/** These alone let no request fail (I15). */
const HARMLESS: readonly string[] = ['registry away', 'silent watch'] satisfies FaultName[];

export interface FaultSpan {
  name: string;
  fromMs: number;
  toMs: number;
}

/** Throws {@link SimulationFailure}. `histories` by shard: what was committed. */
export function checkHistory(
  history: readonly HistoryRecord[],
  world: { histories: readonly ShardHistory[]; spans: readonly FaultSpan[] },
): void {
  for (const committed of world.histories) {
    const ofShard = history.filter(({ shard }) => shard === committed.shard);
    checkRaces(ofShard);
    checkKeys(`shard ${committed.shard}`, ofShard);
    checkCommittedOrder(ofShard, {
      lastSeq: committed.lastSeq,
      seqOf: (requestId) => committed.seqOf(requestId),
      requestAt: (seq) => committed.entry(seq)?.requestId,
    });
  }
  checkCalm(history, world.spans);
}

/** I7: throws {@link SimulationFailure} for a key whose answers no order explains. `what`: whose keys these are. */
export function checkKeys(what: string, history: readonly HistoryRecord[]): void {
  for (const [key, records] of byKey(history)) {
    const result = linearize(records);
    if (result.kind === 'ok') continue;
    if (result.kind === 'undecided')
      throw new SimulationFailure(`I7: ${what}, key ${key}: too many orders to say whether one explains it`);
    const lines = result.stuckAt.map(({ of }) => `  ${describeRecord(of)}`);
    throw new SimulationFailure(
      `I7: ${what}, key ${key}: none of these can come next, after ${result.after.length}:\n${lines.join('\n')}`,
    );
  }
}

/**
 * I7, of a bucket whose keys are renamed: throws {@link SimulationFailure} for answers that no order explains. Gives how many parts of
 * the history are too large a search to say.
 */
export function checkBucket(what: string, history: readonly BucketRecord[]): number {
  let undecidedCount = 0;
  // What was read is not known: it says nothing.
  const telling = history.filter(
    ({ operation, outcome }) => operation.kind !== 'read' || outcome !== undefined,
  );
  for (const records of byKinship(telling)) {
    const result = linearizeObject(
      BUCKET,
      records.map((of) => ({ ...of, of })),
    );
    if (result.kind === 'undecided') undecidedCount++;
    if (result.kind !== 'impossible') continue;
    const keys = [...new Set(records.map(({ operation }) => operation.key))].join(', ');
    const lines = result.stuckAt.map(({ of }) => `  ${describeRecord(of)}`);
    throw new SimulationFailure(
      `I7: ${what}, keys ${keys}: none of these can come next, after ${result.after.length}:\n${lines.join('\n')}`,
    );
  }
  return undecidedCount;
}

/** With the registry away, and nothing else wrong, no request fails. */
function checkCalm(history: readonly HistoryRecord[], spans: readonly FaultSpan[]): void {
  const harmful = spans
    .filter(({ name }) => !HARMLESS.includes(name))
    .map(({ fromMs, toMs }) => ({ fromMs, feltUntilMs: madeUpForMs(toMs, spans) + AFTERMATH_MS }));
  for (const record of history) {
    const { invokedAtMs, answeredAtMs, outcome } = record;
    if (outcome !== undefined) continue;
    const isDisturbed = harmful.some(
      ({ fromMs, feltUntilMs }) => fromMs < answeredAtMs && invokedAtMs < feltUntilMs,
    );
    if (!isDisturbed)
      throw new SimulationFailure(`I15: failed, and nothing was wrong: ${describeRecord(record)}`);
  }
}

/** Who has lost its primary needs the registry for the next one. */
function madeUpForMs(toMs: number, spans: readonly FaultSpan[]): number {
  let untilMs = toMs;
  for (const span of spans.toSorted((one, other) => one.fromMs - other.fromMs))
    if (HARMLESS.includes(span.name) && span.fromMs < untilMs + AFTERMATH_MS)
      untilMs = Math.max(untilMs, span.toMs);
  return untilMs;
}
