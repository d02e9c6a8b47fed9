// The connections that are open and the exchanges that are under way on them: who is too slow, what a broken connection
// was about, and what must end when the server does. Decisions by time are made once a second for all of them, which
// costs a request nothing.
import type { Socket } from 'node:net';
import { AppError } from '../model/errors.ts';
import { LIMITS } from '../model/limits.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { Exchange } from './exchange.ts';

const SWEEP_EVERY_MS = 1000;

export class LiveExchanges {
  readonly #clock: ClockPort;
  readonly #idleTimeoutMs: number;
  readonly #exchanges = new Set<Exchange>();
  /** Open connections, and how many exchanges are under way on each. */
  readonly #sockets = new Map<Socket, number>();
  #isDraining = false;
  #onEmpty: (() => void) | undefined;

  constructor(options: { clock: ClockPort; idleTimeoutMs: number }) {
    this.#clock = options.clock;
    this.#idleTimeoutMs = options.idleTimeoutMs;
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

  addSocket(socket: Socket): void {
    this.#sockets.set(socket, 0);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  begin(exchange: Exchange): void {
    const { socket } = exchange.request;
    this.#exchanges.add(exchange);
    this.#sockets.set(socket, (this.#sockets.get(socket) ?? 0) + 1);
    exchange.mustClose = this.#isDraining;
  }

  end(exchange: Exchange): void {
    const { socket } = exchange.request;
    this.#exchanges.delete(exchange);
    const count = this.#sockets.get(socket);
    if (count !== undefined) {
      this.#sockets.set(socket, count - 1);
      // Its head was out before the drain began, so it could not say that the connection ends here.
      if (this.#isDraining && count === 1) socket.destroySoon();
    }
    if (this.#exchanges.size === 0) this.#onEmpty?.();
  }

  /**
   * The connection broke off or its bytes make no sense any more. True when an exchange on it will give the answer: the
   * one whose body was cut, or one whose answer is still to come; the connection closes behind it.
   */
  breakOff(socket: Socket, error: AppError): boolean {
    let isAnswered = false;
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
    }
  }

  /** Lets what is under way end, for `timeoutMs` at most. Idle connections end at once. */
  async drain(timeoutMs: number): Promise<void> {
    this.#isDraining = true;
    for (const exchange of this.#exchanges) exchange.mustClose = true;
    for (const [socket, count] of this.#sockets) if (count === 0) socket.destroy();
    if (this.#exchanges.size > 0) {
      const isEmpty = new AbortController();
      this.#onEmpty = () => isEmpty.abort();
      await this.#clock.sleep(timeoutMs, isEmpty.signal);
    }
    for (const socket of this.#sockets.keys()) socket.destroy();
  }

  #judge(exchange: Exchange, nowMs: number): void {
    const { body, request, response } = exchange;
    const isOver = (sinceMs: number | undefined, limitMs: number) =>
      sinceMs !== undefined && nowMs - sinceMs > limitMs;
    // R25: ids of blobs are refused when they are a day old.
    const isTooOld = isOver(exchange.startedAtMs, LIMITS.requestAgeMaxMs);
    if (isOver(body.waitingSinceMs, this.#idleTimeoutMs) || (isTooOld && !body.isAtEnd)) {
      body.fail(new AppError('RequestTimeout'));
    }
    // A client that does not read its answer cannot be told anything.
    if (isOver(exchange.sendingSinceMs, this.#idleTimeoutMs) || (isTooOld && response.headersSent)) {
      request.socket.destroy();
    }
  }
}
