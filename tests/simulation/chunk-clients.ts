// What clients do with bodies in chunks, and the sweep, each through the data path of one gateway: the product's own,
// over chunks in the simulated network. A body tells its value, and has to come back as it was, byte by byte (I12).
import { fromUtf8, utf8 } from '../../src/base/bytes/bytes.ts';
import { createChunkSweep } from '../../src/chunks/disk/sweep-chunks.ts';
import type { BucketTarget, MetadataCalls, ObjectStore } from '../../src/objects/object-store.ts';
import type { ShardTimes } from '../../src/objects/shard-times.ts';
import type { Fence } from '../../src/ports/chunks.ts';
import { AppError } from '../../src/types/errors.ts';
import { LIMITS } from '../../src/types/limits.ts';
import type { AccountId, BucketId, BucketName, ObjectKey } from '../../src/types/names.ts';
import type { Chance } from './chance.ts';
import type { SimulatedProcess } from './clock.ts';
import type { KeyOperation, Outcome } from './operations.ts';
import { type OpenChunks, openObjects, type ProductGateway } from './product-gateway.ts';
import { SimulationFailure } from './scheduler.ts';
import { type Ground, loggerOf } from './sites.ts';

const BODY_BYTES_MIN = 40;
const BODY_BYTES_MAX = 330;
export const CHUNK_OWNER = '000000000003' as AccountId;
/** Of bodies whose upload began long ago, or by a wrong time. */
const LATE_SHARE = 0.12;
/** Of bodies that a client sends slowly: what came first is stored by a map that is over before the commit (R36). */
const SLOW_SHARE = 0.12;
const SLOW_MAX_MS = 10_000;
const LAST_PIECE_BYTES = 20;
const HOUR_MS = 60 * 60_000;
const LATE_BY_MS = [25 * HOUR_MS, 240 * HOUR_MS, -2 * HOUR_MS];
/** By how much the clock of who sweeps is ahead: the grounds of a drop are never the sweeper's own clock (R32). */
const SWEEPER_AHEAD_MS = 48 * HOUR_MS;
/** Not one for all: whoever listens to it would outlive its world. */
const never = () => new AbortController().signal;

export const CHUNK_DEEDS = {
  put: 'chunks: body stored',
  putSlowly: 'chunks: slow body stored',
  read: 'chunks: body read',
  lateRefused: 'chunks: late body refused',
  swept: 'chunks: swept',
} as const;

export class ChunkClients {
  readonly #ground: Ground;
  readonly #chance: Chance;
  readonly #slowChance: Chance;
  readonly #chunksOf: (process: SimulatedProcess) => OpenChunks;
  readonly #stores = new WeakMap<SimulatedProcess, { usual: ObjectStore; late: ObjectStore }>();
  readonly #bodies = new Map<string, Buffer>();

  constructor(ground: Ground, options: { chance: Chance; chunksOf(process: SimulatedProcess): OpenChunks }) {
    this.#ground = ground;
    this.#chance = options.chance;
    this.#slowChance = options.chance.fork('slow bodies');
    this.#chunksOf = options.chunksOf;
  }

  /** Rejects with AppError as a gateway answers with one. */
  async perform(gateway: ProductGateway, shard: number, operation: KeyOperation): Promise<Outcome> {
    switch (operation.kind) {
      case 'put':
      case 'create':
        return this.#put(gateway, shard, operation);
      case 'remove': {
        const bucket = chunkBucketOf(shard).believed;
        const { bucketId } = bucket;
        const items = [{ key: operation.key as ObjectKey }];
        const command = { bucketId, owner: CHUNK_OWNER, items };
        await gateway.calls().execute({ shard, bucket }, 'delete-versions', command);
        return { kind: 'gone' };
      }
      default:
        return this.#read(gateway, shard, operation.key);
    }
  }

  /** One pass, by a clock that is far ahead. */
  async sweep({ process, router }: ProductGateway): Promise<void> {
    const { counts, scheduler, registry } = this.#ground;
    const { clock } = process;
    const { chunks } = this.#chunksOf(process);
    const sweep = createChunkSweep({
      clock: { ...clock, wallMs: () => clock.wallMs() + SWEEPER_AHEAD_MS + LIMITS.sweepAfterMs },
      chunks: {
        list: (options) => chunks.list(options),
        drop(ids, fence) {
          counts.add(CHUNK_DEEDS.swept);
          return chunks.drop(ids, fence);
        },
      },
      metadata: router,
      log: loggerOf(process, scheduler),
      fenceOf(shard): Fence {
        const record = registry.get(shard)?.record;
        return { shard, incarnation: record?.incarnation ?? 0, epoch: record?.epoch ?? 0 };
      },
    });
    await sweep.work(never());
  }

  #storeOf(gateway: ProductGateway, { isLate }: { isLate: boolean }): ObjectStore {
    const { process } = gateway;
    const { chunks, onReleased } = this.#chunksOf(process);
    let stores = this.#stores.get(process);
    if (stores === undefined) {
      const ground = this.#ground;
      // Buffers of the late one are let go: one pool per store of chunks.
      const late = openObjects(
        { ...gateway, times: this.#lateTimes(gateway.times) },
        { ground, chunks, onReleased: () => undefined },
      );
      stores = { usual: openObjects(gateway, { ground, chunks, onReleased }), late };
      this.#stores.set(process, stores);
    }
    return isLate ? stores.late : stores.usual;
  }

  async #put(
    gateway: ProductGateway,
    shard: number,
    { kind, key, value }: KeyOperation & { kind: 'put' | 'create' },
  ): Promise<Outcome> {
    const { counts } = this.#ground;
    const bytes = this.#bodyOf(value);
    const isLate = this.#chance.happens(LATE_SHARE);
    const awaitsContinue = this.#chance.happens(0.5);
    const pauseMs = this.#slowChance.happens(SLOW_SHARE) ? this.#slowChance.between(0, SLOW_MAX_MS) : 0;
    const pause = pauseMs > 0 ? () => gateway.process.clock.sleep(pauseMs) : undefined;
    const calls = isLate ? this.#lateCalls(gateway) : gateway.calls();
    try {
      await this.#storeOf(gateway, { isLate }).putObject({
        calls,
        bucket: chunkBucketOf(shard),
        key: key as ObjectKey,
        owner: CHUNK_OWNER,
        signal: never(),
        headers: { userMetadata: {} },
        body: {
          stream: inTwo(bytes, pause),
          sizeBytes: bytes.length,
          awaitsContinue,
          trailerChecksum: () => undefined,
        },
        ...(kind === 'create' && { conditions: { ifNoneMatch: '*' as const } }),
      });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      if (error.code === 'PreconditionFailed') return { kind: 'exists' };
      if (isLate && error.code === 'RequestTimeout') counts.add(CHUNK_DEEDS.lateRefused);
      throw error;
    }
    counts.add(pauseMs > 0 ? CHUNK_DEEDS.putSlowly : CHUNK_DEEDS.put);
    return { kind: 'written' };
  }

  /** As of an upload that has taken more than a day, or whose gateway took a wrong time for the shard's. */
  #lateTimes(times: ShardTimes): ShardTimes {
    return {
      ...times,
      timeMs: async (calls, shard) => (await times.timeMs(calls, shard)) - this.#chance.pick(LATE_BY_MS),
    };
  }

  /** The sweep comes by before the commit. */
  #lateCalls(gateway: ProductGateway): MetadataCalls {
    const calls = gateway.calls();
    return {
      ...calls,
      execute: async (target, name, command) => {
        await this.sweep(gateway).catch(() => undefined);
        return calls.execute(target, name, command);
      },
    };
  }

  async #read(gateway: ProductGateway, shard: number, text: string): Promise<Outcome> {
    const { counts, scheduler } = this.#ground;
    const calls = gateway.calls();
    const key = text as ObjectKey;
    const bucket = chunkBucketOf(shard);
    const { bucketId } = bucket.believed;
    const query = { bucketId, key, includeBody: true };
    const { value: found } = await calls.query({ shard, bucket: bucket.believed }, 'get-version', query);
    if (found.kind !== 'found') return { kind: 'value', value: null };
    const range = { offsetBytes: 0, sizeBytes: found.version.sizeBytes };
    const store = this.#storeOf(gateway, { isLate: false });
    const opened = await store.openObject({ calls, bucket, key, found, range, signal: never() });
    const pieces: Buffer[] = [];
    if (opened.kind === 'bytes') pieces.push(opened.bytes);
    else for await (const piece of opened.stream) pieces.push(piece as Buffer);
    const bytes = Buffer.concat(pieces);
    const value = fromUtf8(bytes).split('|')[0] ?? '';
    if (!this.#bodies.get(value)?.equals(bytes))
      scheduler.fail(
        new SimulationFailure(`I12: ${shard}/${key} is read as ${JSON.stringify(fromUtf8(bytes))}`),
      );
    counts.add(CHUNK_DEEDS.read);
    return { kind: 'value', value };
  }

  #bodyOf(value: string): Buffer {
    const sizeBytes = this.#chance.int(BODY_BYTES_MIN, BODY_BYTES_MAX);
    const body = Buffer.alloc(sizeBytes, utf8(`${value}|`));
    this.#bodies.set(value, body);
    return body;
  }
}

export function chunkBucketOf(shard: number): BucketTarget {
  const bucketId = `c${String(shard).padStart(15, '0')}` as BucketId;
  const believed = { bucketId, name: `chunks-${shard}` as BucketName, cfgVersion: 1 };
  return { homeShard: shard, believed };
}

/** With a pause before its end. */
async function* inTwo(bytes: Buffer, pause: (() => Promise<void>) | undefined): AsyncGenerator<Buffer> {
  const firstBytes = pause === undefined ? 0 : Math.max(bytes.length - LAST_PIECE_BYTES, 0);
  if (firstBytes > 0) yield Buffer.from(bytes.subarray(0, firstBytes));
  await pause?.();
  yield Buffer.from(bytes.subarray(firstBytes));
}
