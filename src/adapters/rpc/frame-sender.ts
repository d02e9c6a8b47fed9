// What waits to be sent on one stream: messages gather into frames, one frame is under way at a time, so the busier the
// stream, the fewer and larger its frames (R20). Bounded in bytes. Knows neither the stream nor what a message means.
import { LIMITS } from '../../model/limits.ts';

export interface Batch {
  numbers: number[];
  payloads: Uint8Array[];
}

/** Hands a frame to the stream and says when the transport has taken it. An empty batch is a frame too. */
export type WriteFrame = (batch: Batch, onTaken: () => void) => void;

export interface FrameSender {
  /** Sends at the end of this turn of the event loop. False: beyond the bound, not taken. Numbers are unique. */
  send(number: number, payload: Uint8Array): boolean;
  /** A frame soon, though there may be no message for it. */
  sendEmpty(): void;
  /** True when the message had not left yet; it never will. */
  withdraw(number: number): boolean;
  /** Of messages that the transport has not taken. */
  unsentBytes(): number;
  /** The stream is there: what has gathered goes out. */
  attach(write: WriteFrame): void;
  /** The stream is gone; what waits stays to be withdrawn, and nothing more is taken. */
  close(): void;
}

export function createFrameSender(options: { queueBytesMax: number; onTaken?: () => void }): FrameSender {
  const queue = new Map<number, Uint8Array>();
  let queuedBytes = 0;
  let underWayBytes = 0;
  let isUnderWay = false;
  let isScheduled = false;
  let wantsEmpty = false;
  let isClosed = false;
  let write: WriteFrame | undefined;

  function schedule(): void {
    if (isScheduled || isUnderWay || isClosed || write === undefined) return;
    isScheduled = true;
    // After everything that this turn of the event loop still has to say.
    setImmediate(flush);
  }

  function flush(): void {
    isScheduled = false;
    if (isClosed || write === undefined || (queue.size === 0 && !wantsEmpty)) return;
    wantsEmpty = false;
    isUnderWay = true;
    const batch = takeBatch();
    write(batch, () => {
      isUnderWay = false;
      underWayBytes = 0;
      if (isClosed) return;
      if (queue.size > 0 || wantsEmpty) schedule();
      options.onTaken?.();
    });
  }

  function takeBatch(): Batch {
    const batch: Batch = { numbers: [], payloads: [] };
    for (const [number, payload] of queue) {
      if (underWayBytes > 0 && underWayBytes + payload.length > LIMITS.rpcFrameBytes) break;
      batch.numbers.push(number);
      batch.payloads.push(payload);
      queue.delete(number);
      queuedBytes -= payload.length;
      underWayBytes += payload.length;
    }
    return batch;
  }

  return {
    send(number, payload) {
      const unsentBytes = queuedBytes + underWayBytes;
      if (isClosed || (unsentBytes > 0 && unsentBytes + payload.length > options.queueBytesMax)) return false;
      queue.set(number, payload);
      queuedBytes += payload.length;
      schedule();
      return true;
    },
    sendEmpty() {
      wantsEmpty = true;
      schedule();
    },
    withdraw(number) {
      const payload = queue.get(number);
      if (payload === undefined) return false;
      queuedBytes -= payload.length;
      return queue.delete(number);
    },
    unsentBytes: () => queuedBytes + underWayBytes,
    attach(stream) {
      write = stream;
      if (queue.size > 0 || wantsEmpty) schedule();
    },
    close() {
      isClosed = true;
    },
  };
}
