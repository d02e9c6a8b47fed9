// The disks of one storage node. They are opened one by one, and each is served as long as it works. The newest placement
// version that the node knows is stored on all of them.

import { within } from '../../base/async/within.ts';
import { closeUnlessItHangs, DriveHangs } from '../../base/drive-hangs.ts';
import { Refusal } from '../../base/refusal.ts';
import type { ServedDisk, ServedDisks } from '../../ports/chunk-server.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { FetchChunk, KnownOwners } from '../../ports/disk-orders.ts';
import type { DiskReservePort } from '../../ports/disk-reserve.ts';
import type { KvPort } from '../../ports/kv.ts';
import type { UnservedDisk } from '../../ports/members.ts';
import type { DiskId } from '../../ports/placement.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import type { WitnessPort } from '../../ports/witness.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { type ChunkStore, openChunkStore } from './chunk-store.ts';
import {
  type DiskIdentity,
  keepDiskIdentity,
  noteCut,
  openDiskIdentity,
  readDiskIdentity,
} from './disk-identity.ts';
import { createDiskOrders, serveDisk } from './disk-orders.ts';
import { openWitnessedKv, type WitnessedKv } from './witnessed-kv.ts';

/** One disk, not yet open. */
export interface DiskToOpen {
  /** For people: its folder. */
  name: string;
  open(): Promise<OpenedStore>;
}

export interface OpenedStore {
  kv: KvPort;
  reserve: DiskReservePort;
  /** A file beside the disk; without it a loss of the last commits is not noticed at once (R40). */
  witness?: WitnessPort;
}

export interface OpenDisk {
  name: string;
  /** Set once the disk is open. */
  origin: DiskToOpen;
  identity: DiskIdentity;
  kv: KvPort;
  reserve: DiskReservePort;
  chunks: ChunkStore;
  capacityBytes: number;
  /** Resolves with the error when the drive answers no more reads. */
  hangs: Promise<Error>;
}

export interface NodeDisksDeps {
  clusterId: string;
  disks: readonly DiskToOpen[];
  clock: ClockPort;
  random: RandomPort;
  log: Logger;
  telemetry: TelemetryPort;
  /** Which disk owns what (R38). */
  owners: KnownOwners;
  /** Whether an operator has removed the disk; default: none has been removed. */
  isRemoved?(diskId: DiskId): boolean;
  /** How a disk gets the chunks of others (R39). */
  fetch: FetchChunk;
  /** Called when the served disks, or the reason why one is not served, have changed. */
  onChange(): void;
  /** Called when a disk is no longer served, before `onChange`. */
  onFailed(error: Error): void;
}

/** A disk that takes longer than this for a few bytes is not waited for. */
const KEEP_LATE_MS = 1000;

const REASON_LENGTH_MAX = 300;

/** A disk that takes longer than this to open is served once it has opened. */
const OPEN_LATE_MS = 30_000;

/** Rejects with {@link Refusal} for a disk that must not be served, and when no disk can be. */
export async function openNodeDisks(deps: NodeDisksDeps): Promise<NodeDisks> {
  const { clock, log } = deps;
  const disks = new NodeDisks(deps);
  /** Resolves when one disk has opened, or none may be served. */
  const first = Promise.withResolvers<void>();
  let refusal: Refusal | undefined;
  let hasStarted = false;
  const unsettled = new Set(deps.disks.map(({ name }) => name));
  const opening = deps.disks.map(async (disk) => {
    try {
      const isServed = await disks.open(disk);
      first.resolve();
      if (hasStarted && isServed) log.info({ disk: disk.name }, 'disk-served-late');
    } catch (error) {
      // One broken disk of many must not prevent the others from being served.
      log.error({ disk: disk.name, err: error }, 'disk-not-opened');
      disks.note(disk.name, { reason: lineOf(error) });
      if (error instanceof Refusal) {
        refusal ??= error;
        first.resolve();
      }
    } finally {
      unsettled.delete(disk.name);
    }
  });
  const waiting = new AbortController();
  const late = clock.sleep(OPEN_LATE_MS, waiting.signal).then(() => {
    if (waiting.signal.aborted) return;
    for (const name of unsettled) {
      log.error({ disk: name, afterMs: OPEN_LATE_MS }, 'disk-opens-late');
      disks.note(name, { reason: `it has not opened in ${OPEN_LATE_MS / 1000} s` });
    }
    // Nor may one that hangs, unless no disk has opened.
    return first.promise;
  });
  await Promise.race([Promise.all(opening), late]);
  waiting.abort();
  hasStarted = true;
  if (disks.served().length === 0) {
    const reasons = disks.unserved().map(({ name, reason }) => `${name}: ${reason}`);
    refusal ??= new Refusal(`None of the disks can be opened. ${reasons.join('; ')}`);
  }
  if (refusal === undefined) return disks;
  await disks.close();
  throw refusal;
}

async function openDisk(deps: NodeDisksDeps, origin: DiskToOpen): Promise<OpenDisk> {
  const { name, open } = origin;
  const { clusterId, random, clock, log, telemetry } = deps;
  const opened = await open();
  const { reserve } = opened;
  const { kv, isCut, lastSeq } = await witnessed(opened);
  try {
    const isNew = (await readDiskIdentity(kv)) === undefined;
    let identity = await openDiskIdentity(kv, { name, clusterId, random });
    // Nobody uses a removed disk; served, it would look useful.
    if (deps.isRemoved?.(identity.diskId))
      throw new Error(
        `it is disk ${identity.diskId}, which was removed from the cluster (\`holdfast cluster remove\`) and is not taken in again: an empty folder in its place is a new disk`,
      );
    // An emptied disk is a new one, which has lost nothing.
    if (isCut && !isNew) {
      identity = await noteCut(kv, identity, lastSeq);
      log.error({ disk: name, diskId: identity.diskId, cutSeq: identity.cutSeq }, 'disk-cut');
    }
    const { totalBytes } = await reserve.measure();
    const onQuarantined = () =>
      telemetry.count('holdfast_disk_damaged_chunks_total', { disk: identity.diskId });
    const onUnread = () => telemetry.count('holdfast_disk_unread_chunks_total', { disk: identity.diskId });
    const hangs = Promise.withResolvers<Error>();
    const onHangs = hangs.resolve;
    const parts = { kv, reserve, clock, onQuarantined, onUnread, onHangs, log: withDisk(log, name) };
    const chunks = await openChunkStore(parts);
    const facts = { name, origin, identity, capacityBytes: totalBytes };
    return { ...facts, kv, reserve, chunks, hangs: hangs.promise };
  } catch (error) {
    await kv.close();
    throw error;
  }
}

async function witnessed({ kv, witness }: OpenedStore): Promise<WitnessedKv> {
  if (witness === undefined) return { kv, isCut: false, lastSeq: 0 };
  try {
    return await openWitnessedKv(kv, witness);
  } catch (error) {
    await Promise.allSettled([kv.close(), witness.close()]);
    throw error;
  }
}

export class NodeDisks implements ServedDisks {
  readonly #deps: NodeDisksDeps;
  readonly #opened = new Set<OpenDisk>();
  readonly #open = new Map<DiskId, OpenDisk>();
  readonly #served = new Map<DiskId, ServedDisk>();
  /** By name. */
  readonly #unserved = new Map<string, UnservedDisk>();
  #mapVersion = 0;
  /** The highest version that any disk was asked to store. */
  #wantedVersion = 0;
  #adopting: Promise<void> = Promise.resolve();
  #isClosing = false;

  constructor(deps: NodeDisksDeps) {
    this.#deps = deps;
  }

  /**
   * Opens and serves one more disk, when its drive answers; false when all are being closed. Rejects with {@link Refusal}
   * for one that must not be served.
   */
  async open(origin: DiskToOpen): Promise<boolean> {
    while (!this.#isClosing) {
      try {
        return await this.#add(await openDisk(this.#deps, origin));
      } catch (error) {
        if (!(error instanceof DriveHangs)) throw error;
        // Its earlier work has ended by now, or it would not be closed.
        this.#deps.log.error({ disk: origin.name, err: error }, 'disk-not-opened');
      }
    }
    return false;
  }

  /** Closes a disk that must not be served: it is a copy of another one, or all are being closed. */
  async #add(disk: OpenDisk): Promise<boolean> {
    const { diskId } = disk.identity;
    try {
      // It stores the newest version before it is served: after a restart it may be the only disk (R34).
      while (!this.#isClosing && disk.identity.mapVersion < this.#wantedVersion) {
        disk.identity = { ...disk.identity, mapVersion: this.#wantedVersion };
        await keepDiskIdentity(disk.kv, disk.identity);
      }
      const other = [...this.#opened].find(({ identity }) => identity.diskId === diskId);
      if (other !== undefined)
        throw new Refusal(`The disks ${other.name} and ${disk.name} are copies of one: keep only one.`);
    } catch (error) {
      await disk.kv.close();
      throw error;
    }
    if (this.#isClosing) {
      await disk.kv.close();
      return false;
    }
    const { owners, fetch, log } = this.#deps;
    const orders = { diskId, store: disk.chunks, owners, fetch, node: this, log: withDisk(log, disk.name) };
    this.#opened.add(disk);
    this.#open.set(diskId, disk);
    this.#served.set(diskId, serveDisk(disk.chunks, createDiskOrders(orders)));
    this.#mapVersion = Math.max(this.#mapVersion, disk.identity.mapVersion);
    this.#wantedVersion = Math.max(this.#wantedVersion, this.#mapVersion);
    for (const failing of [disk.kv.failed, disk.hangs]) failing.then((error) => this.#fail(disk, error));
    this.#unserved.delete(disk.name);
    this.#deps.onChange();
    return true;
  }

  /** The reason why it is not served. */
  note(name: string, why: Omit<UnservedDisk, 'name'>): void {
    this.#unserved.set(name, { name, ...why });
    this.#deps.onChange();
  }

  unserved(): UnservedDisk[] {
    return [...this.#unserved.values()];
  }

  served(): OpenDisk[] {
    return [...this.#open.values()];
  }

  chunksOf(diskId: DiskId): ServedDisk | undefined {
    return this.#open.has(diskId) ? this.#served.get(diskId) : undefined;
  }

  mapVersion(): number {
    return this.#mapVersion;
  }

  adopt(version: number): Promise<void> {
    const adopted = this.#adopting.then(() => this.#adopt(version));
    this.#adopting = adopted.catch(() => {});
    return adopted;
  }

  async #adopt(version: number): Promise<void> {
    if (version <= this.#mapVersion) return;
    this.#wantedVersion = Math.max(this.#wantedVersion, version);
    const kept = await this.#keepOnDisks(version);
    // A failed disk does not hold up the others; one that only refused is asked again.
    const failures = kept.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
    const decisive = failures.find((error) => error instanceof AppError || failures.length === kept.length);
    if (decisive !== undefined) throw decisive;
    // A disk that was added meanwhile may know a higher version.
    this.#mapVersion = Math.max(this.#mapVersion, version);
    this.#deps.owners.noteVersion(version);
    this.#deps.log.info({ version }, 'placement-heard');
  }

  /**
   * The outcomes; without those of disks that hang, once another has stored it. After a restart the highest version counts.
   */
  async #keepOnDisks(version: number): Promise<PromiseSettledResult<void>[]> {
    const writes = this.served().map((disk) => {
      disk.identity = { ...disk.identity, mapVersion: version };
      return keepDiskIdentity(disk.kv, disk.identity);
    });
    const settled = Promise.allSettled(writes);
    const hasSettled = new AbortController();
    const late = async () => {
      await Promise.any(writes);
      await this.#deps.clock.sleep(KEEP_LATE_MS, hasSettled.signal);
      return [];
    };
    return Promise.race([settled, late().catch(() => settled)]).finally(() => hasSettled.abort());
  }

  /** A failed write or sync is final (R20): the disk's chunks have other copies, and the disk waits for a restart. */
  #fail(disk: OpenDisk, error: Error): void {
    if (this.#isClosing || !this.#open.delete(disk.identity.diskId)) return;
    this.#deps.log.error({ disk: disk.name, diskId: disk.identity.diskId, err: error }, 'disk-failed');
    this.#deps.onFailed(error);
    this.note(disk.name, { diskId: disk.identity.diskId, reason: lineOf(error) });
    if (error instanceof DriveHangs) void this.#openAgain(disk);
  }

  /** Like a restart. Work of the drive ends before it can be closed, so none of it follows later. */
  async #openAgain(disk: OpenDisk): Promise<void> {
    const { log } = this.#deps;
    try {
      await disk.kv.close().catch((error: unknown) => {
        // It hung once more while closing.
        if (!(error instanceof DriveHangs)) throw error;
      });
      this.#opened.delete(disk);
      if (await this.open(disk.origin)) log.info({ disk: disk.name }, 'disk-answers-again');
    } catch (error) {
      log.error({ disk: disk.name, err: error }, 'disk-not-opened');
      this.note(disk.name, { diskId: disk.identity.diskId, reason: lineOf(error) });
    }
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    const { clock } = this.#deps;
    const how = { clock, maxMs: LIMITS.storeCloseMaxMs };
    await within(this.#adopting, how.maxMs, clock);
    const settled = await Promise.allSettled([...this.#opened].map(({ kv }) => closeUnlessItHangs(kv, how)));
    for (const one of settled) {
      if (one.status === 'rejected') this.#deps.log.error({ err: one.reason as unknown }, 'disk-not-closed');
    }
  }
}

/** Reason for a list in etcd that people read. */
function lineOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/\s+/g, ' ').slice(0, REASON_LENGTH_MAX);
}

/** Events have fixed names, so the disk is a field. */
export function withDisk(log: Logger, disk: string): Logger {
  return {
    debug: (fields, event) => log.debug({ disk, ...fields }, event),
    info: (fields, event) => log.info({ disk, ...fields }, event),
    warn: (fields, event) => log.warn({ disk, ...fields }, event),
    error: (fields, event) => log.error({ disk, ...fields }, event),
  };
}
