// Gives the memory of large buffers back at once. A collector looks at the whole heap to find out that a body's pieces
// are not used any more; who has just used one knows it, and the next one then finds its memory still warm.

/** Below it the call costs more than what it spares. */
const FREED_BYTES_MIN = 16 * 1024;

/**
 * To be called by the only owner of `bytes`, who is done with them: they are empty afterwards. What is small, or a part
 * of a larger buffer, is left to the collector.
 */
export function freeMemory({ buffer, byteLength }: Uint8Array): void {
  if (byteLength < FREED_BYTES_MIN || byteLength !== buffer.byteLength) return;
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}
