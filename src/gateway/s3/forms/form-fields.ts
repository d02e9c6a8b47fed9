// The fields of a form before its file (AWS "POST Object", "HTML form fields"): collected within bounds, each once, and turned
// into the headers that PUT of an object would have. Names do not depend on case. Values are bytes, one character each.
import { finishAtOnce } from '../../../base/async/steps.ts';
import { trimBlanks } from '../../../base/text/trim-blanks.ts';
import { bytesToText, percentEncode, textToBytes } from '../../../base/text/uri.ts';
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import { type ObjectKey, parseObjectKey } from '../../../types/names.ts';
import { invalidArgument } from '../request/arguments.ts';
import { checkedHeaderName, checkedHeaderValue } from '../request/header-text.ts';
import { parseTaggingBody } from '../request/tagging.ts';
import { canonicalHeaderName } from '../request/vendor.ts';
import type { MultipartReader } from './multipart-reader.ts';

export interface FormField {
  /** As it was sent. */
  readonly name: string;
  readonly value: string;
}

/** By lower-case name. */
export type FormFields = ReadonlyMap<string, FormField>;

const FILE = 'file';
const FILE_NAME = `\${filename}`;
/** Fields that are called otherwise than their headers. */
const HEADER_OF_FIELD: ReadonlyMap<string, string> = new Map([
  ['acl', 'x-amz-acl'],
  ['tagging', 'x-amz-tagging'],
]);
const PLAIN_HEADERS: ReadonlySet<string> = new Set([
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-md5',
  'content-type',
  'expires',
]);
const HEADER_PREFIXES = ['x-amz-', 'x-svc-', 'if-'];
/** They say who has signed the form, and how a body is framed that is no form: no headers of an object. */
const NO_HEADERS: ReadonlySet<string> = new Set([
  'x-amz-algorithm',
  'x-amz-credential',
  'x-amz-date',
  'x-amz-signature',
  'x-amz-security-token',
  'x-amz-content-sha256',
  'x-amz-decoded-content-length',
  'x-amz-trailer',
]);

/** What the form may have beside its file: up to the file (and in one head behind it), and behind it. */
export const BEFORE_FILE = {
  bytesMax: LIMITS.formFieldsBytesMax,
  refuse: () =>
    new AppError('MaxPostPreDataLengthExceeded', {
      fields: { MaxPostPreDataLengthBytes: LIMITS.formFieldsBytesMax },
    }),
};
const BEHIND_FILE = {
  bytesMax: LIMITS.formRestBytesMax,
  refuse: () => new AppError('MalformedPOSTRequest'),
};

/**
 * The fields up to the file, whose content is the next to be read. InvalidArgument where there is no file or a field twice,
 * MaxPostPreDataLengthExceeded, MalformedPOSTRequest.
 */
export async function readFields(
  reader: MultipartReader,
): Promise<{ fields: FormFields; fileName: string | undefined }> {
  const fields = new Map<string, FormField>();
  for (;;) {
    const part = await reader.next();
    if (part === undefined) throw notOneFile(0);
    const lowerName = part.name.toLowerCase();
    if (lowerName === FILE) return { fields, fileName: part.fileName };
    if (fields.has(lowerName)) {
      // One of them might fit the policy and the other be used.
      const message = 'A field may be in a form once only.';
      throw invalidArgument({ name: part.name, value: '', message });
    }
    fields.set(lowerName, { name: part.name, value: await reader.text() });
  }
}

/** The content of the file. What stands behind it is passed over, but another file is refused. */
export async function* readFile(reader: MultipartReader): AsyncGenerator<Buffer, void> {
  yield* reader.content();
  reader.allow(BEHIND_FILE);
  for (let part = await reader.next(); part !== undefined; part = await reader.next()) {
    if (part.name.toLowerCase() === FILE) throw notOneFile(2);
  }
  await reader.finish();
}

function notOneFile(count: number): AppError {
  const message = 'POST requires exactly one file upload per request.';
  return invalidArgument({ name: FILE, value: String(count), message });
}

/** AWS's refusal of a form that lacks a field, or has it behind the file. */
export function missingField(name: string): AppError {
  const message = `Bucket POST must contain a field named '${name}'.  If it is specified, please check the order of the fields.`;
  return invalidArgument({ name, value: '', message });
}

/** With `${filename}` replaced; left as it is where the file has no name. InvalidArgument where there is no key. */
export function keyOf(fields: FormFields, fileName: string | undefined): string {
  const key = fields.get('key')?.value;
  if (key === undefined) throw missingField('key');
  if (fileName === undefined) return key;
  const parts = key.split(FILE_NAME);
  if (key.length + (parts.length - 1) * fileName.length > LIMITS.formFieldsBytesMax) throw keyTooLong();
  return parts.join(fileName);
}

/** The object's key. InvalidArgument, KeyTooLongError. */
export function objectKeyOf(keyBytes: string): ObjectKey {
  const text = bytesToText(keyBytes);
  if (text === undefined || text.includes('\0')) {
    throw invalidArgument({ name: 'key', value: '', message: 'The key is not encoded as UTF-8.' });
  }
  const key = parseObjectKey(text);
  if (key === 'too-long') throw keyTooLong();
  if (key !== undefined) return key;
  throw invalidArgument({ name: 'key', value: '', message: 'User key must have a length greater than 0.' });
}

function keyTooLong(): AppError {
  return new AppError('KeyTooLongError', { fields: { MaxSizeAllowed: LIMITS.keyBytesMax } });
}

/** What PUT would say in headers. InvalidArgument where two fields mean one header or a value is none, MalformedXML, InvalidTag. */
export function headersOf(fields: FormFields): Record<string, string> {
  // No prototype: metadata may be called "__proto__".
  const headers: Record<string, string> = Object.create(null);
  for (const [lowerName, { name, value }] of fields) {
    const header = headerOf(lowerName);
    if (header === undefined) continue;
    if (headers[header] !== undefined) {
      const message = `Two fields of the form mean ${header}.`;
      throw invalidArgument({ name, value: '', message });
    }
    headers[header] =
      lowerName === 'tagging'
        ? taggingHeader(value)
        : checkedHeaderValue(checkedHeaderName(header), trimBlanks(value));
  }
  return headers;
}

function headerOf(lowerName: string): string | undefined {
  const name = HEADER_OF_FIELD.get(lowerName) ?? canonicalHeaderName(lowerName);
  if (NO_HEADERS.has(name)) return undefined;
  if (PLAIN_HEADERS.has(name) || HEADER_PREFIXES.some((prefix) => name.startsWith(prefix))) return name;
  return undefined;
}

/** The document as the header has it, which says the same. */
function taggingHeader(xml: string): string {
  if (xml === '') return '';
  const tags = finishAtOnce(parseTaggingBody(Buffer.from(xml, 'latin1')));
  return tags
    .map(({ key, value }) => `${percentEncode(textToBytes(key))}=${percentEncode(textToBytes(value))}`)
    .join('&');
}
