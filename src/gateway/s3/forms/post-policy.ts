// The policy of a form (AWS "Creating a POST policy"): what its signer allows a stranger to upload. Read and judged here, with
// AWS's refusals; who has signed it is auth/form-signature.ts. It does not know what fields do.
import { fromUtf8 } from '../../../base/bytes/bytes.ts';
import { textToBytes } from '../../../base/text/uri.ts';
import { JsonFault, type JsonValue, readJson } from '../../../policy/documents/read-json.ts';
import { CHECKSUM_ALGORITHMS, checksumHeader } from '../../../types/checksums.ts';
import { AppError } from '../../../types/errors.ts';
import { isSecretName } from '../../http/redact.ts';
import type { FormFields } from './form-fields.ts';

/** Bytes of a file, both counted in. */
export interface SizeRange {
  readonly bytesMin: number;
  readonly bytesMax: number;
}

type Operator = 'eq' | 'starts-with';

export interface PostPolicy {
  /** ms since epoch. */
  readonly expiresAtMs: number;
  readonly conditions: readonly Condition[];
  readonly sizes: readonly SizeRange[];
}

interface Condition {
  /** Undefined: of no kind that could hold. */
  readonly operator: Operator | undefined;
  /** In lower case. */
  readonly field: string;
  /** Bytes, one character each, as fields are compared. */
  readonly value: string;
  /** As AWS repeats it. */
  readonly text: string;
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const BLANKS = /[ \t\r\n]+/g;
/** In UTC: AWS takes no offsets. */
const DATE = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?Z$/;
const COUNT = /^\d{1,15}$/;
const RANGE = 'content-length-range';
/** The two escapes that AWS has beside those of JSON. */
const ESCAPES = /\\([\s\S])/g;
/** Need no condition. A checksum changes nothing but that the upload may fail. */
const UNCOVERED: ReadonlySet<string> = new Set([
  'policy',
  'x-amz-signature',
  'signature',
  'awsaccesskeyid',
  ...CHECKSUM_ALGORITHMS.map(checksumHeader),
]);
const IGNORED_PREFIX = 'x-ignore-';

/** InvalidPolicyDocument for what is no policy. `encoded`: base64, as the field has it. */
export function parsePostPolicy(encoded: string): PostPolicy {
  const members = membersOf(readPolicyJson(encoded));
  for (const name of members.keys()) {
    if (name !== 'expiration' && name !== 'conditions') {
      throw invalid(`Unexpected: '${name.toLowerCase()}'`);
    }
  }
  const conditions: Condition[] = [];
  const sizes: SizeRange[] = [];
  const expiresAtMs = parseExpiration(members.get('expiration'));
  for (const item of itemsOf(members.get('conditions'))) {
    const condition = parseCondition(item);
    if ('bytesMin' in condition) sizes.push(condition);
    else conditions.push(condition);
  }
  return { expiresAtMs, conditions, sizes };
}

/**
 * AccessDenied where the policy has expired, where a field is not as a condition wants it, and where one has no condition.
 * `bucket`, `key`: as the request has them, whatever fields say.
 */
export function requirePostPolicy(
  policy: PostPolicy,
  form: { fields: FormFields; bucket: string; key: string; nowMs: number },
): void {
  const { fields, bucket, key, nowMs } = form;
  if (nowMs > policy.expiresAtMs) throw denied('Policy expired.');
  const sentValue = (field: string) =>
    field === 'bucket' ? bucket : field === 'key' ? key : fields.get(field)?.value;
  for (const condition of policy.conditions) {
    const value = sentValue(condition.field);
    // A field that is not there fits nothing, not even the empty beginning.
    if (value === undefined || !isMet(condition, value)) {
      throw denied(`Policy Condition failed: ${condition.text}`);
    }
  }
  const covered = new Set(policy.conditions.map(({ field }) => field));
  const names = new Map([
    ['bucket', 'bucket'],
    ...[...fields].map(([lower, { name }]) => [lower, name] as const),
  ]);
  for (const [lowerName, name] of names) {
    if (covered.has(lowerName) || UNCOVERED.has(lowerName) || lowerName.startsWith(IGNORED_PREFIX)) continue;
    throw denied(`Extra input fields: ${name}`);
  }
}

/** Of a list of types, which each condition looks at anew. */
const CONTENT_TYPES_MAX = 100;

function isMet({ operator, field, value: wanted }: Condition, value: string): boolean {
  if (operator === 'eq') return value === wanted;
  if (operator !== 'starts-with') return false;
  // AWS takes the types in a list one by one.
  const values = field === 'content-type' ? value.split(',', CONTENT_TYPES_MAX + 1) : [value];
  if (values.length > CONTENT_TYPES_MAX) return false;
  return values.every((each, at) => (at === 0 ? each : each.trimStart()).startsWith(wanted));
}

/** The file within all ranges: EntityTooLarge as soon as it is, EntityTooSmall at its end. */
export async function* requireSizes(
  file: AsyncIterable<Buffer>,
  sizes: readonly SizeRange[],
): AsyncGenerator<Buffer, void> {
  const bytesMax = Math.min(...sizes.map((size) => size.bytesMax));
  const bytesMin = Math.max(...sizes.map((size) => size.bytesMin));
  let sizeBytes = 0;
  for await (const buffer of file) {
    sizeBytes += buffer.length;
    if (sizeBytes > bytesMax) {
      throw new AppError('EntityTooLarge', { fields: { ProposedSize: sizeBytes, MaxSizeAllowed: bytesMax } });
    }
    yield buffer;
  }
  if (sizeBytes < bytesMin) {
    throw new AppError('EntityTooSmall', { fields: { ProposedSize: sizeBytes, MinSizeAllowed: bytesMin } });
  }
}

function readPolicyJson(encoded: string): JsonValue {
  const base64 = encoded.replace(BLANKS, '');
  if (!BASE64.test(base64)) throw invalid('invalid Base64 encoding.');
  try {
    const text = fromUtf8(Buffer.from(base64, 'base64'));
    return readJson(text.replace(ESCAPES, plainEscape)).value;
  } catch (error) {
    if (error instanceof JsonFault || error instanceof TypeError) throw invalid('Invalid JSON.');
    throw error;
  }
}

function plainEscape(sequence: string, escaped: string): string {
  if (escaped === '$') return '$';
  return escaped === 'v' ? '\\u000b' : sequence;
}

function membersOf(value: JsonValue): ReadonlyMap<string, JsonValue> {
  if (value.kind !== 'object') throw invalid('Invalid JSON.');
  return value.members;
}

function parseExpiration(value: JsonValue | undefined): number {
  if (value === undefined) throw invalid('Policy missing expiration.');
  const text = value.kind === 'string' ? value.text : value.kind;
  const timeMs = DATE.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(timeMs)) throw invalid(`Invalid 'expiration' value: '${text}'`);
  return timeMs;
}

function itemsOf(value: JsonValue | undefined): readonly JsonValue[] {
  if (value === undefined) throw invalid('Policy missing conditions.');
  if (value.kind !== 'array') throw invalid("Invalid 'conditions' value: must be a List.");
  if (value.items.length === 0) throw invalid("Invalid 'conditions' value: must not be empty.");
  return value.items;
}

function parseCondition(item: JsonValue): Condition | SizeRange {
  if (item.kind === 'object') return parseSimple(item.members);
  if (item.kind !== 'array') throw invalid('Invalid Condition: must be a List or Object.');
  const [operation, ...operands] = item.items;
  if (operation === undefined) throw invalid('Invalid Condition: missing operation identifier.');
  if (operation.kind !== 'string') throw invalid('Invalid JSON.');
  if (operation.text === RANGE) return parseRange(operands);
  const [name, value] = operands;
  if (operands.length !== 2) throw invalid(`Invalid ${operation.text}: wrong number of arguments.`);
  if (name?.kind !== 'string' || value?.kind !== 'string') throw invalid('Invalid JSON.');
  return conditionOf(operation.text, name.text, value.text);
}

function parseSimple(members: ReadonlyMap<string, JsonValue>): Condition {
  const [[name, value] = ['', undefined]] = members;
  if (members.size !== 1 || value === undefined) {
    throw invalid('Invalid Simple-Condition: Simple-Conditions must have exactly one property specified.');
  }
  if (value.kind !== 'string') throw invalid('Invalid Simple-Condition: value must be a string.');
  return conditionOf('eq', `$${name}`, value.text);
}

function conditionOf(operation: string, name: string, value: string): Condition {
  const isKnown = (operation === 'eq' || operation === 'starts-with') && name.startsWith('$');
  const shown = isSecretName(name) ? '***' : value;
  return {
    operator: isKnown ? operation : undefined,
    field: name.replace(/^\$/, '').toLowerCase(),
    value: textToBytes(value),
    text: `[${[operation, name, shown].map((part) => JSON.stringify(part)).join(', ')}]`,
  };
}

function parseRange(operands: readonly JsonValue[]): SizeRange {
  const [bytesMin, bytesMax] = operands.map(countOf);
  if (operands.length !== 2 || bytesMin === undefined || bytesMax === undefined || bytesMin > bytesMax) {
    throw invalid(`Invalid ${RANGE}: it has a least and a greatest size.`);
  }
  return { bytesMin, bytesMax };
}

/** Undefined for what is no count. AWS takes it in quotes, too. */
function countOf(value: JsonValue): number | undefined {
  const isText = value.kind === 'number' || value.kind === 'string';
  return isText && COUNT.test(value.text) ? Number(value.text) : undefined;
}

function invalid(problem: string): AppError {
  return new AppError('InvalidPolicyDocument', { message: `Invalid Policy: ${problem}` });
}

function denied(problem: string): AppError {
  return new AppError('AccessDenied', { message: `Invalid according to Policy: ${problem}` });
}
