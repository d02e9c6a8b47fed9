// The chunks of one disk: the ChunkPort of the embedded form, and what a storage node serves. It keeps sealed bytes and
// checks them; it knows neither keys nor objects, and never deletes on its own (R38).
import { must } from '../../base/assert.ts';
import { createByteGate } from '../../base/async/byte-gate.ts';
import { createSequence } from '../../base/async/sequence.ts';
import { Corruption } from '../../base/corruption.ts';
import { crc32 } from '../../base/crypto/crc32.ts';
import { freeMemory } from '../../base/free-memory.ts';
import type {
  ChunkId,
  ChunkPart,
  ChunkPort,
  ChunkRead,
  ChunkReadOptions,
  Fence,
  StoredChunk,
} from '../../ports/chunks.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskOrders, InspectedChunk } from '../../ports/disk-orders.ts';
import type { DiskReservePort } from '../../ports/disk-reserve.ts';
import type { KvPort } from '../../ports/kv.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { ChunkUnread } from '../../types/chunk-refusals.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { chunkName } from '../../types/names.ts';
import { assertSame, type Checksum, passUnread, unavailable } from './chunk-checks.ts';
import { ChunkFills } from './chunk-fills.ts';
import { readRows, storedOf, type Verdict } from './chunk-halves.ts';
import { ChunkReads, type ChunkReadsDeps } from './chunk-reads.ts';
import { roomOf } from './disk-reserve.ts';
import { DiskTotals, usageOf } from './disk-totals.ts';
import { assertOfHome, Fences } from './fences.ts';
import { dataKey, encodeIndexRow, indexKey, removalsOf } from './keyspace.ts';
import { listChunks, listChunksOf } from './list-chunks.ts';
import type { LostChunks } from './lost-chunks.ts';
import { PendingDrops } from './pending-drops.ts';
import { QuarantinedChunks } from './quarantined-chunks.ts';
import { recountChunks } from './recount-chunks.ts';
import { byName, mergeIds, UnreadChunks, type UnreadDeps } from './unread-chunks.ts';

export interface ChunkStoreDeps {
  /** With the columns CHUNK_COLUMNS. */
  kv: KvPort;
  reserve: DiskReservePort;
  clock: ClockPort;
  log: Logger;
  /**
   * Called when a copy did not verify and was quarantined; another copy will replace it (R40). Absent: this disk has the
   * only copy, so nothing is moved.
   */
  onQuarantined?: () => void;
  onUnread?: NonNullable<UnreadDeps['onUnread']>;
  onHangs?: NonNullable<ChunkReadsDeps['onHangs']>;
  /** Where there is no other copy: chunks that are known to be lost. */
  lost?: LostChunks;
}

export async function openChunkStore(deps: ChunkStoreDeps): Promise<ChunkStore> {
  const { onQuarantined, kv } = deps;
  const totals = await DiskTotals.open(kv);
  // Without other copies, reads wait for the drive.
  const reads = onQuarantined === undefined ? undefined : new ChunkReads(deps);
  const onDamaged = () => onQuarantined?.();
  const quarantine = await QuarantinedChunks.open({ ...deps, reads: reads ?? kv, totals, onDamaged });
  const unread = await UnreadChunks.open(deps);
  return new ChunkStore(deps, { totals, quarantine, reads, unread });
}

interface DropHow {
  withQuarantined: boolean;
  check?: () => void;
}

interface StoreParts {
  totals: DiskTotals;
  quarantine: QuarantinedChunks;
  reads: ChunkReads | undefined;
  unread: UnreadChunks;
}

export class ChunkStore implements ChunkPort {
  readonly #kv: KvPort;
  readonly #reserve: DiskReservePort;
  readonly #clock: ClockPort;
  readonly #log: Logger;
  readonly #totals: DiskTotals;
  readonly #quarantine: QuarantinedChunks;
  readonly #reads: ChunkReads | undefined;
  readonly #unread: UnreadChunks;
  readonly #quarantines: boolean;
  readonly #lost: LostChunks | undefined;
  /** Chunks wait here instead of being refused by a store whose queue is full. */
  readonly #gate = createByteGate(LIMITS.chunkPutsBytesMax);
  /** Chunks being read for verification, for all callers. */
  readonly #verified = createByteGate(LIMITS.chunkVerifyBytesMax);
  /** Puts under way, so that two puts of one chunk at once are still compared. */
  readonly #puts = new Map<string, Checksum & { isAnew: boolean; done: Promise<undefined> }>();
  /** For each chunk being quarantined, its last attempt: puts wait for it. */
  readonly #takes = new Map<string, Promise<unknown>>();
  readonly #drops = new PendingDrops();
  readonly #fills: ChunkFills;
  /** Serialises drops and quarantining, so that a chunk is subtracted from the totals once. */
  readonly #inSequence = createSequence();
  readonly #fences: Fences;

  constructor(deps: ChunkStoreDeps, { totals, quarantine, reads, unread }: StoreParts) {
    this.#kv = deps.kv;
    this.#reserve = deps.reserve;
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#fences = new Fences(deps.kv);
    this.#totals = totals;
    this.#quarantine = quarantine;
    this.#reads = reads;
    this.#unread = unread;
    this.#quarantines = deps.onQuarantined !== undefined;
    this.#lost = deps.lost;
    this.#fills = new ChunkFills({
      drops: this.#drops,
      reserve: deps.reserve,
      verify: (id) => this.verify(id),
      put: (id, bytes, how) => this.#put(id, bytes, how),
    });
  }

  put(id: ChunkId, bytes: Uint8Array, taken?: number): Promise<undefined> {
    return this.#put(id, bytes, { crc32: taken ?? crc32(bytes), isAnew: false });
  }

  async #put(id: ChunkId, bytes: Uint8Array, how: { crc32: number; isAnew: boolean }): Promise<undefined> {
    const checksum = { sizeBytes: bytes.length, crc32: how.crc32 };
    const name = chunkName(id);
    // Drops ordered from here on wait for this put, so only earlier ones are waited for.
    while (this.#drops.has(id)) await this.#drops.ended([id]);
    const underWay = this.#puts.get(name);
    if (underWay !== undefined) {
      assertSame(id, underWay, checksum);
      await underWay.done;
      // The earlier put may have found the row and written nothing.
      return how.isAnew && !underWay.isAnew ? this.#put(id, bytes, how) : undefined;
    }
    const put = { ...checksum, isAnew: how.isAnew };
    const done = this.#store(id, bytes, put).finally(() => this.#puts.delete(name));
    this.#puts.set(name, { ...put, done });
    return done;
  }

  /** `isAnew`: writes over the bytes of a row that exists. */
  async #store(
    id: ChunkId,
    bytes: Uint8Array,
    { isAnew, ...checksum }: Checksum & { isAnew: boolean },
  ): Promise<undefined> {
    // Otherwise quarantining the remains of an old copy could take the new one with it.
    await this.#takes.get(chunkName(id))?.catch(() => {});
    const [known] = await this.#rows([id], { isPut: true });
    if (known !== undefined) assertSame(id, known, checksum);
    if (known !== undefined && !isAnew && !this.#unread.has(id)) return;
    const { sizeBytes } = checksum;
    const addedCount = known === undefined ? 1 : 0;
    const moved = await this.#quarantine.rowsToMove(id);
    const hold = await this.#reserve.hold(sizeBytes + moved.sizeBytes);
    if (hold === undefined) throw new AppError('InsufficientStorage');
    await this.#gate.enter(sizeBytes);
    const row = encodeIndexRow({ ...checksum, receivedAtMs: known?.receivedAtMs ?? this.#clock.wallMs() });
    this.#totals.count(addedCount, addedCount * sizeBytes);
    try {
      await this.#kv.commit([
        { column: 'data', key: dataKey(id), value: bytes, crc32: checksum.crc32 },
        { column: 'index', key: indexKey(id), value: row },
        ...moved.rows,
        this.#totals.row(),
      ]);
    } catch (error) {
      this.#totals.count(-addedCount, -addedCount * sizeBytes);
      throw unavailable(error);
    } finally {
      this.#gate.leave(sizeBytes);
      hold.release();
    }
    moved.moved();
    this.#reads?.wasReplaced(dataKey(id));
    this.#unread.forget(id);
    this.#lost?.forget(id);
  }

  /**
   * Like `put`, for bytes that `fetch` gets once there is room for them. False: `fetch` gave none. Rejects with AppError
   * also when the chunk was dropped meanwhile.
   */
  fill(id: ChunkId, expected: Checksum, fetch: () => Promise<Uint8Array | undefined>): Promise<boolean> {
    return this.#fills.fill(id, expected, fetch);
  }

  async get(id: ChunkId, { isProven, part }: ChunkReadOptions = { isProven: false }): Promise<ChunkRead> {
    const bytes = isProven && part !== undefined ? await this.#readPart(id, part) : undefined;
    if (bytes !== undefined) return { kind: 'found', bytes };
    const verdict = await this.#judge(id, isProven);
    if (verdict.kind !== 'whole') return { kind: verdict.kind };
    return { kind: 'found', bytes: verdict.bytes, checksum: verdict.row.crc32 };
  }

  /** undefined: it is to be read as a whole, and judged. */
  async #readPart(id: ChunkId, part: ChunkPart): Promise<Uint8Array | undefined> {
    try {
      const bytes = await (this.#reads ?? this.#kv).readPart?.(dataKey(id), part);
      if (bytes === undefined) return undefined;
      const [row] = await readRows(this.#kv, [id]);
      // Without a row it is no copy that counts, whatever lies there.
      return row === undefined || row === 'lost' ? undefined : bytes;
    } catch (error) {
      if (error instanceof Corruption) return undefined;
      throw this.#unreadable(id, error);
    }
  }

  async #judge(id: ChunkId, isProven: boolean): Promise<Verdict> {
    let verdict = await this.#read(id, isProven);
    if (verdict.kind === 'whole' && !isProven) this.#lost?.forget(id);
    if (verdict.kind !== 'damaged') return verdict;
    if (!this.#quarantines) {
      // A put or a drop may have come between the reads of the two halves.
      verdict = await this.#read(id, false);
      if (verdict.kind !== 'damaged') return verdict;
      if (this.#lost === undefined) this.#log.error({ ...id, why: verdict.why }, 'chunk-damaged');
      else this.#lost.note(id, 'damaged');
      return verdict;
    }
    const outcome = await this.#quarantineChunk(id);
    if (outcome === 'missing') return { kind: 'missing' };
    // A copy that reads wrong once and right the next time is neither moved nor trusted.
    return outcome === 'whole' ? this.#read(id, false) : verdict;
  }

  async #read(id: ChunkId, isProven: boolean): Promise<Verdict> {
    try {
      return await this.#quarantine.judge(id, { isProven });
    } catch (error) {
      throw this.#unreadable(id, error);
    }
  }

  /** Waits for puts under way, unless a put is the caller; later puts wait for this. */
  async #quarantineChunk(
    id: ChunkId,
    { isPut } = { isPut: false },
  ): Promise<'quarantined' | 'missing' | 'whole'> {
    const name = chunkName(id);
    const earlier = isPut ? undefined : this.#puts.get(name)?.done;
    const take = Promise.allSettled([earlier]).then(() => this.#inSequence(() => this.#quarantine.take(id)));
    this.#takes.set(name, take);
    try {
      return await take;
    } catch (error) {
      throw this.#unreadable(id, error);
    } finally {
      if (this.#takes.get(name) === take) this.#takes.delete(name);
    }
  }

  #unreadable(id: ChunkId, error: unknown): Error {
    if (error instanceof ChunkUnread) this.#unread.note(id, error.cause);
    return unavailable(error);
  }

  /** Reads the chunk and checks it; quarantines a copy that does not verify (R40). */
  async verify(id: ChunkId): Promise<InspectedChunk> {
    await this.#drops.ended([id]);
    const [row] = await this.#rows([id]);
    const sizeBytes = row?.sizeBytes ?? 0;
    await this.#verified.enter(sizeBytes);
    try {
      const verdict = await this.#judge(id, false);
      this.#unread.forget(id);
      if (verdict.kind === 'damaged') return { kind: 'missing', isQuarantined: this.#quarantines };
      if (verdict.kind === 'missing') {
        const [isQuarantined = false] = await this.#quarantine.has([id]);
        return { kind: 'missing', isQuarantined };
      }
      freeMemory(verdict.bytes);
      return { kind: 'whole', ...storedOf(verdict.row) };
    } catch (error) {
      if (error instanceof ChunkUnread) return { kind: 'unread' };
      throw error;
    } finally {
      this.#verified.leave(sizeBytes);
    }
  }

  /**
   * Moves the bytes of a large chunk from the database to where large ones are written now, while the disk has room for both.
   * False: they are there, or stay.
   */
  async separate(id: ChunkId): Promise<boolean> {
    if (this.#kv.separate === undefined) return false;
    if (roomOf(await this.#reserve.measure(), { holdsChunks: true }).state !== 'ok') return false;
    try {
      return await this.#kv.separate(dataKey(id));
    } catch (error) {
      // The next look at it deals with that.
      if (error instanceof Corruption) return false;
      throw error;
    }
  }

  /** Like `verify`, by what the index says, without reading bytes. */
  async lookUp(ids: readonly ChunkId[]): Promise<InspectedChunk[]> {
    await this.#drops.ended(ids);
    const [rows, quarantined] = await Promise.all([this.#rows(ids), this.#quarantine.has(ids)]);
    return rows.map((row, at) => {
      const id = must(ids[at], 'a row for each');
      if (row === undefined ? this.#unread.isKnown(id) : this.#unread.has(id)) return { kind: 'unread' };
      if (row === undefined) return { kind: 'missing', isQuarantined: quarantined[at] === true };
      return { kind: 'whole', ...storedOf(row) };
    });
  }

  async have(ids: readonly ChunkId[]): Promise<(StoredChunk | null)[]> {
    const rows = await this.#rows(ids);
    return rows.map((row) => (row === undefined ? null : storedOf(row)));
  }

  /** A chunk with an unreadable row counts as missing, and is quarantined if its bytes can be read. */
  async #rows(ids: readonly ChunkId[], how = { isPut: false }) {
    const rows = await readRows(this.#kv, ids).catch((error: unknown) => {
      throw unavailable(error);
    });
    const found = [];
    for (const [at, id] of ids.entries()) {
      const row = rows[at];
      if (row === 'lost' && this.#quarantines) await this.#quarantineChunk(id, how).catch(passUnread);
      found.push(row === 'lost' ? undefined : row);
    }
    return found;
  }

  /**
   * Resolves once `fence` is durable, so that no older one is obeyed. Rejects with OldFence, and with BrokenInvariant for a
   * chunk of another home.
   */
  async obey(fence: Fence, ids: readonly ChunkId[] = []): Promise<void> {
    assertOfHome(ids, fence);
    if (this.#fences.isKept(fence)) return;
    await this.#inSequence(async () => {
      const rows = await this.#fences.rowsOf(fence);
      if (rows.length > 0) await this.#kv.commit(rows);
      this.#fences.kept(fence);
    });
  }

  drop(ids: readonly ChunkId[], fence: Fence): Promise<void> {
    // The chunk goes, and its quarantined copy with it.
    return this.#drops.track(ids, this.#orderDrop(ids, fence, { withQuarantined: true }));
  }

  /** `check` throws when the chunks must stay; nothing comes between the check and the drop. */
  dropIf(ids: readonly ChunkId[], fence: Fence, check: () => void): Promise<void> {
    return this.#drops.track(ids, this.#orderDrop(ids, fence, { withQuarantined: false, check }));
  }

  async #orderDrop(ordered: readonly ChunkId[], fence: Fence, how: DropHow): Promise<void> {
    assertOfHome(ordered, fence);
    const once = byName(ordered);
    const names = [...once.keys()];
    for (const name of names) this.#fills.wasDropped(name);
    // Puts from before the order are dropped, too.
    await Promise.allSettled(names.map((name) => this.#puts.get(name)?.done));
    await this.#inSequence(() => this.#drop([...once.values()], fence, how));
  }

  async #drop(ids: readonly ChunkId[], fence: Fence, how: DropHow): Promise<void> {
    const fenceRows = await this.#fences.rowsOf(fence);
    const rows = await readRows(this.#kv, ids);
    // Unreadable chunks are subtracted first, as well as possible; a drop does not need their bytes.
    const unread: ChunkId[] = [];
    for (const [at, id] of ids.entries())
      if (rows[at] === 'lost' && !(await this.#quarantine.take(id).catch(passUnread))) unread.push(id);
    const quarantined = await this.#quarantine.rowsToDrop(how.withQuarantined ? ids : []);
    how.check?.();
    const present = ids.flatMap((id, at) => {
      const row = rows[at];
      return row === undefined || row === 'lost' ? [] : [{ id, sizeBytes: row.sizeBytes }];
    });
    const sizeBytes = present.reduce((sum, chunk) => sum + chunk.sizeBytes, 0);
    this.#totals.count(-present.length, -sizeBytes);
    try {
      await this.#kv.commit([
        ...removalsOf([...present.map(({ id }) => id), ...unread]),
        ...quarantined.rows,
        this.#totals.row(),
        ...fenceRows,
      ]);
    } catch (error) {
      this.#totals.count(present.length, sizeBytes);
      throw error;
    }
    quarantined.dropped();
    for (const id of ids) {
      this.#unread.forget(id);
      this.#lost?.forget(id);
      this.#reads?.wasReplaced(dataKey(id));
    }
    this.#fences.kept(fence);
  }

  /** Drops quarantined copies. */
  async dropQuarantined(ordered: readonly ChunkId[], fence: Fence): Promise<void> {
    assertOfHome(ordered, fence);
    const ids = [...byName(ordered).values()];
    // No put that moves one of them comes between, neither one under way nor a new one.
    const puts = ids.map((id) => this.#puts.get(chunkName(id))?.done);
    const drop = async () => {
      await this.#quarantine.drop(ids, await this.#fences.rowsOf(fence));
      this.#fences.kept(fence);
    };
    const dropped = Promise.allSettled(puts).then(() => this.#inSequence(drop));
    await this.#drops.track(ids, dropped);
  }

  async listQuarantined(options: Parameters<DiskOrders['listQuarantined']>[0]): Promise<ChunkId[]> {
    const quarantined = await this.#quarantine.list(options);
    return mergeIds(quarantined, this.#unread.list(options)).slice(0, options.limit);
  }

  /** Chunks that could not be read and are to be tried again. */
  unreadToTry(): ChunkId[] {
    return this.#unread.due();
  }

  /** Whether the chunk is known to be damaged or missing, where there is no other copy. */
  isLost(id: ChunkId): boolean {
    return this.#lost?.has(id) === true;
  }

  get unreadCount(): number {
    return this.#unread.count;
  }

  get quarantinedCount(): number {
    return this.#quarantine.count;
  }

  list(options: { after?: ChunkId; limit: number }): ReturnType<ChunkPort['list']> {
    return listChunks(this.#kv, options);
  }

  listOf(options: Parameters<DiskOrders['listOf']>[0]): ReturnType<DiskOrders['listOf']> {
    return listChunksOf(this.#kv, options);
  }

  async usage(): ReturnType<ChunkPort['usage']> {
    const space = await this.#reserve.measure();
    const { quarantinedCount, unreadCount } = this;
    const stored = this.#kv.usage();
    const { largeWrites } = stored;
    return {
      ...usageOf({ space, stored, totals: this.#totals.get() }),
      quarantinedCount,
      ...(unreadCount > 0 && { unreadCount }),
      ...(largeWrites && { largeWrites }),
    };
  }

  recount(): ReturnType<ChunkPort['recount']> {
    return recountChunks(this.#kv);
  }
}
