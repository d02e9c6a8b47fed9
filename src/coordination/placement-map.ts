// The placement map, one document under `placement`.
import { assert } from '../base/assert.ts';
import type { PlacementMapPort, StoredPlacement } from '../ports/placement-map.ts';
import { LIMITS } from '../types/limits.ts';
import type { CoordinationContext } from './coordination-context.ts';
import { followKeys } from './follow-keys.ts';
import { placementRecord } from './records.ts';
import { skipUnreadable } from './skip-unreadable.ts';
import type { StoredKey } from './store.ts';

export function createPlacementMap({ store, clock, log, prefix }: CoordinationContext): PlacementMapPort {
  const key = `${prefix}placement`;

  const stored = (row: StoredKey): StoredPlacement => ({
    document: placementRecord.decode(key, row.value).document,
    revision: row.modRevision,
  });

  return {
    async read() {
      const { row } = await store.get(key);
      return row && stored(row);
    },
    async swap({ expected, document }) {
      const value = placementRecord.encode({ document });
      const sizeBytes = Buffer.byteLength(value);
      assert(
        sizeBytes <= LIMITS.coordinatorValueBytesMax,
        `a placement map of ${sizeBytes} bytes is too large`,
      );
      return store.put({ key, value, expected });
    },
    watch(onChange, signal) {
      const report = (row: StoredKey | undefined) => {
        if (row?.key === key) skipUnreadable(log, () => onChange(stored(row)));
      };
      void followKeys({
        store,
        clock,
        log,
        prefix: key,
        onState: (rows) => rows.forEach(report),
        onChange: ({ row }) => report(row),
        signal,
      });
    },
  };
}
