// What TLS is given at once. A connection keeps memory for its longest write until it closes (Node): 1.5 MB after one of 1.7 MB.

export function isTls(socket: object | null): boolean {
  return socket !== null && 'encrypted' in socket;
}

/** Where the part of `bytes` ends that begins at `fromBytes`: on a socket of TLS `partBytes` at most are written, else all. */
export function partEnd(
  socket: object | null,
  bytes: Uint8Array,
  { fromBytes, partBytes }: { fromBytes: number; partBytes: number },
): number {
  return isTls(socket) ? Math.min(bytes.length, fromBytes + partBytes) : bytes.length;
}
