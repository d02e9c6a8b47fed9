// Lifecycle in a random run against the model of retention. A pass is judged by what it leaves: nothing has gone that was kept
// or not due, and nothing stays over two of them that was due a day before and might have gone then.
import type { CommandOf, QueryOf } from '../../../src/ports/metadata/port.ts';
import type { LifecycleRule } from '../../../src/types/lifecycle.ts';
import { passLifecycle } from './lifecycle-pass.ts';
import { RetentionBuckets, type Slot } from './retention-buckets.ts';
import type { ModelVersion } from './retention-model.ts';

const DAY = 24 * 3600_000;

/** A version of the model, or of what is listed, and what stands above it. */
interface Placed {
  key: string;
  version: ModelVersion;
  newer: ModelVersion | undefined;
  isAlone: boolean;
}

export class RetentionLifecycle extends RetentionBuckets {
  /** What a pass has left that was due, and when. */
  readonly #left = new Map<string, number>();

  async lifecycleRules(slot: Slot): Promise<void> {
    const { model, bucketId } = slot;
    const days = () => (this.flip() ? undefined : 1 + this.below(20));
    const [expireDays, noncurrentDays] = [days(), days()];
    const rule: LifecycleRule = {
      id: 'r',
      isEnabled: true,
      filter: {},
      ...(expireDays && { expiration: { days: expireDays } }),
      ...(noncurrentDays && { noncurrentExpiration: { days: noncurrentDays } }),
    };
    const isNone = expireDays === undefined && noncurrentDays === undefined;
    const document = isNone ? null : { rules: [rule] };
    await this.send('set-bucket-config', { bucketId, kind: 'lifecycle', document });
    model.expireDays = expireDays;
    model.noncurrentDays = noncurrentDays;
  }

  async lifecycle(slot: Slot): Promise<void> {
    const { bucketId, model } = slot;
    const before = placedOf(model.keys);
    await this.hearTime();
    const beganAtMs = this.lastMs;
    const counts = await passLifecycle(
      {
        find: (query: QueryOf<'find-expirable'>) => this.shard.query('find-expirable', query),
        step: (command: CommandOf<'step-lifecycle'>) => this.send('step-lifecycle', command),
      },
      { bucketId, dayMs: DAY },
    );
    if (counts.keptCount > 0) this.count('kept: what lifecycle would take');
    const keys = await this.listed(bucketId);
    const after = placedOf(keys);
    for (const placed of before) {
      const left = after.find((each) => isSame(each, placed));
      if (left === undefined) this.#checkGone(slot, placed, keys);
      else this.#checkLeft(slot, placed, left);
    }
    for (const placed of after) {
      if (!before.some((each) => isSame(each, placed)))
        this.#checkMarker(slot, placed, { before, beganAtMs });
    }
    model.keys = keys;
  }

  #checkGone({ model }: Slot, placed: Placed, keys: ReadonlyMap<string, ModelVersion[]>): void {
    const { key, version } = placed;
    const { versioning } = model;
    if (model.isKept(version, this.atMs)) this.#fail('was kept, and is gone', placed);
    const [latest] = keys.get(key) ?? [];
    const isReplaced = versioning === 'suspended' && version.id === 'null' && latest?.id === 'null';
    if (isReplaced && latest.isMarker) return;
    // Versions go first, so a marker may have come to be alone.
    const isAlone = version.isMarker && !keys.has(key) && isOver(version.madeMs, model.expireDays, this.atMs);
    if (!isAlone && !this.#isDue(model, placed, this.atMs)) this.#fail('is gone, and was not due', placed);
    this.count(version.isMarker ? 'a marker expired' : 'a version expired');
  }

  /** It goes for good when it is due: else a marker comes over it. */
  #isDue(model: Slot['model'], { version, newer, isAlone }: Placed, atMs: number): boolean {
    const { expireDays, noncurrentDays, versioning, deletesAfter } = model;
    if (!version.isMarker && deletesAfter && model.compliance?.isOn && model.ruleEndMs(version) <= atMs)
      return true;
    if (newer !== undefined) return isOver(newer.madeMs, noncurrentDays, atMs);
    if (version.isMarker) return isAlone && isOver(version.madeMs, expireDays, atMs);
    return versioning === 'unversioned' && isOver(version.madeMs, expireDays, atMs);
  }

  /**
   * What came to light in this pass, or lies below another version now, is looked at by the next one that comes behind a
   * midnight: what that leaves as well is kept without a reason.
   */
  #checkLeft({ model, bucketId }: Slot, before: Placed, left: Placed): void {
    const { version, newer, key } = left;
    const name = `${bucketId} ${key} ${version.id}`;
    const agoMs = this.atMs - DAY;
    const isMarked = newer === undefined && !version.isMarker && model.versioning !== 'unversioned';
    const takes = isMarked && isOver(version.madeMs, model.expireDays, agoMs) && model.mayWrite(key, agoMs);
    const goes = this.#isDue(model, left, agoMs) && !model.isKept(version, agoMs);
    // A version of this very moment may have come while its key was being read.
    const isLeft = (takes || goes) && !(before.newer !== undefined && before.newer.madeMs >= this.lastMs);
    const sinceMs = this.#left.get(name) ?? this.atMs;
    if (!isLeft) this.#left.delete(name);
    else if (Math.floor(sinceMs / DAY) >= Math.floor(this.atMs / DAY)) this.#left.set(name, sinceMs);
    else this.#fail('was due, and is left', left);
  }

  #checkMarker(
    { model }: Slot,
    placed: Placed,
    { before, beganAtMs }: { before: readonly Placed[]; beganAtMs: number },
  ): void {
    const { key, version, newer } = placed;
    const below = before.find((each) => each.key === key && each.newer === undefined)?.version;
    const isMade = version.isMarker && newer === undefined && version.madeMs >= beganAtMs;
    const isDue = below !== undefined && !below.isMarker && isOver(below.madeMs, model.expireDays, this.atMs);
    if (!isMade || !isDue) this.#fail('came of itself', placed);
    this.count('a marker made');
  }

  #fail(what: string, { key, version }: Placed): never {
    throw new Error(`${key} ${JSON.stringify(version)} ${what}, at ${this.atMs}`);
  }
}

function placedOf(keys: ReadonlyMap<string, readonly ModelVersion[]>): Placed[] {
  return [...keys].flatMap(([key, versions]) =>
    versions.map((version, at) => ({
      key,
      version,
      newer: versions[at - 1],
      isAlone: versions.length === 1,
    })),
  );
}

function isSame(a: Placed, b: Placed): boolean {
  const [one, other] = [a.version, b.version];
  return (
    a.key === b.key && one.id === other.id && one.madeMs === other.madeMs && one.isMarker === other.isMarker
  );
}

/** At the midnight behind the day on which it is so many days old. */
function isOver(sinceMs: number, days: number | undefined, atMs: number): boolean {
  return days !== undefined && (Math.floor(sinceMs / DAY) + days + 1) * DAY <= atMs;
}
