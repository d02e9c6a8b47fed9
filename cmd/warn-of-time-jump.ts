// Logs that the clock has jumped while the server was off (R19). The consequences are in src/ports/time-jumps.ts.
import type { Logger } from '../src/ports/telemetry.ts';
import type { TimeJumps } from '../src/ports/time-jumps.ts';

/** R19: at every start, until the operator has accepted it. */
export async function warnOfTimeJump(log: Logger, timeJumps: TimeJumps): Promise<void> {
  const jumpMs = await timeJumps.unacceptedMs();
  if (jumpMs === 0) return;
  const meaning =
    'The clock has stepped more than 7 days ahead of the time that is stored. If it is right, say `holdfast clock accept`: until then nothing is removed because of its age.';
  log.warn({ jumpMs, meaning }, 'clock-jumped');
}
