// Idempotency-Key: the answer of a POST is kept for a day under the key that it bore, so that sending it again repeats the
// answer and not the deed. What is kept is sealed by the caller's API key, because answers have secret keys in them: whoever
// repeats the request has it, and nobody else needs it.
import { createCipheriv, createDecipheriv, createHash, createHmac } from 'node:crypto';
import type { RandomPort } from '../../ports/clock.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../../ports/metadata/port.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { AppError } from '../../types/errors.ts';
import type { BucketId } from '../../types/names.ts';
import { requireDone } from '../../types/require-done.ts';
import type { RouteAnswer } from '../http/service-route.ts';

export const IDEMPOTENCY_HEADER = 'idempotency-key';
/** Characters of a key. */
const KEY_CHARACTERS_MAX = 255;
const PRINTABLE = /^[\x20-\x7e]+$/;

/** As the command `keep-answer` has it. */
const NO_BUCKET = '0000000000000000' as BucketId;
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Answers of creations have some 2 KB. */
const ANSWER_BYTES_MAX = 64 * 1024;

export interface RepeatablePost {
  /** Of the header. */
  readonly key: string;
  readonly keyId: string;
  /** In whose share of what is kept its answer counts. */
  readonly payer: string;
  readonly apiKey: string;
  /** Path and query. */
  readonly url: string;
  readonly body: Buffer;
}

export interface RepeatedPosts {
  /** What `act` answers, or has answered before. Throws IdempotencyParameterMismatch (409), ValidationError. */
  once(post: RepeatablePost, act: () => Promise<RouteAnswer>): Promise<RouteAnswer>;
}

export function createRepeatedPosts(deps: {
  metadata: MetadataPort;
  random: RandomPort;
  log: Pick<Logger, 'warn'>;
}): RepeatedPosts {
  const { metadata, random, log } = deps;
  const system = { shard: SYSTEM_SHARD };
  /** Of tokens whose requests are under way here: the same one waits for its twin. */
  const underWay = new Map<string, Promise<unknown>>();

  async function answerOnce(post: RepeatablePost, token: Token, act: () => Promise<RouteAnswer>) {
    const query = { bucketId: NO_BUCKET, token };
    const before = requireDone(await metadata.query(system, 'get-kept-outcome', query));
    if (before.kind === 'token-reused') {
      throw new AppError('IdempotencyParameterMismatch', {
        status: 409,
        message: 'The Idempotency-Key was used by a request that asked for something else.',
      });
    }
    if (before.kind === 'repeated') return open(before.outcome as Uint8Array, sealKey(post));
    const answer = await act();
    const sealed = seal(answer, sealKey(post), random);
    if (sealed.length <= ANSWER_BYTES_MAX) await keep(post, token, sealed);
    return answer;
  }

  /** The deed is done: that its answer cannot be kept does not change it. */
  async function keep({ payer }: RepeatablePost, token: Token, answer: Uint8Array): Promise<void> {
    const reply = await metadata.execute(system, 'keep-answer', { token, answer, payer });
    const isKept = reply.kind === 'done' && reply.value.kind === 'kept';
    if (!isKept) log.warn({ reason: reply.kind }, 'answer-not-kept');
  }

  return {
    async once(post, act) {
      const token = tokenOf(post);
      for (let twin = underWay.get(token.token); twin !== undefined; twin = underWay.get(token.token)) {
        await twin.catch(() => {});
      }
      const answering = answerOnce(post, token, act);
      underWay.set(token.token, answering);
      try {
        return await answering;
      } finally {
        underWay.delete(token.token);
      }
    },
  };
}

interface Token {
  readonly token: string;
  readonly digest: string;
}

function tokenOf({ key, keyId, url, body }: RepeatablePost): Token {
  if (!PRINTABLE.test(key) || key.length > KEY_CHARACTERS_MAX) {
    const problem = `must have 1 to ${KEY_CHARACTERS_MAX} printable characters`;
    throw new AppError('ValidationError', {
      message: `Idempotency-Key ${problem}`,
      fields: { 'Idempotency-Key': problem },
    });
  }
  const digestOf = (...parts: (string | Buffer)[]) => {
    const hash = createHash('sha256');
    for (const part of parts) hash.update(`${part.length} `).update(part);
    return hash.digest('hex');
  };
  return { token: digestOf(keyId, key), digest: digestOf(url, body) };
}

/** API keys are long and random, so that one step is enough. */
function sealKey({ apiKey, keyId }: RepeatablePost): Buffer {
  return createHmac('sha256', apiKey).update(`kept answers of ${keyId}`).digest();
}

function seal({ status, body }: RouteAnswer, key: Buffer, random: RandomPort): Uint8Array {
  const nonce = random.bytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce);
  const text = JSON.stringify({ status, body: String(body) });
  return Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
}

function open(sealed: Uint8Array, key: Buffer): RouteAnswer {
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES));
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  const text = Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  return { contentType: 'application/json', ...JSON.parse(text.toString()) };
}
