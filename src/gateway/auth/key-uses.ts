// When access keys and sessions of roles were used last (AWS "GetAccessKeyLastUsed", "RoleLastUsed"): noted in the system shard by
// the way, many at once, and for each key and role once in a while. A crash loses what was not sent yet.
import { BoundedMap } from '../../base/bounded-map.ts';
import type { ClockPort } from '../../ports/clock.ts';
import { type CommandOf, type MetadataPort, SYSTEM_SHARD } from '../../ports/metadata/port.ts';
import type { AccountId } from '../../types/names.ts';
import type { KeyUseRecord, RoleUseRecord } from '../../types/records/identity-records.ts';

/** A key or role is noted again after so long. */
const NOTED_EVERY_MS = 60_000;
/** From a first note to its sending: others come along. */
const GATHERED_MS = 1000;
const NOTED_MAX = 10_000;
/** Of one command; what would be more waits for its next use. */
const USES_MAX = 500;

type Command = CommandOf<'note-key-uses'>;

export interface KeyUses {
  note(accessKey: string, use: Pick<KeyUseRecord, 'region' | 'service'>): void;
  noteRole(role: { accountId: AccountId; id: string }, use: Pick<RoleUseRecord, 'region'>): void;
}

export function createKeyUses(deps: { metadata: MetadataPort; clock: ClockPort }): KeyUses {
  const { metadata, clock } = deps;
  /** Monotonic times. */
  const notedAt = new BoundedMap<string, number>(NOTED_MAX);
  let keys: Command['uses'] = [];
  let roles: NonNullable<Command['roles']> = [];

  async function sendLater(): Promise<void> {
    await clock.sleep(GATHERED_MS);
    const command = { uses: keys, ...(roles.length > 0 && { roles }) };
    [keys, roles] = [[], []];
    try {
      await metadata.execute({ shard: SYSTEM_SHARD }, 'note-key-uses', command);
    } catch {
      // Nothing rests on it.
    }
  }

  /** Whether it is noted now: not lately, and there is room. The first of a command has it sent. */
  function isDue(name: string): boolean {
    const nowMs = clock.monotonicMs();
    const before = notedAt.get(name);
    if (before !== undefined && nowMs - before < NOTED_EVERY_MS) return false;
    const waitingCount = keys.length + roles.length;
    if (waitingCount >= USES_MAX) return false;
    notedAt.set(name, nowMs);
    if (waitingCount === 0) void sendLater();
    return true;
  }

  return {
    note(accessKey, use) {
      if (isDue(accessKey)) keys.push({ accessKey, atMs: clock.wallMs(), ...use });
    },
    noteRole({ accountId, id }, { region }) {
      // No access key has a space.
      if (isDue(`role ${accountId} ${id}`)) roles.push({ accountId, id, atMs: clock.wallMs(), region });
    },
  };
}
