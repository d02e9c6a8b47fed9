// The engine's own part of a full comparison: outcomes kept for retries, and the index by which they are forgotten (R18).
import { fromUtf8, toHex } from '../../base/bytes/bytes.ts';
import { allRows } from '../../base/table-rows.ts';
import type { ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import type { Finding } from '../../types/findings.ts';
import { ENGINE_TABLES } from './row-keys.ts';

const MINUTE_BYTES = 4;

/** Every index row leads to an outcome; as many outcomes as index rows, so that each will be forgotten. */
export const checkOutcomes: QuerySpec<object, ResultOf<'check-outcomes'>> = {
  async run(_query, state, { shard }) {
    const view = state.view(ENGINE_TABLES.self);
    const findings: Finding[] = [];
    try {
      let indexCount = 0;
      for await (const { key } of allRows(view, ENGINE_TABLES.requestTimes)) {
        indexCount++;
        const id = key.subarray(MINUTE_BYTES);
        const [outcome] = await view.rows([{ table: ENGINE_TABLES.requests, key: id }]);
        if (outcome !== undefined) continue;
        findings.push({
          kind: 'index-orphaned',
          shard,
          table: 'requestTimes',
          note: fromUtf8(id) || toHex(key),
        });
      }
      let outcomeCount = 0;
      for await (const _ of allRows(view, ENGINE_TABLES.requests)) outcomeCount++;
      const missingCount = outcomeCount + findings.length - indexCount;
      if (missingCount > 0) {
        findings.push({
          kind: 'index-missing',
          shard,
          table: 'requests',
          note: `of ${missingCount} outcomes`,
        });
      }
      return { findings };
    } finally {
      view.close();
    }
  },
};
