// The invariants I1 to I6, checked after every step by what all nodes have stored and what they say. An epoch has one primary,
// with every entry that was acknowledged (I1, I2, I3). No answer tells what is not committed (I4). The state is the replay of
// the entries (I5). A request has one effect and one outcome, and none after a 503 (I6). The answers that clients got are
// compared at the end (linearizability.ts, committed-order.ts).
import type { NodeId } from '../../src/ports/replication.ts';
import type { ShardCall, ShardReply } from '../../src/ports/shard-calls.ts';
import type { StateMachine } from '../../src/ports/state-machine.ts';
import type { Driver } from './driver.ts';
import type { SimulatedNode } from './node.ts';
import { isChange, type Operation } from './operations.ts';
import type { ReplicaWatch } from './replica-watch.ts';
import { SimulationFailure } from './scheduler.ts';
import { ShardHistory } from './shard-history.ts';

export interface WatchedNode {
  nodeId: NodeId;
  watch: ReplicaWatch;
  /** While its process runs. */
  node: SimulatedNode | undefined;
  /** Its monotonic clock stood still, and its wall clock was set: tickets cannot tell (R48). */
  wasTimeLost: boolean;
}

export class Invariants {
  readonly #driver: Driver;
  readonly #nodes: readonly WatchedNode[];
  readonly #histories: ShardHistory[];
  /** `shard/epoch` -> who opened it. */
  readonly #primaries = new Map<string, NodeId>();
  /** Node -> by shard, the epoch in which it was open last. */
  readonly #lastOpen = new Map<NodeId, (number | undefined)[]>();
  /** By shard, the highest epoch in which anything was answered. */
  readonly #answeredEpoch = new Map<number, number>();
  readonly #givenUp = new Set<string>();
  readonly #outcomes = new Map<string, string>();
  readonly #onOpened: (nodeId: NodeId, shard: number) => void;
  readonly #fail: (failure: SimulationFailure) => void;

  constructor(options: {
    driver: Driver;
    nodes: readonly WatchedNode[];
    shardCount: number;
    onOpened(nodeId: NodeId, shard: number): void;
    fail(failure: SimulationFailure): void;
  }) {
    this.#driver = options.driver;
    this.#nodes = options.nodes;
    this.#histories = Array.from({ length: options.shardCount }, (_, shard) => new ShardHistory(shard));
    this.#onOpened = options.onOpened;
    this.#fail = options.fail;
  }

  history(shard: number): ShardHistory {
    const history = this.#histories[shard];
    if (history === undefined) throw new SimulationFailure(`there is no shard ${shard}`);
    return history;
  }

  isOpen(shard: number): boolean {
    return this.#nodes.some(({ node }) => node?.openEpoch(shard) !== undefined);
  }

  /** After every step. */
  check(): void {
    for (const { nodeId, node, watch } of this.#nodes) {
      if (node === undefined) continue;
      const lastOpen = this.#lastOpen.get(nodeId) ?? [];
      this.#lastOpen.set(nodeId, lastOpen);
      for (let shard = 0; shard < this.#histories.length; shard++) {
        const epoch = node.openEpoch(shard);
        if (epoch === undefined || epoch === lastOpen[shard]) continue;
        lastOpen[shard] = epoch;
        this.#notePrimary(nodeId, shard, epoch);
        watch.checkOpened(shard, epoch);
        this.#onOpened(nodeId, shard);
      }
    }
  }

  #notePrimary(nodeId: NodeId, shard: number, epoch: number): void {
    const other = this.#primaries.get(`${shard}/${epoch}`);
    if (other !== undefined && other !== nodeId)
      throw new SimulationFailure(`I3: shard ${shard}: ${nodeId} and ${other} are primary in epoch ${epoch}`);
    this.#primaries.set(`${shard}/${epoch}`, nodeId);
  }

  /** A node has answered a call: what it says must be committed, and of no epoch that is over. */
  onAnswer(nodeId: NodeId, call: ShardCall, reply: ShardReply): void {
    if (reply.kind !== 'done') return;
    const { shard, requestId } = call.envelope;
    const epoch = this.#lastOpen.get(nodeId)?.[shard];
    const seq = requestId === undefined ? undefined : this.history(shard).seqOf(requestId);
    if (epoch === undefined)
      throw new SimulationFailure(`I3: shard ${shard}: ${nodeId} answers ${call.name} and never was primary`);
    if (seq === undefined && epoch < (this.#answeredEpoch.get(shard) ?? 0))
      throw new SimulationFailure(
        `I3: shard ${shard}: ${nodeId} answers ${call.name} (${requestId}) in epoch ${epoch}, ` +
          `after an answer of epoch ${this.#answeredEpoch.get(shard)}`,
      );
    this.#answeredEpoch.set(shard, Math.max(epoch, this.#answeredEpoch.get(shard) ?? 0));
    if (seq !== undefined) this.history(shard).acknowledge(seq);
  }

  /** A gateway has an outcome of a request: there is one only. */
  onOutcome(requestId: string, request: { shard: number; operation: Operation }, value: unknown): void {
    const { shard, operation } = request;
    const outcome = this.#driver.outcome(operation, value);
    const seq = this.history(shard).seqOf(requestId);
    if (outcome !== undefined && isChange(outcome) && seq === undefined)
      throw new SimulationFailure(
        `I4: shard ${shard}: ${requestId} is told ${JSON.stringify(outcome)}, and no such entry is committed`,
      );
    // A refusal leaves nothing: asked again, it may be another one.
    if (seq === undefined) return;
    const outcomeText = JSON.stringify(value);
    const before = this.#outcomes.get(requestId);
    if (before !== undefined && before !== outcomeText)
      throw new SimulationFailure(`I6: ${requestId} is told ${outcomeText}, and was told ${before}`);
    this.#outcomes.set(requestId, outcomeText);
  }

  onGivenUp(requestId: string): void {
    this.#givenUp.add(requestId);
  }

  /** The machine for one node, which reports each evaluation here. */
  observed(nodeId: NodeId): StateMachine {
    const { machine } = this.#driver;
    const commands = Object.entries(machine.commands).map(([name, spec]) => {
      const decide: typeof spec.decide = (command, view, context) => {
        this.#onEvaluated(nodeId, command);
        return spec.decide(command, view, context);
      };
      return [name, { ...spec, decide }] as const;
    });
    return { ...machine, commands: Object.fromEntries(commands) };
  }

  #onEvaluated(nodeId: NodeId, command: { simulatedRequestId?: string }): void {
    const { simulatedRequestId: requestId } = command;
    if (requestId === undefined || !this.#givenUp.has(requestId)) return;
    if (this.#nodes.some((node) => node.nodeId === nodeId && node.wasTimeLost)) return;
    // Not thrown: it would be the node's to catch.
    this.#fail(new SimulationFailure(`I6: ${nodeId} evaluates ${requestId}, of which 503 was said`));
  }
}
