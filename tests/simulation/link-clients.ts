// What clients do with objects that share their data: put, copy between buckets of different shards, make parts of copies,
// remove and read, through the product's own data path. A body tells its value, and comes back as it was (I12).
import { fromUtf8, utf8 } from '../../src/lib/bytes.ts';
import { AppError } from '../../src/model/errors.ts';
import { LIMITS } from '../../src/model/limits.ts';
import type { AccountId, BlobId, BucketId, BucketName, ObjectKey } from '../../src/model/names.ts';
import { linksOf } from '../../src/model/version.ts';
import type { BucketTarget, CopyFrom, MetadataCalls, ObjectStore } from '../../src/objects/object-store.ts';
import type { CommandOf } from '../../src/ports/metadata.ts';
import type { Chance } from './chance.ts';
import type { SimulatedProcess } from './clock.ts';
import { type OpenChunks, openObjects, type ProductGateway } from './product-gateway.ts';
import { SimulationFailure } from './scheduler.ts';
import type { Ground } from './sites.ts';

export const LINK_OWNER = '000000000004' as AccountId;
const HEADERS = { userMetadata: {} };
const MINUTE_MS = 60_000;
/** A claim is asked about when it is this old. */
const RESOLVED_MS = [LIMITS.claimResolveAfterMs + MINUTE_MS, 20 * 60 * MINUTE_MS];
/** Before a claim is too old to be used. */
const LEFT_MIN_MS = 1500;
const LEFT_MAX_MS = 9000;
const never = () => new AbortController().signal;

/** How long ago, by its link id, a copy begins. */
export type Begun = 'now' | 'hours ago' | 'a day ago';

export interface LinkPlace {
  shard: number;
  key: string;
}

export type CommandName = Parameters<MetadataCalls['execute']>[1];

/** What is done with the steps of one request: each after its answer, before the next one. */
export interface StepWatch {
  /** A commit is sent that gives the key this value. */
  onCommit(value: string): void;
  after(name: CommandName, command: object, shard: number): Promise<void>;
}

export class LinkClients {
  readonly #ground: Ground;
  readonly #chance: Chance;
  readonly #chunksOf: ((process: SimulatedProcess) => OpenChunks) | undefined;
  readonly #stores = new WeakMap<SimulatedProcess, Map<string, ObjectStore>>();
  readonly #bodies = new Map<string, Buffer>();
  readonly #valueOf = new Map<BlobId, string>();

  constructor(
    ground: Ground,
    options: { chance: Chance; chunksOf: ((process: SimulatedProcess) => OpenChunks) | undefined },
  ) {
    this.#ground = ground;
    this.#chance = options.chance;
    this.#chunksOf = options.chunksOf;
  }

  async put(gateway: ProductGateway, place: LinkPlace, value: string, watch: StepWatch): Promise<void> {
    const bytes = Buffer.alloc(this.#chance.int(20, 120), utf8(`${value}|`));
    this.#bodies.set(value, bytes);
    await this.#store(gateway, 'now').putObject({
      ...this.#target(gateway, place, { ...watch, value }),
      headers: HEADERS,
      body: {
        stream: once(bytes),
        sizeBytes: bytes.length,
        isUnasked: true,
        trailerChecksum: () => undefined,
      },
    });
  }

  /** Throws AppError NoSuchKey when there is no source. */
  async copy(
    gateway: ProductGateway,
    source: CopyFrom,
    { to, begun, watch }: { to: LinkPlace; begun: Begun; watch: StepWatch },
  ): Promise<void> {
    await this.#store(gateway, begun).copyObject({ ...this.#target(gateway, to, watch), source });
  }

  /** An upload of which one part is a copy, perhaps made twice; completed, aborted or left. */
  async copyByPart(
    gateway: ProductGateway,
    sources: readonly CopyFrom[],
    options: { to: LinkPlace; begun: Begun; end: 'complete' | 'abort' | 'leave'; watch: StepWatch },
  ): Promise<void> {
    const { to, begun, end, watch } = options;
    const store = this.#store(gateway, begun);
    const { calls, bucket, key, owner } = this.#target(gateway, to, watch);
    const upload = await store.createUpload({
      calls,
      bucket,
      key,
      owner,
      initiator: owner,
      headers: HEADERS,
    });
    let etag = '';
    for (const source of sources) {
      const part = { calls, bucket, upload, partNumber: 1, signal: never(), source };
      ({ etag } = await store.copyPart(part));
    }
    const { bucketId, uploadId } = upload;
    const command = { bucketId, key, uploadId };
    if (end === 'abort')
      await calls.execute({ shard: to.shard, bucket: bucket.claim }, 'abort-upload', command);
    if (end !== 'complete') return;
    const parts = [{ partNumber: 1, etag }];
    const { value } = await calls.execute({ shard: to.shard, bucket: bucket.claim }, 'complete-upload', {
      ...command,
      parts,
    });
    if (value.kind !== 'committed') throw new AppError('NoSuchUpload', { fields: { UploadId: uploadId } });
  }

  async remove(gateway: ProductGateway, { shard, key }: LinkPlace): Promise<void> {
    const bucket = linkBucketOf(shard).claim;
    const command = { bucketId: bucket.bucketId, owner: LINK_OWNER, items: [{ key: key as ObjectKey }] };
    await gateway.calls().execute({ shard, bucket }, 'delete-versions', command);
  }

  async find(gateway: ProductGateway, { shard, key: text }: LinkPlace): Promise<CopyFrom | undefined> {
    const bucket = linkBucketOf(shard);
    const key = text as ObjectKey;
    const query = { bucketId: bucket.claim.bucketId, key, includeBody: true };
    const { value: found } = await gateway
      .calls()
      .query({ shard, bucket: bucket.claim }, 'get-version', query);
    return found.kind === 'found' ? { bucket, key, found } : undefined;
  }

  /** What the blob of a version says. */
  valueOf({ found }: CopyFrom): string {
    return this.#valueOfManifest(linksOf(found.version.manifest)[0]?.blobId);
  }

  async read(gateway: ProductGateway, place: LinkPlace): Promise<string | null> {
    const source = await this.find(gateway, place);
    if (source === undefined) return null;
    const { found, bucket, key } = source;
    const range = { offsetBytes: 0, sizeBytes: found.version.sizeBytes };
    const calls = gateway.calls();
    const store = this.#store(gateway, 'now');
    const opened = await store.openObject({ calls, bucket, key, found, range, signal: never() });
    const pieces: Buffer[] = [];
    if (opened.kind === 'bytes') pieces.push(opened.bytes);
    else for await (const piece of opened.stream) pieces.push(piece as Buffer);
    const bytes = Buffer.concat(pieces);
    const value = this.valueOf(source);
    if (!this.#bodies.get(value)?.equals(bytes))
      this.#ground.scheduler.fail(
        new SimulationFailure(
          `I12: ${place.shard}/${place.key}, a copy of ${value}, is read as ${JSON.stringify(fromUtf8(bytes))}`,
        ),
      );
    return value;
  }

  #valueOfManifest(blobId: BlobId | undefined): string {
    const value = blobId && this.#valueOf.get(blobId);
    if (value === undefined) throw new SimulationFailure(`I12: nobody has written ${blobId}`);
    return value;
  }

  #target(gateway: ProductGateway, { shard, key }: LinkPlace, watch: StepWatch & { value?: string }) {
    const bucket = linkBucketOf(shard);
    const calls = this.#watched(gateway, watch);
    return { calls, bucket, key: key as ObjectKey, owner: LINK_OWNER, signal: never() };
  }

  #watched(gateway: ProductGateway, watch: StepWatch & { value?: string }): MetadataCalls {
    const calls = gateway.calls();
    let partValue: string | undefined;
    const note = (name: CommandName, command: object) => {
      if (name === 'commit-version') {
        const { version, data } = command as CommandOf<'commit-version'>;
        const blobId = linksOf(version.manifest)[0]?.blobId;
        if (watch.value !== undefined)
          for (const { use } of data.births) this.#valueOf.set(use.blobId, watch.value);
        watch.onCommit(this.#valueOfManifest(blobId));
      }
      if (name === 'commit-part')
        partValue = this.#valueOfManifest((command as CommandOf<'commit-part'>).part.uses[0]?.blobId);
      if (name === 'complete-upload' && partValue !== undefined) watch.onCommit(partValue);
    };
    return {
      ...calls,
      execute: async (target, name, command) => {
        note(name, command);
        const reply = await calls.execute(target, name, command);
        await watch.after(name, command, target.shard);
        return reply;
      },
    };
  }

  #store(gateway: ProductGateway, begun: Begun): ObjectStore {
    const { process } = gateway;
    let stores = this.#stores.get(process);
    if (stores === undefined) {
      stores = new Map();
      this.#stores.set(process, stores);
    }
    const inChunks = this.#chunksOf !== undefined && this.#chance.happens(0.5);
    const name = `${begun} ${inChunks}`;
    let store = stores.get(name);
    if (store === undefined) {
      const times = begun === 'now' ? gateway.times : this.#timesBefore(gateway, begun);
      const chunks = this.#chunksOf?.(process).chunks;
      store = openObjects(
        { ...gateway, times },
        {
          ground: this.#ground,
          ...(chunks && { chunks }),
          onReleased: () => undefined,
          isInline: !inChunks,
        },
      );
      stores.set(name, store);
    }
    return store;
  }

  /** As of a request that has taken long, or whose gateway stood still (R28). */
  #timesBefore({ times }: ProductGateway, begun: 'hours ago' | 'a day ago'): ProductGateway['times'] {
    return {
      ...times,
      timeMs: async (calls, shard) => {
        const [minMs = 0, maxMs = 0] =
          begun === 'hours ago'
            ? RESOLVED_MS
            : [LIMITS.linkIdAgeMaxMs - LEFT_MAX_MS, LIMITS.linkIdAgeMaxMs - LEFT_MIN_MS];
        return (await times.timeMs(calls, shard)) - Math.floor(this.#chance.between(minMs, maxMs));
      },
    };
  }
}

export function linkBucketOf(shard: number): BucketTarget {
  const bucketId = `d${String(shard).padStart(15, '0')}` as BucketId;
  const claim = { bucketId, name: `links-${shard}` as BucketName, cfgVersion: 1 };
  return { homeShard: shard, claim };
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield Buffer.from(bytes);
}
