// The faults of one seed as they come and go: what is planned begins in its time, or when it may, and is over in the end.
import type { Chance } from './chance.ts';
import type { FaultSpan } from './check-history.ts';
import type { Counts } from './counts.ts';
import {
  type FaultName,
  type FaultyWorld,
  faultOf,
  isFaultName,
  type NodeSite,
  type PlannedFault,
} from './faults.ts';
import type { Losses } from './losses.ts';
import type { Scheduler } from './scheduler.ts';

const LOOK_EVERY_MS = 250;
/** By then it is made up for. */
const ALONE_MS = 12_000;
/** What is always possible. */
const INSTEAD: FaultName = 'kill';

export interface FaultRunParts {
  scheduler: Scheduler;
  chance: Chance;
  counts: Counts;
  losses: Losses;
  world: Pick<FaultyWorld, 'nodes' | 'gateways' | 'network' | 'registry'>;
  /** True time behind which nothing is put off. */
  untilMs: number;
}

export class FaultRun {
  /** When what went wrong. */
  readonly spans: FaultSpan[] = [];
  readonly #parts: FaultRunParts;
  readonly #world: FaultyWorld;
  readonly #heals = new Set<() => void>();
  /** Disturbances that are under way. */
  #disturbedCount = 0;
  /** What must not be copied is there. */
  #isAnyAlone = false;
  #hasEnded = false;

  constructor(parts: FaultRunParts) {
    this.#parts = parts;
    const isWholeWithout = ({ host }: NodeSite) => parts.losses.isWhole(host.name);
    this.#world = {
      ...parts.world,
      isWholeWithout,
      count: (branch) => parts.counts.add(branch),
      noteLoss: () => parts.losses.note(),
      after: (delayMs, run) => parts.scheduler.after(delayMs, { name: 'fault: its next act', run }),
    };
  }

  schedule(plan: readonly PlannedFault[]): void {
    const { scheduler } = this.#parts;
    for (const fault of plan)
      scheduler.after(fault.atMs - scheduler.nowMs, {
        name: `fault: ${fault.name} for ${fault.durationMs.toFixed(0)} ms`,
        run: () => this.#begin(fault),
      });
  }

  /** Something that is not of the plan goes wrong, until the returned function is called. */
  disturb(name: string): () => void {
    const span: FaultSpan = { name, fromMs: this.#parts.scheduler.nowMs, toMs: Number.POSITIVE_INFINITY };
    this.spans.push(span);
    this.#disturbedCount++;
    let hasEnded = false;
    return () => {
      if (hasEnded) return;
      hasEnded = true;
      this.#disturbedCount--;
      span.toMs = this.#parts.scheduler.nowMs;
    };
  }

  get mayStopNodes(): boolean {
    return !this.#isAnyAlone;
  }

  /** All of them, now. None begins any more. */
  end(): void {
    this.#hasEnded = true;
    for (const heal of [...this.#heals]) heal();
  }

  #begin(fault: Omit<PlannedFault, 'atMs'>): void {
    const { scheduler, losses, counts, chance, untilMs } = this.#parts;
    const { name, durationMs } = fault;
    const { losesData = false, losesRecords = false, isAlone = false, begin } = faultOf(name);
    if (this.#hasEnded) return;
    const isLate = scheduler.nowMs >= (isAlone ? untilMs - ALONE_MS : untilMs);
    // A node that stands still may need a snapshot when it goes on, though nobody is behind it yet.
    const isCalm = this.#heals.size === 0 && this.#disturbedCount === 0;
    const isQuiet = !isAlone || (isCalm && losses.isLevel());
    // The newest record may have been seen by one disk alone, beside the registry.
    const isOnlyLoss =
      (!losesData || (losses.isWhole() && !this.#isUnderWay('losesRecords'))) &&
      (!losesRecords || !this.#isUnderWay('losesData'));
    const mayBe = isOnlyLoss && isQuiet;
    if (this.#isAnyAlone || (!mayBe && !isLate)) {
      scheduler.after(LOOK_EVERY_MS, { name: `fault: ${name} waits`, run: () => this.#begin(fault) });
      return;
    }
    const end = mayBe && !(isAlone && isLate) ? begin(this.#world, chance) : undefined;
    if (end === undefined) {
      // Nothing that it could happen to: something else goes wrong then.
      if (name !== INSTEAD) this.#begin({ name: INSTEAD, durationMs });
      return;
    }
    counts.add(`fault: ${name}`);
    if (losesData) losses.note();
    this.#isAnyAlone = isAlone;
    const span: FaultSpan = { name, fromMs: scheduler.nowMs, toMs: Number.POSITIVE_INFINITY };
    this.spans.push(span);
    const heal = () => {
      if (!this.#heals.delete(heal)) return;
      end();
      if (losesData) this.#endWhenWhole(span);
      else span.toMs = scheduler.nowMs;
    };
    this.#heals.add(heal);
    scheduler.after(durationMs, { name: `fault: ${name} is over`, run: heal });
  }

  #isUnderWay(what: 'losesData' | 'losesRecords'): boolean {
    return this.spans.some(({ name, toMs }) => {
      return toMs === Number.POSITIVE_INFINITY && isFaultName(name) && faultOf(name)[what] === true;
    });
  }

  /** A loss is felt until it is made up for. */
  #endWhenWhole(span: FaultSpan): void {
    const { scheduler, losses } = this.#parts;
    if (losses.isWhole()) {
      span.toMs = scheduler.nowMs;
      // Also of one that had to be alone: while it is there, nothing is whole.
      this.#isAnyAlone = false;
    } else
      scheduler.after(LOOK_EVERY_MS, {
        name: `fault: ${span.name} is not made up for`,
        run: () => this.#endWhenWhole(span),
      });
  }
}
