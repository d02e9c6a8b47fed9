// What clients do with the objects of one bucket where keys are renamed and objects grow: the bucket is one object then,
// a map of keys to values, for a MOVE concerns two of its keys. A value is the pieces that it was made of, in order, each
// with its size: `1.2/40+3.4/25`.
import type { SequentialObject } from './linearizability.ts';
import type { RecordOf } from './operations.ts';

export type BucketOperation =
  | { kind: 'put'; key: string; value: string }
  | { kind: 'remove'; key: string }
  | { kind: 'read'; key: string }
  /** One more piece behind what is there. */
  | { kind: 'append'; key: string; piece: string }
  | { kind: 'move'; key: string; to: string; overwrites: boolean }
  /** A MOVE of a prefix comes by this key, once between its beginning and its end, and moves it if it can. */
  | { kind: 'sweep'; key: string; to: string; overwrites: boolean };

export type BucketOutcome =
  | { kind: 'written' }
  | { kind: 'gone' }
  | { kind: 'value'; value: string | null }
  /** The size behind the append. */
  | { kind: 'appended'; sizeBytes: number }
  | { kind: 'moved' }
  /** There is no object of that key. */
  | { kind: 'absent' }
  /** There is an object under the new name. */
  | { kind: 'exists' }
  | { kind: 'swept' };

export type BucketRecord = RecordOf<BucketOperation, BucketOutcome>;

type Values = ReadonlyMap<string, string>;
interface Step {
  outcome: BucketOutcome;
  value: Values;
}

/** Objects of a bucket, which is empty at first. */
export const BUCKET: SequentialObject<Values, BucketOperation, BucketOutcome> = {
  initial: new Map(),
  step: stepBucket,
  nameOf: (values) =>
    [...values]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, value]) => `${key}=${value}`)
      .join(' '),
};

export function pieceOf(name: string, sizeBytes: number): string {
  return `${name}/${sizeBytes}`;
}

export function joinPieces(values: readonly string[]): string {
  return values.join('+');
}

export function piecesOf(value: string): string[] {
  return value.split('+');
}

function sizeOf(value: string): number {
  return piecesOf(value).reduce((sum, piece) => sum + Number(piece.slice(piece.indexOf('/') + 1)), 0);
}

function stepBucket(values: Values, operation: BucketOperation): Step {
  const { key } = operation;
  const before = values.get(key);
  switch (operation.kind) {
    case 'put':
      return { outcome: { kind: 'written' }, value: withValue(values, key, operation.value) };
    case 'remove':
      return { outcome: { kind: 'gone' }, value: without(values, key) };
    case 'read':
      return { outcome: { kind: 'value', value: before ?? null }, value: values };
    case 'append': {
      if (before === undefined) return { outcome: { kind: 'absent' }, value: values };
      const value = joinPieces([before, operation.piece]);
      return {
        outcome: { kind: 'appended', sizeBytes: sizeOf(value) },
        value: withValue(values, key, value),
      };
    }
    case 'move':
      return move(values, operation);
    case 'sweep':
      return { outcome: { kind: 'swept' }, value: move(values, operation).value };
  }
}

function move(
  values: Values,
  { key, to, overwrites }: { key: string; to: string; overwrites: boolean },
): Step {
  const value = values.get(key);
  if (value === undefined) return { outcome: { kind: 'absent' }, value: values };
  if (values.has(to) && !overwrites) return { outcome: { kind: 'exists' }, value: values };
  return { outcome: { kind: 'moved' }, value: withValue(without(values, key), to, value) };
}

function withValue(values: Values, key: string, value: string): Values {
  return values.get(key) === value ? values : new Map(values).set(key, value);
}

function without(values: Values, key: string): Values {
  if (!values.has(key)) return values;
  const rest = new Map(values);
  rest.delete(key);
  return rest;
}

/** Of each set of keys that renames have to do with one another, what was done with these, in the order of its beginning. */
export function byKinship(history: readonly BucketRecord[]): BucketRecord[][] {
  const kinOf = new Map<string, string>();
  const headOf = (key: string): string => {
    const kin = kinOf.get(key);
    return kin === undefined ? key : headOf(kin);
  };
  for (const { operation } of history) {
    if (operation.kind !== 'move' && operation.kind !== 'sweep') continue;
    const [one, other] = [headOf(operation.key), headOf(operation.to)];
    if (one !== other) kinOf.set(one, other);
  }
  return [...Map.groupBy(history, ({ operation }) => headOf(operation.key)).values()];
}
