// What clients do with the objects of one bucket where keys are renamed and objects grow: the bucket is one object then,
// a map of keys to what they have, for a MOVE concerns two of its keys. A value is the pieces that it was made of, in order,
// each with its size: `1.2/40+3.4/25`. A key has its versions, newest first, objects and delete markers: none, and it is
// absent; a bucket that keeps no versions has one of each key, which bears no id.
import type { SequentialObject } from './linearizability.ts';
import type { RecordOf } from './operations.ts';

/** What the version has that it makes: absent in buckets that keep none. */
interface MakesVersion {
  key: string;
  versionId?: string;
}

export type BucketOperation =
  | (MakesVersion & { kind: 'put'; value: string })
  /** A copy onto itself: the same data as another version. */
  | (MakesVersion & { kind: 'renew' })
  /** One more piece behind what is there. */
  | (MakesVersion & { kind: 'append'; piece: string })
  /** A deletion that names no version, where they are kept: a delete marker. */
  | (MakesVersion & { kind: 'mark' })
  /** A deletion where none are kept. */
  | { kind: 'remove'; key: string }
  /** One version for good, whatever it is. */
  | { kind: 'remove-version'; key: string; versionId: string }
  | { kind: 'read'; key: string }
  | { kind: 'read-version'; key: string; versionId: string }
  /** All versions of the key. */
  | { kind: 'list'; key: string }
  | { kind: 'move'; key: string; to: string; overwrites: boolean }
  /** A MOVE of a prefix comes by this key, once between its beginning and its end, and moves it if it can. */
  | { kind: 'sweep'; key: string; to: string; overwrites: boolean };

export type BucketOutcome =
  | { kind: 'written' }
  | { kind: 'gone' }
  /** null: a delete marker, if there is a version id; else nothing at all. */
  | { kind: 'value'; value: string | null; versionId?: string }
  /** The size behind the append. */
  | { kind: 'appended'; sizeBytes: number }
  | { kind: 'removed'; isMarker: boolean }
  /** Newest first. */
  | { kind: 'listed'; versions: { versionId: string; isMarker: boolean }[] }
  /** With these versions, newest first, where they are kept. */
  | { kind: 'moved'; versionIds?: string[] }
  /** There is no object of that key, or nothing at all that a MOVE could take. */
  | { kind: 'absent' }
  /** There is an object under the new name. */
  | { kind: 'exists' }
  | { kind: 'swept' };

export type BucketRecord = RecordOf<BucketOperation, BucketOutcome>;

/** The id of versions that were written while the bucket's versioning was suspended: a key has one of them at most. */
export const NULL_ID = 'null';

interface Version {
  /** Absent where no versions are kept. */
  id: string | undefined;
  /** null: a delete marker. */
  value: string | null;
}

/** Of one key, newest first; never empty. `name` tells it from all others. */
interface Versions {
  list: readonly Version[];
  name: string;
}

type Keys = ReadonlyMap<string, Versions>;
interface Step {
  outcome: BucketOutcome;
  value: Keys;
}

/** Objects of a bucket, which is empty at first. */
export const BUCKET: SequentialObject<Keys, BucketOperation, BucketOutcome> = {
  initial: new Map(),
  step: stepBucket,
  nameOf: (keys) =>
    [...keys]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, { name }]) => `${key}=${name}`)
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

function stepBucket(keys: Keys, operation: BucketOperation): Step {
  const { key } = operation;
  const list = keys.get(key)?.list ?? [];
  const latest = list[0];
  const written = (version: Version, outcome: BucketOutcome = { kind: 'written' }): Step => ({
    outcome,
    value: withVersions(keys, key, [version, ...withoutNull(list, version.id)]),
  });
  switch (operation.kind) {
    case 'put':
      return written({ id: operation.versionId, value: operation.value });
    case 'mark':
      return written({ id: operation.versionId, value: null });
    case 'append': {
      if (latest === undefined || latest.value === null) return { outcome: { kind: 'absent' }, value: keys };
      const value = joinPieces([latest.value, operation.piece]);
      return written({ id: operation.versionId, value }, { kind: 'appended', sizeBytes: sizeOf(value) });
    }
    case 'renew':
      if (latest === undefined || latest.value === null) return { outcome: { kind: 'absent' }, value: keys };
      return written({ id: operation.versionId, value: latest.value });
    case 'remove':
      return { outcome: { kind: 'gone' }, value: withVersions(keys, key, []) };
    case 'remove-version': {
      const gone = list.find(({ id }) => id === operation.versionId);
      const outcome = { kind: 'removed', isMarker: gone?.value === null } as const;
      const left = list.filter((version) => version !== gone);
      return { outcome, value: gone === undefined ? keys : withVersions(keys, key, left) };
    }
    case 'move':
      return move(keys, operation);
    case 'sweep':
      return { outcome: { kind: 'swept' }, value: move(keys, operation).value };
    default:
      return { outcome: look(list, operation), value: keys };
  }
}

function look(
  list: readonly Version[],
  operation: Extract<BucketOperation, { kind: 'read' | 'read-version' | 'list' }>,
): BucketOutcome {
  if (operation.kind === 'list')
    return {
      kind: 'listed',
      versions: list.map(({ id = NULL_ID, value }) => ({ versionId: id, isMarker: value === null })),
    };
  const found = operation.kind === 'read' ? list[0] : list.find(({ id }) => id === operation.versionId);
  return valueOutcome(found?.value ?? null, found?.id);
}

/** What a read tells. */
export function valueOutcome(value: string | null, versionId: string | undefined): BucketOutcome {
  return { kind: 'value', value, ...(versionId !== undefined && { versionId }) };
}

/** All versions and delete markers, above those that are there; the null version that comes replaces the one there. */
function move(keys: Keys, { key, to, overwrites }: { key: string; to: string; overwrites: boolean }): Step {
  const source = keys.get(key)?.list ?? [];
  const target = keys.get(to)?.list ?? [];
  const refused = (kind: 'absent' | 'exists'): Step => ({ outcome: { kind }, value: keys });
  if (source.length === 0) return refused('absent');
  const replaced = source.some(isNull) ? target.find(isNull) : undefined;
  const isTaken = [target[0], replaced].some((version) => version !== undefined && version.value !== null);
  if (isTaken && !overwrites) return refused('exists');
  const left = target.filter((version) => version !== replaced);
  const value = withVersions(withVersions(keys, key, []), to, [...source, ...left]);
  const versionIds = source.flatMap(({ id }) => id ?? []);
  return { outcome: { kind: 'moved', ...(versionIds.length > 0 && { versionIds }) }, value };
}

function isNull({ id }: Version): boolean {
  return id === undefined || id === NULL_ID;
}

/** What stays when a version of this id is written. */
function withoutNull(list: readonly Version[], id: string | undefined): readonly Version[] {
  return isNull({ id, value: null }) ? list.filter((version) => !isNull(version)) : list;
}

function withVersions(keys: Keys, key: string, list: readonly Version[]): Keys {
  if (list.length === 0 && !keys.has(key)) return keys;
  const changed = new Map(keys);
  if (list.length === 0) changed.delete(key);
  else changed.set(key, { list, name: list.map(nameOf).join('|') });
  return changed;
}

function nameOf({ id, value }: Version): string {
  return id === undefined ? `${value}` : `${value ?? 'marker'}@${id}`;
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
