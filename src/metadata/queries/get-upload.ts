// An open upload and its parts (ListParts).
import { type PartRecord, partCodec, type UploadRecord, uploadCodec } from '../../model/records/rows.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata.ts';
import type { QuerySpec, StateReader } from '../../ports/state-machine.ts';
import { partRange, uploadRow } from '../keyspace.ts';
import type { UploadName } from '../uploads.ts';

export const getUpload: QuerySpec<QueryOf<'get-upload'>, ResultOf<'get-upload'>> = {
  async run(query, state) {
    return { upload: await readUpload(query, state) };
  },
};

/** Parts by number, behind `after`. */
export const listParts: QuerySpec<QueryOf<'list-parts'>, ResultOf<'list-parts'>> = {
  async run(query, state) {
    const { uploadId, after, max } = query;
    const upload = await readUpload(query, state);
    if (upload === null) return { kind: 'no-such-upload' };
    const rows = await state.range(partRange({ uploadId, after, limit: max + 1 }));
    const parts = rows.slice(0, max).map((row): PartRecord => partCodec.decode(row.value));
    return { kind: 'parts', upload, parts, isTruncated: max > 0 && rows.length > max };
  },
};

async function readUpload(name: UploadName, state: StateReader): Promise<UploadRecord | null> {
  const [row] = await state.rows([uploadRow(name.bucketId, name.key, name.uploadId)]);
  return row === undefined ? null : uploadCodec.decode(row);
}
