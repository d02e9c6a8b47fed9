// How a disk that hangs in writes is found, by all writes of this process together: so that who needs it waits for a bounded
// time, and then nobody does for a while. All copies under way are looked at a few times each second.
//
// - A copy that is still under way after looks for `copyLateMs` is late.
// - A disk that has copies under way and has answered none through looks for `copySilentMaxMs` hangs. So does a node, with all
//   of its disks, when copies to two of them are late and none has answered for so long. What is slow answers other writes
//   meanwhile, if by "too busy", and is waited for.
// - What hangs rests for `diskSuspectMs`, and nobody is to wait for it. Then one write tries it. As long as that one is not
//   late others may come along; from then on they wait no more until it is answered, fails, or is silent for as long again.
// - Any answer to a write ends it, also one to a write that was refused meanwhile: its copies stay under way.
//
// Looks are counted, not time. After a while in which this process did not run its timers come before the answers that lie in
// its sockets: by the clock all disks would have been silent. A look that comes late counts once.
import { CANCELLED } from '../../base/async/cancelled.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskId, PlacedDisk } from '../../ports/placement.ts';
import { LIMITS } from '../../types/limits.ts';

const LATE_LOOKS = LIMITS.copyLateMs / LIMITS.copyLookMs;
const SILENT_LOOKS = LIMITS.copySilentMaxMs / LIMITS.copyLookMs;

/** Time after the rest; then an older finding says nothing any more, unless a write has confirmed it. */
const LATELY_MS = 30_000;

/** A copy under way. */
export interface CopyAttempt {
  readonly disk: PlacedDisk;
  /** Number of looks that have seen it. */
  lookCount: number;
  /** No write waits for it any more. */
  isHung: boolean;
}

/** How an attempt ends. `busy`: the disk answered and took nothing. `dropped`: the outcome says nothing about the disk. */
export type CopyEnd = 'answered' | 'busy' | 'failed' | 'dropped';

/** A disk, or a node with all of its disks. */
interface Party {
  readonly isNode: boolean;
  readonly attempts: Set<CopyAttempt>;
  /** Looks since it last answered, or got work while idle. */
  silentLooks: number;
  /** Set while it hangs. */
  hang?: { restUntilMs: number; trial?: CopyAttempt };
}

/** Whether it has been under way so long that another disk is to take the copy, too. */
export function isLate({ lookCount }: CopyAttempt): boolean {
  return lookCount >= LATE_LOOKS;
}

/** Whether the last look made it late. */
export function hasBecomeLate({ lookCount }: CopyAttempt): boolean {
  return lookCount === LATE_LOOKS;
}

export class HangingDisks {
  readonly #clock: Pick<ClockPort, 'monotonicMs' | 'sleep'>;
  readonly #disks = new Map<DiskId, Party>();
  readonly #nodes = new Map<string, Party>();
  readonly #attempts = new Set<CopyAttempt>();
  readonly #watchers = new Set<() => void>();
  /** Ends the looks when no copy is under way. */
  #idle = new AbortController();

  constructor(clock: Pick<ClockPort, 'monotonicMs' | 'sleep'>) {
    this.#clock = clock;
  }

  /** A copy is sent to `disk`; the caller calls `ended` when it is over. */
  asked(disk: PlacedDisk): CopyAttempt {
    const attempt = { disk, lookCount: 0, isHung: false };
    for (const party of this.#partiesOf(disk)) {
      const { hang } = party;
      const isTrial = hang !== undefined && hang.trial === undefined && !this.#rests(party);
      if (isTrial) hang.trial = attempt;
      if (isTrial || party.attempts.size === 0) party.silentLooks = 0;
      party.attempts.add(attempt);
    }
    this.#attempts.add(attempt);
    if (this.#attempts.size === 1) void this.#watch();
    return attempt;
  }

  ended(attempt: CopyAttempt, how: CopyEnd): void {
    this.#attempts.delete(attempt);
    if (this.#attempts.size === 0) this.#idle.abort(CANCELLED);
    for (const party of this.#partiesOf(attempt.disk)) {
      party.attempts.delete(attempt);
      if (how === 'answered' || how === 'busy') party.silentLooks = 0;
      const isTrial = party.hang?.trial === attempt;
      // A request that fails at once delays nobody.
      if (how === 'answered' || (how === 'failed' && !isLate(attempt))) delete party.hang;
      else if (isTrial && isLate(attempt)) this.#rest(party);
      else if (isTrial) delete party.hang?.trial;
      // A late failure of an older request says nothing new about a disk that is known to hang.
      else if (how === 'failed' && !party.isNode && party.hang === undefined) this.#rest(party);
    }
  }

  /** Calls `onLook` after each look, until the returned function is called. */
  watch(onLook: () => void): () => void {
    this.#watchers.add(onLook);
    return () => void this.#watchers.delete(onLook);
  }

  /** It hangs, or is being tried: other disks are better. */
  isSpared(disk: PlacedDisk): boolean {
    return this.#partiesOf(disk).some((party) => this.#rests(party) || party.hang?.trial !== undefined);
  }

  /** It must not be asked even in need: the caller would wait in vain. */
  isHanging(disk: PlacedDisk): boolean {
    return this.#partiesOf(disk).some((party) => {
      const trial = party.hang?.trial;
      return trial === undefined ? this.#rests(party) : isLate(trial);
    });
  }

  /** It was found to hang lately, and has answered no write since, whether it rests or not. For reports. */
  hasHungLately(disk: PlacedDisk): boolean {
    const nowMs = this.#clock.monotonicMs();
    return this.#partiesOf(disk).some(
      ({ hang }) => hang !== undefined && hang.restUntilMs + LATELY_MS > nowMs,
    );
  }

  #partiesOf({ id, nodeId }: PlacedDisk): [Party, Party] {
    const disk = this.#disks.get(id) ?? { isNode: false, attempts: new Set(), silentLooks: 0 };
    const node = this.#nodes.get(nodeId) ?? { isNode: true, attempts: new Set(), silentLooks: 0 };
    this.#disks.set(id, disk);
    this.#nodes.set(nodeId, node);
    return [disk, node];
  }

  #rest(party: Party): void {
    party.hang = { restUntilMs: this.#clock.monotonicMs() + LIMITS.diskSuspectMs };
  }

  #rests({ hang }: Party): boolean {
    return hang !== undefined && hang.trial === undefined && hang.restUntilMs > this.#clock.monotonicMs();
  }

  async #watch(): Promise<void> {
    this.#idle = new AbortController();
    const { signal } = this.#idle;
    for (;;) {
      await this.#clock.sleep(LIMITS.copyLookMs, signal);
      if (signal.aborted) return;
      this.#look();
    }
  }

  #look(): void {
    for (const attempt of this.#attempts) attempt.lookCount++;
    for (const party of [...this.#disks.values(), ...this.#nodes.values()]) {
      if (party.attempts.size === 0) continue;
      party.silentLooks++;
      if (hangsNow(party)) this.#rest(party);
    }
    for (const attempt of this.#attempts)
      if (this.isHanging(attempt.disk) && !this.#tries(attempt)) attempt.isHung = true;
    for (const onLook of this.#watchers) onLook();
  }

  #tries(attempt: CopyAttempt): boolean {
    return this.#partiesOf(attempt.disk).some(({ hang }) => hang?.trial === attempt);
  }
}

/** Judged at a look; a disk that is known to hang hangs anew only after a trial. */
function hangsNow({ isNode, attempts, silentLooks, hang }: Party): boolean {
  if (silentLooks < SILENT_LOOKS) return false;
  if (hang !== undefined) return hang.trial !== undefined;
  if (!isNode) return true;
  const late = new Set([...attempts].filter(isLate).map(({ disk }) => disk.id));
  return late.size > 1;
}
