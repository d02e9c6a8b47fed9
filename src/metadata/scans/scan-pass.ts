// Runs one pass after another of a scan, through items of the shards that are led here. Where a pass is long, its progress
// is stored in each shard (scans.ts), so that it goes on there after a restart or a failover. A short pass stores nothing.
import type { Plain } from '../../base/record-codec.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { MetadataPort, Reply } from '../../ports/metadata/port.ts';
import type { ScanRecord, ScanStep } from '../../types/records/scan-record.ts';

/** How much of a pass is done again after a restart, at most. */
export const NOTE_EVERY_MS = 10 * 60_000;
/** A shard that did not say how far it had come is asked again. */
const ASK_AGAIN_MS = 10_000;

export interface ScanPassDeps<Place> {
  metadata: MetadataPort;
  clock: Pick<ClockPort, 'monotonicMs'>;
  /** Of the scan, in its shards. */
  name: string;
  /** From the end of a pass to the beginning of the next. */
  everyMs: number;
  /** Negative: `a` comes before `b`. */
  compare(a: Place, b: Place): number;
}

/** What is to be looked at next: items of these shards, behind `after`. */
export interface NextItems<Place> {
  shards: readonly number[];
  after: Place | undefined;
}

export class ScanPass<Place extends Plain> {
  readonly #deps: ScanPassDeps<Place>;
  /** Shards of the pass under way; when it began, for those that have stored it. */
  #shards = new Map<number, number | undefined>();
  #after: Place | undefined;
  /** Monotonic ms; so are the ends of passes. */
  #notedAtMs = 0;
  /** By shard, when its last pass ended here. Has the shards that have said how far they had come, since they are led here. */
  readonly #endedAtMs = new Map<number, number>();

  constructor(deps: ScanPassDeps<Place>) {
    this.#deps = deps;
  }

  /** `led`: the shards that are led here now. `waitMs`: until there is something to look at. */
  async next(led: readonly number[]): Promise<NextItems<Place> | { waitMs: number }> {
    const known = new Set(led);
    for (const shard of this.#endedAtMs.keys()) if (!known.has(shard)) this.#endedAtMs.delete(shard);
    for (const shard of this.#shards.keys()) if (!known.has(shard)) this.#shards.delete(shard);
    if (this.#shards.size === 0) await this.#begin(led);
    if (this.#shards.size === 0) return { waitMs: this.#waitMs(led) };
    return { shards: [...this.#shards.keys()], after: this.#after };
  }

  /** All that comes before `after`, and `after` itself, has been looked at. */
  async reached(after: Place): Promise<void> {
    this.#after = after;
    const nowMs = this.#deps.clock.monotonicMs();
    if (nowMs - this.#notedAtMs < NOTE_EVERY_MS) return;
    this.#notedAtMs = nowMs;
    await Promise.all([...this.#shards].map(([shard, beganAtMs]) => this.#noteReach(shard, beganAtMs)));
  }

  async ended(): Promise<void> {
    const shards = this.#shards;
    this.#shards = new Map();
    const nowMs = this.#deps.clock.monotonicMs();
    for (const shard of shards.keys()) this.#endedAtMs.set(shard, nowMs);
    const ended = [...shards].flatMap(([shard, beganAtMs]) =>
      beganAtMs === undefined ? [] : [{ shard, beganAtMs }],
    );
    await Promise.all(ended.map(({ shard, beganAtMs }) => this.#note(shard, { step: 'end', beganAtMs })));
  }

  /**
   * Goes on with passes that were interrupted, from the first place that any of them had reached. Where there are none, begins
   * a new pass over the shards whose last one ended long enough ago.
   */
  async #begin(led: readonly number[]): Promise<void> {
    const { clock, everyMs, compare } = this.#deps;
    const nowMs = clock.monotonicMs();
    const unknown = led.filter((shard) => !this.#endedAtMs.has(shard));
    const found = await Promise.all(unknown.map((shard) => this.#read(shard)));
    const interrupted: { shard: number; scan: ScanRecord }[] = [];
    for (const [at, shard] of unknown.entries()) {
      const scan = found[at];
      if (scan === undefined) continue;
      this.#endedAtMs.set(shard, Number.NEGATIVE_INFINITY);
      if (scan?.isUnderWay) interrupted.push({ shard, scan });
    }
    this.#notedAtMs = nowMs;
    if (interrupted.length > 0) {
      const places = interrupted.map(({ scan }) => scan.after as Place | undefined);
      this.#after = places.reduce((a, b) => (a && b && (compare(a, b) < 0 ? a : b)) || undefined);
      this.#shards = new Map(interrupted.map(({ shard, scan }) => [shard, scan.beganAtMs]));
      return;
    }
    this.#after = undefined;
    const due = [...this.#endedAtMs].filter(([, endedAtMs]) => nowMs - endedAtMs >= everyMs);
    this.#shards = new Map(due.map(([shard]) => [shard, undefined]));
  }

  #waitMs(led: readonly number[]): number {
    const { clock, everyMs } = this.#deps;
    const sinceMs = Math.max(0, ...[...this.#endedAtMs.values()].map((atMs) => clock.monotonicMs() - atMs));
    const isKnown = led.every((shard) => this.#endedAtMs.has(shard));
    return isKnown ? everyMs - sinceMs : Math.min(ASK_AGAIN_MS, everyMs - sinceMs);
  }

  /** undefined: the shard does not say. */
  async #read(shard: number): Promise<ScanRecord | null | undefined> {
    const { metadata, name } = this.#deps;
    return doneOrNothing(metadata.query({ shard }, 'get-scan', { name })).then((value) => value?.scan);
  }

  async #noteReach(shard: number, knownMs: number | undefined): Promise<void> {
    const beganAtMs = knownMs ?? (await this.#note(shard, { step: 'begin' }))?.beganAtMs;
    if (beganAtMs === undefined) return;
    if (this.#shards.has(shard)) this.#shards.set(shard, beganAtMs);
    await this.#note(shard, { step: 'reach', beganAtMs, after: this.#after as Plain });
  }

  /** A shard that does not answer stores it later; more is scanned again then, if this process ends before. */
  async #note(shard: number, step: ScanStep): Promise<ScanRecord | undefined> {
    const { metadata, name } = this.#deps;
    const noted = await doneOrNothing(metadata.execute({ shard }, 'note-scan', { name, ...step }));
    if (noted?.kind === 'noted') return noted.scan;
    // Another primary is at it. Should the shard be led here again, it is asked anew.
    if (noted?.kind === 'gone') {
      this.#shards.delete(shard);
      this.#endedAtMs.delete(shard);
    }
    return undefined;
  }
}

async function doneOrNothing<T>(call: Promise<Reply<T>>): Promise<T | undefined> {
  const reply = await call.catch(() => undefined);
  return reply?.kind === 'done' ? reply.value : undefined;
}
