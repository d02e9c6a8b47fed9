// The product's metadata node in the simulated world: how it is founded, started, looked at, and what its rows tell.
import { crc32 } from 'node:zlib';
import { must } from '../../src/base/assert.ts';
import { fromUtf8, toHex } from '../../src/base/bytes/bytes.ts';
import { Corruption } from '../../src/base/corruption.ts';
import { decodeEntry, isEntrySound } from '../../src/metadata/engine/entry-codec.ts';
import { baseCodec, decodeApplied, replicaCodec } from '../../src/metadata/engine/entry-rows.ts';
import {
  ENGINE_TABLES,
  keyOfRow,
  LOG_COLUMN,
  seqOfLogKey,
  shardOfRow,
} from '../../src/metadata/engine/row-keys.ts';
import { SHARD_COLUMNS } from '../../src/metadata/engine/shards.ts';
import { createMetadataNode } from '../../src/metadata/replication/metadata-node.ts';
import type { ReplicaEvent } from '../../src/metadata/replication/replica-events.ts';
import type { KvPort, KvPut } from '../../src/ports/kv.ts';
import type { ReplicaRef } from '../../src/ports/replication.ts';
import type { ShardRegistryPort } from '../../src/ports/shard-registry.ts';
import type { EntryFact, NodeContext, NodeKind, RowFact, SimulatedNode } from './node.ts';

const DATABASE_KEY = Buffer.concat([Buffer.of(0xff, 0xff), Buffer.from('database')]);
const ID_BYTES = 16;
const LOOK_EVERY_MS = 500;
/** So little that a replica that is away for a while needs a snapshot. */
const LOG_RETENTION = { bytes: 2048, forOthersBytes: 6144 };

/** So often that a difference is found while the clients are there. */
const VERIFY_PACE = { pauseMs: 1000, passMs: 8000, rowsMax: 400, bytesMax: 64 * 1024 };

/** What the run must see now and then. */
const BRANCHES: Readonly<Partial<Record<ReplicaEvent, string>>> = {
  takeover: 'takeover',
  'log-cut': 'cut log',
  'snapshot-taken': 'snapshot',
  'swap-lost': 'lost compare-and-swap',
  quarantined: 'quarantine',
  'request-found': 'retried request',
  'stepped-down': 'step down',
  'voters-changed': 'change of voters',
  verified: 'comparison of states',
};

export function createProduct(): NodeKind {
  return {
    name: 'product',
    columns: [...SHARD_COLUMNS, LOG_COLUMN],
    branches: Object.values(BRANCHES),
    spared: [],
    readRow,
    isReadAtStart,
    start,
    found({ registry, nodeIds, shardCount }) {
      const voters = nodeIds.slice(0, 3).map((nodeId) => ({ nodeId, replicaId: nodeId }));
      const record = {
        incarnation: 1,
        epoch: 0,
        primary: null,
        voters,
        prevVoters: null,
        learners: [],
        nonce: '',
      };
      for (let shard = 0; shard < shardCount; shard++) registry.put(shard, record);
    },
  };
}

async function start(processContext: NodeContext): Promise<SimulatedNode> {
  const { kv, witness, nodeId, shardCount, registry, clock, random, logger, peers, machine, count } =
    processContext;
  // As cmd/cluster/metadata.ts: opened again, such a store would be no better.
  const onFatal = (error: Error) => {
    if (error instanceof Corruption) processContext.quarantineDatabase();
    processContext.onFatal(error);
  };
  kv.failed.then(onFatal);
  witness.failed.then(onFatal);
  const replicaId = await databaseId(processContext).catch((error: Error) => {
    onFatal(error);
    throw error;
  });
  const node = createMetadataNode({
    clusterId: 'simulated',
    nodeId,
    replicaId,
    shardCount,
    kv,
    witness,
    machine,
    clock,
    random,
    registry,
    cluster: async () => 'as-made',
    peers,
    logger,
    logRetention: LOG_RETENTION,
    verifyPace: VERIFY_PACE,
    onUnreadable: onFatal,
    onEvent(event) {
      const branch = BRANCHES[event];
      if (branch !== undefined) count(branch);
    },
  });
  void node.start();
  void replaceLost(processContext, { nodeId, replicaId });
  // By what serves: asked after every step, and it seldom changes.
  const epochs = new WeakMap<object, number>();
  return {
    calls: processContext.decorate?.(node) ?? node,
    openEpoch(shard) {
      const replica = node.replica(shard);
      const serving = replica?.shard;
      if (serving === undefined) return undefined;
      const known = epochs.get(serving);
      if (known !== undefined) return known;
      const epoch = must(replica, 'it serves').status().epoch;
      epochs.set(serving, epoch);
      return epoch;
    },
    isEmptying: (shard) => node.replica(shard)?.status().state === 'installing',
    stop: () => node.stop(),
  };
}

/** The first one bears the node's name, so that a new cluster can name its voters before they run (R1). */
async function databaseId(processContext: NodeContext): Promise<string> {
  const { kv, nodeId, random } = processContext;
  const stored = await readId(kv);
  if (stored !== undefined) return stored;
  const id = (await wasEverOpen(processContext)) ? toHex(random.bytes(ID_BYTES)) : nodeId;
  await kv.commit([{ column: 'rows', key: DATABASE_KEY, value: Buffer.from(id) }]);
  return id;
}

async function wasEverOpen({ registry, shardCount }: NodeContext): Promise<boolean> {
  for (let shard = 0; shard < shardCount; shard++) {
    const epoch = await registry.read(shard).then(
      (registered) => registered?.record.epoch ?? 0,
      () => 1,
    );
    if (epoch > 0) return true;
  }
  return false;
}

async function readId(kv: KvPort): Promise<string | undefined> {
  const [stored] = await kv.getMany('rows', [DATABASE_KEY]);
  return stored && fromUtf8(stored);
}

/** What an operator does about a lost disk: the new database of the node is wanted in place of the old one. */
async function replaceLost(processContext: NodeContext, self: ReplicaRef): Promise<void> {
  const { registry, clock, shardCount } = processContext;
  // Always: what was wanted may be forgotten by a registry that is set back.
  for (let shard = 0; ; shard = (shard + 1) % shardCount) {
    await replaceIn(registry, shard, self).catch(() => {});
    await clock.sleep(LOOK_EVERY_MS);
  }
}

async function replaceIn(registry: ShardRegistryPort, shard: number, self: ReplicaRef): Promise<void> {
  const registered = await registry.read(shard);
  if (registered === undefined) return;
  const { record, revision } = registered;
  const isLost = (ref: ReplicaRef) => ref.nodeId === self.nodeId && ref.replicaId !== self.replicaId;
  const present = record.wanted?.voters ?? record.voters;
  if (!present.some(isLost)) return;
  const voters = present.map((ref) => (isLost(ref) ? self : ref));
  await registry.swap(shard, { expected: revision, record: { ...record, wanted: { voters } } });
}

function readRow({ column, key, value }: KvPut): RowFact | undefined {
  const shard = shardOfRow(key);
  if (shard === 0xffff) return undefined;
  if (column === LOG_COLUMN) {
    const entry = value === null || !isEntrySound(value) ? undefined : factOf(value);
    return { kind: 'entry', shard, seq: seqOfLogKey(key), entry };
  }
  const table = column === 'rows' ? key[2] : undefined;
  if (table === ENGINE_TABLES.applied.id)
    return { kind: 'applied', shard, seq: value === null ? 0 : decodeApplied(value).seq };
  if (table === ENGINE_TABLES.base.id)
    return { kind: 'base', shard, seq: value === null ? 0 : baseCodec.decode(value).seq };
  if (table === ENGINE_TABLES.replica.id) {
    return value === null ? undefined : { kind: 'replica', shard, state: replicaCodec.decode(value).state };
  }
  // Of a shard that it holds no more: when that was noticed.
  return table === ENGINE_TABLES.unlisted.id ? undefined : { kind: 'state', shard };
}

function isReadAtStart({ column, key }: { column: string; key: Uint8Array }): boolean {
  const { replica, base, applied } = ENGINE_TABLES;
  const isOwn = shardOfRow(key) === 0xffff || [replica, base, applied].some(({ id }) => key[2] === id);
  return column === LOG_COLUMN || (column === 'rows' && isOwn);
}

function factOf(bytes: Uint8Array): EntryFact {
  const { seq, epoch, timeMs, rows } = decodeEntry(bytes);
  const request = rows.find(({ key, column }) => column === 'rows' && key[2] === ENGINE_TABLES.requests.id);
  const digest = `${crc32(bytes).toString(16)}-${bytes.length}`;
  const requestId = request?.value == null ? undefined : fromUtf8(keyOfRow(request.key));
  return { seq, epoch, timeMs, requestId, rows, digest };
}
