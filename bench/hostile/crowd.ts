// Connections of an attacker: many at once, held open, read slowly, fed slowly, or looping over one request. Bounded in
// number and time, and on loopback only.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface CrowdOptions {
  /** A loopback address. */
  readonly host: string;
  readonly port: number;
  /** Where its connections come from: another loopback address than the well-behaved client's. */
  readonly localAddress: string;
}

export interface Manners {
  /** Bytes that each connection begins with. */
  readonly opening: Buffer;
  /** Then sends these, again and again. */
  readonly drip?: { readonly bytes: Buffer; readonly everyMs: number };
  /** Then sends these as fast as they are taken, so many times. */
  readonly flood?: { readonly bytes: Buffer; readonly times: number };
  /** Takes no more than this of the answer. Default: reads all. */
  readonly reads?: { readonly bytes: number; readonly everyMs: number };
}

/** Before a connection that the server has ended is opened again. */
const REOPEN_MS = 200;
/** Connections that are opened at once. */
const OPENING_MAX = 64;

export class Crowd {
  readonly #options: CrowdOptions;
  readonly #sockets = new Set<Socket>();
  readonly #stopped = new AbortController();
  readonly #work: Promise<void>[] = [];
  /** Answers by status, as far as they were read. */
  readonly answers = new Map<number, number>();
  /** Connections that were ended by the server, or were not taken. */
  endedCount = 0;

  constructor(options: CrowdOptions) {
    this.#options = options;
  }

  /** Holds `count` connections with these manners until `stop`. Resolves when all have been opened once. */
  async hold(count: number, manners: Manners): Promise<void> {
    let index = 0;
    const openSome = async () => {
      for (; index < count && !this.#isStopped; index++) {
        const socket = await this.#open(manners.reads?.bytes);
        this.#work.push(this.#behave(socket, manners));
      }
    };
    await Promise.all(Array.from({ length: Math.min(count, OPENING_MAX) }, openSome));
  }

  /** Sends `request` on `count` connections, again when its answer has come. Resolves when each has begun. */
  async loop(count: number, request: Buffer): Promise<void> {
    for (let index = 0; index < count && !this.#isStopped; index++) {
      this.#work.push(this.#repeat(await this.#open(), request));
    }
  }

  /** Opens connections and resets them, `count` at a time, each after `opening` was sent. */
  async churn(count: number, opening: Buffer): Promise<void> {
    const run = async () => {
      while (!this.#isStopped) {
        const socket = await this.#open();
        socket?.write(opening);
        await sleep(5);
        socket?.resetAndDestroy();
      }
    };
    for (let index = 0; index < count; index++) this.#work.push(run());
  }

  /** Ends everything. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(this.#work);
  }

  get #isStopped(): boolean {
    return this.#stopped.signal.aborted;
  }

  async #open(highWaterMark?: number): Promise<Socket | undefined> {
    const options = { ...this.#options, ...(highWaterMark !== undefined && { highWaterMark }) };
    const socket = connect(options);
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => {
      this.#sockets.delete(socket);
      if (!this.#isStopped) this.endedCount++;
    });
    const isOpen = await Promise.race([
      once(socket, 'connect').then(
        () => true,
        () => false,
      ),
      once(socket, 'close').then(() => false),
    ]);
    return isOpen ? socket : undefined;
  }

  async #behave(first: Socket | undefined, manners: Manners): Promise<void> {
    for (let socket = first; !this.#isStopped; socket = await this.#open(manners.reads?.bytes)) {
      if (socket !== undefined && !socket.destroyed) await this.#conduct(socket, manners);
      await this.#rest(REOPEN_MS);
      if (this.#isStopped) return;
    }
  }

  /** One connection's life, until either side ends it. */
  async #conduct(socket: Socket, { opening, drip, flood, reads }: Manners): Promise<void> {
    const closed = once(socket, 'close').catch(() => {});
    const timers: NodeJS.Timeout[] = [];
    if (reads === undefined) socket.on('data', (bytes) => this.#note(bytes));
    else timers.push(setInterval(() => void socket.read(reads.bytes), reads.everyMs));
    socket.write(opening);
    if (drip !== undefined) {
      timers.push(setInterval(() => socket.writable && socket.write(drip.bytes), drip.everyMs));
    }
    if (flood !== undefined) {
      let left = flood.times;
      const pour = () => {
        while (left-- > 0 && socket.writable) if (!socket.write(flood.bytes)) return;
      };
      socket.on('drain', pour);
      pour();
    }
    await closed;
    for (const timer of timers) clearInterval(timer);
  }

  async #repeat(first: Socket | undefined, request: Buffer): Promise<void> {
    for (let socket = first; !this.#isStopped; socket = await this.#open()) {
      if (socket === undefined) await this.#rest(REOPEN_MS);
      else await this.#exchange(socket, request);
    }
  }

  /** Requests on one connection, each behind the answer to the one before it. */
  async #exchange(socket: Socket, request: Buffer): Promise<void> {
    const closed = once(socket, 'close').catch(() => {});
    let left = -1;
    let head = '';
    socket.on('data', (bytes) => {
      let from = 0;
      if (left < 0) {
        head += bytes.toString('latin1');
        const end = head.indexOf('\r\n\r\n');
        if (end < 0) return;
        this.#note(Buffer.from(head.slice(0, 12), 'latin1'));
        const isChunked = /\r\ntransfer-encoding: *chunked/i.test(head);
        const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
        left = isChunked ? Number.POSITIVE_INFINITY : length;
        from = bytes.length - (head.length - end - 4);
        head = '';
      }
      left -= bytes.length - from;
      const isChunkedEnd = left === Number.POSITIVE_INFINITY && bytes.subarray(-5).toString() === '0\r\n\r\n';
      if (left > 0 && !isChunkedEnd) return;
      left = -1;
      if (!this.#isStopped && socket.writable) socket.write(request);
    });
    socket.write(request);
    await closed;
  }

  #note(bytes: Buffer): void {
    const status = /^HTTP\/1\.1 (\d{3})/.exec(bytes.subarray(0, 12).toString('latin1'))?.[1];
    if (status !== undefined) this.answers.set(Number(status), (this.answers.get(Number(status)) ?? 0) + 1);
  }

  async #rest(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stopped.signal }).catch(() => {});
  }
}
