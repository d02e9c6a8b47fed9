// The life of an S3 request, top to bottom: ten steps, and no other place where one hides (style 2). What each step
// consists of is in pipeline-steps.ts.
import type { Exchange } from '../http/exchange.ts';
import {
  answerError,
  authorise,
  authoriseAgain,
  beginRecord,
  endRecord,
  identify,
  identifyForm,
  matchOperation,
  openRequest,
  readTarget,
  resolveBucket,
  runOperation,
  type S3Dependencies,
  withDocument,
} from './pipeline-steps.ts';
import { checkNames } from './request/target.ts';
import { createRequestFacts } from './request-facts.ts';
import { sendResult } from './respond.ts';

/** `bucketLabel`: the bucket that the host names (virtual-host style). Never rejects. */
export async function serveS3(
  deps: S3Dependencies,
  exchange: Exchange,
  bucketLabel: string | undefined,
): Promise<void> {
  // 1 Start the record.
  const record = beginRecord(deps, exchange);
  const reply = { exchange, record, clock: deps.clock, log: deps.log };
  try {
    // 2 Target.
    const target = readTarget(exchange, bucketLabel);
    // 3 Match. A server with too much to do goes no further.
    const sent = { ...matchOperation(deps, { exchange, target, record }), names: checkNames(target) };
    const { row } = sent;
    deps.requireRoom(exchange);
    // 4 Authenticate: a form by its fields, which stand for key and headers. A tenant with too much under way goes no further.
    const parts = { exchange, target, record, bucketLabel, ...sent };
    const sentByClient = exchange.patience.begin('client');
    const form = row.body === 'form' ? await identifyForm(deps, parts) : undefined;
    sentByClient();
    // Whatever is looked up before step 8 changes nothing: nobody waits for it longer than a request may wait.
    const inTime = <T>(work: Promise<T>) => exchange.inTime(work);
    const { identity, headers, names } = form ?? { ...sent, identity: await inTime(identify(deps, parts)) };
    deps.requireShare(exchange);
    // 5 Resolve the bucket: a missing one is reported before permissions (s3-behaviour 11).
    const found = await inTime(resolveBucket(deps, row, target));
    if (found !== undefined) record.metered = found.bucket;
    // 6 Parse what the head says.
    const input = row.parse(openRequest(deps, exchange, { row, target, names, headers, identity, form }));
    // 7 Authorise: a caller without permission is refused before the body is read (s3-behaviour 16).
    const { caller, signedAtMs, payloadHash } = identity;
    const facts = createRequestFacts(deps, { exchange, headers, target, caller, signedAtMs, payloadHash });
    const asked = { row, input, headers, identity, found, facts, record };
    const granted = await inTime(authorise(deps, asked));
    // 8 Run, with the document of an operation that takes one.
    const judged = { ...asked, granted, exchange, isVirtualHost: bucketLabel !== undefined };
    const result = await withDocument(deps, judged, async (document) => {
      const present = await inTime(authoriseAgain(deps, judged));
      return runOperation(deps, { ...present, document });
    });
    // 9 Respond.
    await sendResult(reply, result);
  } catch (error) {
    await answerError(reply, error);
  } finally {
    // 10 Finish the record: what it counts for, log line and metrics.
    endRecord(deps, exchange, record);
  }
}
