// Requests to a cluster that has just lost, or found again, a node: on a busy machine a shard that was taken over may answer 503
// for a moment, as clients know. Every other answer is final.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Access, type RawAnswer, type RawRequest, send } from '../servers/raw-s3.ts';

const SERVED_WITHIN_MS = 180_000;
const ASK_AGAIN_MS = 200;

/** Sends it until the answer is not 503; after three minutes it is that. `access`: asked for each time. */
export async function sendAgain(access: () => Access, wanted: RawRequest): Promise<RawAnswer> {
  const endMs = performance.now() + SERVED_WITHIN_MS;
  for (;;) {
    const answer = await send(access(), wanted);
    if (answer.status !== 503 || performance.now() > endMs) return answer;
    await sleep(ASK_AGAIN_MS);
  }
}
