// What clients do with objects that share their data: put, copy between buckets of different shards, make parts of copies,
// remove and read, through the product's own data path. A body tells its value, and comes back as it was (I12).

import { fromUtf8 } from '../../src/base/bytes/bytes.ts';
import type { OperationContext } from '../../src/gateway/s3/context.ts';
import { moveObject } from '../../src/gateway/s3/extensions/move-object.ts';
import { createMovePlaces } from '../../src/gateway/s3/extensions/move-places.ts';
import { movePrefix, type PrefixMove } from '../../src/gateway/s3/extensions/move-prefix.ts';
import { SeenObjects } from '../../src/gateway/s3/seen-objects.ts';
import { createMetadataCalls } from '../../src/objects/metadata-calls.ts';
import type { CopyFrom, MetadataCalls, ObjectStore, PutObject } from '../../src/objects/object-store.ts';
import type { ListedVersion } from '../../src/ports/metadata/versions.ts';
import { AppError } from '../../src/types/errors.ts';
import { LIMITS } from '../../src/types/limits.ts';
import type { JobId, ObjectKey, VersionId } from '../../src/types/names.ts';
import { type BucketOutcome, valueOutcome } from './bucket-operations.ts';
import type { Chance } from './chance.ts';
import type { SimulatedProcess } from './clock.ts';
import type { LinkBodies } from './link-bodies.ts';
import { LINK_OWNER, type LinkBuckets } from './link-buckets.ts';
import { type StepWatch, watchCalls } from './link-watch.ts';
import { type OpenChunks, openObjects, type ProductGateway } from './product-gateway.ts';
import { SimulationFailure } from './scheduler.ts';
import type { Ground } from './sites.ts';

export const LINK_KEYS: readonly string[] = ['lynx', 'mole', 'newt'];
const HEADERS = { userMetadata: {} };
const MINUTE_MS = 60_000;
/** A claim is asked about when it is this old. */
const RESOLVED_MS = [LIMITS.claimResolveAfterMs + MINUTE_MS, 20 * 60 * MINUTE_MS];
/** Before a claim is too old to be used. */
const LEFT_MIN_MS = 1500;
const LEFT_MAX_MS = 9000;
const APPENDED_MIN_BYTES = 12;
const APPENDED_MAX_BYTES = 40;
/** Where versions are kept: of copies and components, those of a version that is named. */
const NAMED_SHARE = 0.4;
const VERSIONS_MAX = 1000;
const BRANCHES = {
  compacted: 'links: pieces folded',
  compactedVersion: 'links: pieces folded where versions are kept',
  older: 'links: data of an older version used',
};

export const CLIENT_BRANCHES: readonly string[] = Object.values(BRANCHES);

const NO_RECORD = { item: () => undefined };
const never = () => new AbortController().signal;

/** How long ago, by its link id, a copy begins. */
export type Begun = 'now' | 'hours ago' | 'a day ago';

export interface LinkPlace {
  shard: number;
  key: string;
}

interface MoveOptions {
  watch: StepWatch;
  /** A job goes on with it from here on. */
  onBegun(jobId: JobId): void;
}

export class LinkClients {
  readonly #ground: Ground;
  readonly #chance: Chance;
  readonly #chunksOf: ((process: SimulatedProcess) => OpenChunks) | undefined;
  readonly #stores = new WeakMap<SimulatedProcess, Map<string, ObjectStore>>();
  readonly #bodies: LinkBodies;
  readonly #buckets: LinkBuckets;
  /** Each request drives its job under an id of its own. */
  #renameCount = 0;

  constructor(
    ground: Ground,
    options: {
      chance: Chance;
      bodies: LinkBodies;
      buckets: LinkBuckets;
      chunksOf: ((process: SimulatedProcess) => OpenChunks) | undefined;
    },
  ) {
    this.#ground = ground;
    this.#bodies = options.bodies;
    this.#buckets = options.buckets;
    this.#chance = options.chance;
    this.#chunksOf = options.chunksOf;
  }

  /** `name`: of its one piece. */
  async put(gateway: ProductGateway, place: LinkPlace, name: string, watch: StepWatch): Promise<void> {
    const { value, bytes } = this.#bodies.make(name, this.#chance.int(20, 120));
    await this.#store(gateway, 'now').putObject({
      ...this.#target(gateway, place, watch, value),
      headers: HEADERS,
      body: bodyOf(bytes),
    });
  }

  /** Throws AppError NoSuchKey where there is nothing to append to. */
  async append(gateway: ProductGateway, place: LinkPlace, name: string, watch: StepWatch): Promise<void> {
    const { value, bytes } = this.#bodies.make(
      name,
      this.#chance.int(APPENDED_MIN_BYTES, APPENDED_MAX_BYTES),
    );
    const { owner: _, ...target } = this.#target(gateway, place, watch, value);
    await this.#store(gateway, 'now').appendObject({ ...target, body: bodyOf(bytes) });
  }

  /** Throws AppError NoSuchKey when a component is gone, InvalidRequest when they have more originals than may be. */
  async compose(
    gateway: ProductGateway,
    components: readonly CopyFrom[],
    { to, begun, watch }: { to: LinkPlace; begun: Begun; watch: StepWatch },
  ): Promise<void> {
    const { signal: _, ...target } = this.#target(gateway, to, watch);
    await this.#store(gateway, begun).composeObject({ ...target, components });
  }

  /** Of one key, to another one of the same bucket: in one entry, or in several until its job ends or is left to others. */
  async move(
    gateway: ProductGateway,
    { shard, key }: LinkPlace,
    { to, overwrites, watch, onBegun }: MoveOptions & { to: string; overwrites: boolean },
  ): Promise<void> {
    const context = this.#moveContext(gateway, { shard, key }, { watch, onBegun });
    const asked = { from: key, to, isPrefix: false, overwrites, isQuiet: false, conditions: {} };
    // What the operation parses from a request is sealed within it.
    const { body } = await moveObject.run(context, asked as never, undefined as never);
    if (body?.kind === 'xml-stream') for await (const _ of body.texts);
  }

  /** As one request of a gateway does it, until the job is at its end or is left to others. */
  async movePrefix(
    gateway: ProductGateway,
    { shard, ...asked }: Omit<PrefixMove, 'isQuiet'> & { shard: number },
    options: MoveOptions,
  ): Promise<void> {
    const context = this.#moveContext(gateway, { shard, key: '' }, options);
    const result = await movePrefix(context, { ...asked, isQuiet: false });
    if (result.body?.kind !== 'xml-stream') throw new SimulationFailure('a prefix is moved without telling');
    for await (const _ of result.body.texts);
  }

  #moveContext(gateway: ProductGateway, place: LinkPlace, { watch, onBegun }: MoveOptions): OperationContext {
    const { calls, bucket } = this.#target(gateway, place, watch);
    const metadata: MetadataCalls = {
      ...calls,
      execute: async (target, name, command) => {
        const reply = await calls.execute(target, name, command);
        const value = reply.value as { kind: string; job?: { jobId: JobId }; jobId?: JobId };
        const jobId = value.kind === 'begun' ? value.job?.jobId : value.jobId;
        const isBegin = name === 'begin-move' || name === 'begin-key-move';
        if (isBegin && jobId !== undefined) onBegun(jobId);
        return reply;
      },
    };
    const context = {
      requestId: `rename ${this.#renameCount++}`,
      metadata,
      clock: gateway.process.clock,
      // Of a bucket without settings: no rule removes what comes there.
      bucket: () => ({ ...bucket, configs: {} }),
      mayAlso: () => Promise.resolve(true),
      seen: new SeenObjects(),
      signal: never,
      // As where others wait: steps are small, and there are more of them.
      hasCompany: () => true,
      movePlaces: createMovePlaces(),
      record: NO_RECORD,
    };
    return context as unknown as OperationContext;
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
      await calls.execute({ shard: to.shard, bucket: bucket.believed }, 'abort-upload', command);
    if (end !== 'complete') return;
    const parts = [{ partNumber: 1, etag }];
    const { value } = await calls.execute({ shard: to.shard, bucket: bucket.believed }, 'complete-upload', {
      ...command,
      parts,
    });
    if (value.kind !== 'committed') throw new AppError('NoSuchUpload', { fields: { UploadId: uploadId } });
  }

  /** The latest version, by a marker where versions are kept; or one for good. */
  async remove(
    gateway: ProductGateway,
    { shard, key }: LinkPlace,
    { versionId, watch }: { versionId?: VersionId; watch: StepWatch },
  ): Promise<void> {
    const { calls, bucket } = this.#target(gateway, { shard, key }, watch);
    const items = [{ key: key as ObjectKey, ...(versionId && { versionId }) }];
    const command = { bucketId: bucket.believed.bucketId, owner: LINK_OWNER, items };
    await calls.execute({ shard, bucket: bucket.believed }, 'delete-versions', command);
  }

  /** All versions of a key, newest first. */
  async list(gateway: ProductGateway, { shard, key }: LinkPlace): Promise<ListedVersion[]> {
    const { believed } = this.#buckets.target(shard);
    const query = { bucketId: believed.bucketId, prefix: key, max: VERSIONS_MAX };
    const { value } = await this.#calls(gateway).query({ shard, bucket: believed }, 'list-versions', query);
    return value.versions.filter((version) => version.key === key);
  }

  /** What a copy or a composition is made of: the latest version, or an older one that somebody names. */
  async find(gateway: ProductGateway, place: LinkPlace): Promise<CopyFrom | undefined> {
    const { shard, key: text } = place;
    const versionId = await this.#drawVersion(gateway, place);
    const found = await this.#look(gateway, place, versionId);
    if (found.kind !== 'found') return undefined;
    if (!found.isLatest) this.#ground.counts.add(BRANCHES.older);
    const bucket = this.#buckets.target(shard);
    return { bucket, key: text as ObjectKey, found, ...(versionId && { versionId }) };
  }

  async #drawVersion(gateway: ProductGateway, place: LinkPlace): Promise<VersionId | undefined> {
    if (!this.#buckets.keepsVersions(place.shard) || !this.#chance.happens(NAMED_SHARE)) return undefined;
    const listed = await this.list(gateway, place);
    const objects = listed.filter(({ summary }) => !summary.isDeleteMarker);
    return objects.length === 0 ? undefined : this.#chance.pick(objects).versionId;
  }

  async #look(gateway: ProductGateway, { shard, key }: LinkPlace, versionId: VersionId | undefined) {
    const { believed } = this.#buckets.target(shard);
    const query = { bucketId: believed.bucketId, key: key as ObjectKey, includeBody: true };
    const named = { ...query, ...(versionId && { versionId }) };
    return (await this.#calls(gateway).query({ shard, bucket: believed }, 'get-version', named)).value;
  }

  /** The latest version, or one. `after`: what has many pieces is folded behind it. */
  async read(
    gateway: ProductGateway,
    place: LinkPlace,
    { versionId, after }: { versionId?: VersionId; after: StepWatch['after'] },
  ): Promise<BucketOutcome> {
    const keepsVersions = this.#buckets.keepsVersions(place.shard);
    const found = await this.#look(gateway, place, versionId);
    if (found.kind === 'delete-marker') return valueOutcome(null, found.versionId);
    if (found.kind !== 'found') return valueOutcome(null, undefined);
    const { version } = found;
    const watch = { onChange: () => () => undefined, after };
    const { calls, bucket, key, signal } = this.#target(gateway, place, watch);
    const range = { offsetBytes: 0, sizeBytes: version.sizeBytes };
    const opened = await this.#store(gateway, 'now').openObject({ calls, bucket, key, found, range, signal });
    const texts: Buffer[] = [];
    if (opened.kind === 'bytes') texts.push(opened.bytes);
    else for await (const piece of opened.stream) texts.push(piece as Buffer);
    const bytes = Buffer.concat(texts);
    const value = this.#bodies.valueOfVersion(version.manifest);
    if (!this.#bodies.bytesOf(value).equals(bytes))
      this.#ground.scheduler.fail(
        new SimulationFailure(
          `I12: ${place.shard}/${key}, made of ${value}, is read as ${JSON.stringify(fromUtf8(bytes))}`,
        ),
      );
    return valueOutcome(value, keepsVersions ? version.versionId : undefined);
  }

  #target(gateway: ProductGateway, { shard, key }: LinkPlace, watch: StepWatch, value?: string) {
    const bucket = this.#buckets.target(shard);
    const keepsVersions = this.#buckets.keepsVersions(shard);
    const { counts } = this.#ground;
    const onCompacted = () => {
      counts.add(BRANCHES.compacted);
      if (keepsVersions) counts.add(BRANCHES.compactedVersion);
    };
    const calls = watchCalls(this.#calls(gateway), {
      bodies: this.#bodies,
      watch,
      value,
      keepsVersions,
      onCompacted,
    });
    return { calls, bucket, key: key as ObjectKey, owner: LINK_OWNER, signal: never() };
  }

  #calls({ metadata }: ProductGateway): MetadataCalls {
    const reauthorise = async (...stale: Parameters<LinkBuckets['reauthorise']>) =>
      this.#buckets.reauthorise(...stale);
    return createMetadataCalls({ metadata, reauthorise });
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

function bodyOf(bytes: Buffer): PutObject['body'] {
  const { length: sizeBytes } = bytes;
  return { stream: once(bytes), sizeBytes, awaitsContinue: true, trailerChecksum: () => undefined };
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield Buffer.from(bytes);
}
