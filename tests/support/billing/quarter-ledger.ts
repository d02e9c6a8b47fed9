// What an account stores and asks for, by the definitions of extensions 6 alone: the lifetime of each thing that is charged, and
// what requests add to their day. Figures of a day are counted anew from all lifetimes, so nothing is carried over from one day to
// the next as metering does it.
import type { AccountId } from '../../../src/types/names.ts';
import { METERED_NOTHING, type UsageDay, type UsageFigures } from '../../../src/types/usage.ts';

/** Charged for an object at least, bytes. */
const SMALLEST_BYTES = 4096;
const METADATA_BYTES = 48;
/** Days for which what is stored is charged at least. */
const MINIMUM_DAYS = 90;

interface Lifetime {
  fromDay: number;
  /** The first day at whose end it is not there; absent: it is there. */
  untilDay?: number;
}

/** What came in one upload. */
interface Original {
  bornDay: number;
  paddedBytes: number;
}

/** An original that an object is charged for, from a day on. */
interface Charge {
  fromDay: number;
  original: Original;
}

interface StoredObject extends Lifetime {
  /** From this day on its minimum duration counts: an append begins it anew, as replacing the object would. */
  storedDay: number;
  sizes: { fromDay: number; sizeBytes: number }[];
  /** Nothing of what it was composed of: that is charged with the objects that it came with. */
  charges: Charge[];
  /** All that it reads. */
  data: Original[];
  /** Made of other objects' data, or by appending. */
  isComposed: boolean;
}

/** Fields of it that a request adds to. */
type Traffic = Partial<UsageFigures>;

export class QuarterLedger {
  readonly #accountId: AccountId;
  readonly #all: StoredObject[] = [];
  readonly #live = new Map<string, StoredObject>();
  readonly #traffic = new Map<number, Traffic>();

  constructor(accountId: AccountId) {
    this.#accountId = accountId;
  }

  keys(): string[] {
    return [...this.#live.keys()];
  }

  /** Of how many uploads the object is made. 0: it is not there. */
  originalCount(key: string): number {
    return this.#live.get(key)?.data.length ?? 0;
  }

  /** 0: it is not there. */
  sizeBytes(key: string): number {
    const object = this.#live.get(key);
    return object === undefined ? 0 : sizeOf(object);
  }

  /** Also over what is there: that is deleted by it. */
  put(key: string, day: number, sizeBytes: number): void {
    this.#end(key, day);
    const original = { bornDay: day, paddedBytes: Math.max(sizeBytes, SMALLEST_BYTES) };
    this.#begin(key, {
      fromDay: day,
      storedDay: day,
      sizes: [{ fromDay: day, sizeBytes }],
      charges: [{ fromDay: day, original }],
      data: [original],
      isComposed: false,
    });
    this.request(day, { putCalls: 1, uploadBytes: sizeBytes, wroteBytes: sizeBytes });
  }

  /** A piece of its own, which is charged with the smallest size. */
  append(key: string, day: number, sizeBytes: number): void {
    const object = this.#live.get(key);
    if (object === undefined) return;
    const original = { bornDay: day, paddedBytes: Math.max(sizeBytes, SMALLEST_BYTES) };
    object.sizes.push({ fromDay: day, sizeBytes });
    object.charges.push({ fromDay: day, original });
    object.data.push(original);
    object.isComposed = true;
    object.storedDay = day;
    this.request(day, { putCalls: 1, uploadBytes: sizeBytes, wroteBytes: sizeBytes });
  }

  /** Charged like its source, but of what was composed: that has its metadata alone. */
  copy(from: string, key: string, day: number): void {
    const source = this.#live.get(from);
    if (source === undefined || from === key) return;
    const { isComposed, data } = source;
    this.#end(key, day);
    this.#begin(key, {
      fromDay: day,
      storedDay: day,
      sizes: [{ fromDay: day, sizeBytes: sizeOf(source) }],
      charges: isComposed ? [] : data.map((original) => ({ fromDay: day, original })),
      data: [...data],
      isComposed,
    });
    this.request(day, { putCalls: 1 });
  }

  compose(sources: readonly string[], key: string, day: number): void {
    const found = sources.flatMap((source) => this.#live.get(source) ?? []);
    if (found.length < sources.length || sources.includes(key)) return;
    const sizeBytes = found.reduce((sum, source) => sum + sizeOf(source), 0);
    this.#end(key, day);
    this.#begin(key, {
      fromDay: day,
      storedDay: day,
      sizes: [{ fromDay: day, sizeBytes }],
      charges: [],
      data: found.flatMap(({ data }) => data),
      isComposed: true,
    });
    this.request(day, { putCalls: 1 });
  }

  rename(from: string, key: string, day: number): void {
    const object = this.#live.get(from);
    if (object === undefined || from === key) return;
    this.#end(key, day);
    this.#live.delete(from);
    this.#live.set(key, object);
    this.request(day, { otherCalls: 1 });
  }

  remove(key: string, day: number): void {
    this.request(day, { deleteCalls: 1, deleteBytes: this.sizeBytes(key) });
    this.#end(key, day);
  }

  read(key: string, day: number): void {
    const object = this.#live.get(key);
    if (object === undefined) return;
    const sizeBytes = sizeOf(object);
    this.request(day, { getCalls: 1, downloadBytes: sizeBytes, readBytes: sizeBytes });
  }

  /** Another one, which changes nothing that is stored. */
  request(day: number, added: Traffic): void {
    const traffic = this.#traffic.get(day) ?? {};
    for (const [name, value] of Object.entries(added) as [keyof Traffic, number][])
      traffic[name] = (traffic[name] ?? 0) + value;
    this.#traffic.set(day, traffic);
  }

  /**
   * As of the end of the day. Each upload is charged once: with its object; as deleted, where that is gone inside the minimum
   * duration; or as orphaned, where the duration has passed and what was composed keeps it.
   */
  day(day: number): UsageDay {
    const isThere = ({ fromDay, untilDay = Infinity }: Lifetime) => fromDay <= day && day < untilDay;
    const figures = { ...METERED_NOTHING, ...this.#traffic.get(day) };
    const charged = new Set<Original>();
    const kept = new Set<Original>();
    for (const object of this.#all) {
      const charges = object.charges.filter(({ fromDay }) => fromDay <= day);
      if (isThere(object)) {
        figures.objects++;
        figures.metadataBytes += METADATA_BYTES;
        for (const { fromDay, sizeBytes } of object.sizes) if (fromDay <= day) figures.rawBytes += sizeBytes;
        for (const { original } of charges) {
          figures.paddedBytes += original.paddedBytes;
          charged.add(original);
        }
        for (const original of object.data) if (original.bornDay <= day) kept.add(original);
      } else if (object.fromDay <= day) {
        if (charges.length === 0 || day >= object.storedDay + MINIMUM_DAYS) continue;
        figures.deletedObjects++;
        for (const { original } of charges) figures.deletedBytes += original.paddedBytes;
      }
    }
    for (const original of kept)
      if (!charged.has(original) && day >= original.bornDay + MINIMUM_DAYS)
        figures.orphanedBytes += original.paddedBytes;
    return { ...figures, day, accountId: this.#accountId, isClosed: true };
  }

  #begin(key: string, object: StoredObject): void {
    this.#live.set(key, object);
    this.#all.push(object);
  }

  #end(key: string, day: number): void {
    const object = this.#live.get(key);
    if (object !== undefined) object.untilDay = day;
    this.#live.delete(key);
  }
}

function sizeOf({ sizes }: StoredObject): number {
  return sizes.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}
