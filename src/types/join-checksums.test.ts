import { expect, test } from 'vitest';
import { toBase64 } from '../base/bytes/bytes.ts';
import { crcOf } from '../base/crypto/crc.ts';
import type { ChecksumAlgorithm } from './checksums.ts';
import { joinChecksums } from './join-checksums.ts';

const bodies = ['first ', '', 'second ', 'third'].map((text) => Buffer.from(text));

function piece(algorithm: 'CRC32' | 'CRC32C' | 'CRC64NVME', body: Buffer) {
  const value = toBase64(crcOf(algorithm, body));
  return { sizeBytes: body.length, checksum: { algorithm, type: 'FULL_OBJECT' as const, value } };
}

test.each(['CRC32', 'CRC32C', 'CRC64NVME'] as const)('%s of the pieces is that of the whole', (algorithm) => {
  const value = toBase64(crcOf(algorithm, Buffer.concat(bodies)));
  const joined = joinChecksums(bodies.map((body) => piece(algorithm, body)));
  expect(joined).toEqual({ algorithm, type: 'FULL_OBJECT', value });
});

test('there is none where a part lacks it, has another algorithm, is composite, or no CRC', () => {
  const [one, other] = bodies.map((body) => piece('CRC32', body));
  if (one === undefined || other === undefined) throw new Error('two pieces');
  const sha = (algorithm: ChecksumAlgorithm) => ({
    sizeBytes: 1,
    checksum: { algorithm, type: 'FULL_OBJECT' as const, value: '' },
  });
  expect(joinChecksums([])).toBeUndefined();
  expect(joinChecksums([one, { sizeBytes: 3 }])).toBeUndefined();
  expect(joinChecksums([{ sizeBytes: 3 }, one])).toBeUndefined();
  expect(joinChecksums([one, piece('CRC32C', Buffer.from('x'))])).toBeUndefined();
  expect(joinChecksums([sha('SHA256'), sha('SHA256')])).toBeUndefined();
  const ofParts = { ...other, checksum: { ...other.checksum, type: 'COMPOSITE' as const } };
  expect(joinChecksums([one, ofParts])).toBeUndefined();
});
