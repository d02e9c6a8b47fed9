// A storage node that starts and stops as one: its disks, the server in front of them, its place in the list of members. It
// stores and returns chunks; which chunks live and which go is decided by the metadata (R38).
import { must } from '../../base/assert.ts';
import { within } from '../../base/async/within.ts';
import type { ChunkServerPort, RunningChunkServer } from '../../ports/chunk-server.ts';
import type { StorageMembersPort } from '../../ports/members.ts';
import type { Worker } from '../../ports/worker.ts';
import { type NodeDisks, type NodeDisksDeps, type OpenDisk, openNodeDisks, withDisk } from './node-disks.ts';
import { createReclaim } from './reclaim.ts';
import { createDiskReport } from './report-disks.ts';
import { createScrub } from './scrub.ts';

export interface StorageNodeDeps extends Omit<NodeDisksDeps, 'onChange' | 'onFailed'> {
  nodeId: string;
  /** Nodes that fail together share a zone. */
  zone: string;
  server: ChunkServerPort;
  members: StorageMembersPort;
  /** When the room of dropped chunks is given back (reclaim.ts). */
  reclaim: { afterBytes: number; delayMs: number };
  /** How fast and how often all chunks are read (scrub.ts). */
  scrub: { bytesPerSecond: number; periodMs: number };
}

export interface StorageNode {
  /** Resolves when chunks are served. Rejects with Refusal for disks that must not be served. */
  start(): Promise<void>;
  /** Lets requests under way end. Safe to repeat. */
  stop(): Promise<void>;
  /** `host:port` where chunks are served, once it has started. */
  readonly address: string;
  /**
   * Background work of its disks, known once it has started. The caller runs it, and ends it before `stop` or at the same
   * time.
   */
  readonly workers: readonly Worker[];
  /** Resolves with the error when its last disk has failed. */
  readonly failed: Promise<Error>;
}

const ANNOUNCE_AGAIN_MS = 2000;
const LEAVE_MAX_MS = 2000;
const UNSERVED_LOOK_MS = 10_000;

export function createStorageNode(deps: StorageNodeDeps): StorageNode {
  return new DisksOfNode(deps);
}

class DisksOfNode implements StorageNode {
  readonly failed: Promise<Error>;
  readonly #deps: StorageNodeDeps;
  readonly #failure = Promise.withResolvers<Error>();
  readonly #stopping = new AbortController();
  #disks: NodeDisks | undefined;
  #server: RunningChunkServer | undefined;
  #workers: readonly Worker[] = [];
  #lastFailure: Error | undefined;
  #announcing: Promise<void> = Promise.resolve();
  #stopped: Promise<void> | undefined;

  constructor(deps: StorageNodeDeps) {
    this.#deps = deps;
    this.failed = this.#failure.promise;
  }

  get address(): string {
    return must(this.#server, 'the node has started').address;
  }

  get workers(): readonly Worker[] {
    return this.#workers;
  }

  async start(): Promise<void> {
    const { server } = this.#deps;
    const disks = await openNodeDisks({
      ...this.#deps,
      onChange: () => {
        if (this.#server !== undefined) this.#announceDisks();
      },
      onFailed: (error) => {
        this.#lastFailure = error;
      },
    });
    this.#disks = disks;
    try {
      this.#server = await server.serve(disks);
    } catch (error) {
      await disks.close();
      throw error;
    }
    this.#workers = this.#createWorkers(disks);
    this.#announceDisks();
  }

  #createWorkers(disks: NodeDisks): Worker[] {
    const { reclaim, scrub, clock, log, telemetry } = this.#deps;
    const scrubOf = forEach(({ name, kv, chunks }) =>
      createScrub({ kv, clock, log: withDisk(log, name), ...scrub, store: chunks }),
    );
    const reclaimOf = forEach(({ name, kv, chunks, reserve }): Worker => {
      const pendingBytes = async () => (await chunks.usage()).pendingReclaimBytes;
      const parts = { kv, clock, log: withDisk(log, name), ...reclaim, reserve, pendingBytes };
      return createReclaim({ ...parts, name: 'reclaim-chunks' });
    });
    const ofEach = (name: string, workerOf: (disk: OpenDisk) => Worker) =>
      this.#deps.disks.map((one) => {
        const find = () => disks.served().find((disk) => disk.name === one.name);
        return whenServed(name, find, workerOf);
      });
    const report = createDiskReport({
      served: () => disks.served(),
      unservedCount: () => disks.unserved().length,
      scrubOf: (disk) => scrubOf(disk).progress(),
      telemetry,
      clock,
      onCapacity: () => this.#announce(),
    });
    return [...ofEach('reclaim-chunks', reclaimOf), ...ofEach('scrub-chunks', scrubOf), report];
  }

  #announceDisks(): void {
    this.#announce();
    if (this.#disks?.served().length === 0)
      this.#failure.resolve(must(this.#lastFailure, 'a disk has failed'));
  }

  /** Announces the served disks, in the background and until it succeeds: the node serves without the list of members. */
  #announce(): void {
    this.#announcing = this.#announcing.then(() => this.#announceUntilKnown());
  }

  async #announceUntilKnown(): Promise<void> {
    const { members, nodeId, zone, clock, log } = this.#deps;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const own = must(this.#disks, 'the node has started');
      const disks = own.served().map(({ identity: { diskId: id, cutSeq }, capacityBytes }) => ({
        id,
        capacityBytes,
        ...(cutSeq !== undefined && { cutSeq }),
      }));
      try {
        await members.announce({ nodeId, zone, address: this.address, disks, unserved: own.unserved() });
        return;
      } catch (error) {
        log.warn({ err: error }, 'storage-node-not-announced');
        await clock.sleep(ANNOUNCE_AGAIN_MS, signal);
      }
    }
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    const { clock } = this.#deps;
    this.#stopping.abort();
    // The node first leaves the list, so that no requests come; an unavailable list does not delay the stop.
    if (this.#server !== undefined) await within(this.#leave(), LEAVE_MAX_MS, clock);
    await this.#server?.stop();
    await this.#disks?.close();
  }

  async #leave(): Promise<void> {
    const { members, log } = this.#deps;
    await this.#announcing;
    await members.leave().catch((error: unknown) => log.warn({ err: error }, 'storage-node-still-announced'));
  }
}

/** One instance for each disk, made on first use. */
function forEach<T>(create: (disk: OpenDisk) => T): (disk: OpenDisk) => T {
  const made = new WeakMap<OpenDisk, T>();
  return (disk) => {
    const one = made.get(disk) ?? create(disk);
    made.set(disk, one);
    return one;
  };
}

/** Work on a disk that may not be open yet, or not be served any more. */
function whenServed(
  name: string,
  find: () => OpenDisk | undefined,
  workerOf: (disk: OpenDisk) => Worker,
): Worker {
  return {
    name,
    async work(signal) {
      const disk = find();
      return disk === undefined ? { state: 'idle', idleMs: UNSERVED_LOOK_MS } : workerOf(disk).work(signal);
    },
  };
}
