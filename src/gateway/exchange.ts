// One request and its answer on a connection: what the protocols above (S3, operator API, health) have in common.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ClockPort } from '../ports/clock.ts';
import { BodyIntake, type IntakeQueues } from './body-intake.ts';
import type { ClientView, ClientViewer } from './client-view.ts';
import { type RequestHeaders, readHeaders } from './request-headers.ts';

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The request line's target, as sent. */
  readonly uri: string;
  readonly headers: RequestHeaders;
  readonly client: ClientView;
  readonly body: BodyIntake;
  /** The client went away before its answer was complete. */
  readonly isAborted: boolean;
  /** Aborts then. */
  readonly signal: AbortSignal;
  /** Resolves when the answer is complete or the client gone. */
  readonly closed: Promise<void>;
  /** Monotonic ms. */
  readonly startedAtMs: number;
  /** Monotonic ms of the first byte of the answer. */
  answeredAtMs: number | undefined;
  /** Bytes of the answer's body handed to the connection. */
  sentBytes: number;
  /** The connection ends with this answer. */
  mustClose: boolean;
  /** It is answered, and only listened to until its client has done with sending. */
  isLingering: boolean;
  /** Monotonic ms since when the answer waits for the client to read; undefined while it does not. */
  sendingSinceMs: number | undefined;
}

export function openExchange(options: {
  request: IncomingMessage;
  response: ServerResponse;
  viewer: ClientViewer;
  clock: ClockPort;
  queues: IntakeQueues;
}): Exchange {
  const { request, response, clock, queues } = options;
  const headers = readHeaders(request.rawHeaders);
  let isAborted = false;
  /** Made when somebody asks for its signal: most requests end without. */
  let gone: AbortController | undefined;
  const closed = new Promise<void>((resolve) => {
    response.once('close', () => {
      isAborted = !response.writableFinished;
      if (isAborted) gone?.abort();
      resolve();
    });
  });
  return {
    request,
    response,
    uri: request.url ?? '',
    headers,
    client: options.viewer.view(request.socket, headers),
    body: new BodyIntake({ request, response, clock, queues }),
    get isAborted() {
      return isAborted;
    },
    get signal() {
      if (isAborted) return AbortSignal.abort();
      gone ??= new AbortController();
      return gone.signal;
    },
    closed,
    startedAtMs: clock.monotonicMs(),
    answeredAtMs: undefined,
    sentBytes: 0,
    mustClose: false,
    isLingering: false,
    sendingSinceMs: undefined,
  };
}
