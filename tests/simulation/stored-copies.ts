// Which disks of the simulated world have which chunks, synced and intact, as their stores tell row by row; what they lost
// by a fault, until it is made up for; and that no copy goes which its chunk still needs (I11).
import { toHex } from '../../src/base/bytes/bytes.ts';
import { CHUNK_COLUMNS, CHUNK_PLACES, dataKey } from '../../src/chunks/disk/keyspace.ts';
import type { ChunkId } from '../../src/ports/chunks.ts';
import type { BlobId } from '../../src/types/names.ts';
import type { SimulatedDisk } from './disk.ts';
import { StorageSite } from './storage-site.ts';

const CHUNK_KEY_BYTES = 20;

/** One word for a chunk, by which sets know it. */
export function nameOf(id: ChunkId): string {
  return toHex(dataKey(id));
}

export function chunkOf(name: string): ChunkId {
  return { blobId: name.slice(0, 32) as BlobId, index: Number.parseInt(name.slice(32), 16) };
}

/** The key in `data` of the chunk whose bytes, or whose place in an extent, a row has; undefined: it is another row. */
function keyOf(column: string, key: Uint8Array): Uint8Array | undefined {
  const [prefix] = CHUNK_PLACES.placePrefix;
  const ofData = column === 'data' ? key : key[0] === prefix ? key.subarray(1) : undefined;
  return ofData?.length === CHUNK_KEY_BYTES ? ofData : undefined;
}

/** What lost its row to a cut of the log may have been overwritten in its extent before. */
function hasBytes(disk: SimulatedDisk, key: Uint8Array): boolean {
  const place = StorageSite.placeOf(disk, key);
  return place === undefined ? disk.column('data').get(key) !== undefined : disk.extents.has(key, place);
}

export class StoredCopies {
  /** Chunk -> disks that have it intact. */
  readonly #copies = new Map<string, Set<SimulatedDisk>>();
  readonly #nodeOf = new Map<SimulatedDisk, string>();
  /** Per disk: chunks whose bytes there are not what they were. */
  readonly #damaged = new Map<SimulatedDisk, Set<string>>();
  /** Chunks that have lost a copy by a fault, and are not whole since -> when they did, of true time. */
  readonly #short = new Map<string, number>();
  readonly #everDamaged = new Map<SimulatedDisk, Set<string>>();
  readonly #onDropped: (id: ChunkId) => void;
  readonly #nowMs: () => number;

  /** `onDropped`: an intact copy has gone from a disk that works. `nowMs`: true time. */
  constructor(options: { onDropped(id: ChunkId): void; nowMs(): number }) {
    this.#onDropped = options.onDropped;
    this.#nowMs = options.nowMs;
  }

  /** `node`: the one that it is lost with. */
  watch(disk: SimulatedDisk, node: string): void {
    this.#nodeOf.set(disk, node);
    this.#damaged.set(disk, new Set());
    this.#everDamaged.set(disk, new Set());
    disk.observe({
      onCommit: (rows) => {
        // The bytes of a chunk may go from one place to another.
        const keys = rows.flatMap(({ column, key }) => keyOf(column, key) ?? []);
        for (const [name, key] of new Map(keys.map((key) => [toHex(key), key])))
          this.#note(disk, name, hasBytes(disk, key));
      },
      onReopen: () => this.#compare(disk),
    });
  }

  disksOf(id: ChunkId): ReadonlySet<SimulatedDisk> {
    return this.#copies.get(nameOf(id)) ?? new Set();
  }

  /** How many nodes have it. */
  nodesOf(id: ChunkId): number {
    return new Set(Array.from(this.disksOf(id), (disk) => this.#nodeOf.get(disk))).size;
  }

  /** Chunks that a disk has. */
  *on(disk: SimulatedDisk): Generator<string> {
    for (const [name, disks] of this.#copies) if (disks.has(disk)) yield name;
  }

  /** It was taken away for good, by leave of the cluster. */
  retire(disk: SimulatedDisk): void {
    for (const name of [...this.on(disk)]) this.#note(disk, name, false);
  }

  /** Once before: its home hears of the same copy a second time after a minute only. */
  wasDamaged(disk: SimulatedDisk, id: ChunkId): boolean {
    return this.#everDamaged.get(disk)?.has(nameOf(id)) === true;
  }

  /** A fault has spoilt this copy. */
  damage(disk: SimulatedDisk, id: ChunkId): void {
    const name = nameOf(id);
    this.#everDamaged.get(disk)?.add(name);
    this.#damaged.get(disk)?.add(name);
    if (this.#copies.get(name)?.delete(disk) === true) this.#lose(name);
  }

  /** How many intact copies a fault has taken from it, and nobody has replaced yet. */
  lostOf(id: ChunkId): number {
    return this.#short.has(nameOf(id)) ? 1 : 0;
  }

  /** Chunks that have lost a copy by a fault and are not whole since, and when. */
  short(): { id: ChunkId; atMs: number }[] {
    return Array.from(this.#short, ([name, atMs]) => ({ id: chunkOf(name), atMs }));
  }

  /** It has all that it should again. */
  noteWhole(id: ChunkId): void {
    this.#short.delete(nameOf(id));
  }

  #lose(name: string): void {
    this.#short.set(name, this.#nowMs());
  }

  #note(disk: SimulatedDisk, name: string, isThere: boolean): void {
    const wasDamaged = this.#damaged.get(disk)?.delete(name) === true;
    const disks = this.#copies.get(name) ?? new Set();
    this.#copies.set(name, disks);
    if (isThere) disks.add(disk);
    else if (disks.delete(disk) && !wasDamaged) this.#onDropped(chunkOf(name));
  }

  /** What is there when a store is opened, and what went with the end of its log, or the whole disk. */
  #compare(disk: SimulatedDisk): void {
    const found = new Set<string>();
    for (const column of CHUNK_COLUMNS)
      for (const { key } of disk.rows(column)) {
        const ofChunk = keyOf(column, key);
        if (ofChunk !== undefined && hasBytes(disk, ofChunk)) found.add(toHex(ofChunk));
      }
    const damaged = this.#damaged.get(disk) ?? new Set();
    for (const name of damaged) if (!found.has(name)) damaged.delete(name);
    for (const [name, disks] of this.#copies)
      if (disks.has(disk) && !found.has(name)) {
        disks.delete(disk);
        this.#lose(name);
      }
    for (const name of found)
      if (!damaged.has(name)) {
        const disks = this.#copies.get(name) ?? new Set();
        this.#copies.set(name, disks.add(disk));
      }
  }
}
