// What TLS is given at once. A connection keeps memory for its longest write until it closes (Node), so a chunk that is written
// whole would be held by each connection that has ever carried one.

const PART_BYTES = 128 * 1024;

/** Where the part of `bytes` ends that begins at `fromBytes`: on a socket of TLS a part at a time is written, else all. */
export function partEnd(socket: object | null, bytes: Uint8Array, fromBytes: number): number {
  const isTls = socket !== null && 'encrypted' in socket;
  return isTls ? Math.min(bytes.length, fromBytes + PART_BYTES) : bytes.length;
}
