// Request parameters as numbers, ids and choices, with AWS's refusals. One function per kind of parameter; what a
// parameter then means is the operation's.
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import { NULL_VERSION, type UploadId, type VersionId } from '../../../types/names.ts';
import type { QueryParameters } from '../operation.ts';

const INTEGER = /^[+-]?\d+$/;
const COUNT_MAX = 2 ** 31 - 1;
/** As makeVersionId and makeUploadId mint them. */
const VERSION_ID = /^[A-Za-z0-9_-]{32}$/;
const UPLOAD_ID = /^[0-9a-f]{44}$/;

/** InvalidArgument with the fields that AWS adds. */
export function invalidArgument(argument: { name: string; value: string; message: string }): AppError {
  return new AppError('InvalidArgument', {
    message: argument.message,
    fields: { ArgumentName: argument.name, ArgumentValue: argument.value },
  });
}

/**
 * max-keys and its kin: a count from 0 on; what is above `most` is served as `most` (AWS ListObjects). Absent or
 * empty: `most`. InvalidArgument for anything else.
 */
export function parseCount(query: QueryParameters, options: { name: string; most: number }): number {
  const text = query.get(options.name);
  if (text === undefined || text === '') return options.most;
  return Math.min(parseWholeNumber(text, options.name), options.most);
}

/** A marker that is a number: part-number-marker. Absent or empty: 0. */
export function parseNumberMarker(query: QueryParameters, name: string): number {
  const text = query.get(name);
  return text === undefined || text === '' ? 0 : parseWholeNumber(text, name);
}

function parseWholeNumber(text: string, name: string): number {
  const value = Number(text);
  if (!INTEGER.test(text) || value > COUNT_MAX) {
    const message = `Provided ${name} not an integer or within integer range`;
    throw invalidArgument({ name, value: text, message });
  }
  if (value < 0) {
    const message = `Argument ${name} must be an integer between 0 and ${COUNT_MAX}`;
    throw invalidArgument({ name, value: text, message });
  }
  return value;
}

/** True when names in the answer are to be percent-encoded (s3-behaviour 36). */
export function parseEncodingType(query: QueryParameters): boolean {
  const text = query.get('encoding-type');
  if (text === undefined) return false;
  if (text !== 'url') {
    const message = 'Invalid Encoding Method specified in Request';
    throw invalidArgument({ name: 'encoding-type', value: text, message });
  }
  return true;
}

/** True for what could be one of our version ids. */
export function isVersionId(text: string): text is VersionId {
  return text === NULL_VERSION || VERSION_ID.test(text);
}

/** versionId, of the query or of a copy source. InvalidArgument when it is empty or none of ours. */
export function parseVersionId(text: string | undefined): VersionId | undefined {
  if (text === undefined || isVersionId(text)) return text;
  const message = text === '' ? 'Version id cannot be the empty string' : 'Invalid version id specified';
  throw invalidArgument({ name: 'versionId', value: text, message });
}

/** True for what could be one of our upload ids. */
export function isUploadId(text: string): text is UploadId {
  return UPLOAD_ID.test(text);
}

/** uploadId. One that could not be ours is an upload that does not exist. */
export function parseUploadId(text = ''): UploadId {
  if (isUploadId(text)) return text;
  throw new AppError('NoSuchUpload', { fields: { UploadId: text } });
}

/** partNumber: 1 to 10,000. */
export function parsePartNumber(text: string): number {
  const value = Number(text);
  if (!INTEGER.test(text) || value < 1 || value > LIMITS.partCountMax) {
    const message = `Part number must be an integer between 1 and ${LIMITS.partCountMax}, inclusive`;
    throw invalidArgument({ name: 'partNumber', value: text, message });
  }
  return value;
}

/** Of a header of MOVE (extensions 2.1). Absent: false. InvalidArgument for anything but "true" and "false", in any case. */
export function parseBoolean(headers: Readonly<Record<string, string>>, name: string): boolean {
  const value = headers[name]?.toLowerCase() ?? 'false';
  if (value === 'true' || value === 'false') return value === 'true';
  throw invalidArgument({ name, value: headers[name] ?? '', message: `${name} is either true or false.` });
}
