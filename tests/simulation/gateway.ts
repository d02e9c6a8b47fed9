// A gateway of the simulated world, as far as shards see one: finds the primary by trying, retries under the same request
// id (R47), and says 503 no sooner than nothing can be evaluated behind it (R48). Not here: HTTP, caches, chunks.
import { CANCELLED } from '../../src/base/async/cancelled.ts';
import type { NodeId } from '../../src/ports/replication.ts';
import type { ShardCallPort, ShardReply } from '../../src/ports/shard-calls.ts';
import type { Chance } from './chance.ts';
import type { SimulatedProcess } from './clock.ts';
import type { Counts } from './counts.ts';
import type { DrivenCall } from './driver.ts';

/** R48. */
const TICKET_AGE_MAX_MS = 5000;
/** The clocks of two processes run apart by 5 % each (protocol 1.1). */
const DRIFT = 1.11;
const ATTEMPT_MIN_MS = 400;
const ATTEMPT_MAX_MS = 5000;
const BUDGET_MIN_MS = 500;
const BUDGET_MAX_MS = 10_000;
const PAUSE_MIN_MS = 20;
const PAUSE_MAX_MS = 300;

export type GatewayAnswer =
  | { kind: 'done'; value: unknown; timeMs: number }
  /** 503. */
  | { kind: 'unknown' };

export interface GatewayRequest {
  requestId: string;
  call: DrivenCall;
  /** How long the client has patience; the answer may take longer (R48). */
  patienceMs: number;
}

export interface GatewayObserver {
  onReply(requestId: string, reply: ShardReply): void;
  /** 503 has been said: from here on nothing of this request may be evaluated. */
  onGivenUp(requestId: string): void;
}

export class SimulatedGateway {
  readonly process: SimulatedProcess;
  readonly #calls: ShardCallPort;
  readonly #nodeIds: readonly NodeId[];
  readonly #chance: Chance;
  readonly #counts: Counts;
  readonly #observer: GatewayObserver;
  readonly #primaries = new Map<number, NodeId>();

  constructor(
    process: SimulatedProcess,
    options: {
      calls: ShardCallPort;
      nodeIds: readonly NodeId[];
      chance: Chance;
      counts: Counts;
      observer: GatewayObserver;
    },
  ) {
    this.process = process;
    this.#calls = options.calls;
    this.#nodeIds = options.nodeIds;
    this.#chance = options.chance;
    this.#counts = options.counts;
    this.#observer = options.observer;
  }

  async run(request: GatewayRequest): Promise<GatewayAnswer> {
    const { clock } = this.process;
    const beganAtMs = clock.monotonicMs();
    /** Until when what was sent may still be evaluated. */
    let silentUntilMs = beganAtMs;
    let isInDoubt = false;
    // R48: the ticket of a node that has not been asked for long is refused, and comes anew with that answer. Gateways of the
    // product keep theirs fresh (src/platform/rpc/call-client.ts): nobody's patience is spent on it, or a client of little
    // patience would fail with nothing wrong (I15).
    let hasNewTicket = false;
    const hasPatience = () => clock.monotonicMs() - beganAtMs < request.patienceMs;
    for (let attempt = 0; hasNewTicket || hasPatience(); attempt++) {
      if (attempt > 0) {
        if (!hasNewTicket) await clock.sleep(this.#chance.between(PAUSE_MIN_MS, PAUSE_MAX_MS));
        this.#counts.add('request retried');
      }
      const budgetMs = this.#chance.between(BUDGET_MIN_MS, BUDGET_MAX_MS);
      const sentAtMs = clock.monotonicMs();
      const reply = await this.#attempt(request, { budgetMs, isRetry: isInDoubt });
      // As src/coordination/route-metadata.ts.
      if (reply?.kind === 'done' && !(reply.isUnkept && isInDoubt)) {
        this.#observer.onReply(request.requestId, reply);
        return { kind: 'done', value: reply.value, timeMs: reply.timeMs };
      }
      hasNewTicket = reply?.kind === 'too-old';
      if (reply === undefined || reply.kind === 'unknown') isInDoubt = true;
      // Without an answer, or with `unknown`: it may be in a queue, or on its way.
      if (reply === undefined || reply.kind === 'unknown')
        silentUntilMs = Math.max(silentUntilMs, sentAtMs + (TICKET_AGE_MAX_MS + budgetMs) * DRIFT);
    }
    await clock.sleep(Math.max(0, silentUntilMs - clock.monotonicMs()));
    this.#observer.onGivenUp(request.requestId);
    return { kind: 'unknown' };
  }

  async #attempt(
    { requestId, call }: GatewayRequest,
    { budgetMs, isRetry }: { budgetMs: number; isRetry: boolean },
  ): Promise<ShardReply | undefined> {
    const { shard } = call.envelope;
    const to = this.#primaries.get(shard) ?? this.#chance.pick(this.#nodeIds);
    const { clock } = this.process;
    const giveUp = new AbortController();
    const done = new AbortController();
    clock
      .sleep(this.#chance.between(ATTEMPT_MIN_MS, ATTEMPT_MAX_MS), done.signal)
      .then(() => giveUp.abort(CANCELLED));
    const { kind, name, body } = call;
    const envelope = kind === 'execute' ? { ...call.envelope, requestId, isRetry } : call.envelope;
    try {
      const reply = await this.#calls.call(
        to,
        { kind, envelope, name: name as never, body: { ...body, simulatedRequestId: requestId }, budgetMs },
        giveUp.signal,
      );
      this.#learn(shard, to, reply);
      return reply;
    } catch {
      this.#primaries.delete(shard);
      return undefined;
    } finally {
      done.abort(CANCELLED);
    }
  }

  #learn(shard: number, asked: NodeId, reply: ShardReply): void {
    if (reply.kind === 'done') this.#primaries.set(shard, asked);
    else if (reply.kind !== 'not-primary') return;
    else if (reply.primary === undefined || reply.primary === asked) this.#primaries.delete(shard);
    else this.#primaries.set(shard, reply.primary);
  }
}
