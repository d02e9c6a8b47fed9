// The values under the keys of coordination: JSON with a version, so that an operator can read them with etcdctl. A value
// of a newer program, or one written wrongly by hand, is refused when it is read.
import type { ClusterIdentity } from '../ports/cluster-identity.ts';
import type { LeavingNode, NodeLeave } from '../ports/coordination.ts';
import type { Member, MemberDisk, MemberRole, UnservedDisk } from '../ports/members.ts';
import type { PlacementDocument } from '../ports/placement-map.ts';
import type { ReplicaRef } from '../ports/replication.ts';
import type { ShardRecord, WantedShard } from '../ports/shard-registry.ts';

const RECORD_VERSION = 1;

/** A value that does not fit its key. */
export class UnreadableRecord extends Error {
  override name = 'UnreadableRecord';
}

export interface JsonRecord<T> {
  encode(record: T): string;
  /** Throws {@link UnreadableRecord}, which names `key`. */
  decode(key: string, text: string): T;
}

type Fields = Readonly<Record<string, unknown>>;

/** `read` makes the record from the parsed fields; it throws when they do not fit. */
function defineJsonRecord<T extends object>(read: (fields: Fields) => T): JsonRecord<T> {
  return {
    encode: (record) => JSON.stringify({ recordVersion: RECORD_VERSION, ...record }),
    decode(key, text) {
      try {
        const fields = objectOf(JSON.parse(text));
        if (fields.recordVersion !== RECORD_VERSION)
          throw new Error(`recordVersion is ${fields.recordVersion}, not ${RECORD_VERSION}`);
        return read(fields);
      } catch (error) {
        throw new UnreadableRecord(`${key}: ${(error as Error).message}`, { cause: error });
      }
    },
  };
}

export const shardRecord = defineJsonRecord<ShardRecord>((fields) => ({
  incarnation: wholeOf(fields, 'incarnation'),
  epoch: wholeOf(fields, 'epoch'),
  primary: fields.primary === null ? null : replicaOf(fields.primary),
  voters: listOf(fields, 'voters').map(replicaOf),
  prevVoters: fields.prevVoters === null ? null : listOf(fields, 'prevVoters').map(replicaOf),
  learners: listOf(fields, 'learners').map(replicaOf),
  ...(fields.wanted !== undefined && { wanted: wantedOf(fields.wanted) }),
  ...(fields.rebuiltAtMs !== undefined && { rebuiltAtMs: wholeOf(fields, 'rebuiltAtMs') }),
  ...(fields.recoveredFrom !== undefined && { recoveredFrom: textOf(fields, 'recoveredFrom') }),
  nonce: textOf(fields, 'nonce'),
}));

const identityFields = defineJsonRecord<ClusterIdentity & { isRebuilt?: true }>((fields) => ({
  clusterId: textOf(fields, 'clusterId'),
  shardCount: wholeOf(fields, 'shardCount'),
  replicaCount: wholeOf(fields, 'replicaCount'),
  chunkCopies: wholeOf(fields, 'chunkCopies'),
  masterKeyId: textOf(fields, 'masterKeyId'),
  formatVersion: wholeOf(fields, 'formatVersion'),
  ...(fields.isRebuilt === true && { isRebuilt: true }),
}));

/** Both lie side by side under one key. */
export const identityRecord: JsonRecord<{ identity: ClusterIdentity; isRebuilt: boolean }> = {
  encode: ({ identity, isRebuilt }) =>
    identityFields.encode(isRebuilt ? { ...identity, isRebuilt } : identity),
  decode(key, text) {
    const { isRebuilt = false, ...identity } = identityFields.decode(key, text);
    return { identity, isRebuilt };
  },
};

export const memberRecord = defineJsonRecord<Member>((fields) => ({
  nodeId: textOf(fields, 'nodeId'),
  role: roleOf(fields),
  address: textOf(fields, 'address'),
  zone: textOf(fields, 'zone'),
  version: textOf(fields, 'version'),
  disks: listOf(fields, 'disks').map(diskOf),
  ...(fields.clusterId !== undefined && { clusterId: textOf(fields, 'clusterId') }),
  ...(fields.instance !== undefined && { instance: textOf(fields, 'instance') }),
  ...(fields.unserved !== undefined && { unserved: listOf(fields, 'unserved').map(unservedOf) }),
}));

export const holderRecord = defineJsonRecord<{ holder: string }>((fields) => ({
  holder: textOf(fields, 'holder'),
}));

/** Wrapped, so that its own fields cannot clash. */
export const placementRecord = defineJsonRecord<{ document: PlacementDocument }>((fields) => {
  const document = objectOf(fields.document);
  return { document: { ...document, version: wholeOf(document, 'version') } };
});

export const leavingNodesRecord = defineJsonRecord<{ nodes: LeavingNode[] }>((fields) => ({
  nodes: listOf(fields, 'nodes').map(leavingNodeOf),
}));

function wantedOf(value: unknown): WantedShard {
  const fields = objectOf(value);
  const voters = listOf(fields, 'voters').map(replicaOf);
  return {
    voters,
    ...(fields.primary !== undefined && { primary: textOf(fields, 'primary') }),
    ...(fields.zones !== undefined && { zones: zonesOf(fields.zones) }),
  };
}

function zonesOf(value: unknown): Record<string, string> {
  const fields = objectOf(value);
  return Object.fromEntries(Object.keys(fields).map((nodeId) => [nodeId, textOf(fields, nodeId)]));
}

function replicaOf(value: unknown): ReplicaRef {
  const fields = objectOf(value);
  return { replicaId: textOf(fields, 'replicaId'), nodeId: textOf(fields, 'nodeId') };
}

function diskOf(value: unknown): MemberDisk {
  const fields = objectOf(value);
  return {
    diskId: textOf(fields, 'diskId'),
    capacityBytes: wholeOf(fields, 'capacityBytes'),
    ...(fields.cutSeq !== undefined && { cutSeq: wholeOf(fields, 'cutSeq') }),
  };
}

function unservedOf(value: unknown): UnservedDisk {
  const fields = objectOf(value);
  return {
    name: textOf(fields, 'name'),
    reason: textOf(fields, 'reason'),
    ...(fields.diskId !== undefined && { diskId: textOf(fields, 'diskId') }),
  };
}

function leavingNodeOf(value: unknown): LeavingNode {
  const fields = objectOf(value);
  const leave = textOf(fields, 'leave');
  if (!Object.hasOwn(LEAVES, leave)) throw new Error(`leave is ${leave}`);
  return { nodeId: textOf(fields, 'nodeId'), leave: leave as NodeLeave };
}

const LEAVES: Readonly<Record<NodeLeave, true>> = { draining: true, gone: true };

const ROLES: Readonly<Record<MemberRole, true>> = { metadata: true, storage: true, gateway: true };

function roleOf(fields: Fields): MemberRole {
  const role = textOf(fields, 'role');
  if (!Object.hasOwn(ROLES, role)) throw new Error(`role is ${role}`);
  return role as MemberRole;
}

function objectOf(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('not an object');
  return value as Fields;
}

function textOf(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value !== 'string') throw new Error(`${name} is no text`);
  return value;
}

function wholeOf(fields: Fields, name: string): number {
  const value = fields[name];
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new Error(`${name} is no whole number`);
  return value as number;
}

function listOf(fields: Fields, name: string): unknown[] {
  const value = fields[name];
  if (!Array.isArray(value)) throw new Error(`${name} is no list`);
  return value;
}
