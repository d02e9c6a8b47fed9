// Rows of places that were lost with a table, made anew from the heads of records. What was deleted, and is not overwritten yet, comes
// back with them: whoever owns the values finds it as what nothing names.
import { concatBytes } from '../../base/bytes/bytes.ts';
import type { KvPort, KvPut } from '../../ports/kv.ts';
import type { ExtentIo } from './extent-io.ts';
import { encodePlace } from './extent-record.ts';
import { recordsOf } from './extents.ts';
import type { SeparatedColumns } from './separated-kv.ts';

/** Before the extents are opened. Durable when it resolves. Of two records of a key the first one found will do: they are alike. */
export async function regainPlaces(kv: KvPort, io: ExtentIo, columns: SeparatedColumns): Promise<void> {
  const { column, placeColumn, placePrefix } = columns;
  for (const { id } of await io.list()) {
    const file = io.file(id);
    for await (const { head, offset } of recordsOf(file)) {
      const { key, bodyBytes, sequence, bodyCrc32 } = head;
      const placeKey = concatBytes(placePrefix, key);
      const [[place], [value]] = await Promise.all([
        kv.getMany(placeColumn, [placeKey]),
        kv.getMany(column, [key]),
      ]);
      if (place !== undefined || value !== undefined) continue;
      const at = encodePlace({ fileId: id, offset, bodyBytes, sequence, bodyCrc32 });
      const row: KvPut = { column: placeColumn, key: placeKey, value: at };
      await kv.commit([row], { sync: false });
    }
    await file.close();
  }
  await kv.commit([]);
}
