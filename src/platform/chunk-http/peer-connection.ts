// One connection to a peer, HTTP/1.1 with one request at a time: the request leaves in one write, an answer's body is read
// by the kernel straight into its place. Whatever is not as it must be ends the connection: what comes after it on the
// same bytes could be anything. Who asks again, and when a wait ends, is peer-pool.ts's.
import type { Socket } from 'node:net';
import { EMPTY_BYTES } from '../../base/bytes/bytes.ts';
import { partEnd } from '../../base/bytes/tls-parts.ts';
import { LIMITS } from '../../types/limits.ts';
import { type AnswerHead, HEAD_END, parseAnswerHead } from './answer-head.ts';
import type { Dial } from './dial.ts';
import { TLS_PART_BYTES } from './wire.ts';

export interface PeerRequest {
  /** As it goes out, with the blank line at its end; asked anew for each attempt. */
  head(): string;
  body: Uint8Array | undefined;
  /** Of HEAD: a length is announced, and no byte comes. */
  isAnswerBare: boolean;
  /** More ends the connection. */
  answerBytesMax: number;
  /** Why an answer is not to be believed; undefined: it is. Asked before a byte of its body is taken. */
  problemOf(head: AnswerHead): string | undefined;
}

export interface PeerAnswer {
  head: AnswerHead;
  bytes: Uint8Array;
}

/** Called with the end of a request, once, when nothing uses its body any more. */
export interface Asker {
  answered(answer: PeerAnswer): void;
  /** `isUnanswered`: the connection has served before, and ended before a byte of this answer came. */
  failed(reason: Error, isUnanswered: boolean): void;
}

interface Exchange {
  request: PeerRequest;
  asker: Asker;
  isWriting: boolean;
  head: AnswerHead | undefined;
  bytes: Uint8Array;
  atBytes: number;
  isAnswered: boolean;
}

export class PeerConnection {
  readonly #socket: Socket;
  /** Called once, when the connection is of no use any more. */
  readonly #onGone: (connection: PeerConnection) => void;
  /** Takes heads, and what comes of a body with them. */
  readonly #received = Buffer.allocUnsafeSlow(LIMITS.peerHeaderBytesMax);
  #receivedBytes = 0;
  #exchange: Exchange | undefined;
  #answeredCount = 0;
  #isReady = false;
  #isGone = false;
  #error: Error | undefined;

  /** Begins to connect. */
  constructor(
    address: string,
    { dial, onReady, onGone }: { dial: Dial; onReady(): void; onGone(gone: PeerConnection): void },
  ) {
    this.#onGone = onGone;
    const { socket, readyEvent } = dial(address, {
      buffer: () => this.#place(),
      callback: (sizeBytes) => {
        this.#hasReceived(sizeBytes);
        return true;
      },
    });
    this.#socket = socket;
    socket.once(readyEvent, () => {
      this.#isReady = true;
      onReady();
      if (this.#exchange !== undefined) this.#write(this.#exchange);
    });
    socket.on('error', (error) => {
      this.#error = error;
    });
    // The other half is of no use alone.
    socket.once('end', () => socket.destroy());
    socket.once('close', () => this.#hasClosed());
  }

  /** Whether it may take a request. */
  get isUsable(): boolean {
    return !this.#isGone && this.#exchange === undefined;
  }

  send(request: PeerRequest, asker: Asker): void {
    const exchange: Exchange = {
      request,
      asker,
      isWriting: true,
      isAnswered: false,
      head: undefined,
      bytes: EMPTY_BYTES,
      atBytes: 0,
    };
    this.#exchange = exchange;
    this.#receivedBytes = 0;
    if (this.#isReady) this.#write(exchange);
  }

  /** At once, without callbacks: nothing uses a request's body when it returns. */
  destroy(): void {
    this.#exchange = undefined;
    this.#leave();
  }

  #write(exchange: Exchange): void {
    const { body } = exchange.request;
    const written = () => this.#hasWritten(exchange);
    this.#socket.cork();
    if (body === undefined || body.length === 0)
      this.#socket.write(exchange.request.head(), 'latin1', written);
    else {
      this.#socket.write(exchange.request.head(), 'latin1');
      this.#writeBody(body, 0, written);
    }
    this.#socket.uncork();
  }

  #writeBody(body: Uint8Array, fromBytes: number, written: () => void): void {
    const toBytes = partEnd(this.#socket, body, { fromBytes, partBytes: TLS_PART_BYTES });
    this.#socket.write(body.subarray(fromBytes, toBytes), (error) => {
      if (error || toBytes === body.length || this.#isGone) written();
      else this.#writeBody(body, toBytes, written);
    });
  }

  #hasWritten(exchange: Exchange): void {
    exchange.isWriting = false;
    if (exchange === this.#exchange && exchange.isAnswered) this.#end(exchange);
  }

  /** Where the next bytes go; never nowhere. */
  #place(): Uint8Array {
    const exchange = this.#exchange;
    if (exchange !== undefined && exchange.atBytes < exchange.bytes.length)
      return exchange.bytes.subarray(exchange.atBytes);
    const room = this.#received.subarray(this.#receivedBytes);
    return room.length > 0 ? room : this.#received;
  }

  #hasReceived(sizeBytes: number): void {
    const exchange = this.#exchange;
    if (this.#isGone) return;
    if (exchange === undefined || exchange.isAnswered) {
      // Nobody has asked, or it goes on behind its end.
      this.#fail('bytes that are no answer');
      return;
    }
    if (exchange.head === undefined) {
      const searchedBytes = this.#receivedBytes;
      this.#receivedBytes += sizeBytes;
      const problem = this.#readHead(exchange, searchedBytes);
      if (problem !== undefined) this.#fail(problem);
    } else exchange.atBytes += sizeBytes;
    if (exchange.head !== undefined && exchange.atBytes === exchange.bytes.length)
      this.#hasAnswered(exchange);
  }

  /** Gives what is wrong with it; it may not be whole yet. */
  #readHead(exchange: Exchange, searchedBytes: number): string | undefined {
    const received = this.#received.subarray(0, this.#receivedBytes);
    const endBytes = received.indexOf(HEAD_END, Math.max(0, searchedBytes - HEAD_END.length + 1));
    if (endBytes === -1)
      return received.length === this.#received.length ? 'the head of the answer is too long' : undefined;
    const head = parseAnswerHead(received.toString('latin1', 0, endBytes));
    if (head === undefined) return 'the answer is malformed';
    const { request } = exchange;
    const problem = request.problemOf(head);
    if (problem !== undefined) return problem;
    if (head.sizeBytes === undefined) return 'the answer does not tell its length';
    const bodyBytes = request.isAnswerBare ? 0 : head.sizeBytes;
    if (bodyBytes > request.answerBytesMax) return 'the answer is too long';
    const begun = received.subarray(endBytes + HEAD_END.length);
    if (begun.length > bodyBytes) return 'the answer is longer than it says';
    exchange.head = head;
    this.#receivedBytes = 0;
    if (bodyBytes > 0) exchange.bytes = Buffer.allocUnsafeSlow(bodyBytes);
    exchange.bytes.set(begun);
    exchange.atBytes = begun.length;
    return undefined;
  }

  #hasAnswered(exchange: Exchange): void {
    exchange.isAnswered = true;
    // An early answer: what is still on its way out is dropped by the peer, and until then used by the socket.
    if (!exchange.isWriting || exchange.head?.isLast === true) this.#end(exchange);
  }

  #end({ head, bytes, asker }: Exchange): void {
    this.#exchange = undefined;
    this.#answeredCount++;
    if (head === undefined) return;
    if (head.isLast) this.#leave();
    asker.answered({ head, bytes });
  }

  #fail(problem: string): void {
    const exchange = this.#exchange;
    if (exchange?.isAnswered === true) {
      this.#leave();
      this.#end(exchange);
      return;
    }
    this.destroy();
    exchange?.asker.failed(new Error(problem), false);
  }

  #hasClosed(): void {
    this.#leave();
    const exchange = this.#exchange;
    if (exchange === undefined) return;
    if (exchange.isAnswered) {
      this.#end(exchange);
      return;
    }
    this.#exchange = undefined;
    const isUnanswered = this.#answeredCount > 0 && exchange.head === undefined && this.#receivedBytes === 0;
    const what = exchange.head === undefined ? 'there was no answer' : 'the answer ended early';
    exchange.asker.failed(new Error(what, { cause: this.#error }), isUnanswered);
  }

  #leave(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#socket.destroy();
    this.#onGone(this);
  }
}
