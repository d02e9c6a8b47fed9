// When access keys were used last (AWS "GetAccessKeyLastUsed"): noted in the system shard by the way, many at once, and for each
// key once in a while. A crash loses what was not sent yet.
import { BoundedMap } from '../../base/bounded-map.ts';
import type { ClockPort } from '../../ports/clock.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../../ports/metadata/port.ts';
import type { KeyUseRecord } from '../../types/records/identity-records.ts';

/** A key is noted again after so long. */
const NOTED_EVERY_MS = 60_000;
/** From a first note to its sending: others come along. */
const GATHERED_MS = 1000;
const KEYS_MAX = 10_000;
/** Of one command; what would be more waits for its key's next use. */
const USES_MAX = 500;

export interface KeyUses {
  note(accessKey: string, use: Pick<KeyUseRecord, 'region' | 'service'>): void;
}

export function createKeyUses(deps: { metadata: MetadataPort; clock: ClockPort }): KeyUses {
  const { metadata, clock } = deps;
  /** Monotonic times. */
  const notedAt = new BoundedMap<string, number>(KEYS_MAX);
  let waiting: ({ accessKey: string } & KeyUseRecord)[] = [];

  async function sendLater(): Promise<void> {
    await clock.sleep(GATHERED_MS);
    const uses = waiting;
    waiting = [];
    try {
      await metadata.execute({ shard: SYSTEM_SHARD }, 'note-key-uses', { uses });
    } catch {
      // Nothing rests on it.
    }
  }

  return {
    note(accessKey, use) {
      const nowMs = clock.monotonicMs();
      const before = notedAt.get(accessKey);
      if (before !== undefined && nowMs - before < NOTED_EVERY_MS) return;
      if (waiting.length >= USES_MAX) return;
      notedAt.set(accessKey, nowMs);
      waiting.push({ accessKey, atMs: clock.wallMs(), ...use });
      if (waiting.length === 1) void sendLater();
    },
  };
}
