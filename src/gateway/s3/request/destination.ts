// Where a MOVE goes to: the Destination header, and how it is read (service 4.2, extensions 2.1).
import { must } from '../../../base/assert.ts';
import { bytesToText, percentDecode } from '../../../base/text/uri.ts';
import { AppError } from '../../../types/errors.ts';
import { type BucketName, parseObjectKey } from '../../../types/names.ts';
import { invalidArgument } from './arguments.ts';

const NAME = 'Destination';
const LONE_PERCENT = /%(?![0-9A-Fa-f]{2})/g;

/**
 * The key or prefix that it names: as such or percent-encoded, and behind "/{bucket}/" where it begins with a slash, for
 * a MOVE stays in its bucket. InvalidArgument where it is missing, empty, malformed or of another bucket; KeyTooLongError.
 */
export function parseDestination(headers: Readonly<Record<string, string>>, bucket: BucketName): string {
  const value = headers.destination;
  if (value === undefined) throw refuse('', 'A MOVE needs a Destination header.');
  // A percent sign that encodes nothing stands for itself.
  const decoded = percentDecode(value.replaceAll(LONE_PERCENT, '%25'));
  const text = bytesToText(must(decoded, 'each percent sign begins an escape'));
  if (text === undefined || text.includes('\u0000')) throw refuse(value, 'The Destination is not a key.');
  const path = text.startsWith('/') ? inBucket(text, bucket) : text;
  if (path === undefined) throw refuse(value, 'The Destination is in another bucket.');
  const key = parseObjectKey(path);
  if (key === undefined) throw refuse(value, 'The Destination is empty.');
  if (key === 'too-long') throw new AppError('KeyTooLongError');
  return key;
}

function inBucket(text: string, bucket: BucketName): string | undefined {
  const start = `/${bucket}/`;
  return text.startsWith(start) ? text.slice(start.length) : undefined;
}

function refuse(value: string, message: string): AppError {
  return invalidArgument({ name: NAME, value, message });
}
