// One request and its answer on a connection: what the protocols above (S3, operator API, health) have in common.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Patience } from '../../base/async/patience.ts';
import type { ReadTurns } from '../../base/async/read-turns.ts';
import type { ClockPort } from '../../ports/clock.ts';
import { AppError } from '../../types/errors.ts';
import { addressGroupOf, type Tenant } from '../../types/tenant.ts';
import { BodyIntake, type IntakeQueues } from './body-intake.ts';
import type { ClientView, ClientViewer } from './client-view.ts';
import { type RequestHeaders, readHeaders } from './request-headers.ts';

/** RFC 3986 3.2.1. */
const USER_INFO = /^([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i;

export interface ExchangeOptions {
  request: IncomingMessage;
  response: ServerResponse;
  viewer: ClientViewer;
  clock: ClockPort;
  queues: IntakeQueues;
  reads: ReadTurns;
  patience: Patience;
}

/** Accounts for what exchanges hold. */
export interface ExchangeWatcher {
  /** It is known which account asks. */
  onProved(exchange: Exchange): void;
  /** The answer is out, and the exchange only listened to. */
  onLingering(exchange: Exchange): void;
  /** A reader of the body begins to wait for the client, or has waited. */
  onBodyWait(exchange: Exchange, isWaiting: boolean): void;
}

export class Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The request line's target, as sent, but for a user's name and password in an absolute one: answers and logs repeat it. */
  readonly uri: string;
  readonly headers: RequestHeaders;
  readonly client: ClientView;
  readonly body: BodyIntake;
  /** How long it may wait for others. */
  readonly patience: Patience;
  /** Whom it counts against: the client's address until `proveAccount`. */
  #tenant: Tenant;
  /** Resolves when the answer is complete or the client gone. */
  readonly closed: Promise<void>;
  /** Monotonic ms. */
  readonly startedAtMs: number;
  /** Monotonic ms of the first byte of the answer. */
  answeredAtMs: number | undefined = undefined;
  /** Bytes of the answer's body handed to the connection. */
  sentBytes = 0;
  /** The connection ends with this answer. */
  mustClose: boolean;
  watcher: ExchangeWatcher | undefined = undefined;
  /** What it sends is counted with the memory of bodies. */
  isBodyMemory = false;
  /** What of an answer is made and not handed over yet, since monotonic ms; undefined while there is none. */
  ready: { readonly bytes: number; readonly sinceMs: number } | undefined = undefined;
  /** Monotonic ms since when the answer waits for the client to read; undefined while it does not. */
  sendingSinceMs: number | undefined = undefined;

  #isAborted = false;
  #isLingering = false;
  /** Made when somebody asks for its signal: most requests end without. */
  #gone: AbortController | undefined = undefined;

  constructor({ request, response, viewer, clock, queues, reads, patience }: ExchangeOptions) {
    this.patience = patience;
    this.request = request;
    this.response = response;
    this.uri = (request.url ?? '').replace(USER_INFO, '$1');
    this.headers = readHeaders(request.rawHeaders);
    this.client = viewer.view(request.socket, this.headers);
    this.#tenant = { account: undefined, address: addressGroupOf(this.client.remoteAddress) };
    this.body = new BodyIntake({
      request,
      response,
      clock,
      queues,
      reads,
      tenant: () => this.tenant,
      onWait: (isWaiting) => this.watcher?.onBodyWait(this, isWaiting),
    });
    this.startedAtMs = clock.monotonicMs();
    this.mustClose = isEndInDoubt(request);
    this.closed = new Promise((resolve) => {
      response.once('close', () => {
        this.#isAborted = !response.writableFinished;
        if (this.#isAborted) this.#gone?.abort();
        resolve();
      });
    });
  }

  /** Whom the request counts against where requests share what there is. */
  get tenant(): Tenant {
    return this.#tenant;
  }

  /** From here on it counts against the account whose signature fits, and there against who has signed. */
  proveAccount(account: string, signer: string): void {
    this.#tenant = { account, signer, address: this.#tenant.address };
    this.watcher?.onProved(this);
  }

  /** As `work`, but with ServiceUnavailable once the request has waited too long. For what changes nothing: it goes on. */
  inTime<T>(work: Promise<T>): Promise<T> {
    return this.patience.bound(work, () => new AppError('ServiceUnavailable'));
  }

  /** It is answered, and only listened to until its client has done with sending. */
  get isLingering(): boolean {
    return this.#isLingering;
  }

  beginLingering(): void {
    this.#isLingering = true;
    this.watcher?.onLingering(this);
  }

  /** The client went away before its answer was complete. */
  get isAborted(): boolean {
    return this.#isAborted;
  }

  /** Aborts then. */
  get signal(): AbortSignal {
    if (this.#isAborted) return AbortSignal.abort();
    this.#gone ??= new AbortController();
    return this.#gone.signal;
  }
}

/** Whether what follows the request on its connection may begin elsewhere than at its end. */
function isEndInDoubt({ httpVersion, headers }: IncomingMessage): boolean {
  // A relay of HTTP/1.0 may not know chunks, and see another end of the request (RFC 9112 6.1).
  if (httpVersion === '1.0' && headers['transfer-encoding'] !== undefined) return true;
  // Node drops what came in one packet with a request to upgrade: the next bytes may be from the middle of a body.
  return headers.upgrade !== undefined;
}
