// Lets work through while its bytes together stay below a limit; the rest waits in the order of its coming. A bound for
// what is on its way to something that would refuse more.

export interface ByteGate {
  /**
   * Resolves when `sizeBytes` may pass; what is larger than the limit passes alone. Each is followed by a `leave`. `giveUp` is
   * asked for where it has to wait; when that aborts, it rejects with its reason, and is not followed by one.
   */
  enter(sizeBytes: number, giveUp?: () => AbortSignal): Promise<void>;
  leave(sizeBytes: number): void;
}

export function createByteGate(limitBytes: number): ByteGate {
  const waiting = new Set<{ sizeBytes: number; resolve(): void }>();
  let insideBytes = 0;
  const hasRoom = (sizeBytes: number) => insideBytes === 0 || insideBytes + sizeBytes <= limitBytes;
  function letIn(): void {
    for (const next of waiting) {
      if (!hasRoom(next.sizeBytes)) return;
      waiting.delete(next);
      insideBytes += next.sizeBytes;
      next.resolve();
    }
  }
  return {
    async enter(sizeBytes, giveUp) {
      if (waiting.size === 0 && hasRoom(sizeBytes)) {
        insideBytes += sizeBytes;
        return;
      }
      const signal = giveUp?.();
      signal?.throwIfAborted();
      await new Promise<void>((resolve, reject) => {
        const one = { sizeBytes, resolve };
        waiting.add(one);
        signal?.addEventListener('abort', () => {
          if (!waiting.delete(one)) return;
          reject(signal.reason);
          letIn();
        });
      });
    },
    leave(sizeBytes) {
      insideBytes -= sizeBytes;
      letIn();
    },
  };
}
