// Is there an order of these operations on one object that explains all answers and keeps to real time? The search of Wing
// and Gong with the memory of Lowe: try what may come first, remember what was tried, go back where nothing fits. An
// operation of which nobody knows what became may take effect at any later time, or never.
import {
  type HistoryRecord,
  isEqualOutcome,
  type KeyOperation,
  type Outcome,
  type RecordOf,
  stepKey,
} from './operations.ts';

/** An operation on one object, and when it was under way. */
export interface TimedRecord<Does, Outcome> {
  operation: Does;
  invokedAt: number;
  answeredAt: number;
  outcome: Outcome | undefined;
  of: RecordOf<unknown, unknown>;
}

/** An operation on one key; a page of a list counts as a read of each key that it covers. */
export type KeyRecord = TimedRecord<KeyOperation, Outcome>;

/** An object on which operations are checked: how it is before them, and what one makes of it. */
export interface SequentialObject<State, Does, Outcome> {
  initial: State;
  step(state: State, operation: Does): { outcome: Outcome; value: State };
  /** States are equal whose names are. */
  nameOf(state: State): string;
}

const ONE_KEY: SequentialObject<string | null, KeyOperation, Outcome> = {
  initial: null,
  step: stepKey,
  nameOf: (value) => (value === null ? '-' : `=${value}`),
};

/** One end of an operation in the list of what is left to explain. */
interface Mark<R> {
  record: R;
  index: number;
  isCall: boolean;
  /** Of a call whose answer is known. */
  answer: Mark<R> | undefined;
  before: Mark<R> | undefined;
  after: Mark<R> | undefined;
}

/**
 * States that are tried before it is given up: the search is exponential in operations whose outcome nobody has heard. Some
 * seconds, and a history of which it takes more says nothing.
 */
const TRIED_MAX = 400_000;

export type Linearized<R = KeyRecord> =
  | { kind: 'ok' }
  | { kind: 'impossible'; after: R[]; stuckAt: R[] }
  | { kind: 'undecided' };

/** Splits a history by keys: each of them is linearizable or none is. */
export function byKey(history: readonly HistoryRecord[]): Map<string, KeyRecord[]> {
  const keys = new Map<string, KeyRecord[]>();
  const add = (key: string, record: KeyRecord) => {
    const records = keys.get(key);
    if (records === undefined) keys.set(key, [record]);
    else records.push(record);
  };
  for (const record of history)
    if (record.operation.kind !== 'list') {
      const { operation, invokedAt, answeredAt, outcome } = record;
      // What was read is not known: it says nothing.
      if (operation.kind === 'read' && outcome === undefined) continue;
      add(operation.key, { operation, invokedAt, answeredAt, outcome, of: record });
    }
  for (const record of history) addPage(record, keys, add);
  return keys;
}

function addPage(
  record: HistoryRecord,
  keys: ReadonlyMap<string, KeyRecord[]>,
  add: (key: string, record: KeyRecord) => void,
): void {
  const { operation, outcome, invokedAt, answeredAt } = record;
  if (operation.kind !== 'list' || outcome?.kind !== 'page') return;
  const values = new Map(outcome.items);
  const last = outcome.isLast ? undefined : outcome.items.at(-1)?.[0];
  const covered = [...keys.keys()].filter(
    (key) => key > operation.after && (last === undefined || key <= last),
  );
  for (const key of new Set([...covered, ...values.keys()])) {
    const read: KeyRecord = {
      operation: { kind: 'read', key },
      invokedAt,
      answeredAt,
      outcome: { kind: 'value', value: values.get(key) ?? null },
      of: record,
    };
    add(key, read);
  }
}

/** Whether the operations on one key, which was absent before them, can be explained. */
export function linearize(records: readonly KeyRecord[]): Linearized {
  return linearizeObject(ONE_KEY, records);
}

/** Whether the operations on an object can be explained. */
export function linearizeObject<State, Does, Outcome>(
  object: SequentialObject<State, Does, Outcome>,
  records: readonly TimedRecord<Does, Outcome>[],
): Linearized<TimedRecord<Does, Outcome>> {
  type R = TimedRecord<Does, Outcome>;
  const head = listMarks(records);
  let unexplained = records.filter(({ outcome }) => outcome !== undefined).length;
  let value = object.initial;
  const done = new Uint8Array(Math.ceil(records.length / 8));
  const tried = new Set<string>();
  const path: { mark: Mark<R>; value: State }[] = [];
  let longest: Linearized<R> & { kind: 'impossible' } = { kind: 'impossible', after: [], stuckAt: [] };
  let mark = head.after;

  while (unexplained > 0) {
    if (tried.size > TRIED_MAX) return { kind: 'undecided' };
    if (mark?.isCall) {
      const next = object.step(value, mark.record.operation);
      const { outcome } = mark.record;
      const fits = outcome === undefined || isEqualOutcome(next.outcome, outcome);
      const name = object.nameOf(next.value);
      // What nobody has heard of need not come: where it would change nothing, it may as well come later, or never.
      const isIdle = outcome === undefined && name === object.nameOf(value);
      if (fits && !isIdle && isNew(tried, done, { index: mark.index, name })) {
        path.push({ mark, value });
        flip(done, mark.index);
        value = next.value;
        if (mark.answer !== undefined) unexplained--;
        lift(mark);
        mark = head.after;
      } else mark = mark.after;
      continue;
    }
    // An answer, or the end: what was called before it has been tried, and one of these had to come first.
    if (path.length >= longest.after.length)
      longest = {
        kind: 'impossible',
        after: path.map(({ mark: { record } }) => record),
        stuckAt: callsOf(head, mark),
      };
    const last = path.pop();
    if (last === undefined) return longest;
    value = last.value;
    flip(done, last.mark.index);
    if (last.mark.answer !== undefined) unexplained++;
    unlift(last.mark);
    mark = last.mark.after;
  }
  return { kind: 'ok' };
}

function listMarks<R extends TimedRecord<unknown, unknown>>(records: readonly R[]): Mark<R> {
  const marks: { at: number; mark: Mark<R> }[] = [];
  records.forEach((record, index) => {
    const none = { record, index, answer: undefined, before: undefined, after: undefined };
    const call: Mark<R> = { ...none, isCall: true };
    marks.push({ at: record.invokedAt, mark: call });
    if (record.outcome === undefined) return;
    call.answer = { ...none, isCall: false };
    marks.push({ at: record.answeredAt, mark: call.answer });
  });
  // In one step a call comes before an answer: then the two are taken for concurrent, which accuses nobody wrongly.
  marks.sort((one, other) => one.at - other.at || Number(other.mark.isCall) - Number(one.mark.isCall));
  const head = { isCall: false, index: -1, answer: undefined, before: undefined, after: undefined } as Omit<
    Mark<R>,
    'record'
  > as Mark<R>;
  let last = head;
  for (const { mark } of marks) {
    last.after = mark;
    mark.before = last;
    last = mark;
  }
  return head;
}

function isNew(
  tried: Set<string>,
  done: Uint8Array,
  { index, name }: { index: number; name: string },
): boolean {
  flip(done, index);
  const state = `${Buffer.from(done.buffer).toString('latin1')}${name}`;
  flip(done, index);
  if (tried.has(state)) return false;
  tried.add(state);
  return true;
}

function flip(bits: Uint8Array, index: number): void {
  bits[index >>> 3] = (bits[index >>> 3] ?? 0) ^ (1 << (index & 7));
}

function lift<R>({ before, after, answer }: Mark<R>): void {
  if (before !== undefined) before.after = after;
  if (after !== undefined) after.before = before;
  if (answer?.before !== undefined) answer.before.after = answer.after;
  if (answer?.after !== undefined) answer.after.before = answer.before;
}

function unlift<R>(mark: Mark<R>): void {
  const { before, after, answer } = mark;
  if (answer?.before !== undefined) answer.before.after = answer;
  if (answer?.after !== undefined) answer.after.before = answer;
  if (before !== undefined) before.after = mark;
  if (after !== undefined) after.before = mark;
}

function callsOf<R>(head: Mark<R>, end: Mark<R> | undefined): R[] {
  const calls: R[] = [];
  for (let mark = head.after; mark !== undefined && mark !== end; mark = mark.after)
    if (mark.isCall) calls.push(mark.record);
  if (end !== undefined && !calls.includes(end.record)) calls.push(end.record);
  return calls;
}
