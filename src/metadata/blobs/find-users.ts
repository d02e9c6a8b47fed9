// Who uses certain blobs: versions, parts of open uploads and manifests of a shard, page by page. For naming what is damaged
// in the words of its owner.
import { toHex } from '../../base/bytes/bytes.ts';
import { isLastPage } from '../../base/row-pages.ts';
import { behind, TABLE_END } from '../../base/table-rows.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, StateView } from '../../ports/state-machine.ts';
import type { FindingPlace } from '../../types/findings.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BlobId, BucketId, UploadId } from '../../types/names.ts';
import { bucketCodec, manifestPageCodec, partCodec } from '../../types/records/rows.ts';
import { decodeVersion } from '../../types/records/version-record.ts';
import { linksOf } from '../../types/version.ts';
import {
  bucketRow,
  readUploadTime,
  readVersionPosition,
  TABLES,
  uploadIdOf,
  uploadTimeRow,
} from '../schema/keyspace.ts';
import { versionsBehind } from '../versions/version-walk.ts';

type Query = QueryOf<'find-users'>;
type Result = ResultOf<'find-users'>;

const MANIFEST_ID_BYTES = 16;

export const findUsers: QuerySpec<Query, Result> = {
  async run(query, state) {
    const view = state.view();
    try {
      return await (query.table === 'objects' ? ofVersions(query, view) : ofTable(query, view));
    } finally {
      view.close();
    }
  },
};

async function ofVersions({ blobIds, after, limit }: Query, view: StateView): Promise<Result> {
  const wanted = new Set(blobIds);
  const users: Result['users'] = [];
  let rowCount = 0;
  let next: Uint8Array | undefined;
  for await (const walked of versionsBehind(view, { after, limit })) {
    next = walked.position;
    const version = legible(() => decodeVersion(walked.value));
    const used = version === undefined ? [] : usedOf(linksOf(version.manifest), wanted);
    if (version !== undefined && used.length > 0) {
      const { bucketId, key } = readVersionPosition(walked.position);
      const place = { bucket: await bucketName(view, bucketId), key, version: version.versionId };
      for (const blobId of used) users.push({ blobId, place });
    }
    rowCount++;
  }
  return { users, rowCount, ...(rowCount === limit && next !== undefined && { next }) };
}

async function ofTable({ blobIds, table, after, limit }: Query, view: StateView): Promise<Result> {
  const wanted = new Set(blobIds);
  const users: Result['users'] = [];
  const [address, codec] =
    table === 'parts' ? [TABLES.parts, partCodec] : [TABLES.manifestPages, manifestPageCodec];
  const asked = { limit, bytesMax: LIMITS.queryPageBytesMax };
  const rows = await view.range({ table: address, gte: behind(after), lt: TABLE_END, ...asked });
  for (const { key, value } of rows) {
    const row = legible(() => codec.decode(value));
    const used = row === undefined ? [] : usedOf(row.uses, wanted);
    if (used.length === 0) continue;
    const isPart = row !== undefined && 'partNumber' in row;
    const place = isPart
      ? {
          ...(await uploadPlace(view, uploadIdOf(key))),
          part: row.partNumber,
        }
      : { manifest: toHex(key.subarray(0, MANIFEST_ID_BYTES)) };
    for (const blobId of used) users.push({ blobId, place });
  }
  const last = rows.at(-1);
  return { users, rowCount: rows.length, ...(last && !isLastPage(rows, asked) && { next: last.key }) };
}

async function uploadPlace(view: StateView, upload: UploadId): Promise<FindingPlace> {
  const [row] = await view.rows([uploadTimeRow(upload)]);
  if (row === undefined) return { upload };
  const { bucketId, key } = readUploadTime(row);
  return { bucket: await bucketName(view, bucketId), key, upload };
}

/** Its id where it has no row. */
async function bucketName(view: StateView, bucketId: BucketId): Promise<string> {
  const [row] = await view.rows([bucketRow(bucketId)]);
  return row === undefined ? bucketId : bucketCodec.decode(row).name;
}

function usedOf(uses: readonly { blobId: BlobId }[], wanted: ReadonlySet<BlobId>): BlobId[] {
  const found = uses.map(({ blobId }) => blobId).filter((blobId) => wanted.has(blobId));
  return [...new Set(found)];
}

/** A row that is broken is found as such elsewhere. */
function legible<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch {
    return undefined;
  }
}
