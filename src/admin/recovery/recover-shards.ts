// holdfast shard recover, discard, confirm: for shards whose majority is lost for good (R23).
import { setTimeout as sleep } from 'node:timers/promises';
import { toHex } from '../../base/bytes/bytes.ts';
import { Refusal } from '../../base/refusal.ts';
import { formatId, formatTable } from '../../cli/format.ts';
import type { Config } from '../../config/schema.ts';
import type { FoundReplica } from '../../coordination/rebuild-records.ts';
import { planRecovery, writeRecovery } from '../../coordination/recover-shard.ts';
import { createMetadataRouter } from '../../coordination/route-metadata.ts';
import { systemClock, systemRandom } from '../../platform/system-clock.ts';
import type { ClusterIdentity } from '../../ports/cluster-identity.ts';
import type { NodeRecords } from '../../ports/node-records.ts';
import type { ReplicaId } from '../../ports/replication.ts';
import {
  askNode,
  collectRecords,
  type OperatorTools,
  parseShards,
  replicasOf,
  withOperatorTools,
} from '../operator-tools.ts';

const NONCE_BYTES = 16;
const ANSWER_MAX_MS = 30_000;

export interface ShardCommandContext {
  config: Config;
  print(line: string): void;
}

export interface RecoverOptions {
  shards: string;
  /** A replica or its node, or a prefix of its id. */
  from: string;
  /** Of stopped nodes. */
  folders: readonly string[];
  acceptsLoss: boolean;
}

/** Returns the exit code: 0 when all are recovered, 2 when nothing was changed or some are not. */
export async function recoverShards(
  { config, print }: ShardCommandContext,
  { shards, from, folders, acceptsLoss }: RecoverOptions,
): Promise<number> {
  return withOperatorTools({ config, clusterId: undefined }, async (tools) => {
    const numbers = parseShards(shards, identityOf(tools).shardCount);
    const records = await collectRecords(tools, folders);
    const replicaId = chooseReplica(records, from);
    let left = 0;
    let hopelessCount = 0;
    for (const shard of numbers) {
      const found = replicasOf(records, shard);
      print(`Shard ${shard}`);
      print(formatTable([HEAD, ...found.map((replica) => describe(replica, replicaId))]));
      const { kind, message } = await recoverOne(tools, { shard, found, replicaId, records, acceptsLoss });
      print(message);
      if (kind !== 'done') left++;
      if (kind === 'hopeless') hopelessCount++;
      print('');
    }
    // A harmful option is mentioned only where it would help.
    if (!acceptsLoss && hopelessCount === numbers.length) print('Nothing was changed.');
    else if (!acceptsLoss)
      print('Nothing was changed. --accept-loss does it: what the chosen replica lacks is lost.');
    else if (left === 0)
      print(
        'Until all shards have reported what they hold and you confirm it, nothing of these homes is freed.',
      );
    return left === 0 ? 0 : 2;
  });
}

/** `open`: not done, but possible now or later. */
interface Recovery {
  kind: 'done' | 'open' | 'hopeless';
  message: string;
}

async function recoverOne(
  { coordination, members }: OperatorTools,
  options: {
    shard: number;
    found: readonly FoundReplica[];
    replicaId: ReplicaId;
    records: readonly NodeRecords[];
    acceptsLoss: boolean;
  },
): Promise<Recovery> {
  const { shard, found, replicaId, records, acceptsLoss } = options;
  const announced = members.filter(({ role }) => role === 'metadata').flatMap(({ disks }) => disks);
  const answering = records.filter(({ isAtRest }) => !isAtRest).map((node) => node.replicaId);
  const present = new Set([...announced.map(({ diskId }) => diskId), ...answering]);
  const registered = await coordination.registry.read(shard);
  const nonce = toHex(systemRandom.bytes(NONCE_BYTES));
  const seen = records.flatMap(({ replicas }) => replicas.map((one) => one.seen?.rebuiltAtMs ?? 0));
  const rebuiltAtMs = seen.reduce((latest, ms) => Math.max(latest, ms), 0);
  const facts = { found, registered, present };
  const choice = { from: replicaId, nonce, rebuiltAtMs };
  const ended = acceptsLoss
    ? await writeRecovery(coordination.registry, shard, facts, choice)
    : planRecovery(facts, choice);
  if (ended === 'done') return { kind: 'done', message: `It goes on with replica ${formatId(replicaId)}.` };
  if (ended === 'changed')
    return { kind: 'open', message: 'NOT RECOVERED: its record has changed meanwhile, look again' };
  if (ended.kind === 'cannot') return { kind: 'hopeless', message: `CANNOT BE RECOVERED: ${ended.why}` };
  return { kind: 'open', message: `It would go on with replica ${formatId(replicaId)} alone.` };
}

const HEAD = ['', 'REPLICA', 'NODE', 'STATE', 'HISTORY', 'PROMISED', 'LAST ENTRY', 'APPLIED', 'ACKNOWLEDGED'];

function describe(replica: FoundReplica, chosen: ReplicaId): string[] {
  const { replicaId, nodeId, state, incarnation, promised, last, appliedSeq, witness } = replica;
  const acknowledged =
    witness === null ? '' : witness === 'damaged' ? 'damaged' : `${witness.seq} of epoch ${witness.epoch}`;
  return [
    ...[replicaId === chosen ? '*' : '', formatId(replicaId), formatId(nodeId), state, String(incarnation)],
    ...[String(promised), `${last.seq} of epoch ${last.epoch}`, String(appliedSeq), acknowledged],
  ];
}

function identityOf({ identity }: OperatorTools): ClusterIdentity {
  if (identity === undefined)
    throw new Refusal('etcd knows of no cluster: run `holdfast cluster rebuild-coordination` first');
  return identity;
}

function chooseReplica(records: readonly NodeRecords[], from: string): ReplicaId {
  const found = records.filter(
    ({ replicaId, nodeId }) => replicaId.startsWith(from) || nodeId.startsWith(from),
  );
  const [only] = found;
  if (only === undefined)
    throw new Refusal(`${from} is no replica or node that answers, or whose folder is given by --folder`);
  if (found.length > 1) throw new Refusal(`${from} may be any of ${found.length} replicas`);
  return only.replicaId;
}

/** The operator's confirmation that a node's rows of an abandoned history may be deleted. */
export async function discardShards(
  { config, print }: ShardCommandContext,
  { shards, node }: { shards: string; node: string },
): Promise<number> {
  return withOperatorTools({ config, clusterId: undefined }, async (tools) => {
    const numbers = parseShards(shards, identityOf(tools).shardCount);
    const found = tools.members.filter(
      ({ role, nodeId, disks }) =>
        role === 'metadata' &&
        (nodeId.startsWith(node) || disks.some(({ diskId }) => diskId.startsWith(node))),
    );
    const [only] = found;
    if (only === undefined || found.length > 1)
      throw new Refusal(`${node} is not one metadata node that runs`);
    let left = 0;
    for (const shard of numbers) {
      const reply = await askNode(tools.calls, only.nodeId, { kind: 'discard', shard });
      const isDone = reply?.kind === 'done' && (reply.value as { isDiscarded: boolean }).isDiscarded;
      if (!isDone) left++;
      if (reply?.kind !== 'done') print(`Shard ${shard}: the node does not answer.`);
      else
        print(isDone ? `Shard ${shard}: discarded.` : `Shard ${shard}: nothing of it is superseded there.`);
    }
    return left === 0 ? 0 : 2;
  });
}

/** The operator's confirmation that data is lost: shards that continued with one replica erase unreferenced data again. */
export async function confirmShards(
  { config, print }: ShardCommandContext,
  { shards }: { shards: string },
): Promise<number> {
  return withOperatorTools({ config, clusterId: undefined }, async (tools) => {
    const { shardCount } = identityOf(tools);
    const stopping = new AbortController();
    const { registry } = tools.coordination;
    const metadata = createMetadataRouter({
      shardCount,
      calls: tools.calls,
      clock: systemClock,
      random: systemRandom,
    });
    registry.watch((shard, registered) => metadata.onRegistered(shard, registered), stopping.signal);
    try {
      let left = 0;
      for (const shard of parseShards(shards, shardCount)) {
        const reply = await Promise.race([
          metadata.execute({ shard }, 'confirm-history', {}),
          sleep(ANSWER_MAX_MS, undefined, { signal: stopping.signal }),
        ]);
        const outcome = reply?.kind === 'done' ? reply.value : undefined;
        if (outcome === undefined) print(`Shard ${shard} does not answer.`);
        else if (outcome.kind === 'no-doubt') print(`Shard ${shard}: there is nothing to confirm.`);
        else if (outcome.kind === 'waiting')
          print(
            `Shard ${shard}: NOT CONFIRMED, these have not reported yet what they hold of it: ${outcome.shards.join(', ')}.`,
          );
        else {
          const { linkCount, blobCount } = outcome.history;
          print(
            `Shard ${shard} is confirmed; it had forgotten ${linkCount} links of others, and ${blobCount} blobs.`,
          );
        }
        if (outcome === undefined || outcome.kind === 'waiting') left++;
      }
      return left === 0 ? 0 : 2;
    } finally {
      stopping.abort();
    }
  });
}
