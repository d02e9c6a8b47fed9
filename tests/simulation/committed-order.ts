// Holds what clients were told against the order in which a shard committed: answers are those of the operations done in
// that order, the order keeps to real time, and every read and every page of a list is the state at one moment between
// request and answer (I4, I6, I7). Stronger than the search over single keys, because a page covers many.
import {
  describeRecord,
  type HistoryRecord,
  isChange,
  isEqualOutcome,
  isWrite,
  type KeyOperation,
  type Outcome,
  pageOf,
  stepKey,
} from './operations.ts';
import { SimulationFailure } from './scheduler.ts';

/** What the shard committed, in order: requests of clients alone need be in it. */
export interface CommittedOrder {
  lastSeq: number;
  /** undefined: nothing of this request was ever committed. */
  seqOf(requestId: string): number | undefined;
  requestAt(seq: number): string | undefined;
}

/** Throws {@link SimulationFailure} where answers and order disagree. `history` is of one shard. */
export function checkCommittedOrder(history: readonly HistoryRecord[], order: CommittedOrder): void {
  const values = replay(history, order);
  const keys = [...values.keys()].sort();
  placeInTime(history, order, (record, seq) => {
    const { operation } = record;
    if (operation.kind !== 'list') return stepKey(valueAt(values.get(operation.key), seq), operation).outcome;
    const items = keys.flatMap((key): [string, string][] => {
      const value = valueAt(values.get(key), seq);
      return value === null ? [] : [[key, value]];
    });
    return pageOf(items, operation);
  });
}

/** Of one key: values by the entry that wrote them. */
type Values = { seq: number; value: string | null }[];

function valueAt(values: Values | undefined, seq: number): string | null {
  return values?.findLast((candidate) => candidate.seq <= seq)?.value ?? null;
}

/** Does all that was committed, in its order, and compares the answers. */
function replay(history: readonly HistoryRecord[], order: CommittedOrder): Map<string, Values> {
  const records = new Map(history.map((record) => [record.requestId, record]));
  const values = new Map<string, Values>();
  for (let seq = 1; seq <= order.lastSeq; seq++) {
    const requestId = order.requestAt(seq);
    const record = requestId === undefined ? undefined : records.get(requestId);
    if (record === undefined) continue;
    const operation = record.operation as KeyOperation;
    const ofKey = values.get(operation.key) ?? [];
    values.set(operation.key, ofKey);
    const { outcome, value } = stepKey(valueAt(ofKey, seq), operation);
    if (record.outcome !== undefined && !isEqualOutcome(outcome, record.outcome))
      throw new SimulationFailure(
        `I7: committed at ${seq}, where the answer is ${JSON.stringify(outcome)}: ${describeRecord(record)}`,
      );
    ofKey.push({ seq, value });
  }
  return values;
}

/**
 * Gives every operation its moment: the earliest that explains its answer and does not come before that of one which had
 * been answered when it began. If any choice works, the earliest does.
 */
function placeInTime(
  history: readonly HistoryRecord[],
  order: CommittedOrder,
  answerAt: (record: HistoryRecord, seq: number) => Outcome,
): void {
  const begun = [...history].sort((one, other) => one.invokedAt - other.invokedAt);
  const answered: { at: number; seq: number; record: HistoryRecord }[] = [];
  for (const record of begun) {
    const { operation, outcome, requestId } = record;
    const before = newestBefore(answered, record.invokedAt);
    const from = before?.seq ?? 0;
    const seq = isWrite(operation) ? order.seqOf(requestId) : undefined;
    if (seq !== undefined) {
      if (seq <= from)
        throw new SimulationFailure(
          `I7: committed at ${seq}, before what had been seen at ${from}: ${describeRecord(record)}, ` +
            `after ${before && describeRecord(before.record)}`,
        );
      if (outcome !== undefined) answered.push({ at: record.answeredAt, seq, record });
      continue;
    }
    if (outcome === undefined) continue;
    if (isWrite(operation) && isChange(outcome))
      throw new SimulationFailure(`I2: acknowledged, and nowhere committed: ${describeRecord(record)}`);
    const at = earliest(from, order.lastSeq, (candidate) =>
      isEqualOutcome(answerAt(record, candidate), outcome),
    );
    if (at === undefined)
      throw new SimulationFailure(
        `I7: at no moment from entry ${from} on is this the answer: ${describeRecord(record)}`,
      );
    answered.push({ at: record.answeredAt, seq: at, record });
  }
}

function earliest(from: number, to: number, fits: (seq: number) => boolean): number | undefined {
  for (let seq = from; seq <= to; seq++) if (fits(seq)) return seq;
  return undefined;
}

function newestBefore<T extends { at: number; seq: number }>(
  answered: readonly T[],
  step: number,
): T | undefined {
  let newest: T | undefined;
  for (const candidate of answered)
    if (candidate.at < step && candidate.seq > (newest?.seq ?? -1)) newest = candidate;
  return newest;
}

/** I7: of creators that raced for a key which nobody else touches, exactly one has won. */
export function checkRaces(history: readonly HistoryRecord[]): void {
  const byKey = Map.groupBy(
    history.filter(({ operation }) => isWrite(operation)),
    ({ operation }) => (operation as KeyOperation).key,
  );
  for (const [key, records] of byKey) {
    if (records.length < 2 || records.some(({ operation }) => operation.kind !== 'create')) continue;
    const winners = records.filter(({ outcome }) => outcome?.kind === 'written');
    const hasUnknown = records.some(({ outcome }) => outcome === undefined);
    if (winners.length > 1 || (winners.length === 0 && !hasUnknown))
      throw new SimulationFailure(
        `I7: ${winners.length} creators of ${key} have won: ${records.map(describeRecord).join('; ')}`,
      );
  }
}
