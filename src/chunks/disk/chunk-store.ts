// The chunks of one disk: the ChunkPort of the embedded form, and what a storage node serves. It keeps sealed bytes and
// checks them; it knows neither keys nor objects, and never deletes on its own (R38).
import { crc32 } from 'node:zlib';
import { must } from '../../base/assert.ts';
import { createByteGate } from '../../base/async/byte-gate.ts';
import { createSequence } from '../../base/async/sequence.ts';
import { freeMemory } from '../../base/free-memory.ts';
import type { ChunkId, ChunkPort, ChunkRead, Fence, StoredChunk } from '../../ports/chunks.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskOrders, InspectedChunk } from '../../ports/disk-orders.ts';
import type { DiskReservePort } from '../../ports/disk-reserve.ts';
import type { KvPort } from '../../ports/kv.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { ChunkUnread } from '../../types/chunk-refusals.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { chunkName } from '../../types/names.ts';
import { AsideChunks } from './aside-chunks.ts';
import { assertSame, type Checksum, passUnread, unavailable } from './chunk-checks.ts';
import { ChunkFills } from './chunk-fills.ts';
import { readRows, storedOf, type Verdict } from './chunk-halves.ts';
import { ChunkReads, type ChunkReadsDeps } from './chunk-reads.ts';
import { DiskTotals, usageOf } from './disk-totals.ts';
import { assertOfHome, Fences } from './fences.ts';
import { dataKey, encodeIndexRow, indexKey, removalsOf } from './keyspace.ts';
import { listChunks, listChunksOf } from './list-chunks.ts';
import type { LostChunks } from './lost-chunks.ts';
import { PendingDrops } from './pending-drops.ts';
import { recountChunks } from './recount-chunks.ts';
import { byName, mergeIds, UnreadChunks, type UnreadDeps } from './unread-chunks.ts';

export interface ChunkStoreDeps {
  /** With the columns CHUNK_COLUMNS. */
  kv: KvPort;
  reserve: DiskReservePort;
  clock: ClockPort;
  log: Logger;
  /**
   * What does not verify is set aside, and this is told of it: another copy takes its place (R40). Without it there is no
   * other, so nothing is moved.
   */
  onAside?: () => void;
  onUnread?: NonNullable<UnreadDeps['onUnread']>;
  onHangs?: NonNullable<ChunkReadsDeps['onHangs']>;
  /** Where there is no other copy: what is known to be lost. */
  lost?: LostChunks;
}

export async function openChunkStore(deps: ChunkStoreDeps): Promise<ChunkStore> {
  const { onAside, kv } = deps;
  const totals = await DiskTotals.open(kv);
  // Where there is no other copy the drive is waited for.
  const reads = onAside === undefined ? undefined : new ChunkReads(deps);
  const onDamaged = () => onAside?.();
  const aside = await AsideChunks.open({ ...deps, reads: reads ?? kv, totals, onDamaged });
  const unread = await UnreadChunks.open(deps);
  return new ChunkStore(deps, { totals, aside, reads, unread });
}

interface DropHow {
  withAside: boolean;
  check?: () => void;
}

interface StoreParts {
  totals: DiskTotals;
  aside: AsideChunks;
  reads: ChunkReads | undefined;
  unread: UnreadChunks;
}

export class ChunkStore implements ChunkPort {
  readonly #kv: KvPort;
  readonly #reserve: DiskReservePort;
  readonly #clock: ClockPort;
  readonly #log: Logger;
  readonly #totals: DiskTotals;
  readonly #aside: AsideChunks;
  readonly #reads: ChunkReads | undefined;
  readonly #unread: UnreadChunks;
  readonly #setsAside: boolean;
  readonly #lost: LostChunks | undefined;
  /** Chunks wait here, rather than being refused by a store whose queue is full. */
  readonly #gate = createByteGate(LIMITS.chunkPutsBytesMax);
  /** Chunks that are read to be verified, of all who ask. */
  readonly #verified = createByteGate(LIMITS.chunkVerifyBytesMax);
  /** Puts under way, so that one that is sent twice at once is still compared. */
  readonly #puts = new Map<string, Checksum & { isAnew: boolean; done: Promise<undefined> }>();
  /** Of each chunk that is being set aside, the last time: puts wait for it. */
  readonly #takes = new Map<string, Promise<unknown>>();
  readonly #drops = new PendingDrops();
  readonly #fills: ChunkFills;
  /** Drops and what is set aside, so that a chunk is counted out once. */
  readonly #inSequence = createSequence();
  readonly #fences: Fences;

  constructor(deps: ChunkStoreDeps, { totals, aside, reads, unread }: StoreParts) {
    this.#kv = deps.kv;
    this.#reserve = deps.reserve;
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#fences = new Fences(deps.kv);
    this.#totals = totals;
    this.#aside = aside;
    this.#reads = reads;
    this.#unread = unread;
    this.#setsAside = deps.onAside !== undefined;
    this.#lost = deps.lost;
    this.#fills = new ChunkFills({
      ...{ drops: this.#drops, reserve: deps.reserve, verify: (id) => this.verify(id) },
      put: (id, bytes, how) => this.#put(id, bytes, how),
    });
  }

  put(id: ChunkId, bytes: Uint8Array, taken?: number): Promise<undefined> {
    return this.#put(id, bytes, { crc32: taken ?? crc32(bytes), isAnew: false });
  }

  async #put(id: ChunkId, bytes: Uint8Array, how: { crc32: number; isAnew: boolean }): Promise<undefined> {
    const checksum = { sizeBytes: bytes.length, crc32: how.crc32 };
    const name = chunkName(id);
    // Drops that are ordered from here on wait for this put, so only those before it are waited for.
    while (this.#drops.has(id)) await this.#drops.ended([id]);
    const underWay = this.#puts.get(name);
    if (underWay !== undefined) {
      assertSame(id, underWay, checksum);
      await underWay.done;
      // That one may have found the row, and written nothing.
      return how.isAnew && !underWay.isAnew ? this.#put(id, bytes, how) : undefined;
    }
    const put = { ...checksum, isAnew: how.isAnew };
    const done = this.#store(id, bytes, put).finally(() => this.#puts.delete(name));
    this.#puts.set(name, { ...put, done });
    return done;
  }

  /** `isAnew`: over the bytes of a row that is there. */
  async #store(
    id: ChunkId,
    bytes: Uint8Array,
    { isAnew, ...checksum }: Checksum & { isAnew: boolean },
  ): Promise<undefined> {
    // Else what sets the rest of an old copy aside could take the new one with it.
    await this.#takes.get(chunkName(id))?.catch(() => {});
    const [known] = await this.#rows([id], { isPut: true });
    if (known !== undefined) assertSame(id, known, checksum);
    if (known !== undefined && !isAnew && !this.#unread.has(id)) return;
    const { sizeBytes } = checksum;
    const addedCount = known === undefined ? 1 : 0;
    const moved = await this.#aside.rowsToMove(id);
    const hold = await this.#reserve.hold(sizeBytes + moved.sizeBytes);
    if (hold === undefined) throw new AppError('InsufficientStorage');
    await this.#gate.enter(sizeBytes);
    const row = encodeIndexRow({ ...checksum, receivedAtMs: known?.receivedAtMs ?? this.#clock.wallMs() });
    this.#totals.count(addedCount, addedCount * sizeBytes);
    try {
      await this.#kv.commit([
        { column: 'data', key: dataKey(id), value: bytes },
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
   * As `put`, of bytes that are fetched once there is room for them. False: `fetch` gave none. Rejects with AppError also
   * when the chunk was dropped meanwhile.
   */
  fill(id: ChunkId, expected: Checksum, fetch: () => Promise<Uint8Array | undefined>): Promise<boolean> {
    return this.#fills.fill(id, expected, fetch);
  }

  async get(id: ChunkId, { isProven } = { isProven: false }): Promise<ChunkRead> {
    const verdict = await this.#judge(id, isProven);
    if (verdict.kind !== 'whole') return { kind: verdict.kind };
    return { kind: 'found', bytes: verdict.bytes, checksum: verdict.row.crc32 };
  }

  async #judge(id: ChunkId, isProven: boolean): Promise<Verdict> {
    let verdict = await this.#read(id, isProven);
    if (verdict.kind === 'whole' && !isProven) this.#lost?.forget(id);
    if (verdict.kind !== 'damaged') return verdict;
    if (!this.#setsAside) {
      // A put or a drop may have come between the two halves.
      verdict = await this.#read(id, false);
      if (verdict.kind !== 'damaged') return verdict;
      if (this.#lost === undefined) this.#log.error({ ...id, why: verdict.why }, 'chunk-damaged');
      else this.#lost.note(id, 'damaged');
      return verdict;
    }
    const outcome = await this.#takeAside(id);
    if (outcome === 'missing') return { kind: 'missing' };
    // What the disk gives wrong one time and right the next is not to be moved, nor to be believed.
    return outcome === 'whole' ? this.#read(id, false) : verdict;
  }

  async #read(id: ChunkId, isProven: boolean): Promise<Verdict> {
    try {
      return await this.#aside.judge(id, { isProven });
    } catch (error) {
      throw this.#unreadable(id, error);
    }
  }

  /** After puts that are under way, unless it is one that asks; those that come later wait. */
  async #takeAside(id: ChunkId, { isPut } = { isPut: false }): Promise<'aside' | 'missing' | 'whole'> {
    const name = chunkName(id);
    const earlier = isPut ? undefined : this.#puts.get(name)?.done;
    const take = Promise.allSettled([earlier]).then(() => this.#inSequence(() => this.#aside.take(id)));
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

  /** Reads the chunk and checks it; what does not verify is set aside (R40). */
  async verify(id: ChunkId): Promise<InspectedChunk> {
    await this.#drops.ended([id]);
    const [row] = await this.#rows([id]);
    const sizeBytes = row?.sizeBytes ?? 0;
    await this.#verified.enter(sizeBytes);
    try {
      const verdict = await this.#judge(id, false);
      this.#unread.forget(id);
      if (verdict.kind === 'damaged') return { kind: 'missing', isAside: this.#setsAside };
      if (verdict.kind === 'missing') {
        const [isAside = false] = await this.#aside.has([id]);
        return { kind: 'missing', isAside };
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

  /** As `verify`, by what is known of the chunks alone. */
  async lookUp(ids: readonly ChunkId[]): Promise<InspectedChunk[]> {
    await this.#drops.ended(ids);
    const [rows, aside] = await Promise.all([this.#rows(ids), this.#aside.has(ids)]);
    return rows.map((row, at) => {
      const id = must(ids[at], 'a row for each');
      if (row === undefined ? this.#unread.isKnown(id) : this.#unread.has(id)) return { kind: 'unread' };
      if (row === undefined) return { kind: 'missing', isAside: aside[at] === true };
      return { kind: 'whole', ...storedOf(row) };
    });
  }

  async have(ids: readonly ChunkId[]): Promise<(StoredChunk | null)[]> {
    const rows = await this.#rows(ids);
    return rows.map((row) => (row === undefined ? null : storedOf(row)));
  }

  /** Where a row is lost the chunk counts as missing, and is set aside, if its bytes can be read. */
  async #rows(ids: readonly ChunkId[], how = { isPut: false }) {
    const rows = await readRows(this.#kv, ids).catch((error: unknown) => {
      throw unavailable(error);
    });
    const found = [];
    for (const [at, id] of ids.entries()) {
      const row = rows[at];
      if (row === 'lost' && this.#setsAside) await this.#takeAside(id, how).catch(passUnread);
      found.push(row === 'lost' ? undefined : row);
    }
    return found;
  }

  /**
   * Resolves once `fence` is kept, so that nothing older is obeyed any more. Rejects with OldFence, and with BrokenInvariant
   * for a chunk of another home.
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
    // The chunk goes, and with it what did not verify of it.
    return this.#drops.track(ids, this.#orderDrop(ids, fence, { withAside: true }));
  }

  /** `check` throws when they must stay; nothing comes between it and the drop. */
  dropIf(ids: readonly ChunkId[], fence: Fence, check: () => void): Promise<void> {
    return this.#drops.track(ids, this.#orderDrop(ids, fence, { withAside: false, check }));
  }

  async #orderDrop(ordered: readonly ChunkId[], fence: Fence, how: DropHow): Promise<void> {
    assertOfHome(ordered, fence);
    const once = byName(ordered);
    const names = [...once.keys()];
    for (const name of names) this.#fills.wasDropped(name);
    // What was put before the order came goes with it.
    await Promise.allSettled(names.map((name) => this.#puts.get(name)?.done));
    await this.#inSequence(() => this.#drop([...once.values()], fence, how));
  }

  async #drop(ids: readonly ChunkId[], fence: Fence, how: DropHow): Promise<void> {
    const fenceRows = await this.#fences.rowsOf(fence);
    const rows = await readRows(this.#kv, ids);
    // What is lost is counted out first, as well as that can be done; a drop needs no bytes.
    const unread: ChunkId[] = [];
    for (const [at, id] of ids.entries())
      if (rows[at] === 'lost' && !(await this.#aside.take(id).catch(passUnread))) unread.push(id);
    const aside = await this.#aside.rowsToDrop(how.withAside ? ids : []);
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
        ...aside.rows,
        this.#totals.row(),
        ...fenceRows,
      ]);
    } catch (error) {
      this.#totals.count(present.length, sizeBytes);
      throw error;
    }
    aside.dropped();
    for (const id of ids) {
      this.#unread.forget(id);
      this.#lost?.forget(id);
      this.#reads?.wasReplaced(dataKey(id));
    }
    this.#fences.kept(fence);
  }

  /** Of copies that were set aside. */
  async dropAside(ordered: readonly ChunkId[], fence: Fence): Promise<void> {
    assertOfHome(ordered, fence);
    const ids = [...byName(ordered).values()];
    // No put that moves one of them comes between, neither one that has begun nor another.
    const puts = ids.map((id) => this.#puts.get(chunkName(id))?.done);
    const drop = async () => {
      await this.#aside.drop(ids, await this.#fences.rowsOf(fence));
      this.#fences.kept(fence);
    };
    const dropped = Promise.allSettled(puts).then(() => this.#inSequence(drop));
    await this.#drops.track(ids, dropped);
  }

  async listAside(options: Parameters<DiskOrders['listAside']>[0]): Promise<ChunkId[]> {
    const aside = await this.#aside.list(options);
    return mergeIds(aside, this.#unread.list(options)).slice(0, options.limit);
  }

  /** Those that could not be read, and are to be tried again. */
  unreadToTry(): ChunkId[] {
    return this.#unread.due();
  }

  /** Whether it is known to be damaged or missing, where there is no other copy. */
  isLost(id: ChunkId): boolean {
    return this.#lost?.has(id) === true;
  }

  get unreadCount(): number {
    return this.#unread.count;
  }

  get asideCount(): number {
    return this.#aside.count;
  }

  list(options: { after?: ChunkId; limit: number }): ReturnType<ChunkPort['list']> {
    return listChunks(this.#kv, options);
  }

  listOf(options: Parameters<DiskOrders['listOf']>[0]): ReturnType<DiskOrders['listOf']> {
    return listChunksOf(this.#kv, options);
  }

  async usage(): ReturnType<ChunkPort['usage']> {
    const space = await this.#reserve.measure();
    const { asideCount, unreadCount } = this;
    const used = usageOf({ space, stored: this.#kv.usage(), totals: this.#totals.get() });
    return { ...used, asideCount, ...(unreadCount > 0 && { unreadCount }) };
  }

  recount(): ReturnType<ChunkPort['recount']> {
    return recountChunks(this.#kv);
  }
}
