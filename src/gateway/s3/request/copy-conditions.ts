// x-amz-copy-source-if-*: the conditions of a read, on the source of a copy. What GET answers with 304 is 412 here (AWS
// CopyObject).
import { AppError } from '../../../types/errors.ts';
import { judgeRead, type Validators } from './read-conditions.ts';

type Headers = Readonly<Record<string, string>>;

const PREFIX = 'x-amz-copy-source-';
const CONDITIONS = ['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'];

/** The headers that parseCopyConditions reads. */
export const COPY_CONDITION_HEADERS: readonly string[] = CONDITIONS.map((name) => PREFIX + name);

/** The conditions under the names that they have on a read. */
export function parseCopyConditions(headers: Headers): Headers {
  const conditions: Record<string, string> = {};
  for (const name of CONDITIONS) {
    const value = headers[PREFIX + name];
    if (value !== undefined) conditions[name] = value;
  }
  return conditions;
}

/** PreconditionFailed where the source is not, or no longer, the one that is meant at `nowMs`. */
export function requireCopyConditions(conditions: Headers, source: Validators, nowMs: number): void {
  const verdict = judgeRead(conditions, source, nowMs);
  if (verdict.kind === 'met') return;
  const failed = verdict.kind === 'precondition-failed' ? verdict.condition : notModifiedBy(conditions);
  throw new AppError('PreconditionFailed', { fields: { Condition: PREFIX + failed } });
}

/** RFC 9110 13.2.2: If-None-Match outranks If-Modified-Since. */
function notModifiedBy(conditions: Headers): string {
  return conditions['if-none-match'] === undefined ? 'If-Modified-Since' : 'If-None-Match';
}
