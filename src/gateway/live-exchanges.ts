// The connections that are open and the exchanges that are under way on them: who is too slow, whether there are too
// many, what a broken connection was about, and what must end when the server does. Decisions by time are made once a
// second for all of them, which costs a request nothing.
import type { Socket } from 'node:net';
import { AppError } from '../model/errors.ts';
import { LIMITS } from '../model/limits.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { Exchange } from './exchange.ts';

const SWEEP_EVERY_MS = 1000;
/** How old the sum of unsent bytes may be: adding up anew for each of a crowd of requests would cost more than they do. */
const SUM_KEPT_MS = 20;

export interface LiveLimits {
  /** How long a connection may stand still in the middle of a request. */
  readonly idleTimeoutMs: number;
  readonly connectionsMax: number;
  readonly requestsInFlightMax: number;
}

/** Of what there is too much, so that a request is refused. */
export type Overload = 'connections' | 'requests' | 'answers';

interface Connection {
  /** Exchanges under way: more than one only while the answer to the last one is on its way out. */
  underWay: number;
  /** Requests that wait for the answers to those before them. */
  waiting: number;
  /** One more than there may be: its first answer is its last. */
  isExcess: boolean;
  /** Its bytes make no sense any more: it ends when nothing is under way. */
  isBroken: boolean;
}

export class LiveExchanges {
  readonly #clock: ClockPort;
  readonly #limits: LiveLimits;
  readonly #exchanges = new Set<Exchange>();
  readonly #connections = new Map<Socket, Connection>();
  #unsent = { bytes: 0, atMs: Number.NEGATIVE_INFINITY };
  #isDraining = false;
  #onEmpty: (() => void) | undefined;

  constructor(options: { clock: ClockPort; limits: LiveLimits }) {
    this.#clock = options.clock;
    this.#limits = options.limits;
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

  /** Bytes of answers that clients have not taken yet, of all connections together; a moment old. */
  get unsentBytes(): number {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#unsent.atMs > SUM_KEPT_MS) {
      let bytes = 0;
      for (const { response } of this.#exchanges) bytes += response.writableLength;
      this.#unsent = { bytes, atMs: nowMs };
    }
    return this.#unsent.bytes;
  }

  addSocket(socket: Socket): void {
    const isExcess = this.#connections.size >= this.#limits.connectionsMax;
    this.#connections.set(socket, { underWay: 0, waiting: 0, isExcess, isBroken: false });
    socket.once('close', () => this.#connections.delete(socket));
  }

  /** A request has come behind others whose answers are not out: false when there are too many of them. */
  mayWait(socket: Socket): boolean {
    const connection = this.#connections.get(socket);
    if (connection === undefined || connection.waiting >= LIMITS.pipelinedRequestsMax) return false;
    connection.waiting++;
    return true;
  }

  /** The turn of one that has waited has come. */
  endWait(socket: Socket): void {
    const connection = this.#connections.get(socket);
    if (connection !== undefined) connection.waiting--;
  }

  begin(exchange: Exchange): void {
    const connection = this.#connections.get(exchange.request.socket);
    this.#exchanges.add(exchange);
    if (connection !== undefined) connection.underWay++;
    exchange.mustClose ||= this.#isDraining || connection?.isExcess === true;
  }

  end(exchange: Exchange): void {
    const { socket } = exchange.request;
    this.#exchanges.delete(exchange);
    const connection = this.#connections.get(socket);
    if (connection !== undefined) {
      connection.underWay--;
      // Its head may have been out before this was known, so that it could not say that the connection ends here.
      const isLast = this.#isDraining || connection.isBroken;
      if (isLast && connection.underWay === 0) socket.destroySoon();
    }
    if (this.#exchanges.size === 0) this.#onEmpty?.();
  }

  /** Whether this exchange, which has begun, is one too many. */
  overloadOf({ request }: Pick<Exchange, 'request'>): Overload | undefined {
    if (this.#connections.get(request.socket)?.isExcess === true) return 'connections';
    if (this.#isCrowded()) return 'requests';
    return this.unsentBytes > LIMITS.unsentBytesMax ? 'answers' : undefined;
  }

  /** Refused clients that are still listened to take no room: else every refusal would bring forth the next. */
  #isCrowded(): boolean {
    const { requestsInFlightMax } = this.#limits;
    if (this.#exchanges.size <= requestsInFlightMax) return false;
    let atWork = 0;
    for (const { isLingering } of this.#exchanges) if (!isLingering) atWork++;
    return atWork > requestsInFlightMax;
  }

  /**
   * The connection broke off or its bytes make no sense any more. True when an exchange on it will give the answer: the
   * one whose body was cut, or one whose answer is still to come; the connection closes behind it.
   */
  breakOff(socket: Socket, error: AppError): boolean {
    let isAnswered = false;
    const connection = this.#connections.get(socket);
    if (connection !== undefined) connection.isBroken = true;
    for (const exchange of this.#exchanges) {
      if (exchange.request.socket !== socket) continue;
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
      if (this.unsentBytes > LIMITS.unsentBytesMax) this.#endStalled(nowMs);
    }
  }

  /** Lets what is under way end, for `timeoutMs` at most. Idle connections end at once. */
  async drain(timeoutMs: number): Promise<void> {
    this.#isDraining = true;
    for (const exchange of this.#exchanges) exchange.mustClose = true;
    for (const [socket, { underWay }] of this.#connections) if (underWay === 0) socket.destroy();
    if (this.#exchanges.size > 0) {
      const isEmpty = new AbortController();
      this.#onEmpty = () => isEmpty.abort();
      await this.#clock.sleep(timeoutMs, isEmpty.signal);
    }
    for (const socket of this.#connections.keys()) socket.destroy();
  }

  #judge(exchange: Exchange, nowMs: number): void {
    const { body, request, response } = exchange;
    const isOver = (sinceMs: number | undefined, limitMs: number) =>
      sinceMs !== undefined && nowMs - sinceMs > limitMs;
    // R25: ids of blobs are refused when they are a day old.
    const { idleTimeoutMs } = this.#limits;
    const isTooOld = isOver(exchange.startedAtMs, LIMITS.requestAgeMaxMs);
    if (isOver(body.waitingSinceMs, idleTimeoutMs) || (isTooOld && !body.isAtEnd)) {
      body.fail(new AppError('RequestTimeout'));
    }
    // A client that does not read its answer cannot be told anything.
    if (isOver(exchange.sendingSinceMs, idleTimeoutMs) || (isTooOld && response.headersSent)) {
      request.socket.destroy();
    }
  }

  /** Those who have taken nothing for longest make room for others. */
  #endStalled(nowMs: number): void {
    const sinceMs = ({ sendingSinceMs = nowMs }: Exchange) => sendingSinceMs;
    const stalled = [...this.#exchanges]
      .filter((exchange) => nowMs - sinceMs(exchange) >= LIMITS.bodyStalledMs)
      .sort((a, b) => sinceMs(a) - sinceMs(b));
    let tooManyBytes = this.unsentBytes - LIMITS.unsentBytesMax;
    for (const { request, response } of stalled) {
      if (tooManyBytes <= 0) return;
      tooManyBytes -= response.writableLength;
      request.socket.destroy();
    }
  }
}
