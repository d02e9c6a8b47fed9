// For operations that may take long: clients give up on a connection that stays silent, so after a while the answer
// begins with 200 and white space, and its outcome comes as the body (AWS CompleteMultipartUpload, CopyObject).
import { assert } from '../../../base/assert.ts';
import { CANCELLED } from '../../../base/async/cancelled.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { OperationContext } from '../context.ts';
import type { OperationResult } from '../operation.ts';
import type { AnswerHeaders } from '../request/object-headers.ts';

/** `work`'s own answer or error when it comes in time, else a slow one of its XML body with the headers known by then. */
export async function answerWhenDone(
  context: Pick<OperationContext, 'clock'>,
  work: Promise<OperationResult>,
  known: AnswerHeaders = {},
): Promise<OperationResult> {
  const inTime = new AbortController();
  const isLate = context.clock.sleep(LIMITS.slowAnswerAfterMs, inTime.signal).then(() => undefined);
  try {
    const result = await Promise.race([work, isLate]);
    if (result !== undefined) return result;
  } finally {
    inTime.abort(CANCELLED);
  }
  const text = work.then(textOf);
  // A client that has left asks for no outcome; the error of the work is then nobody's.
  text.catch(() => {});
  return { status: 200, headers: known, body: { kind: 'slow-xml', text } };
}

function textOf({ body }: OperationResult): string {
  assert(body?.kind === 'xml', 'a slow answer is an XML document');
  return body.text;
}
