// How much memory something keeps: of V8's heap, and of the long texts and buffers beside it.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { packPlain, unpackPlain } from '../../../src/base/record-codec.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function usedBytes(): number {
  // What lies beside the heap goes in the second round.
  for (let round = 0; round < 2; round++) collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** What memory has grown by when `act` is done and its garbage is gone. */
export async function keptBytesOf(act: () => unknown): Promise<number> {
  const before = usedBytes();
  await act();
  return usedBytes() - before;
}

/** `text` as it is cut out of a request of `sizeBytes`. */
export function cutOut(text: string, sizeBytes: number): string {
  const request = Buffer.from(text + '-'.repeat(sizeBytes), 'latin1').toString('latin1');
  return request.slice(0, text.length);
}

/** Plain data as it comes in an answer of `sizeBytes`, with others. */
export function amongOthers<T>(value: T, sizeBytes: number): T {
  const packed = packPlain(value);
  const answer = new Uint8Array(packed.length + sizeBytes);
  answer.set(packed);
  return unpackPlain(answer.subarray(0, packed.length)) as T;
}
