// The signatures inside of a signed aws-chunked body: each vouches for one chunk and for all before it (AWS "Signature
// calculations for the authorization header: transferring payload in multiple chunks").
import { createHash, createHmac, type Hash, hash } from 'node:crypto';
import { must } from '../../base/assert.ts';
import { AppError } from '../../types/errors.ts';
import type { Seed } from './authenticate.ts';
import { isSameText } from './signature-mismatch.ts';

const EMPTY_SHA256 = hash('sha256', '');

export interface ChunkSignatures {
  startChunk(): void;
  update(piece: Uint8Array): void;
  /** SignatureDoesNotMatch unless the chunk that was given piece by piece has this signature. */
  endChunk(signature: string): void;
  /** Of the trailer, `name:value\n` for each. */
  checkTrailer(canonical: string, signature: string): void;
}

export function createChunkSignatures(seed: Seed): ChunkSignatures {
  let previous = seed.signature;
  let chunk: Hash | undefined;

  function check(algorithm: string, digests: string, signature: string): void {
    const text = `${algorithm}\n${seed.timestamp}\n${seed.scopeText}\n${previous}\n${digests}`;
    const expected = createHmac('sha256', seed.signingKey).update(text).digest('hex');
    if (!isSameText(expected, signature)) throw new AppError('SignatureDoesNotMatch');
    previous = signature;
  }

  return {
    startChunk() {
      chunk = createHash('sha256');
    },
    update(piece) {
      must(chunk, 'a chunk is begun before its bytes come').update(piece);
    },
    endChunk(signature) {
      const digest = must(chunk, 'a chunk is begun before it ends').digest('hex');
      check('AWS4-HMAC-SHA256-PAYLOAD', `${EMPTY_SHA256}\n${digest}`, signature);
    },
    checkTrailer(canonical, signature) {
      check('AWS4-HMAC-SHA256-TRAILER', hash('sha256', canonical), signature);
    },
  };
}
