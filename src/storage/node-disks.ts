// The disks of one storage node: opened one by one, served as long as they work, each for itself. The placement version
// that the node has heard of is kept on all of them.
import { Refusal } from '../lib/refusal.ts';
import { AppError } from '../model/errors.ts';
import type { ServedDisk, ServedDisks } from '../ports/chunk-server.ts';
import type { ClockPort, RandomPort } from '../ports/clock.ts';
import type { FetchChunk, KnownOwners } from '../ports/disk-orders.ts';
import type { DiskReservePort } from '../ports/disk-reserve.ts';
import type { KvPort } from '../ports/kv.ts';
import type { DiskId } from '../ports/placement.ts';
import type { Logger, TelemetryPort } from '../ports/telemetry.ts';
import type { WitnessPort } from '../ports/witness.ts';
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
  /** Beside it, of its own; without one the loss of its end is not noticed at once (R40). */
  witness?: WitnessPort;
}

export interface OpenDisk {
  name: string;
  identity: DiskIdentity;
  kv: KvPort;
  reserve: DiskReservePort;
  chunks: ChunkStore;
  capacityBytes: number;
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
  /** How a disk gets the chunks of others (R39). */
  fetch: FetchChunk;
  /** A disk is served no more. */
  onFailed(disk: OpenDisk, error: Error): void;
}

/** A disk that takes longer for a few bytes is not waited for. */
const KEEP_LATE_MS = 1000;

/** Rejects with {@link Refusal} for a disk that must not be served, and when not one can be. */
export async function openNodeDisks(deps: NodeDisksDeps): Promise<NodeDisks> {
  const settled = await Promise.allSettled(deps.disks.map((disk) => openDisk(deps, disk)));
  const opened = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const failures = settled.flatMap((one, at) =>
    one.status === 'rejected' ? [{ name: deps.disks[at]?.name, error: one.reason as unknown }] : [],
  );
  const refusal = failures.find(({ error }) => error instanceof Refusal)?.error ?? refusalOf(opened);
  if (refusal !== undefined) {
    await Promise.allSettled(opened.map(({ kv }) => kv.close()));
    throw refusal;
  }
  // One broken disk of many must not keep the others away.
  for (const { name, error } of failures) deps.log.error({ disk: name, err: error }, 'disk-not-opened');
  return new NodeDisks(deps, opened);
}

function refusalOf(opened: readonly OpenDisk[]): Refusal | undefined {
  if (opened.length === 0) return new Refusal('None of the disks can be opened; the log says why of each.');
  const names = new Map<DiskId, string>();
  for (const { name, identity } of opened) {
    const other = names.get(identity.diskId);
    if (other !== undefined)
      return new Refusal(`The disks ${other} and ${name} are copies of one: keep only one.`);
    names.set(identity.diskId, name);
  }
  return undefined;
}

async function openDisk(deps: NodeDisksDeps, { name, open }: DiskToOpen): Promise<OpenDisk> {
  const { clusterId, random, clock, log, telemetry } = deps;
  const opened = await open();
  const { reserve } = opened;
  const { kv, isCut } = await witnessed(opened);
  try {
    const isNew = (await readDiskIdentity(kv)) === undefined;
    let identity = await openDiskIdentity(kv, { name, clusterId, random });
    // An emptied one is another disk, which has lost nothing.
    if (isCut && !isNew) {
      identity = await noteCut(kv, identity);
      log.error({ disk: name, diskId: identity.diskId, cuts: identity.cuts }, 'disk-cut');
    }
    const { totalBytes } = await reserve.measure();
    const onAside = () => telemetry.count('holdfast_disk_damaged_chunks_total', { disk: identity.diskId });
    const chunks = await openChunkStore({ kv, reserve, clock, onAside, log: withDisk(log, name) });
    return { name, identity, kv, reserve, chunks, capacityBytes: totalBytes };
  } catch (error) {
    await kv.close();
    throw error;
  }
}

async function witnessed({ kv, witness }: OpenedStore): Promise<WitnessedKv> {
  if (witness === undefined) return { kv, isCut: false };
  try {
    return await openWitnessedKv(kv, witness);
  } catch (error) {
    await Promise.allSettled([kv.close(), witness.close()]);
    throw error;
  }
}

export class NodeDisks implements ServedDisks {
  readonly #deps: NodeDisksDeps;
  readonly #opened: readonly OpenDisk[];
  readonly #open: Map<DiskId, OpenDisk>;
  readonly #served: ReadonlyMap<DiskId, ServedDisk>;
  #mapVersion: number;
  #adopting: Promise<void> = Promise.resolve();
  #isClosing = false;

  constructor(deps: NodeDisksDeps, opened: readonly OpenDisk[]) {
    this.#deps = deps;
    this.#opened = opened;
    this.#open = new Map(opened.map((disk) => [disk.identity.diskId, disk]));
    const { owners, fetch, log } = deps;
    const serve = ({ name, identity: { diskId }, chunks: store }: OpenDisk) => {
      const orders = { diskId, store, owners, fetch, node: this, log: withDisk(log, name) };
      return serveDisk(store, createDiskOrders(orders));
    };
    this.#served = new Map(opened.map((disk) => [disk.identity.diskId, serve(disk)]));
    this.#mapVersion = Math.max(...opened.map(({ identity }) => identity.mapVersion));
    for (const disk of opened) disk.kv.failed.then((error) => this.#fail(disk, error));
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
    const kept = await this.#keepOnDisks(version);
    // A disk that has failed for good keeps no other from its work; one that only refused is asked again.
    const failures = kept.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
    const decisive = failures.find((error) => error instanceof AppError || failures.length === kept.length);
    if (decisive !== undefined) throw decisive;
    this.#mapVersion = version;
    this.#deps.owners.hear(version);
    this.#deps.log.info({ version }, 'placement-heard');
  }

  /** The outcomes; of one that hangs, when another has kept it, none. After a restart the highest one counts. */
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

  /** A failed write or sync is final (R20): the disk's chunks have other copies, and this one waits for a restart. */
  #fail(disk: OpenDisk, error: Error): void {
    if (this.#isClosing || !this.#open.delete(disk.identity.diskId)) return;
    this.#deps.log.error({ disk: disk.name, diskId: disk.identity.diskId, err: error }, 'disk-failed');
    this.#deps.onFailed(disk, error);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#adopting;
    const settled = await Promise.allSettled(this.#opened.map(({ kv }) => kv.close()));
    for (const one of settled) {
      if (one.status === 'rejected') this.#deps.log.error({ err: one.reason as unknown }, 'disk-not-closed');
    }
  }
}

/** Events have fixed names, so whose they are is a field. */
export function withDisk(log: Logger, disk: string): Logger {
  return {
    debug: (fields, event) => log.debug({ disk, ...fields }, event),
    info: (fields, event) => log.info({ disk, ...fields }, event),
    warn: (fields, event) => log.warn({ disk, ...fields }, event),
    error: (fields, event) => log.error({ disk, ...fields }, event),
  };
}
