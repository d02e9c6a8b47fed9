// What a client sends over TLS, on its way to Node's TLS. That decrypts all of a read before anything else runs, and a read of 64 KiB
// holds thousands of records: with a byte each they take 12 ms, and as many orders to change the keys (RFC 8446 4.6.3), of which no
// code of ours ever hears, 30 ms. So records are counted before they are decrypted. Many small ones are handed over some at a time,
// in turns of tenants; what is left of a read waits here, and the socket is not read meanwhile. Nor are small ones taken from a
// client that does not take what was written to it: each of them may have an answer, which TLS would keep for it. Until hands are
// shaken each read waits for its turn: a record of a handshake may cost a signature, wherever it was cut, or, where clients have
// certificates, the check of a whole chain of them.
import { Duplex } from 'node:stream';
import { freeMemory } from '../free-memory.ts';
import { SentCertificates } from './sent-certificates.ts';

/** The two ends of a connection. */
export interface SocketEnds {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  readonly remoteFamily?: string | undefined;
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
  readonly localFamily?: string | undefined;
}

/** A socket of Node's `net`, as a server has taken it. */
export type TakenSocket = Duplex & SocketEnds & { setTimeout(ms: number, then?: () => void): unknown };

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
/**
 * Of what is not encrypted until hands are shaken: hellos, of 0.3 to 4 KB each. Of one of 64 KB that names thousands of groups
 * and keys each key is looked for among all groups, which takes 35 ms.
 */
const HELLO_BYTES_MAX = 16 * 1024;
/** Kinds of records (RFC 8446 5.1). */
const ENCRYPTED = 23;
/** A change of the cipher, an alert, and what is encrypted, with which a client without a certificate ends its part: no signature. */
const CHEAP_KINDS = new Set([20, 21, ENCRYPTED]);

export interface RecordTurns {
  /** More of a handshake is about to be taken. False: it is to wait; `goOn` is called when it is its turn. */
  mayShakeHands(goOn: () => void): boolean;
  /**
   * So many small records are about to be decrypted. False: they are to wait, as above. Absent: whoever has shaken hands is
   * trusted, and none is counted.
   */
  mayDecrypt?(recordCount: number, goOn: () => void): boolean;
  /**
   * Where clients have certificates (TLS 1.3): who has sent so many encrypted bytes and not shaken hands yet loses the
   * connection, as who sends certificates with unusual keys. A chain of a hundred certificates takes 0.3 s, and eight keys of
   * curves of their own 1 s.
   */
  readonly certificateBytesMax?: number;
  /** Hands are shaken. */
  onSecured?(): void;
  /** So many bytes wait. Undefined: its tenant has too many of them. Else it is called when they wait no more. */
  hold(sizeBytes: number): (() => void) | undefined;
}

/** How far what came is cut into records. */
interface Place {
  /** In the record that has begun: of its head, and of what follows it. */
  headAt: number;
  leftBytes: number;
  kind: number;
  /** So many bytes may still come before hands are shaken: encrypted ones, and others. */
  certificateBytes: number;
  helloBytes: number;
}

/** To be given to Node's TLS server instead of the socket that it was taken with. It ends with the socket, and the socket with it. */
export class TlsRecords extends Duplex {
  readonly #socket: TakenSocket;
  readonly #turns: RecordTurns;
  /** What was read and is not handed over yet. */
  #rest: Buffer[] = [];
  #place: Place;
  readonly #certificates: SentCertificates | undefined;
  #secured: TakenSocket | undefined;
  #hasEnded = false;
  #waits = false;
  /** The next slice is asked for already, and has its turn. */
  #hasTurn = false;
  #giveBack: (() => void) | undefined;

  constructor(socket: TakenSocket, turns: RecordTurns) {
    super({ allowHalfOpen: socket.allowHalfOpen });
    this.#socket = socket;
    this.#turns = turns;
    const { certificateBytesMax: certificateBytes = Number.POSITIVE_INFINITY } = turns;
    this.#place = { headAt: 0, leftBytes: 0, kind: 0, certificateBytes, helloBytes: HELLO_BYTES_MAX };
    if (turns.certificateBytesMax !== undefined) this.#certificates = new SentCertificates();
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

  /** What is decrypted comes on it, once hands are shaken. */
  get secured(): TakenSocket | undefined {
    return this.#secured;
  }

  /** A line of the server's log of keys, and the cipher suite by then. */
  learnKeys(line: string, suite: string): void {
    this.#certificates?.learn(line, suite);
  }

  /** Hands are shaken. */
  secure(secured: TakenSocket): void {
    this.#secured = secured;
    this.#place.certificateBytes = Number.POSITIVE_INFINITY;
    this.#place.helloBytes = Number.POSITIVE_INFINITY;
    this.#turns.onSecured?.();
  }

  /** The two ends, for the socket of TLS, which knows none of them by itself. */
  get ends(): SocketEnds {
    const { remoteAddress, remotePort, remoteFamily, localAddress, localPort, localFamily } = this.#socket;
    return { remoteAddress, remotePort, remoteFamily, localAddress, localPort, localFamily };
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
      if (this.#secured === undefined && this.#certificates?.mayPass(slice) === false) {
        this.destroy();
        break;
      }
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
    const isOpening = this.#secured === undefined;
    const { certificateBytesMax, mayDecrypt } = this.#turns;
    if (!isOpening && mayDecrypt === undefined) return bytes;
    const place = { ...this.#place };
    const { to, count, isCheap } = cut(bytes, place);
    if (to === 0) {
      // What was handed over has been looked at, unless nobody has taken it yet.
      if (this.readableLength === 0) this.destroy();
      return undefined;
    }
    const isHandshake = isOpening && (certificateBytesMax !== undefined || !isCheap);
    if ((isHandshake || count > FEW_RECORDS) && !this.#hasOwnTurn(isHandshake, count)) return undefined;
    this.#hasTurn = false;
    this.#place = place;
    return to === bytes.length ? bytes : bytes.subarray(0, to);
  }

  #hasOwnTurn(isHandshake: boolean, count: number): boolean {
    // "drain" tells when it has taken it.
    if (this.#socket.writableNeedDrain) return false;
    if (this.#hasTurn) return true;
    const goOn = () => {
      this.#waits = false;
      this.#hasTurn = true;
      this.#handOver();
    };
    const { mayDecrypt } = this.#turns;
    this.#waits =
      isHandshake || mayDecrypt === undefined
        ? !this.#turns.mayShakeHands(goOn)
        : !mayDecrypt.call(this.#turns, count, goOn);
    return !this.#waits;
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

/** Up to where a slice goes that has no more small records than one may have, how many these are, and whether all are cheap. */
function cut(bytes: Buffer, place: Place): { to: number; count: number; isCheap: boolean } {
  let count = 0;
  let at = 0;
  let isCheap = true;
  while (at < bytes.length && count < SLICE_RECORDS) {
    if (place.headAt < HEAD_BYTES) {
      const byte = bytes[at++] ?? 0;
      if (place.headAt === 0) place.kind = byte;
      if (place.headAt === 3) place.leftBytes = byte * 256;
      if (place.headAt === 4) place.leftBytes += byte;
      place.headAt++;
      isCheap &&= CHEAP_KINDS.has(place.kind);
      if (place.headAt < HEAD_BYTES) continue;
      if (place.leftBytes < SMALL_BYTES) count++;
    } else {
      const most = place.kind === ENCRYPTED ? 'certificateBytes' : 'helloBytes';
      if (place[most] === 0) break;
      const step = Math.min(place.leftBytes, bytes.length - at, place[most]);
      at += step;
      place.leftBytes -= step;
      place[most] -= step;
      isCheap &&= CHEAP_KINDS.has(place.kind);
    }
    if (place.leftBytes === 0) place.headAt = 0;
  }
  return { to: at, count, isCheap };
}

type SocketOfHandle = TakenSocket & {
  _handle?: { reading: boolean; readStop(): void; readStart(): void } | null;
};

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
