// The witness (protocol 1.2, R17) in a file beside the database: two pages of fixed records, one record for a shard in
// each. A write goes to one page until that is synced, and then to the other: what a loss of power tears is never the
// only copy. Written by the calling thread into the page cache, which outlives the process; synced once a second.
import { randomBytes } from 'node:crypto';
import { writeSync } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { assert } from '../../base/assert.ts';
import { crc32 } from '../../base/crypto/crc32.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { WitnessedPosition, WitnessPort } from '../../ports/witness.ts';
import { LIMITS } from '../../types/limits.ts';
import { syncFolder } from './durable-file.ts';
import { type HangWatch, watchForHang } from './hang-watch.ts';

const RECORD_BYTES = 32;
const PAGE_BYTES = RECORD_BYTES * LIMITS.shardCountMax;
const CRC_AT = RECORD_BYTES - 4;
/** Of the format and of what the record says; a record that was never written is all zeros. */
const KIND = { position: 1, none: 2, emptied: 3 } as const;

interface WitnessRecord {
  /** Counts the writes of a shard: of its two records the higher one holds. */
  generation: number;
  position: WitnessedPosition | undefined;
}

/**
 * Opens or creates the file. It belongs to one process at a time: the lock of the data folder sees to that. `hangs`: when a
 * sync that is not answered has failed; without it one is waited for as long as it takes.
 */
export async function openWitnessFile(
  path: string,
  clock: ClockPort,
  hangs?: HangWatch,
): Promise<WitnessPort> {
  const file = await openOrCreate(path);
  const bytes = Buffer.alloc(2 * PAGE_BYTES);
  try {
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
    // A file that was cut short: what is missing was not zero.
    bytes.fill(0xff, bytesRead);
  } catch (error) {
    await file.close();
    throw error;
  }
  return new WitnessFile(file, { bytes, clock, ...(hangs !== undefined && { hangs }) });
}

async function openOrCreate(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'r+');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const temporary = `${path}.new`;
  {
    // Whole before it has its name, so that no later write can find the disk full.
    await using file = await open(temporary, 'w', 0o600);
    await file.writeFile(Buffer.alloc(2 * PAGE_BYTES));
    await file.sync();
  }
  await rename(temporary, path);
  await syncFolder(dirname(path));
  return open(path, 'r+');
}

class WitnessFile implements WitnessPort {
  readonly failed: Promise<Error>;
  readonly #file: FileHandle;
  readonly #records: (WitnessRecord | 'damaged' | undefined)[];
  readonly #scratch = Buffer.alloc(RECORD_BYTES);
  readonly #resolveFailed: (error: Error) => void;
  readonly #closing = new AbortController();
  /** Ends the watch. */
  readonly #ending = new AbortController();
  readonly #syncing: Promise<void>;
  #page = 0;
  #isDirty = false;
  #lastSync: Promise<void> = Promise.resolve();
  #underWay: { reject(error: Error): void } | undefined;
  /** With what a sync ended that had hung. */
  #lateFailure: Error | undefined;
  #failure: Error | undefined;

  constructor(file: FileHandle, options: { bytes: Buffer; clock: ClockPort; hangs?: HangWatch }) {
    this.#file = file;
    const { bytes, clock, hangs } = options;
    this.#records = Array.from({ length: LIMITS.shardCountMax }, (_, shard) =>
      newerOf(readRecord(bytes, 0, shard), readRecord(bytes, 1, shard)),
    );
    const failed = Promise.withResolvers<Error>();
    this.failed = failed.promise;
    this.#resolveFailed = failed.resolve;
    this.#syncing = this.#syncEachSecond(clock);
    if (hangs !== undefined) void this.#watch(hangs);
  }

  async #watch(hangs: HangWatch): Promise<void> {
    const { signal } = this.#ending;
    const hang = await watchForHang(hangs, { underWay: () => this.#underWay, turn: poolTurn, signal });
    if (hang !== undefined) this.#underWay?.reject(hang);
  }

  read(shard: number): WitnessedPosition | 'damaged' | undefined {
    const record = this.#records[shard];
    return record === 'damaged' ? record : record?.position;
  }

  write(shard: number, position: WitnessedPosition): void {
    const record = this.#records[shard];
    const isSame =
      record !== 'damaged' &&
      record?.position?.seq === position.seq &&
      record.position.epoch === position.epoch &&
      record.position.isEmptied === position.isEmptied;
    // Heartbeats acknowledge the same position over and over.
    if (isSame && this.#failure === undefined) return;
    this.#put(shard, position);
  }

  async lower(shard: number, position: WitnessedPosition | undefined): Promise<void> {
    this.#put(shard, position);
    await this.#sync();
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    await this.#syncing;
    const [last] = await Promise.allSettled(this.#failure === undefined ? [this.#sync()] : []);
    this.#ending.abort();
    this.#failure ??= new Error('the witness is closed');
    // It waits for a sync that hangs.
    await this.#file.close();
    if (this.#lateFailure !== undefined) throw this.#lateFailure;
    if (last?.status === 'rejected') throw last.reason;
  }

  #put(shard: number, position: WitnessedPosition | undefined): void {
    if (this.#failure !== undefined) throw this.#failure;
    assert(shard >= 0 && shard < LIMITS.shardCountMax, 'a shard within the limits');
    const last = this.#records[shard];
    // A damaged record may have had any generation: the damaged copies are written over, both of them.
    const generation = last === 'damaged' || last === undefined ? 1 : last.generation + 1;
    encodeRecord(this.#scratch, { shard, generation, position });
    const pages = last === 'damaged' ? [0, 1] : [this.#page];
    try {
      for (const page of pages)
        writeSync(this.#file.fd, this.#scratch, 0, RECORD_BYTES, page * PAGE_BYTES + shard * RECORD_BYTES);
    } catch (error) {
      throw this.#fail(error);
    }
    this.#records[shard] = { generation, position };
    this.#isDirty = true;
  }

  /** Resolves when what is written by now is synced. One sync at a time. */
  #sync(): Promise<void> {
    const sync = async () => {
      if (this.#failure !== undefined) throw this.#failure;
      if (!this.#isDirty) return;
      this.#isDirty = false;
      // From here on the other page is written: this one is on its way to the disk.
      this.#page = 1 - this.#page;
      const hanging = Promise.withResolvers<never>();
      this.#underWay = hanging;
      const synced = this.#file.datasync();
      synced.catch((error: Error) => {
        if (this.#failure !== undefined) this.#lateFailure = error;
      });
      try {
        await Promise.race([synced, hanging.promise]);
      } catch (error) {
        throw this.#fail(error);
      } finally {
        this.#underWay = undefined;
      }
    };
    this.#lastSync = this.#lastSync.then(sync);
    // Waiting callers get the failure; later ones find it.
    this.#lastSync.catch(() => undefined);
    return this.#lastSync;
  }

  async #syncEachSecond(clock: ClockPort): Promise<void> {
    const { signal } = this.#closing;
    for (;;) {
      await clock.sleep(LIMITS.witnessSyncMs, signal);
      if (signal.aborted || this.#failure !== undefined) return;
      await this.#sync().catch(() => undefined);
    }
  }

  /** Final (R20). */
  #fail(cause: unknown): Error {
    const error = cause instanceof Error ? cause : new Error(String(cause));
    this.#failure ??= error;
    this.#resolveFailed(this.#failure);
    return this.#failure;
  }
}

/** Record: shard u16 | kind u8 | 0 | generation u48 | epoch u48 | seq u48 | zeros | CRC-32 of what is before. */
function encodeRecord(
  into: Buffer,
  record: { shard: number; generation: number; position: WitnessedPosition | undefined },
): void {
  const { shard, generation, position } = record;
  into.fill(0);
  into.writeUInt16BE(shard, 0);
  into[2] = kindOf(position);
  into.writeUIntBE(generation, 4, 6);
  into.writeUIntBE(position?.epoch ?? 0, 10, 6);
  into.writeUIntBE(position?.seq ?? 0, 16, 6);
  into.writeUInt32BE(crc32(into.subarray(0, CRC_AT)), CRC_AT);
}

function kindOf(position: WitnessedPosition | undefined): number {
  if (position === undefined) return KIND.none;
  return position.isEmptied ? KIND.emptied : KIND.position;
}

function readRecord(bytes: Buffer, page: number, shard: number): WitnessRecord | 'damaged' | undefined {
  const at = page * PAGE_BYTES + shard * RECORD_BYTES;
  const record = bytes.subarray(at, at + RECORD_BYTES);
  if (record.every((byte) => byte === 0)) return undefined;
  const kind = record[2];
  const isKnown = kind === KIND.position || kind === KIND.none || kind === KIND.emptied;
  if (record.readUInt32BE(CRC_AT) !== crc32(record.subarray(0, CRC_AT))) return 'damaged';
  if (!isKnown || record.readUInt16BE(0) !== shard) return 'damaged';
  const generation = record.readUIntBE(4, 6);
  if (kind === KIND.none) return { generation, position: undefined };
  const position = { epoch: record.readUIntBE(10, 6), seq: record.readUIntBE(16, 6) };
  return { generation, position: kind === KIND.emptied ? { ...position, isEmptied: true } : position };
}

/** Of the threads that sync files, which all drives share: one that hangs may have taken them all. */
async function poolTurn(): Promise<void> {
  await promisify(randomBytes)(1);
}

type Found = WitnessRecord | 'damaged' | undefined;

function newerOf(one: Found, other: Found): Found {
  if (one === undefined || one === 'damaged') return other === undefined ? one : other;
  if (other === undefined || other === 'damaged') return one;
  return one.generation > other.generation ? one : other;
}
