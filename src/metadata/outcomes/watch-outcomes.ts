// What the shards that are led here keep of requests that are over, as figures: who reads them sees how near they are to
// what may be kept (outcome-bounds.ts), before requests are refused for it.
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { TelemetryPort } from '../../ports/telemetry.ts';
import type { Worker } from '../../ports/worker.ts';

const LOOK_EVERY_MS = 10_000;

export function createOutcomeWatch(deps: {
  metadata: MetadataPort;
  shards(): readonly number[];
  telemetry: TelemetryPort;
}): Worker {
  const { metadata, shards, telemetry } = deps;

  return {
    name: 'watch-outcomes',
    async work() {
      const tokens: number[] = [];
      const tokenless: number[] = [];
      for (const shard of shards()) {
        const reply = await metadata.query({ shard }, 'count-kept', {});
        if (reply.kind !== 'done') continue;
        tokens.push(reply.value.tokenBytes);
        tokenless.push(reply.value.tokenlessBytes);
      }
      for (const [of, bytes] of Object.entries({ tokens, tokenless })) {
        const sum = bytes.reduce((total, one) => total + one, 0);
        telemetry.gauge('holdfast_outcome_bytes', sum, { of });
        telemetry.gauge('holdfast_outcome_bytes_max', Math.max(0, ...bytes), { of });
      }
      return { state: 'idle', idleMs: LOOK_EVERY_MS };
    },
  };
}
