// The means of commands for a cluster in trouble: etcd, the metadata nodes that answer, and folders of stopped nodes.

import { toHex } from '../base/bytes/bytes.ts';
import { Refusal } from '../base/refusal.ts';
import type { Config } from '../config/schema.ts';
import type { FoundReplica } from '../coordination/rebuild-records.ts';
import { createCallClient } from '../platform/rpc/call-client.ts';
import { openRpcCredentials } from '../platform/rpc/credentials.ts';
import { systemClock, systemRandom } from '../platform/system-clock.ts';
import type { ClusterIdentity } from '../ports/cluster-identity.ts';
import type { Coordination } from '../ports/coordination.ts';
import type { Member } from '../ports/members.ts';
import type { NodeRecords } from '../ports/node-records.ts';
import type { NodeId } from '../ports/replication.ts';
import type { ShardCall, ShardCallPort, ShardReply } from '../ports/shard-calls.ts';
import type { Logger } from '../ports/telemetry.ts';
import { answer, connect, securityOf } from './join-cluster.ts';
import { readFolderRecords } from './metadata-folder.ts';

const ID_BYTES = 16;
const ANSWER_MAX_MS = 10_000;

export interface OperatorTools {
  readonly coordination: Coordination;
  /** As in etcd. */
  readonly identity: ClusterIdentity | undefined;
  readonly members: readonly Member[];
  readonly calls: ShardCallPort;
}

/** The parts log nothing: the command prints instead. */
export const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * `clusterId`: where etcd does not know it. Throws {@link Refusal} when etcd does not answer.
 */
export async function withOperatorTools<T>(
  { config, clusterId }: { config: Config; clusterId: string | undefined },
  use: (tools: OperatorTools) => Promise<T>,
): Promise<T> {
  await using closing = new AsyncDisposableStack();
  const coordination = connect({ config, clock: systemClock, log: SILENT }, 'operator');
  closing.defer(() => coordination.close());
  const identity = await answer(coordination.identity.read());
  const members = await answer(coordination.members.current());
  const calls = await openCalls(closing, {
    config,
    members,
    clusterId: identity?.clusterId ?? clusterId ?? '',
  });
  return await use({ coordination, identity, members, calls });
}

/** Calls to `members`, until `closing` ends. `onDown`: called with the reason why one cannot be reached. */
export async function openCalls(
  closing: AsyncDisposableStack,
  {
    config,
    clusterId,
    members,
    onDown = () => {},
  }: { config: Config; clusterId: string; members: readonly Member[]; onDown?(reason: string): void },
): Promise<ShardCallPort> {
  const credentials = await openRpcCredentials(securityOf(config), { clock: systemClock, log: SILENT });
  closing.defer(() => credentials.close());
  const calls = createCallClient({
    self: { clusterId, nodeId: toHex(systemRandom.bytes(ID_BYTES)) },
    credentials,
    clock: systemClock,
    random: systemRandom,
    log: {
      ...SILENT,
      warn(fields, event) {
        if (event === 'rpc-down' && 'reason' in fields) onDown(String(fields.reason));
      },
    },
    telemetry: { count() {}, observe() {}, gauge() {}, gaugeAll() {} },
    addressOf: (node) => members.find(({ nodeId }) => nodeId === node)?.address,
  });
  closing.defer(() => calls.close());
  return calls;
}

export interface NodeQuestion {
  kind: Extract<ShardCall['kind'], 'status' | 'records' | 'discard'>;
  shard?: number;
  withinMs?: number;
}

/** undefined: no answer in time. */
export async function askNode(
  calls: ShardCallPort,
  nodeId: NodeId,
  { kind, shard = 0, withinMs = ANSWER_MAX_MS }: NodeQuestion,
): Promise<ShardReply | undefined> {
  const call = { kind, envelope: { shard }, name: 'tick', body: null, budgetMs: withinMs } as const;
  return calls.call(nodeId, call, AbortSignal.timeout(withinMs)).catch(() => undefined);
}

/** The records of all metadata nodes that answer, and of these folders. A node with a folder here is not asked. */
export async function collectRecords(
  { members, calls }: OperatorTools,
  folders: readonly string[],
): Promise<NodeRecords[]> {
  const fromFolders: NodeRecords[] = [];
  for (const folder of folders) fromFolders.push(await readFolderRecords(folder));
  const read = new Set(fromFolders.map(({ nodeId }) => nodeId));
  const nodes = members.filter(({ role, nodeId }) => role === 'metadata' && !read.has(nodeId));
  const replies = await Promise.all(nodes.map(({ nodeId }) => askNode(calls, nodeId, { kind: 'records' })));
  const answered = replies.flatMap((reply) => (reply?.kind === 'done' ? [reply.value as NodeRecords] : []));
  return [...fromFolders, ...answered];
}

export function replicasOf(records: readonly NodeRecords[], shard: number): FoundReplica[] {
  return records.flatMap(({ nodeId, replicaId, replicas }) =>
    replicas.filter((stored) => stored.shard === shard).map((stored) => ({ ...stored, nodeId, replicaId })),
  );
}

/** `3`, `0-7`, or some of them with commas. Throws {@link Refusal}. */
export function parseShards(text: string, shardCount: number): number[] {
  const shards = new Set<number>();
  for (const part of text.split(',')) {
    const [, first = '', last = first] = /^(\d+)(?:-(\d+))?$/.exec(part.trim()) ?? [];
    if (first === '' || Number(last) >= shardCount || Number(first) > Number(last))
      throw new Refusal(`${part} names no shards of this cluster: it has 0 to ${shardCount - 1}`);
    for (let shard = Number(first); shard <= Number(last); shard++) shards.add(shard);
  }
  return [...shards].sort((a, b) => a - b);
}
