// The disks of one storage node: opened one by one, served as long as they work, each for itself. The placement version
// that the node has heard of is kept on all of them.
import { Refusal } from '../lib/refusal.ts';
import type { ServedDisks } from '../ports/chunk-server.ts';
import type { ChunkPort } from '../ports/chunks.ts';
import type { ClockPort, RandomPort } from '../ports/clock.ts';
import type { DiskReservePort } from '../ports/disk-reserve.ts';
import type { KvPort } from '../ports/kv.ts';
import type { DiskId } from '../ports/placement.ts';
import type { Logger } from '../ports/telemetry.ts';
import { openChunkStore } from './chunk-store.ts';
import { type DiskIdentity, keepDiskIdentity, openDiskIdentity } from './disk-identity.ts';

/** One disk, not yet open. */
export interface DiskToOpen {
  /** For people: its folder. */
  name: string;
  open(): Promise<{ kv: KvPort; reserve: DiskReservePort }>;
}

export interface OpenDisk {
  name: string;
  identity: DiskIdentity;
  kv: KvPort;
  reserve: DiskReservePort;
  chunks: ChunkPort;
  capacityBytes: number;
}

export interface NodeDisksDeps {
  clusterId: string;
  disks: readonly DiskToOpen[];
  clock: ClockPort;
  random: RandomPort;
  log: Logger;
  /** A disk is served no more. */
  onFailed(disk: OpenDisk, error: Error): void;
}

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
  const { clusterId, random, clock, log } = deps;
  const { kv, reserve } = await open();
  try {
    const identity = await openDiskIdentity(kv, { name, clusterId, random });
    const { totalBytes } = await reserve.measure();
    const chunks = await openChunkStore({ kv, reserve, clock, log });
    return { name, identity, kv, reserve, chunks, capacityBytes: totalBytes };
  } catch (error) {
    await kv.close();
    throw error;
  }
}

export class NodeDisks implements ServedDisks {
  readonly #deps: NodeDisksDeps;
  readonly #opened: readonly OpenDisk[];
  readonly #served: Map<DiskId, OpenDisk>;
  #mapVersion: number;
  #adopting: Promise<void> = Promise.resolve();
  #isClosing = false;

  constructor(deps: NodeDisksDeps, opened: readonly OpenDisk[]) {
    this.#deps = deps;
    this.#opened = opened;
    this.#served = new Map(opened.map((disk) => [disk.identity.diskId, disk]));
    this.#mapVersion = Math.max(...opened.map(({ identity }) => identity.mapVersion));
    for (const disk of opened) disk.kv.failed.then((error) => this.#fail(disk, error));
  }

  served(): OpenDisk[] {
    return [...this.#served.values()];
  }

  chunksOf(diskId: DiskId): ChunkPort | undefined {
    return this.#served.get(diskId)?.chunks;
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
    await Promise.all(
      this.served().map((disk) => {
        disk.identity = { ...disk.identity, mapVersion: version };
        return keepDiskIdentity(disk.kv, disk.identity);
      }),
    );
    this.#mapVersion = version;
    this.#deps.log.info({ version }, 'placement-heard');
  }

  /** A failed write or sync is final (R20): the disk's chunks have other copies, and this one waits for a restart. */
  #fail(disk: OpenDisk, error: Error): void {
    if (this.#isClosing || !this.#served.delete(disk.identity.diskId)) return;
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
