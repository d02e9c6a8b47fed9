// Traffic of this gateway, by bucket and day, in memory: a request costs a look-up and some additions. Now and then, and when the
// gateway ends, it goes to the homes of the buckets, in batches under request ids: a batch that is sent again counts once. A
// crash loses what was not sent yet.
import { CANCELLED } from '../../base/async/cancelled.ts';
import { toHex } from '../../base/bytes/bytes.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../../ports/metadata/port.ts';
import type { TrafficDay } from '../../ports/metadata/usage.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import { AT, accountTrafficId, dayOf, METERED } from '../../types/metered.ts';
import type { AccountId, BucketId } from '../../types/names.ts';

/** Without a bucket: requests of the account that are about none. */
export interface Charged {
  accountId: AccountId;
  bucketId?: BucketId;
  shard?: number;
}

export interface RequestTraffic {
  kind: 'get' | 'put' | 'delete' | 'list' | 'head' | 'other';
  /** Of bodies, on the wire. */
  uploadBytes: number;
  downloadBytes: number;
  /** Of objects' data. */
  wroteBytes: number;
  readBytes: number;
  deleteBytes: number;
}

export interface TrafficMeter {
  note(charged: Charged, traffic: RequestTraffic): void;
  /** Sends what there is each interval, until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
  /** Sends all there is. What could not be sent waits for the next time. */
  flush(): Promise<void>;
}

/** So many buckets that wait are sent before their time. */
export const FLUSHED_AT_BUCKETS = 5000;
/** Those and the ones that could not be sent: what is beyond is not counted. Of one a few hundred bytes are held. */
export const WAITING_BUCKETS_MAX = 50_000;
/** Of one command. */
const BATCH_BUCKETS = 500;
/** A batch that may have been counted is not sent any more once its outcome may be forgotten (R18: 15 minutes). */
export const SENT_AGAIN_FOR_MS = 10 * 60_000;
const REQUEST_ID_BYTES = 16;

const CALLS = {
  get: AT.getCalls,
  put: AT.putCalls,
  delete: AT.deleteCalls,
  list: AT.listCalls,
  head: AT.headCalls,
  other: AT.otherCalls,
} as const satisfies Record<RequestTraffic['kind'], number>;
const CALL_FIELDS = Object.values(CALLS);

interface Waiting extends TrafficDay {
  shard: number;
  figures: number[];
}

interface Batch {
  shard: number;
  /** Batches of one lane are sent one after the other; lanes do not wait for each other. */
  lane: string;
  /** It is of one bucket that was left, and waits for it. */
  isAlone: boolean;
  requestId: string;
  days: Waiting[];
  /** Monotonic ms since when it may have been counted; undefined: it was not. */
  inDoubtSinceMs: number | undefined;
}

export function createTrafficMeter(deps: {
  metadata: Pick<MetadataPort, 'execute'>;
  clock: ClockPort;
  random: RandomPort;
  log: Pick<Logger, 'warn'>;
  telemetry: Pick<TelemetryPort, 'count' | 'gauge'>;
  flushEveryMs: number;
}): TrafficMeter {
  return new Meter(deps);
}

class Meter implements TrafficMeter {
  readonly #deps: Parameters<typeof createTrafficMeter>[0];
  /** By bucket, of `#day`. */
  #waiting = new Map<string, Waiting>();
  #day = 0;
  #batches: Batch[] = [];
  /** Buckets in batches. */
  #batchedCount = 0;
  /** Those that are sending. */
  readonly #lanes = new Map<string, Promise<void>>();
  #wake = new AbortController();

  constructor(deps: Parameters<typeof createTrafficMeter>[0]) {
    this.#deps = deps;
  }

  note(charged: Charged, traffic: RequestTraffic): void {
    const waiting = this.#waitingOf(charged);
    if (waiting === undefined) {
      this.#lose(1);
      return;
    }
    const { figures } = waiting;
    const { uploadBytes, downloadBytes, wroteBytes, readBytes, deleteBytes } = traffic;
    bump(figures, CALLS[traffic.kind], 1);
    if (uploadBytes > 0) bump(figures, AT.uploadBytes, uploadBytes);
    if (downloadBytes > 0) bump(figures, AT.downloadBytes, downloadBytes);
    if (wroteBytes > 0) bump(figures, AT.wroteBytes, wroteBytes);
    if (readBytes > 0) bump(figures, AT.readBytes, readBytes);
    if (deleteBytes > 0) bump(figures, AT.deleteBytes, deleteBytes);
  }

  /** Undefined: there is no room for another bucket. */
  #waitingOf({ accountId, bucketId = accountTrafficId(accountId), shard = SYSTEM_SHARD }: Charged) {
    const day = dayOf(this.#deps.clock.wallMs());
    if (day !== this.#day) {
      this.#makeBatches();
      this.#day = day;
    }
    const found = this.#waiting.get(bucketId);
    if (found !== undefined) return found;
    if (this.#waiting.size + this.#batchedCount >= WAITING_BUCKETS_MAX) return undefined;
    const made = { accountId, bucketId, shard, day, figures: new Array<number>(METERED.length).fill(0) };
    this.#waiting.set(bucketId, made);
    if (this.#waiting.size >= FLUSHED_AT_BUCKETS) this.#wake.abort(CANCELLED);
    return made;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, flushEveryMs } = this.#deps;
    while (!signal.aborted) {
      await clock.sleep(flushEveryMs, AbortSignal.any([signal, this.#wake.signal]));
      if (signal.aborted) return;
      // A shard that holds a batch up does not hold up the next time.
      this.#beginLanes();
      // What could not be sent does not make the next time come at once.
      if (this.#wake.signal.aborted) this.#wake = new AbortController();
    }
  }

  async flush(): Promise<void> {
    this.#beginLanes();
    // What a batch leaves out has a lane of its own.
    while (this.#lanes.size > 0) await Promise.all(this.#lanes.values());
  }

  #beginLanes(): void {
    this.#makeBatches();
    if (this.#batches.length === 0) this.#noteAllSent();
    for (const { lane } of this.#batches) this.#beginLane(lane);
  }

  /** One that is sending comes to the batches that were made since. */
  #beginLane(lane: string): void {
    if (this.#lanes.has(lane)) return;
    // There is a batch of it: it has not ended when it is set.
    this.#lanes.set(lane, this.#sendAll(lane));
  }

  #noteAllSent(): void {
    const { clock, telemetry } = this.#deps;
    telemetry.gauge('holdfast_traffic_flushed_timestamp_seconds', clock.wallMs() / 1000);
  }

  /** The first that cannot be sent lets the others wait. */
  async #sendAll(lane: string): Promise<void> {
    const next = () => this.#batches.find((batch) => batch.lane === lane);
    for (let batch = next(); batch !== undefined; batch = next()) if (!(await this.#sendOne(batch))) break;
    this.#lanes.delete(lane);
    if (this.#batches.length === 0) this.#noteAllSent();
  }

  /** False: the shard does not take it now. */
  async #sendOne(batch: Batch): Promise<boolean> {
    const { metadata, clock, log } = this.#deps;
    const { shard, requestId, days, isAlone, inDoubtSinceMs } = batch;
    if (inDoubtSinceMs !== undefined && clock.monotonicMs() - inDoubtSinceMs > SENT_AGAIN_FOR_MS) {
      this.#drop(batch);
      this.#lose(days.reduce((sum, { figures }) => sum + callCount(figures), 0));
      log.warn({ shard, buckets: days.length }, 'traffic-lost');
      return true;
    }
    const envelope = { shard, requestId, ...(inDoubtSinceMs !== undefined && { isRetry: true }) };
    const sent = days.map(({ accountId, bucketId, day, figures }) => ({ accountId, bucketId, day, figures }));
    const beganAtMs = clock.monotonicMs();
    const command = { days: sent, ...(!isAlone && { leavesBusy: true as const }) };
    const reply = await metadata.execute(envelope, 'add-traffic', command).catch(() => undefined);
    if (reply?.kind === 'done') {
      this.#drop(batch);
      for (const at of reply.value.left ?? []) this.#sendAlone(days[at]);
      for (const at of reply.value.unplaced) this.#chargeAccount(days[at]);
      return true;
    }
    if (reply?.kind !== 'busy' && reply?.kind !== 'full') batch.inDoubtSinceMs ??= beganAtMs;
    return false;
  }

  /** Another command held the bucket: what was asked of it goes by itself, and waits with others of its account alone. */
  #sendAlone(left: Waiting | undefined): void {
    if (left === undefined) return;
    this.#batchedCount++;
    const lane = `${left.shard} ${left.accountId}`;
    this.#addBatch({ shard: left.shard, lane, isAlone: true, days: [left] });
    this.#beginLane(lane);
  }

  #addBatch(batch: Omit<Batch, 'requestId' | 'inDoubtSinceMs'>): void {
    const requestId = toHex(this.#deps.random.bytes(REQUEST_ID_BYTES));
    this.#batches.push({ ...batch, requestId, inDoubtSinceMs: undefined });
  }

  /** The bucket is gone: what was asked of it counts for its account. */
  #chargeAccount(gone: Waiting | undefined): void {
    if (gone === undefined) return;
    const waiting = this.#waitingOf({ accountId: gone.accountId });
    if (waiting === undefined) {
      this.#lose(callCount(gone.figures));
      return;
    }
    for (const [at, figure] of gone.figures.entries()) bump(waiting.figures, at, figure);
  }

  #makeBatches(): void {
    const byShard = Map.groupBy(this.#waiting.values(), ({ shard }) => shard);
    this.#batchedCount += this.#waiting.size;
    this.#waiting = new Map();
    for (const [shard, days] of byShard)
      for (let at = 0; at < days.length; at += BATCH_BUCKETS) {
        const some = days.slice(at, at + BATCH_BUCKETS);
        this.#addBatch({ shard, lane: `${shard}`, isAlone: false, days: some });
      }
  }

  #drop(batch: Batch): void {
    this.#batches = this.#batches.filter((other) => other !== batch);
    this.#batchedCount -= batch.days.length;
  }

  #lose(calls: number): void {
    this.#deps.telemetry.count('holdfast_traffic_lost_calls_total', {}, calls);
  }
}

function bump(figures: number[], at: number, by: number): void {
  figures[at] = (figures[at] ?? 0) + by;
}

function callCount(figures: readonly number[]): number {
  return CALL_FIELDS.reduce((sum, at) => sum + (figures[at] ?? 0), 0);
}
