// Versions as the logs of the shards show them, for requests without an answer: such a request made the version that it
// asked for, or never did. Each version that a log has is one that a client asked for.

import { keyOfRow } from '../../src/metadata/engine/row-keys.ts';
import { REGION, readVersionPosition, TABLES, versionPosition } from '../../src/metadata/schema/keyspace.ts';
import type { BucketId } from '../../src/types/names.ts';
import { decodeVersion, storedVersionId, versionOrder } from '../../src/types/records/version-record.ts';
import type { Manifest } from '../../src/types/version.ts';
import { type BucketOperation, type BucketRecord, NULL_ID, piecesOf } from './bucket-operations.ts';
import { SimulationFailure } from './scheduler.ts';
import type { ShardHistory } from './shard-history.ts';

/** A version when it was made. */
export interface MadeVersion {
  key: string;
  versionId: string;
  /** null: a delete marker. */
  value: string | null;
  madeAtMs: number;
  /** Later on it bore another key. */
  isMoved: boolean;
}

/** Key and order of a version, wherever its row lies. `own`: of a row of the table `objects`. */
export function positionOf(own: Uint8Array, value: Uint8Array): ReturnType<typeof readVersionPosition> {
  const isOlder = own[0] === REGION.version;
  return readVersionPosition(isOlder ? own.subarray(1) : versionPosition(own, versionOrder(value)));
}

/** All that were ever made in a bucket, in that order; of null versions, which have no id of their own, each value once. */
export function madeVersions(
  history: ShardHistory,
  { bucketId, tell }: { bucketId: BucketId; tell(manifest: Manifest): string },
): MadeVersion[] {
  const made = new Map<string, MadeVersion>();
  for (const { rows, committedAtMs } of history.entries)
    for (const { column, key: row, value } of rows) {
      if (column !== 'rows' || row[2] !== TABLES.objects.id || value === null) continue;
      const versionId = storedVersionId(value);
      const position = positionOf(keyOfRow(row), value);
      if (position.bucketId !== bucketId) continue;
      const known = made.get(versionId);
      if (known !== undefined) known.isMoved ||= known.key !== position.key;
      if (known !== undefined) continue;
      const { isDeleteMarker, manifest } = decodeVersion(value);
      const said = isDeleteMarker ? null : tell(manifest);
      const name = versionId === NULL_ID ? `${NULL_ID} ${said}` : versionId;
      if (!made.has(name))
        made.set(name, {
          key: position.key,
          versionId,
          value: said,
          madeAtMs: committedAtMs,
          isMoved: false,
        });
    }
  return [...made.values()];
}

type Making = Extract<BucketOperation, { kind: 'put' | 'append' | 'renew' | 'mark' }>;
type MakingRecord = BucketRecord & { operation: Making };

/**
 * The history of a bucket that keeps versions, with the ids of those that were made without an answer, and without what
 * never came to anything. Throws {@link SimulationFailure} for a version that nobody asked for, and for one that somebody was
 * told of and that never was. `mayBeNull`: versioning was suspended at times, and the logs do not say what became of a
 * request that may have made a null version.
 */
export function closeHistories(
  history: readonly BucketRecord[],
  { made, mayBeNull }: { made: readonly MadeVersion[]; mayBeNull: boolean },
): BucketRecord[] {
  const told = new Set(
    history.flatMap(({ operation }) => (isMaking(operation) ? (operation.versionId ?? []) : [])),
  );
  const ids = new Set(made.map(({ versionId }) => versionId));
  const lost = [...told].find((versionId) => versionId !== NULL_ID && !ids.has(versionId));
  if (lost !== undefined) throw new SimulationFailure(`I7: version ${lost} was acknowledged and never made`);
  const left = new Set(made.filter(({ versionId }) => versionId !== NULL_ID && !told.has(versionId)));
  const appended = byLastPiece(made);
  const open = history
    .filter((record): record is MakingRecord => isMaking(record.operation) && record.outcome === undefined)
    .toSorted((one, other) => one.invokedAtMs - other.invokedAtMs);
  const idOf = new Map<BucketRecord, string>();
  // An append is known by its piece; a copy onto itself goes by no value of its own, and has what is left.
  for (const kinds of [['append'], ['put', 'mark'], ['renew']])
    for (const version of left) {
      const by = open.find(
        (record) =>
          kinds.includes(record.operation.kind) &&
          !idOf.has(record) &&
          mayHaveMade(record, version, appended),
      );
      if (by === undefined) continue;
      idOf.set(by, version.versionId);
      left.delete(version);
    }
  const [stray] = left;
  if (stray !== undefined)
    throw new SimulationFailure(
      `I7: nobody asked for version ${stray.versionId} of ${stray.key}, which says ${stray.value}`,
    );
  return history.flatMap((record) => {
    if (!isMaking(record.operation) || record.outcome?.kind === 'absent') return [record];
    const { versionId = idOf.get(record) ?? (mayBeNull ? NULL_ID : undefined) } = record.operation;
    return versionId === undefined ? [] : [{ ...record, operation: { ...record.operation, versionId } }];
  });
}

function isMaking(operation: BucketOperation): operation is Making {
  const { kind } = operation;
  return kind === 'put' || kind === 'append' || kind === 'renew' || kind === 'mark';
}

/** By the piece that each ends with, the first one: that of the append, which copies of it come behind. */
function byLastPiece(made: readonly MadeVersion[]): Map<string, MadeVersion> {
  const first = new Map<string, MadeVersion>();
  for (const version of made) {
    const piece = version.value === null ? undefined : piecesOf(version.value).at(-1);
    if (piece !== undefined && !first.has(piece)) first.set(piece, version);
  }
  return first;
}

function mayHaveMade(
  { operation, invokedAtMs }: MakingRecord,
  version: MadeVersion,
  appended: ReadonlyMap<string, MadeVersion>,
): boolean {
  if (operation.key !== version.key || invokedAtMs > version.madeAtMs) return false;
  switch (operation.kind) {
    case 'put':
      return operation.value === version.value;
    case 'append':
      return appended.get(operation.piece) === version;
    case 'renew':
      return version.value !== null;
    case 'mark':
      return version.value === null;
  }
}
