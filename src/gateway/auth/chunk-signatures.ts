// The signatures inside of a signed aws-chunked body: each vouches for one chunk and for all before it (AWS "Signature
// calculations for the authorization header: transferring payload in multiple chunks").
import { createHash, createHmac, type Hash, hash } from 'node:crypto';
import { must } from '../../base/assert.ts';
import { toHex } from '../../base/bytes/bytes.ts';
import { DigestQueue } from '../../base/bytes/digest-queue.ts';
import type { SignedPieces } from '../../objects/object-store.ts';
import { AppError } from '../../types/errors.ts';
import type { Seed } from './authenticate.ts';
import { isSameText } from './signature-mismatch.ts';

const EMPTY_SHA256 = hash('sha256', '');

/** What a reader of the framing says of chunks, as they come. */
export interface ChunkSignatures {
  /** A chunk begins: its head has said how long it is, and its signature. The last one has no bytes. */
  startChunk(chunk: SignedChunk): void;
  /** Its bytes, piece by piece. */
  update(piece: Uint8Array): void;
  /** SignatureDoesNotMatch, unless that is left to {@link SignedPieces}. */
  endChunk(): void;
  /** Of the trailer, `name:value\n` for each. */
  checkTrailer(canonical: string, signature: string): void;
}

interface SignedChunk {
  readonly sizeBytes: number;
  readonly signature: string;
}

const SHA256_BYTES = 32;
/** Of a number in an array. */
const END_BYTES = 8;
/** A check takes 5 µs. After so many it waits for its turn. */
const CHECKS_PER_TURN = 250;

/** Checks each chunk when it ends. */
export function createChunkSignatures(seed: Seed): ChunkSignatures {
  const chain = createChain(seed);
  let chunk: { hash: Hash; signature: string } | undefined;
  return {
    startChunk({ signature }) {
      chunk = { hash: createHash('sha256'), signature };
    },
    update(piece) {
      must(chunk, 'a chunk is begun before its bytes come').hash.update(piece);
    },
    endChunk() {
      const { hash: whole, signature } = must(chunk, 'a chunk is begun before it ends');
      chain.checkChunk(whole.digest('hex'), { previous: chain.last(), signature });
      chain.follow(signature);
    },
    checkTrailer: (canonical, signature) => chain.checkTrailer(canonical, signature),
  };
}

/** Leaves the chunks to the writer of the body; the one without bytes and the trailer are checked at once. */
export function deferChunkSignatures(
  seed: Seed,
  turn: () => Promise<void>,
): { signatures: ChunkSignatures; deferred: SignedPieces } {
  const chain = createChain(seed);
  const ends: number[] = [];
  /** Of chunks that are not checked yet: with the smallest ones tens of thousands of a body. */
  const waiting = new DigestQueue();
  /** Of the last chunk that was checked. */
  let previous = seed.signature;
  let begunBytes = 0;
  let checkedCount = 0;
  let checking = Promise.resolve();

  async function checkAll(sha256s: Uint8Array): Promise<void> {
    for (let at = 0; at < sha256s.length; at += SHA256_BYTES) {
      const signature = must(waiting.shift(), 'a digest has a chunk');
      chain.checkChunk(toHex(sha256s.subarray(at, at + SHA256_BYTES)), { previous, signature });
      previous = signature;
      if (++checkedCount % CHECKS_PER_TURN === 0) await turn();
    }
  }

  return {
    signatures: {
      startChunk({ sizeBytes, signature }) {
        const before = { previous: chain.last(), signature };
        chain.follow(signature);
        if (sizeBytes === 0) return chain.checkChunk(EMPTY_SHA256, before);
        begunBytes += sizeBytes;
        ends.push(begunBytes);
        waiting.push(signature);
      },
      update() {},
      endChunk() {},
      checkTrailer: (canonical, signature) => chain.checkTrailer(canonical, signature),
    },
    deferred: {
      takeEnds(uptoBytes) {
        const count = ends.findIndex((end) => end > uptoBytes);
        return ends.splice(0, count === -1 ? ends.length : count);
      },
      check(sha256s) {
        checking = checking.then(() => checkAll(sha256s));
        return checking;
      },
      heldBytes: () => waiting.heldBytes + ends.length * END_BYTES,
      isDone: () => waiting.length === 0,
    },
  };
}

/** Each signature vouches for all before it, because it signs the one before it as well. */
function createChain(seed: Seed) {
  let last = seed.signature;
  function check(algorithm: string, digests: string, of: { previous: string; signature: string }): void {
    const text = `${algorithm}\n${seed.timestamp}\n${seed.scopeText}\n${of.previous}\n${digests}`;
    const expected = createHmac('sha256', seed.signingKey).update(text).digest('hex');
    if (!isSameText(expected, of.signature)) throw new AppError('SignatureDoesNotMatch');
  }
  return {
    last: () => last,
    follow(signature: string) {
      last = signature;
    },
    checkChunk(digest: string, of: { previous: string; signature: string }) {
      check('AWS4-HMAC-SHA256-PAYLOAD', `${EMPTY_SHA256}\n${digest}`, of);
    },
    checkTrailer(canonical: string, signature: string) {
      check('AWS4-HMAC-SHA256-TRAILER', hash('sha256', canonical), { previous: last, signature });
    },
  };
}
