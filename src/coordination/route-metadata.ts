// The metadata port of a gateway in a cluster (R18, R47, R48). It finds the primary of a shard, and asks again under the
// same request id when an answer is lost or the primary changes. It uses hints only: a node that is not the primary
// refuses, and evaluates nothing.
import { assert } from '../base/assert.ts';
import { CANCELLED } from '../base/async/cancelled.ts';
import { toHex } from '../base/bytes/bytes.ts';
import type { ClockPort, RandomPort } from '../ports/clock.ts';
import type { Envelope, MetadataPort, Reply } from '../ports/metadata/port.ts';
import type { NodeId } from '../ports/replication.ts';
import type { ShardCall, ShardCallPort, ShardReply } from '../ports/shard-calls.ts';
import type { RegisteredShard } from '../ports/shard-registry.ts';
import { CallBroken } from '../types/call-broken.ts';
import { LIMITS } from '../types/limits.ts';
import { compareMoments } from '../types/registry-order.ts';

const REQUEST_ID_BYTES = 16;
/** Time for which a node may hold back an answer before another node is asked as well. */
const ATTEMPT_MS = 1500;
/** Clocks of both ends drift by less than 5 % (protocol 1.1). */
const CLOCKS_APART = 1.11;
/** A node that held back an answer is asked again after this time, or when it answers: another may lead by then. */
const LEFT_ALONE_MS = 5000;
/** Nodes that name each other as the primary would pass a question back and forth as fast as the network allows. */
const REDIRECTS_IN_A_ROW_MAX = 2;
const PAUSE_MS_MIN = 10;
const PAUSE_MS_MAX = 300;

assert(
  LIMITS.metadataPatienceMs + ATTEMPT_MS <= LIMITS.metadataAnswerMaxMs &&
    ATTEMPT_MS <= LIMITS.requestWaitLeastMs,
  'the last try has its time before its question is given up',
);

export interface MetadataRouter extends MetadataPort {
  /** Takes a shard's record from the registry: a hint. */
  onRegistered(shard: number, registered: RegisteredShard): void;
  /**
   * For a process that ends: nothing is asked again. Pending calls wait as long as one node may take, and then get
   * `unknown`; R48 allows that only to a process that ends.
   */
  stop(): void;
}

export interface RouterDeps {
  shardCount: number;
  calls: ShardCallPort;
  clock: ClockPort;
  random: RandomPort;
}

export function createMetadataRouter(deps: RouterDeps): MetadataRouter {
  const routes = new Map<number, Route>();
  const routeOf = (shard: number) => {
    let route = routes.get(shard);
    if (route === undefined) {
      route = { primary: undefined, nodes: [], next: 0, revision: 0, rebuiltAtMs: 0 };
      routes.set(shard, route);
    }
    return route;
  };
  const shared: Shared = {
    deps,
    silence: new NodeSilence(deps.clock),
    patience: new Patience(deps.clock),
    isStopped: false,
    pauses: new Set(),
  };
  const ask = (call: Question) => new Attempts(shared, routeOf(call.envelope.shard), call).run();
  return {
    shardCount: deps.shardCount,
    execute(envelope, name, body) {
      const requestId = envelope.requestId ?? toHex(deps.random.bytes(REQUEST_ID_BYTES));
      return ask({ kind: 'execute', envelope: { ...envelope, requestId }, name, body }) as Promise<never>;
    },
    query: (envelope, name, body) => ask({ kind: 'query', envelope, name, body }) as Promise<never>,
    onRegistered(shard, { record, revision }) {
      const route = routeOf(shard);
      const { rebuiltAtMs = 0 } = record;
      if (compareMoments({ rebuiltAtMs, revision }, route) <= 0) return;
      route.revision = revision;
      route.rebuiltAtMs = rebuiltAtMs;
      route.nodes = record.voters.map(({ nodeId }) => nodeId);
      route.primary = record.primary?.nodeId;
    },
    stop() {
      shared.isStopped = true;
      for (const pause of shared.pauses) pause.abort(CANCELLED);
    },
  };
}

/** The believed state of a shard. */
interface Route {
  primary: NodeId | undefined;
  nodes: NodeId[];
  /** The node to ask next when no primary is known. */
  next: number;
  revision: number;
  rebuiltAtMs: number;
}

/** For all shards: nodes that are not asked because they answer nothing. */
class NodeSilence {
  readonly #clock: ClockPort;
  /** Monotonic ms. */
  readonly #leftAloneUntil = new Map<NodeId, number>();
  readonly #answeredAt = new Map<NodeId, number>();

  constructor(clock: ClockPort) {
    this.#clock = clock;
  }

  has(node: NodeId): boolean {
    const untilMs = this.#leftAloneUntil.get(node);
    return untilMs !== undefined && this.#clock.monotonicMs() < untilMs;
  }

  answered(node: NodeId): void {
    this.#leftAloneUntil.delete(node);
    this.#answeredAt.set(node, this.#clock.monotonicMs());
  }

  /**
   * An answer is missing. A node that answers other calls holds this one back on purpose: a revocation waits for gateways
   * (R46).
   */
  missing(node: NodeId, sentMs: number): void {
    const answeredMs = this.#answeredAt.get(node);
    if (answeredMs !== undefined && answeredMs > sentMs) return;
    this.#leftAloneUntil.set(node, this.#clock.monotonicMs() + LEFT_ALONE_MS);
  }
}

/** Shared by all calls of a router. */
interface Shared {
  deps: RouterDeps;
  silence: NodeSilence;
  patience: Patience;
  /** No call is asked again. */
  isStopped: boolean;
  /** Pauses that a stop ends. */
  readonly pauses: Set<AbortController>;
}

type Question = Pick<ShardCall, 'kind' | 'envelope' | 'name' | 'body'> & { envelope: Envelope };

/** The attempts of one command or query. */
class Attempts {
  readonly #shared: Shared;
  readonly #route: Route;
  readonly #question: Question;
  readonly #startedMs: number;
  /** Monotonic ms at which the caller gets `unknown`. */
  readonly #answerByMs: number;
  /** Monotonic ms after which no node is asked any more. */
  readonly #askUntilMs: number;
  readonly #outcome = Promise.withResolvers<Reply<unknown>>();
  readonly #ending = new AbortController();
  #isResolved = false;
  /** Calls under way, which `ending` would end. */
  #callCount = 0;
  /** Monotonic ms of the last call to a node, of those that have not answered. */
  readonly #sentMs = new Map<NodeId, number>();
  #pausing: AbortController | undefined;
  /** To a node that may have evaluated it. */
  #wasSent = false;
  /** Redirects since the last pause. */
  #redirectCount = 0;
  #pauseCount = 0;
  /** Tries whose node may still evaluate the call, or has done so. */
  #inDoubtCount = 0;

  constructor(shared: Shared, route: Route, question: Question) {
    this.#shared = shared;
    this.#route = route;
    this.#startedMs = shared.deps.clock.monotonicMs();
    const { waitMaxMs = LIMITS.metadataAnswerMaxMs, ...envelope } = question.envelope;
    this.#question = { ...question, envelope };
    const wholeMs = Math.max(ATTEMPT_MS, Math.min(LIMITS.metadataAnswerMaxMs, waitMaxMs));
    this.#answerByMs = this.#startedMs + wholeMs;
    // The last try has its time. Where there is little, an answer that another node leads is still of use.
    const tryingMs = Math.max(wholeMs - ATTEMPT_MS, wholeMs / 2);
    this.#askUntilMs = this.#startedMs + Math.min(LIMITS.metadataPatienceMs, tryingMs);
  }

  run(): Promise<Reply<unknown>> {
    void this.#repeat();
    return this.#outcome.promise;
  }

  #resolve(reply: Reply<unknown>): void {
    this.#isResolved = true;
    this.#outcome.resolve(reply);
    // Calls that are still under way are not waited for.
    if (this.#callCount > 0) this.#ending.abort(CANCELLED);
    this.#pausing?.abort(CANCELLED);
  }

  async #repeat(): Promise<void> {
    const { clock } = this.#shared.deps;
    const hasTime = () => clock.monotonicMs() <= this.#askUntilMs;
    while (!this.#isResolved && !this.#shared.isStopped && hasTime()) {
      const node = this.#choose();
      const isLater = node === undefined || this.#hasIt(node) || (await this.#ask(node)) === 'later';
      if (isLater) await this.#pause(this.#pauseMs());
    }
    if (!this.#isResolved) await this.#giveUp();
  }

  async #pause(ms: number): Promise<void> {
    this.#redirectCount = 0;
    const { pauses, isStopped, deps } = this.#shared;
    if (this.#isResolved || isStopped) return;
    const pausing = new AbortController();
    this.#pausing = pausing;
    pauses.add(pausing);
    await deps.clock.sleep(ms, pausing.signal);
    pauses.delete(pausing);
    this.#pausing = undefined;
  }

  /**
   * A node that has the call may take its time, and would keep the call a second time for the same answer: a list of 10,000 parts
   * is 2 MB of its memory. It is sent again late, for an answer that was lost.
   */
  #hasIt(node: NodeId): boolean {
    const sentMs = this.#sentMs.get(node);
    return sentMs !== undefined && this.#shared.deps.clock.monotonicMs() - sentMs < LEFT_ALONE_MS;
  }

  #choose(): NodeId | undefined {
    const { primary, nodes } = this.#route;
    if (primary !== undefined && !this.#shared.silence.has(primary)) return primary;
    for (let tries = nodes.length; tries > 0; tries--) {
      const node = nodes[this.#route.next++ % nodes.length];
      if (node !== undefined && !this.#shared.silence.has(node)) return node;
    }
    return primary ?? nodes[this.#route.next++ % Math.max(1, nodes.length)];
  }

  /** `now`: another node must be asked at once. */
  #ask(node: NodeId): Promise<'now' | 'later'> {
    const { calls, clock } = this.#shared.deps;
    const isRetry = this.#question.kind === 'execute' && this.#inDoubtCount > 0;
    const envelope = isRetry ? { ...this.#question.envelope, isRetry } : this.#question.envelope;
    const sentMs = clock.monotonicMs();
    // R48: after the caller has given up no node may evaluate the call, by the node's own clock.
    const budgetMs = Math.floor((this.#answerByMs - sentMs) / CLOCKS_APART);
    const call = { ...this.#question, envelope, budgetMs };
    this.#wasSent = true;
    this.#inDoubtCount++;
    return new Promise((resolve) => {
      const wait = this.#shared.patience.begin(() => {
        // It may hang. Its answer, if it comes, is as good as another's.
        this.#shared.silence.missing(node, sentMs);
        this.#doubt(node);
        resolve('now');
      });
      const ended = () => {
        this.#callCount--;
        this.#sentMs.delete(node);
        this.#shared.patience.end(wait);
      };
      this.#callCount++;
      this.#sentMs.set(node, sentMs);
      calls.call(node, call, this.#ending.signal).then(
        (reply) => {
          ended();
          resolve(this.#onReply(node, reply));
        },
        (error: unknown) => {
          ended();
          if (error instanceof CallBroken && !error.wasSent) this.#inDoubtCount--;
          if (!this.#isResolved) this.#doubt(node);
          resolve('later');
        },
      );
    });
  }

  #onReply(node: NodeId, reply: ShardReply): 'now' | 'later' {
    this.#shared.silence.answered(node);
    // For these answers alone it is certain that nothing was evaluated.
    if (isUnevaluated(reply)) this.#inDoubtCount--;
    if (reply.kind === 'not-primary') {
      const { primary } = reply;
      // A node that follows a hanging primary learns of its end later than this process.
      const isNews = primary !== undefined && primary !== node && !this.#shared.silence.has(primary);
      this.#route.primary = isNews ? primary : undefined;
      return isNews && ++this.#redirectCount <= REDIRECTS_IN_A_ROW_MAX ? 'now' : 'later';
    }
    if (reply.kind === 'too-old') return 'later';
    if (reply.kind === 'unknown') {
      this.#doubt(node);
      return 'later';
    }
    this.#route.primary = node;
    // R48: an earlier try may still be evaluated, so "busy" must wait.
    if (reply.kind === 'busy' && this.#question.kind === 'execute' && this.#inDoubtCount > 0) return 'later';
    // R18: a stored outcome holds for all tries; one that is not stored may be contradicted by a try under way.
    if (reply.kind === 'done' && reply.isUnkept && this.#inDoubtCount > 1) return 'later';
    this.#resolve(reply);
    return 'now';
  }

  /** It may no longer lead: others are asked next. */
  #doubt(node: NodeId): void {
    if (this.#route.primary === node) this.#route.primary = undefined;
  }

  /** R48: the call stays unanswered until no node can evaluate it any more. A late answer still counts. */
  async #giveUp(): Promise<void> {
    const leftMs = this.#answerByMs - this.#shared.deps.clock.monotonicMs();
    if (this.#wasSent && leftMs > 0) await this.#pause(leftMs);
    if (!this.#isResolved) this.#resolve({ kind: 'unknown' });
  }

  /** Short at first: a hand-over takes a few round trips. Doubled and randomised after that (R47). */
  #pauseMs(): number {
    const mostMs = Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** this.#pauseCount++);
    const [byte = 0] = this.#shared.deps.random.bytes(1);
    return mostMs / 2 + ((byte / 255) * mostMs) / 2;
  }
}

function isUnevaluated({ kind }: ShardReply): boolean {
  return kind === 'not-primary' || kind === 'too-old' || kind === 'busy';
}

interface Wait {
  untilMs: number;
  onEnding(): void;
}

/** Calls back after ATTEMPT_MS without an answer. One sleep serves all calls: nearly all end earlier. */
class Patience {
  readonly #clock: ClockPort;
  /** In the order of their ends. */
  readonly #waits = new Set<Wait>();
  #isWatching = false;

  constructor(clock: ClockPort) {
    this.#clock = clock;
  }

  begin(onEnding: () => void): Wait {
    const wait = { untilMs: this.#clock.monotonicMs() + ATTEMPT_MS, onEnding };
    this.#waits.add(wait);
    if (!this.#isWatching) void this.#watch();
    return wait;
  }

  end(wait: Wait): void {
    this.#waits.delete(wait);
  }

  async #watch(): Promise<void> {
    this.#isWatching = true;
    for (const wait of this.#waits) {
      const leftMs = wait.untilMs - this.#clock.monotonicMs();
      if (leftMs > 0) await this.#clock.sleep(leftMs);
      if (this.#waits.delete(wait)) wait.onEnding();
    }
    this.#isWatching = false;
  }
}
