// The exchanges that are under way: who is too slow, whether there are too many, what a broken connection was about, and
// what must end when the server does. Decisions by time are made once a second for all of them, which costs a request
// nothing. Places of requests are shared by tenant; those of connections are in connections.ts.
import type { Socket } from 'node:net';
import { createFairShare, type SharePath } from '../../base/async/fair-share.ts';
import type { ClockPort } from '../../ports/clock.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { SHARE_WEIGHTS, sharePathOf, type Tenant } from '../../types/tenant.ts';
import { Connections } from './connections.ts';
import type { Exchange, ExchangeWatcher } from './exchange.ts';
import type { Overload } from './shedding.ts';
import { noteRequestEnd } from './unfinished-heads.ts';
import { UnsentAnswers } from './unsent-answers.ts';

const SWEEP_EVERY_MS = 1000;

export interface LiveLimits {
  /** How long a connection may stand still in the middle of a request. */
  readonly idleTimeoutMs: number;
  readonly connectionsMax: number;
  readonly requestsInFlightMax: number;
  /** As in types/thread-share.ts. */
  readonly threads?: number;
}

export class LiveExchanges implements ExchangeWatcher {
  readonly connections: Connections;
  readonly #clock: ClockPort;
  readonly #limits: LiveLimits;
  readonly #exchanges = new Set<Exchange>();
  /** The same, of each connection. */
  readonly #ofSockets = new Map<Socket, Set<Exchange>>();
  readonly #requests;
  /** Those that have a place among the requests in flight. */
  readonly #admitted = new Map<Exchange, SharePath>();
  /** Those that hold nothing that others wait for: their connections make room. */
  readonly #yielding = new Set<Exchange>();
  readonly #unsent;
  /** Requests that wait for their turn to start. */
  #startsWaiting = 0;
  #isDraining = false;
  #onEmpty: (() => void) | undefined;

  /** `onYield`: as in connections.ts. */
  constructor(options: { clock: ClockPort; limits: LiveLimits; onYield?: (tenant: Tenant) => void }) {
    const { clock, limits, onYield = () => {} } = options;
    this.#clock = clock;
    this.#limits = limits;
    this.#unsent = new UnsentAnswers(clock, this.#exchanges, limits.threads);
    this.connections = new Connections({ ...limits, onYield });
    this.#requests = createFairShare({ limit: limits.requestsInFlightMax, weights: SHARE_WEIGHTS });
  }

  get count(): number {
    return this.#exchanges.size;
  }

  /** Monotonic ms at which the oldest exchange under way began; undefined when there is none. */
  get oldestStartedAtMs(): number | undefined {
    // A set keeps the order in which they began.
    const [oldest] = this.#exchanges;
    return oldest?.startedAtMs;
  }

  /** A request waits for its turn to start: its connection is at work. At most one of each connection does. */
  beginStartWait(socket: Socket): void {
    this.#startsWaiting++;
    const connection = this.connections.get(socket);
    if (connection === undefined) return;
    connection.underWay++;
    this.connections.update(connection);
  }

  /** It has begun by now, or its connection has ended. */
  endStartWait(socket: Socket): void {
    this.#startsWaiting--;
    const connection = this.connections.get(socket);
    if (connection !== undefined) {
      connection.underWay--;
      if (connection.underWay === 0) this.connections.update(connection);
    }
    this.#notifyWhenEmpty();
  }

  begin(exchange: Exchange): void {
    const { socket } = exchange.request;
    const connection = this.connections.get(socket);
    this.#exchanges.add(exchange);
    const ofSocket = this.#ofSockets.get(socket);
    if (ofSocket === undefined) this.#ofSockets.set(socket, new Set([exchange]));
    else ofSocket.add(exchange);
    exchange.watcher = this;
    if (connection !== undefined) {
      connection.underWay++;
      this.connections.update(connection);
    }
    exchange.mustClose ||= this.#isDraining || connection?.excessOf !== undefined;
    if (connection?.isBroken !== true) return;
    // It has waited for others' answers, and the client has gone meanwhile: the rest of its body never comes.
    exchange.mustClose = true;
    if (!exchange.request.complete) exchange.body.fail(new AppError('IncompleteBody'));
  }

  onProved(exchange: Exchange): void {
    const { request, tenant } = exchange;
    const connection = this.connections.get(request.socket);
    if (connection === undefined || tenant.account === undefined) return;
    if (!exchange.isLingering) this.#setYielding(exchange, false);
    this.connections.prove(connection, tenant);
    if (connection.excessOf !== undefined) exchange.mustClose = true;
  }

  /** Who is only listened to makes room for others. */
  onLingering(exchange: Exchange): void {
    this.#release(exchange);
    this.#setYielding(exchange, true);
  }

  /** Who has proved nothing keeps nobody out by a body that does not come. */
  onBodyWait(exchange: Exchange, isWaiting: boolean): void {
    if (exchange.tenant.account !== undefined || exchange.isLingering) return;
    this.#setYielding(exchange, isWaiting);
  }

  #setYielding(exchange: Exchange, isYielding: boolean): void {
    if (this.#yielding.has(exchange) === isYielding || !this.#exchanges.has(exchange)) return;
    if (isYielding) this.#yielding.add(exchange);
    else this.#yielding.delete(exchange);
    const connection = this.connections.get(exchange.request.socket);
    if (connection === undefined) return;
    connection.yielding += isYielding ? 1 : -1;
    this.connections.update(connection);
  }

  end(exchange: Exchange): void {
    const { socket } = exchange.request;
    this.#exchanges.delete(exchange);
    const ofSocket = this.#ofSockets.get(socket);
    ofSocket?.delete(exchange);
    if (ofSocket?.size === 0) this.#ofSockets.delete(socket);
    this.#release(exchange);
    const connection = this.connections.get(socket);
    if (connection !== undefined) {
      connection.underWay--;
      if (this.#yielding.has(exchange)) connection.yielding--;
      this.connections.update(connection);
      if (connection.underWay === 0) noteRequestEnd(connection, exchange);
      // Its head may have been out before this was known, so that it could not say that the connection ends here.
      const isLast = this.#isDraining || connection.isBroken;
      if (isLast && connection.underWay === 0) socket.destroySoon();
    }
    this.#yielding.delete(exchange);
    this.#notifyWhenEmpty();
  }

  get #isEmpty(): boolean {
    return this.#exchanges.size + this.#startsWaiting === 0;
  }

  #notifyWhenEmpty(): void {
    if (this.#isEmpty) this.#onEmpty?.();
  }

  /** Whether a request of any caller would be one too many. */
  overload(): Overload | undefined {
    const share = this.#requests.usedUp(1);
    return share === 'all' ? { reason: 'requests', share } : undefined;
  }

  /**
   * Gives an exchange that has begun a place among the requests in flight, until it ends or lingers; undefined: it has
   * one. To be asked when it is known who asks, so that strangers take no place of those who have proved who they are.
   */
  admit(exchange: Exchange): Overload | undefined {
    const share = this.connections.get(exchange.request.socket)?.excessOf;
    if (share !== undefined) return { reason: 'connections', share };
    const untaken = this.untaken(exchange);
    if (untaken !== undefined) return untaken;
    const path = sharePathOf(exchange.tenant);
    if (!this.#requests.mayTake(path, 1)) return { reason: 'requests', share: this.#requests.usedUp(1) };
    this.#requests.take(path, 1);
    this.#admitted.set(exchange, path);
    return undefined;
  }

  /** Whether its tenant has left too many answers. */
  untaken(exchange: Exchange): Overload | undefined {
    return this.#unsent.isOverShare(exchange) ? { reason: 'answers', share: 'tenant' } : undefined;
  }

  #release(exchange: Exchange): void {
    const path = this.#admitted.get(exchange);
    if (path === undefined) return;
    this.#admitted.delete(exchange);
    this.#requests.giveBack(path, 1);
  }

  /**
   * The connection broke off or its bytes make no sense any more. True when an exchange on it will give the answer: the
   * one whose body was cut, or one whose answer is still to come; the connection closes behind it.
   */
  breakOff(socket: Socket, error: AppError): boolean {
    const connection = this.connections.get(socket);
    // One that waits for its turn to start will give it, too.
    let isAnswered = connection !== undefined && connection.underWay > 0;
    if (connection !== undefined) connection.isBroken = true;
    for (const exchange of this.#ofSockets.get(socket) ?? []) {
      exchange.mustClose = true;
      if (!exchange.request.complete) exchange.body.fail(error);
      isAnswered = true;
    }
    return isAnswered;
  }

  /** Looks for slow clients until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.sleep(SWEEP_EVERY_MS, signal);
      const nowMs = this.#clock.monotonicMs();
      for (const exchange of this.#exchanges) this.#judge(exchange, nowMs);
      for (const { request } of this.#unsent.tooMany()) request.socket.destroy();
      this.connections.endExcessiveHeads();
    }
  }

  /** Lets what is under way end, for `timeoutMs` at most. Idle connections end at once. */
  async drain(timeoutMs: number): Promise<void> {
    this.#isDraining = true;
    for (const exchange of this.#exchanges) exchange.mustClose = true;
    for (const { socket, underWay } of this.connections.all()) if (underWay === 0) socket.destroy();
    if (!this.#isEmpty) {
      const isEmpty = new AbortController();
      this.#onEmpty = () => isEmpty.abort();
      await this.#clock.sleep(timeoutMs, isEmpty.signal);
    }
    for (const { socket } of this.connections.all()) socket.destroy();
  }

  #judge(exchange: Exchange, nowMs: number): void {
    const { body, request, response } = exchange;
    const exceeds = (sinceMs: number | undefined, limitMs: number) =>
      sinceMs !== undefined && nowMs - sinceMs > limitMs;
    // R25: ids of blobs are refused when they are a day old.
    const { idleTimeoutMs } = this.#limits;
    const isTooOld = exceeds(exchange.startedAtMs, LIMITS.requestAgeMaxMs);
    if (exceeds(body.waitingSinceMs, idleTimeoutMs) || (isTooOld && !body.isAtEnd)) {
      body.fail(new AppError('RequestTimeout'));
    }
    // A client that does not read its answer cannot get an error.
    if (exceeds(exchange.sendingSinceMs, idleTimeoutMs) || (isTooOld && response.headersSent)) {
      request.socket.destroy();
    }
  }
}
