// CRC32 (RFC 1952) and CRC32C (RFC 3720) of bytes, by a library that uses the processor's vector instructions: it takes a
// third of the time of Node's zlib. Each may be taken in steps.
import { crc32 as zlibCrc32 } from 'node:zlib';
import { crc32 as vectorCrc32, crc32c as vectorCrc32c } from '@node-rs/crc32';

/** Below it the call of the library costs more than what its instructions spare. */
const VECTOR_BYTES_MIN = 256;

/** `value`: of the bytes before; absent: there are none. Gives an unsigned number. */
export function crc32(bytes: Uint8Array, value = 0): number {
  return bytes.length < VECTOR_BYTES_MIN ? zlibCrc32(bytes, value) : vectorCrc32(bytes, value);
}

/** As {@link crc32}, with the polynomial of Castagnoli. */
export function crc32c(bytes: Uint8Array, value = 0): number {
  return vectorCrc32c(bytes, value);
}
