// Replicated chunks over fake disks, with a clock that the test moves.

import { must } from '../../../src/base/assert.ts';
import {
  createReplicatedChunks,
  type ReplicatedChunks,
} from '../../../src/chunks/copies/replicated-chunks.ts';
import { createKnownPlacement, type KnownPlacement } from '../../../src/chunks/placement/known-placement.ts';
import { makePlacement, ownersOf } from '../../../src/chunks/placement/placement.ts';
import type { ChunkId } from '../../../src/ports/chunks.ts';
import type { PlacedDisk, PlacementMap } from '../../../src/ports/placement.ts';
import { LIMITS } from '../../../src/types/limits.ts';
import { type BlobId, makeBlobId } from '../../../src/types/names.ts';
import { createManualClock, type ManualClock } from '../run/simulated.ts';
import { createFakeDisks, type FakeDisk, type FakeDisks } from './fake-disks.ts';

/** Copies under way are looked at as often as in a process that runs. */
const STEP_MS = LIMITS.copyLookMs / 2;

export interface ReplicatedWorld {
  chunks: ReplicatedChunks;
  clock: ManualClock;
  placement: KnownPlacement;
  fakes: FakeDisks;
  /** All of the map, and those that own `id`, in the order of the map. */
  disks: FakeDisk[];
  id: ChunkId;
  owners: FakeDisk[];
  others: FakeDisk[];
  events: string[];
  released: ArrayBuffer[];
  /** How `work` stands when everything that needs no time has happened. */
  stateAfter(ms: number): Promise<void>;
  /** The same after a while in which this process did not run: all timers that are due go off, once. */
  stateAfterStop(ms: number): Promise<void>;
}

export function openReplicatedWorld(options: {
  disks: readonly PlacedDisk[];
  copies?: number;
  nearZone?: string;
  /** Instead of the first one over the disks. */
  map?: PlacementMap;
}): ReplicatedWorld {
  const { disks, copies = 3, nearZone } = options;
  const { map = makePlacement({ disks, copies }) } = options;
  const placement = createKnownPlacement(map);
  const fakes = createFakeDisks();
  const clock = createManualClock(1_700_000_000_000);
  const events: string[] = [];
  const released: ArrayBuffer[] = [];
  const note = (_fields: object, event: string) => void events.push(event);
  const chunks = createReplicatedChunks({
    placement,
    directory: fakes,
    clock,
    log: { debug: note, info: note, warn: note, error: note },
    ...(nearZone !== undefined && { near: { zone: nearZone } }),
    onReleased: (buffer) => released.push(buffer),
  });
  const id = chunkId(1);
  const owned = ownersOf(map, id);
  const isOwner = (disk: PlacedDisk) => owned.includes(disk.id);
  return {
    chunks,
    clock,
    placement,
    fakes,
    id,
    events,
    released,
    disks: map.disks.map(fakes.of),
    owners: owned.map((diskId) => fakes.of({ id: diskId })),
    others: map.disks.filter((disk) => !isOwner(disk)).map(fakes.of),
    async stateAfter(ms) {
      await settleAll();
      for (let leftMs = ms; leftMs > 0; leftMs -= STEP_MS) {
        clock.advance(Math.min(leftMs, STEP_MS));
        await settleAll();
      }
    },
    async stateAfterStop(ms) {
      await settleAll();
      clock.advance(ms);
      await settleAll();
    },
  };
}

export function chunkId(number: number): ChunkId {
  const random = Buffer.alloc(8);
  random.writeUInt32BE(number);
  return { blobId: makeBlobId({ timeMs: 1000, homeShard: 1, random }) as BlobId, index: 0 };
}

/** A chunk that these disks own, in this map. */
export function chunkOwnedBy(map: PlacementMap, isWanted: (owners: readonly string[]) => boolean): ChunkId {
  const numbers = Array.from({ length: 10_000 }, (_, number) => number);
  const found = numbers.map(chunkId).find((id) => isWanted(ownersOf(map, id)));
  return must(found, 'a chunk of these owners');
}

/** Everything that waits for no time. */
export function settleAll(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export interface Watched<Value> {
  state: 'pending' | 'done' | 'failed';
  value?: Value;
  error?: unknown;
}

export function watch<Value>(promise: Promise<Value>): Watched<Value> {
  const watched: Watched<Value> = { state: 'pending' };
  promise.then(
    (value) => Object.assign(watched, { state: 'done', value }),
    (error: unknown) => Object.assign(watched, { state: 'failed', error }),
  );
  return watched;
}
