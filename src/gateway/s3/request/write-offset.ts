// x-amz-write-offset-bytes: where what is sent is to begin in the object that is there (AWS PutObject of directory
// buckets; ours takes it for any bucket).
import { invalidArgument } from './arguments.ts';

export const WRITE_OFFSET_HEADER = 'x-amz-write-offset-bytes';

const OFFSET = /^\d{1,15}$/;

/** Undefined if absent. InvalidArgument if malformed. */
export function parseWriteOffset(headers: Readonly<Record<string, string>>): number | undefined {
  const value = headers[WRITE_OFFSET_HEADER];
  if (value === undefined) return undefined;
  if (OFFSET.test(value)) return Number(value);
  const message = `Value for ${WRITE_OFFSET_HEADER} header is invalid.`;
  throw invalidArgument({ name: WRITE_OFFSET_HEADER, value, message });
}
