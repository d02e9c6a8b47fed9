// The metadata port of a gateway over nodes in one process (shard-cluster.ts): the product's own search for the primary, and its
// retries. A node may be killed while it works on a command: then another one takes over, and it comes back.
import { must } from '../../../src/base/assert.ts';
import { createMetadataRouter } from '../../../src/coordination/route-metadata.ts';
import type { MetadataPort } from '../../../src/ports/metadata/port.ts';
import type { NodeId } from '../../../src/ports/replication.ts';
import type { ShardCall, ShardReply } from '../../../src/ports/shard-calls.ts';
import { CallBroken } from '../../../src/types/call-broken.ts';
import { createSeededRandom } from '../run/simulated.ts';
import type { ShardCluster } from './shard-cluster.ts';

const STEP_MS = 10;

export interface RoutedCluster extends MetadataPort {
  /**
   * The primary that gets the next command of this name is killed so many turns of the loop later, and its answer is lost. It has
   * not begun by then, or others have the entry, or all is done.
   */
  strike(name: string, afterTurns: number): void;
  /** How often that has happened, and how often the command was done by then. */
  readonly strikes: { count: number; doneCount: number };
}

type Asked = Omit<ShardCall, 'ticket'>;

export async function routeInto(
  cluster: ShardCluster,
  { shardCount, seed }: { shardCount: number; seed: number },
): Promise<RoutedCluster> {
  const { clock, nodes, registry } = cluster;
  const strikes = { count: 0, doneCount: 0 };
  const down = new Set<number>();
  let planned: { name: string; afterTurns: number } | undefined;

  async function call(to: NodeId, asked: Asked): Promise<ShardReply> {
    const index = nodes.findIndex(({ ref }) => ref.nodeId === to);
    const { node } = must(nodes[index], 'a node of the cluster');
    if (node === undefined) throw new CallBroken('it is down', { wasSent: false });
    const isPrimary = node.replica(asked.envelope.shard)?.status().role === 'primary';
    const replying = node.handle({ ...asked, ticket: node.ticket() });
    if (!isPrimary || asked.name !== planned?.name) return replying;
    const { afterTurns } = planned;
    planned = undefined;
    let isDone = false;
    void replying.then(({ kind }) => {
      isDone = kind === 'done';
    });
    for (let turn = 0; turn < afterTurns; turn++) await new Promise((resolve) => setImmediate(resolve));
    cluster.kill(index);
    down.add(index);
    strikes.count++;
    if (isDone) strikes.doneCount++;
    throw new CallBroken('it was killed', { wasSent: true });
  }

  const router = createMetadataRouter({
    ...{ shardCount, clock, random: createSeededRandom(seed) },
    calls: { call },
  });
  registry.watch((shard, registered) => router.onRegistered(shard, registered), new AbortController().signal);

  /** Time goes on while the answer is awaited; who was killed comes back behind it. */
  async function answerOf<T>(asking: Promise<T>): Promise<T> {
    let hasEnded = false;
    const end = () => {
      hasEnded = true;
    };
    asking.then(end, end);
    while (!hasEnded) await cluster.run(STEP_MS);
    for (const index of down) {
      down.delete(index);
      await cluster.start(index);
    }
    return asking;
  }

  return {
    shardCount,
    strikes,
    execute: (envelope, name, command) => answerOf(router.execute(envelope, name, command)),
    query: (envelope, name, query) => answerOf(router.query(envelope, name, query)),
    strike(name, afterTurns) {
      planned = { name, afterTurns };
    },
  };
}
