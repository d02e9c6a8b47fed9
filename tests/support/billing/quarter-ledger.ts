// What an account stores, by the definitions of extensions 6 alone: the lifetime of each thing that is charged. Figures of a day
// are counted anew from all lifetimes, so nothing is carried over from one day to the next as metering does it.
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

interface Original extends Lifetime {
  paddedBytes: number;
}

interface StoredObject extends Lifetime {
  originals: Original[];
  /** Of a composition: of others. It holds them, and is charged for its metadata alone. */
  isComposed: boolean;
}

type Traffic = Pick<UsageFigures, 'uploadBytes' | 'downloadBytes' | 'putCalls' | 'getCalls' | 'deleteCalls'>;

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

  /** Also over what is there: that is deleted by it. */
  put(key: string, day: number, sizeBytes: number): void {
    this.#end(key, day);
    const original = { fromDay: day, paddedBytes: Math.max(sizeBytes, SMALLEST_BYTES) };
    this.#begin(key, { fromDay: day, originals: [original], isComposed: false });
    this.#note(day, { putCalls: 1, uploadBytes: sizeBytes });
  }

  /** A piece of its own, which is charged with the smallest size. */
  append(key: string, day: number, sizeBytes: number): void {
    const object = this.#live.get(key);
    if (object === undefined || object.isComposed) return;
    object.originals.push({ fromDay: day, paddedBytes: Math.max(sizeBytes, SMALLEST_BYTES) });
    this.#note(day, { putCalls: 1, uploadBytes: sizeBytes });
  }

  copy(from: string, key: string, day: number): void {
    const source = this.#live.get(from);
    if (source === undefined) return;
    const paddedBytes = source.originals.reduce((sum, original) => sum + original.paddedBytes, 0);
    this.#end(key, day);
    this.#begin(key, { fromDay: day, originals: [{ fromDay: day, paddedBytes }], isComposed: false });
    this.#note(day, { putCalls: 1 });
  }

  compose(sources: readonly string[], key: string, day: number): void {
    const originals = sources.flatMap((source) => this.#live.get(source)?.originals ?? []);
    if (originals.length === 0 || sources.includes(key)) return;
    this.#end(key, day);
    this.#begin(key, { fromDay: day, originals, isComposed: true });
    this.#note(day, { putCalls: 1 });
  }

  rename(from: string, key: string, day: number): void {
    const object = this.#live.get(from);
    if (object === undefined || from === key) return;
    this.#end(key, day);
    this.#live.delete(from);
    this.#live.set(key, object);
    this.#note(day, { putCalls: 1 });
  }

  remove(key: string, day: number): void {
    this.#end(key, day);
    this.#note(day, { deleteCalls: 1 });
  }

  read(key: string, day: number): void {
    const object = this.#live.get(key);
    if (object === undefined) return;
    const downloadBytes = object.originals.reduce((sum, original) => sum + original.paddedBytes, 0);
    this.#note(day, { getCalls: 1, downloadBytes });
  }

  /** As of the end of the day. */
  day(day: number): UsageDay {
    const isThere = ({ fromDay, untilDay = Infinity }: Lifetime) => fromDay <= day && day < untilDay;
    const figures = { ...METERED_NOTHING, ...this.#traffic.get(day) };
    const composed = new Set(
      this.#all
        .filter((object) => object.isComposed && isThere(object))
        .flatMap(({ originals }) => originals),
    );
    for (const object of this.#all) {
      if (isThere(object)) {
        figures.objects++;
        figures.metadataBytes += METADATA_BYTES;
      }
      if (object.isComposed) continue;
      for (const original of object.originals) {
        if (original.fromDay > day) continue;
        const { paddedBytes } = original;
        if (isThere(object)) figures.paddedBytes += paddedBytes;
        else if (composed.has(original)) figures.orphanedBytes += paddedBytes;
        else if (day < original.fromDay + MINIMUM_DAYS) figures.deletedBytes += paddedBytes;
      }
    }
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

  #note(day: number, added: Partial<Traffic>): void {
    const traffic = this.#traffic.get(day) ?? {
      uploadBytes: 0,
      downloadBytes: 0,
      putCalls: 0,
      getCalls: 0,
      deleteCalls: 0,
    };
    for (const [name, value] of Object.entries(added) as [keyof Traffic, number][]) traffic[name] += value;
    this.#traffic.set(day, traffic);
  }
}
