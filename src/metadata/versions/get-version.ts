// GET, HEAD and copy sources: one version, with the body where that is small enough to be here.

import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, StateReader } from '../../ports/state-machine.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { homeShardOf } from '../../types/names.ts';
import { decodeVersion } from '../../types/records/version-record.ts';
import { type BlobUse, ownBody, type VersionRecord } from '../../types/version.ts';
import { readU48 } from '../schema/key-parts.ts';
import { bodyRow, currentRow, markerRow, versionIdRow, versionRow } from '../schema/keyspace.ts';

type Query = QueryOf<'get-version'>;
type Result = ResultOf<'get-version'>;

/** A look-up takes several reads, each of its own moment (L3): it starts over when the version moved between them. */
const TRIES_MAX = 10;

export const getVersion: QuerySpec<Query, Result> = {
  async run(query, state, { shard }) {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const result = await (query.versionId === undefined
        ? findCurrent(query, state)
        : findById(query, state));
      if (result === 'moved') continue;
      if (result.kind !== 'found' || !query.includeBody) return result;
      const use = inlineUse(result.version, shard);
      if (use === undefined) return result;
      const [inlineBody] = await state.rows([bodyRow(use.blobId)]);
      if (inlineBody !== undefined) return { ...result, inlineBody };
      // The version has gone since, and its body after it (R33).
    }
    throw new AppError('ServiceUnavailable');
  },
};

/** Latest objects, which are what is asked for most, are read together; what is no latest object, one by one. */
export const getVersions: QuerySpec<QueryOf<'get-versions'>, ResultOf<'get-versions'>> = {
  async run({ bucketId, wanted }, state, context) {
    const currents = await state.rows(wanted.map(({ key }) => currentRow(bucketId, key)));
    const results: Result[] = [];
    let sizeBytes = 0;
    for (const [at, address] of wanted.entries()) {
      const current = address.versionId === undefined ? currents[at] : undefined;
      const query = { bucketId, ...address, includeBody: false };
      const result =
        current === undefined
          ? await getVersion.run(query, state, context)
          : found(decodeVersion(current), true);
      sizeBytes += answerBytes(result);
      // At least one, however large it is.
      if (at > 0 && sizeBytes > LIMITS.queryPageBytesMax) break;
      results.push(result);
    }
    return { found: results };
  },
};

/** About. A version that has been appended to has hundreds of uses. */
const VERSION_BYTES = 2048;
const USE_BYTES = 256;

function answerBytes(result: Result): number {
  const body = result.kind === 'found' ? ownBody(result.version.manifest) : undefined;
  return VERSION_BYTES + USE_BYTES * (body?.uses.length ?? 0);
}

async function findCurrent({ bucketId, key }: Query, state: StateReader): Promise<Result> {
  const [current] = await state.rows([currentRow(bucketId, key)]);
  if (current !== undefined) return found(decodeVersion(current), true);
  // Both at one moment: between two reads the one may have become the other.
  const rows = await state.rows([currentRow(bucketId, key), markerRow(bucketId, key)]);
  const latest = rows[0] ?? rows[1];
  return latest === undefined ? { kind: 'no-such-key' } : found(decodeVersion(latest), true);
}

async function findById({ bucketId, key, versionId }: Query, state: StateReader): Promise<Result | 'moved'> {
  if (versionId === undefined) return { kind: 'no-such-version' };
  const [current, marker, order] = await state.rows([
    currentRow(bucketId, key),
    markerRow(bucketId, key),
    versionIdRow(bucketId, key, versionId),
  ]);
  const latest = current ?? marker;
  if (latest !== undefined) {
    const version = decodeVersion(latest);
    if (version.versionId === versionId) return found(version, true);
  }
  if (order === undefined) return { kind: 'no-such-version' };
  const [older] = await state.rows([versionRow(bucketId, key, readU48(order))]);
  return older === undefined ? 'moved' : found(decodeVersion(older), false);
}

function found(version: VersionRecord, isLatest: boolean): Result {
  if (!version.isDeleteMarker) return { kind: 'found', version, isLatest };
  const { versionId, modifiedAtMs } = version;
  return { kind: 'delete-marker', versionId, modifiedAtMs, isLatest };
}

/** The use whose body is the whole object and lies in this shard. */
function inlineUse({ manifest }: VersionRecord, shard: number): BlobUse | undefined {
  if (manifest.kind !== 'direct' || manifest.segments.length !== 1) return undefined;
  const [segment] = manifest.segments;
  const use = manifest.uses[segment?.use ?? -1];
  const isWhole = segment?.offsetBytes === 0 && segment.sizeBytes === use?.sizeBytes;
  return isWhole && use?.storage === 'inline' && homeShardOf(use.blobId) === shard ? use : undefined;
}
