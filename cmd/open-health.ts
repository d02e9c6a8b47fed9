// The address of its own for health and metrics, where the settings have one (health.listen). Wiring only.

import type { ProcessContext } from '../src/admin/process-context.ts';
import { startHealthServer } from '../src/platform/telemetry/health-server.ts';

/** Open it before everything that it reports, so that it reports to the end. Returns its address, for the log. */
export async function openHealth(
  { config, telemetry, log, closing, clock }: ProcessContext,
  isReady: () => boolean,
): Promise<{ health?: string }> {
  const { listen } = config.health;
  if (listen === undefined) return {};
  const server = await startHealthServer({
    listen,
    isReady,
    readMetrics: () => telemetry.scrape(),
    log,
    clock,
  });
  closing.defer(() => server.close());
  return { health: server.address };
}
