// Takes in the body of one request, piece by piece, under back-pressure. It never destroys the request, because the
// connection must live on for the answer; it asks for the body (100 Continue) only when somebody reads; and it knows
// since when it waits for the client, so that slow ones can be told off (server.ts). Framing of S3 is not known here.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { BufferQueue } from '../../base/async/buffer-queue.ts';
import type { FairShare, SharePath } from '../../base/async/fair-share.ts';
import type { ReadTurns } from '../../base/async/read-turns.ts';
import { freeMemory } from '../../base/free-memory.ts';
import type { ClockPort } from '../../ports/clock.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { sharePathOf, type Tenant } from '../../types/tenant.ts';
import { ParsedRequest } from './parsed-request.ts';

const CONTINUE = /(?:^|\W)100-continue(?:$|\W)/i;

/** Bytes that have arrived on all connections and wait for their readers, beyond what one read gives: shared by tenant. */
export type IntakeQueues = FairShare;

/** One read of a socket gives so much at most. */
export const READ_BYTES = 64 * 1024;
/**
 * What begins at the end of a body (a command of a fraction of a millisecond) counts as so many bytes that are read; work on a
 * whole document, of some ms, as so many, and a share of its size.
 */
const END_COST_BYTES = 32 * 1024;
const DOCUMENT_COST_BYTES = 256 * 1024;
const DOCUMENT_COST_SHARE = 1 / 4;
export interface BodyIntakeOptions {
  request: IncomingMessage;
  response: ServerResponse;
  clock: ClockPort;
  queues: IntakeQueues;
  reads: ReadTurns;
  /** Whose share of the queues it takes; asked for once somebody reads. */
  tenant(): Tenant;
  /** A reader begins to wait for the client, or has waited. */
  onWait(isWaiting: boolean): void;
}

export class BodyIntake {
  /** Content-Length; undefined if absent. */
  readonly declaredBytes: number | undefined;
  /** A body is announced, be it empty. */
  readonly isExpected: boolean;
  /** The client waits for 100 Continue before it sends its body. */
  awaitsContinue: boolean;
  /** On the wire, framing of chunks included. */
  receivedBytes = 0;
  /** Everything has arrived and been read. */
  isAtEnd: boolean;
  /** Monotonic ms since when a reader waits for the client; undefined while nobody waits. */
  waitingSinceMs: number | undefined;
  /** Monotonic ms of the last byte. */
  lastByteAtMs: number;

  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #clock: ClockPort;
  readonly #queues: IntakeQueues;
  readonly #reads: ReadTurns;
  readonly #tenant: () => Tenant;
  readonly #onWait: (isWaiting: boolean) => void;
  #path: SharePath = [];
  /** What has arrived and waits for its reader. */
  readonly #queue = new BufferQueue();
  /** Of the queue, as the tenant's share knows it. */
  #countedBytes = 0;
  #readBytes = 0;
  #isListening = false;
  /** It has to wait for a later turn of the loop before it takes more. */
  #waitsForTurn = false;
  #hasEnded = false;
  #failure: AppError | undefined;
  #wake: (() => void) | undefined;

  constructor(options: BodyIntakeOptions) {
    const { request, response, clock, queues, reads, tenant, onWait } = options;
    const length = request.headers['content-length'];
    this.#request = request;
    this.#response = response;
    this.#clock = clock;
    this.#queues = queues;
    this.#reads = reads;
    this.#tenant = tenant;
    this.#onWait = onWait;
    this.declaredBytes = length === undefined ? undefined : Number(length);
    this.isExpected = length !== undefined || request.headers['transfer-encoding'] !== undefined;
    this.isAtEnd = !this.isExpected || this.declaredBytes === 0;
    this.awaitsContinue =
      !this.isAtEnd && request.httpVersion === '1.1' && CONTINUE.test(request.headers.expect ?? '');
    this.lastByteAtMs = clock.monotonicMs();
  }

  /**
   * The next piece, or undefined at the end. Throws what `fail` was given, IncompleteBody when the client leaves. Who
   * reads while another waits takes over: the other one has been abandoned by a handler that failed meanwhile.
   */
  async read(): Promise<Buffer | undefined> {
    if (this.isAtEnd) return undefined;
    this.#start();
    let hasWaited = false;
    while (this.#queue.sizeBytes === 0) {
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#hasEnded) {
        if (hasWaited) await this.#reads.enter(this.#path, END_COST_BYTES);
        this.isAtEnd = true;
        return undefined;
      }
      await this.#wait();
      hasWaited = true;
    }
    // The last bytes of many bodies may come at once, and what begins with each is no part of the reads that take turns.
    const isEnd = this.#hasEnded || this.#readBytes + this.#queue.sizeBytes === this.declaredBytes;
    if (isEnd && hasWaited) await this.#reads.enter(this.#path, END_COST_BYTES);
    const buffer = this.#queue.shift();
    // The answer went out, or its client away, while others had their turns: what had come is dropped.
    if (buffer === undefined) throw this.#failure ?? new AppError('IncompleteBody');
    this.#count();
    this.#readBytes += buffer.length;
    // The end of a body of known size need not be waited for.
    if (this.#readBytes === this.declaredBytes) this.isAtEnd = true;
    this.#goOn();
    return buffer;
  }

  /**
   * Reads on and drops what comes, up to `bytesMax`. True when that was the rest of the body. A body of very small chunks is
   * not read on: dropping it costs more than its client's answer is worth.
   */
  async discard(bytesMax: number): Promise<boolean> {
    try {
      for (let leftBytes = bytesMax; leftBytes >= 0; ) {
        const buffer = await this.read();
        if (buffer === undefined) return true;
        leftBytes -= buffer.length;
        freeMemory(buffer);
        if (this.#isInSmallChunks) return false;
      }
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
    }
    return false;
  }

  /** Resolves when it is the tenant's turn to have the thread for some ms, for what the body's bytes have in them. */
  turn(): Promise<void> {
    return this.#reads.wait(this.#path);
  }

  /** Resolves when it is the tenant's turn for work of some ms on a whole document of this size. */
  async documentTurn(sizeBytes: number): Promise<void> {
    await this.#reads.enter(this.#path, DOCUMENT_COST_BYTES + sizeBytes * DOCUMENT_COST_SHARE);
  }

  /** Ends the body for its readers, now and later. */
  fail(error: AppError): void {
    this.#failure ??= error;
    this.#wake?.();
  }

  #start(): void {
    if (this.awaitsContinue) {
      this.awaitsContinue = false;
      this.#response.writeContinue();
    }
    if (this.#isListening) return;
    this.#isListening = true;
    // Memory is returned to the tenant from which it was taken, even if the request was authenticated meanwhile.
    this.#path = sharePathOf(this.#tenant());
    const request = this.#request;
    request.on('data', this.#onBuffer);
    request.on('end', () => {
      this.#hasEnded = true;
      this.#wake?.();
    });
    // 'close' also follows a good end; a failure then changes nothing for readers.
    const cut = () => this.fail(new AppError('IncompleteBody'));
    request.on('error', cut);
    request.on('close', () => {
      if (!this.#hasEnded) cut();
    });
    // Who left before anybody read: there will be no event any more.
    if (request.destroyed) cut();
    // Nobody reads what is left when the answer is out.
    this.#response.once('close', () => {
      // Who reads yet must not take what has come for the whole, nor wait: the rest is dropped.
      if (this.#queue.sizeBytes > 0 || !this.#hasEnded) cut();
      for (const buffer of this.#queue.takeAll()) freeMemory(buffer);
      this.#count();
    });
  }

  readonly #onBuffer = (buffer: Buffer): void => {
    if (this.#response.closed) return;
    this.#take(buffer);
    this.#takeTurn(buffer.length);
    if (this.#waitsForTurn || this.#isFull()) this.#request.pause();
  };

  #take(buffer: Buffer): void {
    this.#queue.add(buffer);
    this.#count();
    this.receivedBytes += buffer.length;
    this.lastByteAtMs = this.#clock.monotonicMs();
    this.#wake?.();
  }

  #takeTurn(bytes: number): void {
    if (this.#waitsForTurn) return;
    this.#waitsForTurn = !this.#reads.mayGoOn(this.#path, bytes, () => {
      this.#waitsForTurn = false;
      this.#goOn();
    });
  }

  get #isInSmallChunks(): boolean {
    return this.#request instanceof ParsedRequest && this.#request.isInSmallChunks;
  }

  /** Takes more, if there is room. */
  #goOn(): void {
    if (this.#response.closed || this.#waitsForTurn || this.#isFull()) return;
    if (this.#request.isPaused()) this.#request.resume();
  }

  /** Counts what waits beyond one read in the tenant's share. */
  #count(): void {
    const bytes = Math.max(0, this.#queue.sizeBytes - READ_BYTES);
    if (bytes > this.#countedBytes) this.#queues.take(this.#path, bytes - this.#countedBytes);
    else if (bytes < this.#countedBytes) this.#queues.giveBack(this.#path, this.#countedBytes - bytes);
    this.#countedBytes = bytes;
  }

  /** Whether the client is to wait. */
  #isFull(): boolean {
    // Beyond its tenant's share a connection keeps what one read gave: without it nothing would come at all.
    const isWithinShare = this.#queues.mayTake(this.#path, READ_BYTES);
    return this.#queue.sizeBytes >= (isWithinShare ? LIMITS.intakeQueueBytesMax : 1);
  }

  async #wait(): Promise<void> {
    this.waitingSinceMs = this.#clock.monotonicMs();
    this.#onWait(true);
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = undefined;
    this.waitingSinceMs = undefined;
    this.#onWait(false);
  }
}
