// The checksum of pieces that become one object, from their own: CRCs of whole objects combine, other digests and
// those of parts do not (AWS "Checking object integrity"). No byte is read.
import { must } from '../base/assert.ts';
import { fromBase64, toBase64 } from '../base/bytes/bytes.ts';
import { crcCombine } from '../base/crypto/crc.ts';
import { type Checksum, isCrc } from './checksums.ts';

export interface SummedPiece {
  sizeBytes: number;
  checksum?: Checksum | undefined;
}

/** Undefined unless each piece, of one at least, has a FULL_OBJECT CRC of the same algorithm. */
export function joinChecksums(pieces: readonly SummedPiece[]): Checksum | undefined {
  const algorithm = pieces[0]?.checksum?.algorithm;
  if (algorithm === undefined || !isCrc(algorithm)) return undefined;
  const fits = pieces.every(
    ({ checksum }) => checksum?.algorithm === algorithm && checksum.type === 'FULL_OBJECT',
  );
  if (!fits) return undefined;
  const values = pieces.map(({ checksum }) => fromBase64(checksum?.value ?? ''));
  const whole = values.reduce((sum, value, index) =>
    crcCombine(algorithm, sum, value, must(pieces[index], 'a value each').sizeBytes),
  );
  return { algorithm, type: 'FULL_OBJECT', value: toBase64(whole) };
}
