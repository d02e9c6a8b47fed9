// Requests to one peer: connections that are kept, a bound on how many are under way and on how many wait, and a time
// limit for each. The caller learns of an answer, or of a failure; a connection that the peer had closed just then is neither.

import type { ClockPort } from '../../ports/clock.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { type Deadline, Deadlines } from './deadlines.ts';
import type { Dial } from './dial.ts';
import { type PeerAnswer, PeerConnection, type PeerRequest } from './peer-connection.ts';

export interface PeerPoolOptions {
  dial: Dial;
  clock: Pick<ClockPort, 'monotonicMs' | 'sleep'>;
}

export interface Patience {
  signal?: AbortSignal | undefined;
  timeoutMs: number;
}

/** One for all: hedged reads end most of their requests so, and an exception with its stack costs more than a request. */
const NO_LONGER_WANTED = new AppError('ServiceUnavailable', { cause: new Error('no longer wanted') });

class Call {
  readonly request: PeerRequest;
  readonly patience: Patience;
  readonly #outcome: { resolve(answer: PeerAnswer): void; reject(error: Error): void };
  readonly #onAbort: () => void;
  connection: PeerConnection | undefined;
  deadline: Deadline | undefined;
  isAgain = false;

  constructor(
    request: PeerRequest,
    patience: Patience,
    outcome: { resolve(answer: PeerAnswer): void; reject(error: Error): void },
    onAbort: (call: Call) => void,
  ) {
    this.request = request;
    this.patience = patience;
    this.#outcome = outcome;
    this.#onAbort = () => onAbort(this);
    patience.signal?.addEventListener('abort', this.#onAbort);
  }

  end(outcome: PeerAnswer | Error): void {
    this.patience.signal?.removeEventListener('abort', this.#onAbort);
    if (outcome instanceof Error) this.#outcome.reject(outcome);
    else this.#outcome.resolve(outcome);
  }
}

export class PeerPool {
  readonly #address: string;
  readonly #dial: Dial;
  readonly #deadlines: Deadlines;
  readonly #underWay = new Set<Call>();
  /** In the order of their coming. */
  readonly #waiting = new Set<Call>();
  /** The one used last at the end: those that are not needed grow old. */
  readonly #idle: PeerConnection[] = [];
  readonly #limits = new Map<PeerConnection, Deadline>();
  #isClosed = false;

  constructor(address: string, { dial, clock }: PeerPoolOptions) {
    this.#address = address;
    this.#dial = dial;
    this.#deadlines = new Deadlines(clock);
  }

  /** Rejects with AppError: SlowDown when too many wait, ServiceUnavailable when there is no answer to believe. */
  request(request: PeerRequest, patience: Patience): Promise<PeerAnswer> {
    if (this.#isClosed) return Promise.reject(this.#unavailable(new Error('closed')));
    if (patience.signal?.aborted === true) return Promise.reject(NO_LONGER_WANTED);
    const hasPlace = this.#underWay.size < LIMITS.chunkConnectionsPerNode;
    if (!hasPlace && this.#waiting.size >= LIMITS.chunkRequestsWaitingMax)
      return Promise.reject(new AppError('SlowDown'));
    return new Promise((resolve, reject) => {
      const call = new Call(request, patience, { resolve, reject }, (aborted) => this.#abort(aborted));
      if (hasPlace) this.#start(call);
      else this.#waiting.add(call);
    });
  }

  /** Ends what is under way, and all connections. */
  close(): void {
    this.#isClosed = true;
    for (const connection of this.#idle.splice(0)) connection.destroy();
    const calls = [...this.#waiting, ...this.#underWay];
    this.#waiting.clear();
    for (const call of calls) this.#giveUp(call, new Error('closed'));
    this.#deadlines.clear();
  }

  #start(call: Call): void {
    const { timeoutMs } = call.patience;
    this.#underWay.add(call);
    call.deadline = this.#deadlines.add(timeoutMs, () =>
      this.#giveUp(call, new Error(`no answer within ${timeoutMs} ms`)),
    );
    this.#send(call, this.#takeIdle());
  }

  #send(call: Call, pooled?: PeerConnection): void {
    try {
      const connection = pooled ?? this.#connect(call);
      call.connection = connection;
      connection.send(call.request, {
        answered: (answer) => {
          if (connection.isUsable) this.#keep(connection);
          this.#end(call, answer);
        },
        failed: (reason, isUnanswered) => this.#hasFailed(call, reason, isUnanswered),
      });
    } catch (error) {
      // A malformed address.
      this.#giveUp(call, this.#unavailable(error));
    }
  }

  /** Any request may come twice: the same bytes under the same id, or a question (R24). */
  #hasFailed(call: Call, reason: Error, isUnanswered: boolean): void {
    if (!isUnanswered || call.isAgain) {
      this.#end(call, this.#unavailable(reason));
      return;
    }
    call.isAgain = true;
    // Others that were kept may have been closed with it.
    this.#send(call);
  }

  #connect(call: Call): PeerConnection {
    const connection = new PeerConnection(this.#address, {
      dial: this.#dial,
      onReady: () => this.#removeLimit(connection),
      onGone: () => this.#forget(connection),
    });
    const late = new Error(`no connection within ${LIMITS.chunkConnectMaxMs} ms`);
    const deadline = this.#deadlines.add(LIMITS.chunkConnectMaxMs, () => this.#giveUp(call, late));
    this.#limits.set(connection, deadline);
    return connection;
  }

  #takeIdle(): PeerConnection | undefined {
    const connection = this.#idle.pop();
    if (connection !== undefined) this.#removeLimit(connection);
    return connection;
  }

  #keep(connection: PeerConnection): void {
    this.#idle.push(connection);
    const deadline = this.#deadlines.add(LIMITS.chunkIdleMaxMs, () => connection.destroy());
    this.#limits.set(connection, deadline);
  }

  #forget(connection: PeerConnection): void {
    this.#removeLimit(connection);
    const at = this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
  }

  #removeLimit(connection: PeerConnection): void {
    this.#deadlines.remove(this.#limits.get(connection));
    this.#limits.delete(connection);
  }

  #abort(call: Call): void {
    if (this.#waiting.delete(call)) call.end(NO_LONGER_WANTED);
    else this.#giveUp(call, NO_LONGER_WANTED);
  }

  #giveUp(call: Call, reason: Error): void {
    call.connection?.destroy();
    this.#end(call, reason instanceof AppError ? reason : this.#unavailable(reason));
  }

  #end(call: Call, outcome: PeerAnswer | Error): void {
    this.#deadlines.remove(call.deadline);
    this.#underWay.delete(call);
    call.end(outcome);
    const [next] = this.#waiting;
    if (next === undefined || this.#underWay.size >= LIMITS.chunkConnectionsPerNode) return;
    this.#waiting.delete(next);
    this.#start(next);
  }

  #unavailable(cause: unknown): AppError {
    return new AppError('ServiceUnavailable', { cause: new Error(`node ${this.#address}`, { cause }) });
  }
}
