// What a client sends over TLS, on its way to Node's TLS. That decrypts all of a read before anything else runs, and a read of 64 KiB
// holds thousands of records: with a byte each they take 12 ms, and as many orders to change the keys (RFC 8446 4.6.3), of which no
// code of ours ever hears, 30 ms. So records are counted before they are decrypted. Many small ones are handed over some at a time,
// in turns of tenants; what is left of a read waits here, and the socket is not read meanwhile. Nor are small ones taken from a
// client that does not take what was written to it: each of them may have an answer, which TLS would keep for it.
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { freeMemory } from '../../base/free-memory.ts';

const HEAD_BYTES = 5;
/**
 * A shorter record takes much longer than its bytes: up to 30 us. Those that fit a packet of the network, some 1,200 bytes and more,
 * are what ordinary clients send (Go begins each connection with them): a read has 54 at most, and none of them waits.
 */
const SMALL_BYTES = 1024;
/** So many small ones are handed over at once: less than 1 ms. */
const SLICE_RECORDS = 32;
/** So many are what a short request comes in. */
const FEW_RECORDS = 2;

export interface RecordTurns {
  /** So many small records are about to be decrypted. False: they are to wait; `goOn` is called when it is their turn. */
  mayDecrypt(recordCount: number, goOn: () => void): boolean;
  /** So many bytes wait. Undefined: its tenant has too many of them. Else it is called when they wait no more. */
  hold(sizeBytes: number): (() => void) | undefined;
}

/** To be given to Node's TLS server instead of the socket that it was taken with. It ends with the socket, and the socket with it. */
export class TlsRecords extends Duplex {
  /** What is decrypted comes on it, once hands are shaken. */
  secured: Socket | undefined;

  readonly #socket: Socket;
  readonly #turns: RecordTurns;
  /** What was read and is not handed over yet. */
  #rest: Buffer[] = [];
  /** In the record that has begun: of its head, and of what follows it. */
  #headAt = 0;
  #leftBytes = 0;
  #hasEnded = false;
  #waits = false;
  /** The next slice is asked for already, and has its turn. */
  #hasTurn = false;
  #giveBack: (() => void) | undefined;

  constructor(socket: Socket, turns: RecordTurns) {
    super({ allowHalfOpen: true });
    this.#socket = socket;
    this.#turns = turns;
    socket.on('data', (bytes: Buffer) => {
      this.#rest.push(bytes);
      this.#handOver();
    });
    socket.on('end', () => {
      this.#hasEnded = true;
      this.#handOver();
    });
    socket.on('drain', () => this.#handOver());
    socket.on('close', () => this.destroy());
    this.on('pause', () => stopReading(socket));
    this.on('resume', () => this.#handOver());
    socket.resume();
  }

  /** The two ends, for the socket of TLS, which knows none of them by itself. */
  get ends(): Partial<Socket> {
    const { remoteAddress, remotePort, remoteFamily, localAddress, localPort, localFamily } = this.#socket;
    return {
      remoteAddress,
      remotePort,
      remoteFamily,
      localAddress,
      localPort,
      localFamily,
    } as Partial<Socket>;
  }

  /** What comes is handed over by itself while it is wanted. */
  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send(chunk, done);
  }

  override _writev(
    chunks: readonly { readonly chunk: Buffer }[],
    done: (error?: Error | null) => void,
  ): void {
    this.#socket.cork();
    for (const [at, { chunk }] of chunks.entries()) {
      this.#send(chunk, at === chunks.length - 1 ? done : () => {});
    }
    this.#socket.uncork();
  }

  /** It is a copy, made for this: thousands of them would keep the collector at work. */
  #send(chunk: Buffer, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, (error) => {
      freeMemory(chunk);
      done(error);
    });
  }

  override _final(done: (error?: Error | null) => void): void {
    if (this.#socket.destroyed) done();
    else this.#socket.end(() => done());
  }

  override _destroy(_error: Error | null, done: (error?: Error | null) => void): void {
    this.#rest = [];
    this.#giveBack?.();
    this.#giveBack = undefined;
    this.#socket.destroy();
    done();
  }

  #handOver(): void {
    for (;;) {
      if (this.destroyed || this.#waits || this.isPaused()) break;
      const [bytes] = this.#rest;
      if (bytes === undefined) {
        this.#goOnReading();
        return;
      }
      const slice = this.#sliceOf(bytes);
      if (slice === undefined) break;
      if (slice.length === bytes.length) this.#rest.shift();
      else this.#rest[0] = bytes.subarray(slice.length);
      this.push(slice);
      // It is copied by who decrypts.
      if (this.readableLength === 0) freeMemory(slice);
    }
    this.#hold();
  }

  #goOnReading(): void {
    this.#giveBack?.();
    this.#giveBack = undefined;
    if (this.#hasEnded) this.push(null);
    else goOnReading(this.#socket);
  }

  /** The beginning of what was read that may be decrypted now. */
  #sliceOf(bytes: Buffer): Buffer | undefined {
    const place = { headAt: this.#headAt, leftBytes: this.#leftBytes };
    const { to, count } = this.#cut(bytes);
    if (count > FEW_RECORDS && !this.#mayDecrypt(count)) {
      this.#headAt = place.headAt;
      this.#leftBytes = place.leftBytes;
      return undefined;
    }
    this.#hasTurn = false;
    return to === bytes.length ? bytes : bytes.subarray(0, to);
  }

  #mayDecrypt(count: number): boolean {
    // "drain" tells when it has taken it.
    if (this.#socket.writableNeedDrain) return false;
    if (this.#hasTurn) return true;
    this.#waits = !this.#turns.mayDecrypt(count, () => {
      this.#waits = false;
      this.#hasTurn = true;
      this.#handOver();
    });
    return !this.#waits;
  }

  /** Up to where a slice goes that has no more small records than one may have, and how many these are. */
  #cut(bytes: Buffer): { to: number; count: number } {
    let count = 0;
    let at = 0;
    while (at < bytes.length && count < SLICE_RECORDS) {
      if (this.#headAt < HEAD_BYTES) {
        const byte = bytes[at++] ?? 0;
        if (this.#headAt === 3) this.#leftBytes = byte * 256;
        if (this.#headAt === 4) this.#leftBytes += byte;
        this.#headAt++;
        if (this.#headAt < HEAD_BYTES) continue;
        if (this.#leftBytes < SMALL_BYTES) count++;
      } else {
        const step = Math.min(this.#leftBytes, bytes.length - at);
        at += step;
        this.#leftBytes -= step;
      }
      if (this.#leftBytes === 0) this.#headAt = 0;
    }
    return { to: at, count };
  }

  /** What is not handed over waits: no more is read. */
  #hold(): void {
    if (this.destroyed) return;
    stopReading(this.#socket);
    if (this.#giveBack !== undefined || this.#rest.length === 0) return;
    this.#giveBack = this.#turns.hold(this.#rest.reduce((sum, { length }) => sum + length, 0));
    // Where it is we who do not read on, it may be anybody's body.
    if (this.#giveBack === undefined && !this.isPaused()) this.destroy();
  }
}

type SocketOfHandle = Socket & { _handle?: { reading: boolean; readStop(): void; readStart(): void } | null };

/** At once: a socket that is paused would read once more. */
function stopReading(socket: SocketOfHandle): void {
  socket.pause();
  if (!socket._handle?.reading) return;
  socket._handle.reading = false;
  socket._handle.readStop();
}

function goOnReading(socket: SocketOfHandle): void {
  if (socket._handle && !socket._handle.reading) {
    socket._handle.reading = true;
    socket._handle.readStart();
  }
  if (socket.isPaused()) socket.resume();
}
