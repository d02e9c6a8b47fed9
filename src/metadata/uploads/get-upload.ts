// An open upload and its parts (ListParts).

import { isLastPage } from '../../base/row-pages.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { ListedPart } from '../../ports/metadata/uploads.ts';
import type { QuerySpec, StateReader } from '../../ports/state-machine.ts';
import { completedUploadCodec, partCodec, type UploadRecord, uploadCodec } from '../../types/records/rows.ts';
import { completedUploadRow, partRange, uploadRow } from '../schema/keyspace.ts';
import type { UploadName } from './uploads.ts';

export const getUpload: QuerySpec<QueryOf<'get-upload'>, ResultOf<'get-upload'>> = {
  async run(query, state) {
    const upload = await readUpload(query, state);
    return { upload, wasCompleted: upload === null && (await isCompleted(query, state)) };
  },
};

/** Rows of parts that are read at once: each may have LIMITS.partSegmentsMax segments, and is decoded with all of them. */
const ROWS_MAX = 100;
const ROWS_BYTES_MAX = 256 * 1024;

/** Parts by number, behind `after`. */
export const listParts: QuerySpec<QueryOf<'list-parts'>, ResultOf<'list-parts'>> = {
  async run(query, state) {
    const { uploadId, after, max } = query;
    const upload = await readUpload(query, state);
    if (upload === null) return { kind: 'no-such-upload' };
    const parts: ListedPart[] = [];
    for (let last = after; parts.length <= max; ) {
      const asked = { limit: Math.min(ROWS_MAX, max + 1 - parts.length), bytesMax: ROWS_BYTES_MAX };
      const rows = await state.range(partRange({ uploadId, after: last, ...asked }));
      for (const { value } of rows) {
        const { uses: _uses, segments: _segments, ...part } = partCodec.decode(value);
        parts.push(part);
        last = part.partNumber;
      }
      if (isLastPage(rows, asked)) break;
    }
    return { kind: 'parts', upload, parts: parts.slice(0, max), isTruncated: max > 0 && parts.length > max };
  },
};

async function isCompleted({ bucketId, key, uploadId }: UploadName, state: StateReader): Promise<boolean> {
  const [row] = await state.rows([completedUploadRow(uploadId)]);
  const completed = row && completedUploadCodec.decode(row);
  return completed?.bucketId === bucketId && completed.key === key;
}

async function readUpload(name: UploadName, state: StateReader): Promise<UploadRecord | null> {
  const [row] = await state.rows([uploadRow(name.bucketId, name.key, name.uploadId)]);
  return row === undefined ? null : uploadCodec.decode(row);
}
