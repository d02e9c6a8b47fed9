// The tail of versions that were stored before version-tail.ts was: one map of MessagePack. Only read; what changes a
// version writes it anew.
import { unpackPlain } from '../../base/record-codec.ts';
import type { VersionId } from '../names.ts';
import { type Original, packOriginals } from '../originals.ts';
import type { VersionTail } from './version-tail.ts';

type FirstTail = Omit<VersionTail, 'originals'> & {
  /** Where there is at most one, or none of `packedOriginals`. */
  originals?: Original[];
  packedOriginals?: Uint8Array;
};

export function decodeFirstTail(bytes: Uint8Array, at: number): VersionTail {
  const { originals = [], packedOriginals, ...tail } = unpackPlain(bytes.subarray(at)) as FirstTail;
  return { ...tail, originals: packedOriginals ?? packOriginals(...originals) };
}

export function firstTailVersionId(bytes: Uint8Array, at: number): VersionId {
  return decodeFirstTail(bytes, at).versionId;
}
