// x-amz-request-id and x-amz-id-2: names for one request, for logs and support. They carry nothing else.
import { toHex } from '../../base/bytes/bytes.ts';
import type { RandomPort } from '../../ports/clock.ts';

export interface RequestIds {
  /** 16 hex digits in upper case, and the longer id of where it was served. */
  next(): { requestId: string; hostId: string };
}

const ID_BYTES = 8;
const POOL_BYTES = 512 * ID_BYTES;
/** A multiple of 3, so that its base64 ends without padding. */
const HOST_BYTES = 24;

export function createRequestIds(random: RandomPort): RequestIds {
  const host = Buffer.from(random.bytes(HOST_BYTES)).toString('base64');
  let pool = new Uint8Array(0);
  let at = 0;
  return {
    next() {
      if (at === pool.length) {
        // One call for many ids: each on its own would cost more than all the rest of an id.
        pool = Uint8Array.from(random.bytes(POOL_BYTES));
        at = 0;
      }
      const bytes = pool.subarray(at, at + ID_BYTES);
      at += ID_BYTES;
      return { requestId: toHex(bytes).toUpperCase(), hostId: host + Buffer.from(bytes).toString('base64') };
    },
  };
}
