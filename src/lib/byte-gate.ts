// Lets work through while its bytes together stay below a limit; the rest waits in the order of its coming. A bound for
// what is on its way to something that would refuse more.

export interface ByteGate {
  /** Resolves when `sizeBytes` may pass; what is larger than the limit passes alone. Each is followed by a `leave`. */
  enter(sizeBytes: number): Promise<void>;
  leave(sizeBytes: number): void;
}

export function createByteGate(limitBytes: number): ByteGate {
  const waiting: { sizeBytes: number; resolve(): void }[] = [];
  let insideBytes = 0;
  const hasRoom = (sizeBytes: number) => insideBytes === 0 || insideBytes + sizeBytes <= limitBytes;
  return {
    async enter(sizeBytes) {
      if (waiting.length === 0 && hasRoom(sizeBytes)) insideBytes += sizeBytes;
      else await new Promise<void>((resolve) => waiting.push({ sizeBytes, resolve }));
    },
    leave(sizeBytes) {
      insideBytes -= sizeBytes;
      for (let next = waiting[0]; next !== undefined && hasRoom(next.sizeBytes); next = waiting[0]) {
        waiting.shift();
        insideBytes += next.sizeBytes;
        next.resolve();
      }
    },
  };
}
