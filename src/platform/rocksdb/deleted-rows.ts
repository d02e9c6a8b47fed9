// Guesses where many rows were deleted: until RocksDB has merged its tables a seek passes over each of them, 200,000 of which
// take some 80 ms. Deletes are counted by prefixes of their keys, in a table of fixed size in which some prefixes share a place:
// a guess may be too high, and costs a read that another thread does (range-reader.ts). Nothing is known of what was deleted
// before the start; what took long is noted as well, so it takes long once.

const PLACES = 65_536;
/** A seek over as many takes some 5 ms. */
const MANY = 10_000;
const COUNT_MAX = 0xffff;
/** A read that takes as long here has passed over many, or waits for a drive. */
const SLOW_MS = 10;
/**
 * Counts are halved after so many deletes: RocksDB has merged by then what was counted first, and a place that no prefix has for
 * itself comes to a tenth of {@link MANY}.
 */
const HALVED_AFTER = 4_000_000;
/** Prefixes of 0, 3, 7, 11 bytes and so on: shard and table are 3. */
const FIRST_BYTES = 3;
const STEP_BYTES = 4;
const PREFIX_BYTES_MAX = FIRST_BYTES + 32 * STEP_BYTES;
/** Beyond, all are forgotten. */
const SEEN_MAX = 2000;

interface Bounds {
  gte: Uint8Array;
  lt: Uint8Array;
}

/** Of one column. */
export class DeletedRows {
  readonly #counts = new Uint16Array(PLACES);
  #noted = 0;
  /** By place: what was counted when ranges there were read quickly all the same. */
  readonly #quick = new Map<number, number>();

  note(key: Uint8Array): void {
    const end = Math.min(key.length, PREFIX_BYTES_MAX);
    let hash = FNV_BASIS;
    this.#add(placeOf(hash));
    for (let at = 0; at < end; at++) {
      hash = hashOn(hash, key[at] as number);
      if ((at + 1) % STEP_BYTES === FIRST_BYTES) this.#add(placeOf(hash));
    }
    this.#noted++;
    if (this.#noted === HALVED_AFTER) this.#halve();
  }

  /** Whether a seek in this range may pass over many. */
  mayBeMany(bounds: Bounds): boolean {
    return (this.#counts[placeOfRange(bounds)] as number) >= MANY;
  }

  /** The same of a range that begins where ranges like it do, which may have been quick to read since. */
  mayBeManyAtHead(bounds: Bounds): boolean {
    const place = placeOfRange(bounds);
    const count = this.#counts[place] as number;
    return count >= MANY && (count === COUNT_MAX || count - (this.#quick.get(place) ?? 0) >= MANY);
  }

  /** To be called with how long a step of a read of this range has kept the calling thread. */
  tookHere(bounds: Bounds, durationMs: number): void {
    if (durationMs < SLOW_MS) return;
    const place = placeOfRange(bounds);
    this.#quick.delete(place);
    if ((this.#counts[place] as number) < MANY) this.#counts[place] = MANY;
  }

  /** The same of another thread, and of one that begins where ranges like it do: they may be read here again if it was quick. */
  took(bounds: Bounds, durationMs: number): void {
    const place = placeOfRange(bounds);
    const count = this.#counts[place] as number;
    if (durationMs >= SLOW_MS || count < MANY) return;
    if (this.#quick.size >= SEEN_MAX) this.#quick.clear();
    if (count === COUNT_MAX) this.#counts[place] = COUNT_MAX - MANY;
    this.#quick.set(place, this.#counts[place] as number);
  }

  #add(place: number): void {
    const count = this.#counts[place] as number;
    if (count < COUNT_MAX) this.#counts[place] = count + 1;
  }

  #halve(): void {
    this.#quick.clear();
    this.#noted = 0;
    for (let place = 0; place < PLACES; place++) this.#counts[place] = (this.#counts[place] as number) >>> 1;
  }
}

const FNV_BASIS = 0x811c9dc5;

function hashOn(hash: number, byte: number): number {
  return Math.imul(hash ^ byte, 0x01000193);
}

function placeOf(hash: number): number {
  return (hash ^ (hash >>> 16)) & (PLACES - 1);
}

/** Of the longest prefix counted that all keys of the range have. */
function placeOfRange({ gte, lt }: Bounds): number {
  const end = Math.min(gte.length, lt.length, PREFIX_BYTES_MAX);
  let hash = FNV_BASIS;
  let place = placeOf(hash);
  for (let at = 0; at < end && gte[at] === lt[at]; at++) {
    hash = hashOn(hash, gte[at] as number);
    if ((at + 1) % STEP_BYTES === FIRST_BYTES) place = placeOf(hash);
  }
  return place;
}
