// What waits to be sent on one stream: messages gather into frames, one frame is under way at a time, so the busier the
// stream, the fewer and larger its frames (R20). Bounded in bytes. Knows neither the stream nor what a message means.
import { LIMITS } from '../../types/limits.ts';

export interface Batch {
  numbers: number[];
  payloads: Uint8Array[];
}

/** Hands a frame to the stream and says when the transport has taken it. An empty batch is a frame too. */
export type WriteFrame = (batch: Batch, onTaken: () => void) => void;

export interface FrameSender {
  /**
   * Sends at the end of this turn of the event loop. False: beyond the bound, not taken. Numbers are unique. What is
   * urgent goes before all that is not, however much of that waits, and has a bound of its own: one frame.
   */
  send(number: number, payload: Uint8Array, options?: { isUrgent: boolean }): boolean;
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

interface Queue {
  readonly payloads: Map<number, Uint8Array>;
  sizeBytes: number;
}

export function createFrameSender(options: { queueBytesMax: number; onTaken?: () => void }): FrameSender {
  const urgent: Queue = { payloads: new Map(), sizeBytes: 0 };
  const ordinary: Queue = { payloads: new Map(), sizeBytes: 0 };
  const queues = [urgent, ordinary];
  let underWayBytes = 0;
  let isUnderWay = false;
  let isScheduled = false;
  let wantsEmpty = false;
  let isClosed = false;
  let write: WriteFrame | undefined;

  const hasToSend = () => wantsEmpty || queues.some(({ payloads }) => payloads.size > 0);

  function schedule(): void {
    if (isScheduled || isUnderWay || isClosed || write === undefined) return;
    isScheduled = true;
    // After everything that this turn of the event loop still has to say.
    setImmediate(flush);
  }

  function flush(): void {
    isScheduled = false;
    if (isClosed || write === undefined || !hasToSend()) return;
    wantsEmpty = false;
    isUnderWay = true;
    const batch = takeBatch();
    write(batch, () => {
      isUnderWay = false;
      underWayBytes = 0;
      if (isClosed) return;
      if (hasToSend()) schedule();
      options.onTaken?.();
    });
  }

  function takeBatch(): Batch {
    const batch: Batch = { numbers: [], payloads: [] };
    for (const queue of queues) {
      for (const [number, payload] of queue.payloads) {
        if (underWayBytes > 0 && underWayBytes + payload.length > LIMITS.rpcFrameBytes) return batch;
        batch.numbers.push(number);
        batch.payloads.push(payload);
        queue.payloads.delete(number);
        queue.sizeBytes -= payload.length;
        underWayBytes += payload.length;
      }
    }
    return batch;
  }

  return {
    send(number, payload, { isUrgent } = { isUrgent: false }) {
      const queue = isUrgent ? urgent : ordinary;
      const unsentBytes = isUrgent ? urgent.sizeBytes : ordinary.sizeBytes + underWayBytes;
      const maxBytes = isUrgent ? LIMITS.rpcFrameBytes : options.queueBytesMax;
      if (isClosed || (unsentBytes > 0 && unsentBytes + payload.length > maxBytes)) return false;
      queue.payloads.set(number, payload);
      queue.sizeBytes += payload.length;
      schedule();
      return true;
    },
    sendEmpty() {
      wantsEmpty = true;
      schedule();
    },
    withdraw(number) {
      for (const queue of queues) {
        queue.sizeBytes -= queue.payloads.get(number)?.length ?? 0;
        if (queue.payloads.delete(number)) return true;
      }
      return false;
    },
    unsentBytes: () => urgent.sizeBytes + ordinary.sizeBytes + underWayBytes,
    attach(stream) {
      write = stream;
      if (hasToSend()) schedule();
    },
    close() {
      isClosed = true;
    },
  };
}
