// What clients do with the objects of one bucket where keys are renamed and objects grow: the bucket is one object then,
// a map of keys to what they have, for a MOVE concerns two of its keys. A value is the pieces that it was made of, in order,
// each with its size: `1.2/40+3.4/25`. A key has its versions, newest first, objects and delete markers: none, and it is
// absent; a bucket that keeps no versions has one of each key, which bears no id.
import { LIMITS } from '../../src/types/limits.ts';
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
  | ({ kind: 'move' } & KeyMove)
  /** A MOVE of a prefix comes by this key, once between its beginning and its end, and moves it if it can. */
  | { kind: 'sweep'; key: string; to: string; overwrites: boolean }
  /** Somebody asks for a MOVE of a key in several entries; what those do is `rename`. */
  | ({ kind: 'begin-rename' } & KeyMove)
  /** One entry of such a MOVE, by which so many versions bear the new key. */
  | { kind: 'rename'; key: string; to: string; overwrites: boolean; phase: RenamePhase; count: number };

interface KeyMove {
  key: string;
  to: string;
  overwrites: boolean;
  /** By its answer: versions were kept, so a null version under the new key stays, and refuses one that comes. */
  keepsNull?: boolean;
}

/** `open`: the latest version moves, and the null version; `move`: some below, newest first; `close`: none is left. */
export type RenamePhase = 'open' | 'move' | 'close';

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
  | { kind: 'swept' }
  | { kind: 'renamed' }
  /** Never answered: where a key is being renamed nothing else changes it, and where it could not be no entry renames it. */
  | { kind: 'impossible' };

export type BucketRecord = RecordOf<BucketOperation, BucketOutcome>;

/** The id of versions that were written while the bucket's versioning was suspended: a key has one of them at most. */
export const NULL_ID = 'null';

interface Version {
  /** Absent where no versions are kept. */
  id: string | undefined;
  /** null: a delete marker. */
  value: string | null;
}

/** Of one key, newest first; empty only while it is being renamed. `name` distinguishes it from all others. */
interface Versions {
  list: readonly Version[];
  name: string;
  rename?: Rename;
}

/** Both keys have it. */
interface Rename {
  from: string;
  to: string;
  /** All versions that move, those that have moved, and what was under the new key and stays there; newest first. */
  source: readonly Version[];
  moved: readonly Version[];
  below: readonly Version[];
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
  if (operation.kind === 'rename') return rename(keys, operation);
  if (isWrite(operation) && isHeld(keys, operation)) {
    const kind = operation.kind === 'sweep' ? 'swept' : 'impossible';
    return { outcome: { kind }, value: keys };
  }
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
    case 'sweep': {
      const { outcome, value } = move(keys, operation);
      return { outcome: outcome.kind === 'impossible' ? outcome : { kind: 'swept' }, value };
    }
    case 'begin-rename':
      return { outcome: move(keys, operation).outcome, value: keys };
    default:
      return { outcome: look(keys.get(key), operation), value: keys };
  }
}

function isWrite({ kind }: BucketOperation): boolean {
  return kind !== 'read' && kind !== 'read-version' && kind !== 'list';
}

/** One of the keys that it is about is being renamed. */
function isHeld(keys: Keys, operation: BucketOperation): boolean {
  const isRenamed = (key: string) => keys.get(key)?.rename !== undefined;
  return isRenamed(operation.key) || ('to' in operation && isRenamed(operation.to));
}

function look(
  versions: Versions | undefined,
  operation: Extract<BucketOperation, { kind: 'read' | 'read-version' | 'list' }>,
): BucketOutcome {
  const { list = [], rename } = versions ?? {};
  if (operation.kind === 'list')
    return {
      kind: 'listed',
      versions: list.map(({ id = NULL_ID, value }) => ({ versionId: id, isMarker: value === null })),
    };
  // The latest version of a key that is being renamed goes first, and none of those below takes its place.
  const latest = rename?.from === operation.key ? undefined : list[0];
  const found = operation.kind === 'read' ? latest : list.find(({ id }) => id === operation.versionId);
  return valueOutcome(found?.value ?? null, found?.id);
}

/** What a read returns. */
export function valueOutcome(value: string | null, versionId: string | undefined): BucketOutcome {
  return { kind: 'value', value, ...(versionId !== undefined && { versionId }) };
}

/** In one entry: all versions and delete markers, above those that are there; the null version that comes replaces the one there. */
function move(keys: Keys, { key, to, overwrites, keepsNull = false }: KeyMove): Step {
  const ends = endsOf(keys, { key, to, overwrites, keepsNull });
  if (!('source' in ends)) return { outcome: ends, value: keys };
  const { source, left } = ends;
  // It moves in several.
  if (source.length > LIMITS.moveVersionsMax) return { outcome: { kind: 'impossible' }, value: keys };
  const value = withVersions(withVersions(keys, key, []), to, [...source, ...left]);
  const versionIds = source.flatMap(({ id }) => id ?? []);
  return { outcome: { kind: 'moved', ...(versionIds.length > 0 && { versionIds }) }, value };
}

/** What moves, and what stays under the new key; or why nothing moves. */
function endsOf(
  keys: Keys,
  { key, to, overwrites, keepsNull = false }: KeyMove,
): { source: readonly Version[]; left: readonly Version[] } | { kind: 'absent' | 'exists' } {
  const source = keys.get(key)?.list ?? [];
  const target = keys.get(to)?.list ?? [];
  if (source.length === 0) return { kind: 'absent' };
  const replaced = source.some(isNull) ? target.find(isNull) : undefined;
  const isTaken = [target[0], replaced].some((version) => version !== undefined && version.value !== null);
  if (isTaken && !overwrites) return { kind: 'exists' };
  if (keepsNull && replaced !== undefined && replaced.value !== null) return { kind: 'exists' };
  return { source, left: target.filter((version) => version !== replaced) };
}

/** One entry of several: each version is under one of both keys, and they keep their order. */
function rename(keys: Keys, operation: Extract<BucketOperation, { kind: 'rename' }>): Step {
  const { key: from, to, phase, count } = operation;
  const impossible: Step = { outcome: { kind: 'impossible' }, value: keys };
  const done = (value: Keys): Step => ({ outcome: { kind: 'renamed' }, value });
  if (phase === 'open') {
    const ends = isHeld(keys, operation) ? undefined : endsOf(keys, operation);
    if (ends === undefined || !('source' in ends)) return impossible;
    const { source, left: below } = ends;
    const moved = source.filter((version, at) => at === 0 || isNull(version));
    return moved.length === count ? done(withRename(keys, { from, to, source, moved, below })) : impossible;
  }
  const before = keys.get(from)?.rename;
  if (before?.from !== from || before.to !== to) return impossible;
  const { source, below } = before;
  const older = source.filter((version) => !before.moved.includes(version));
  if (phase === 'close')
    return older.length > 0 ? impossible : done(withoutRename(keys, from, to, [...source, ...below]));
  const next = older.slice(0, count);
  return next.length < count
    ? impossible
    : done(withRename(keys, { ...before, moved: [...before.moved, ...next] }));
}

function withRename(keys: Keys, rename: Rename): Keys {
  const { from, to, source, moved, below } = rename;
  const has = (version: Version) => moved.includes(version);
  const changed = new Map(keys);
  const all = source.map(nameOf).join('|');
  const set = (key: string, list: readonly Version[]) =>
    changed.set(key, { list, name: `${list.map(nameOf).join('|')} of ${from}>${to}: ${all}`, rename });
  set(
    from,
    source.filter((version) => !has(version)),
  );
  set(to, [...source.filter(has), ...below]);
  return changed;
}

function withoutRename(keys: Keys, from: string, to: string, list: readonly Version[]): Keys {
  return withVersions(withVersions(keys, from, []), to, list);
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
    if (!('to' in operation)) continue;
    const [one, other] = [headOf(operation.key), headOf(operation.to)];
    if (one !== other) kinOf.set(one, other);
  }
  return [...Map.groupBy(history, ({ operation }) => headOf(operation.key)).values()];
}
