// Encryption keys that customers bring in headers (SSE-C): read and judged with AWS's refusals, and named in answers by
// their MD5. objects/customer-keys.ts documents what a key does. A key is never part of an error or of a log line.
import { createSecretKey, hash } from 'node:crypto';
import { KEY_BYTES } from '../../../base/crypto/aead.ts';
import type { CustomerKey as Secret } from '../../../objects/customer-keys.ts';
import { AppError } from '../../../types/errors.ts';
import type { UploadRecord } from '../../../types/records/rows.ts';
import type { VersionRecord } from '../../../types/version.ts';
import type { OperationContext } from '../context.ts';
import type { OperationRequest } from '../operation.ts';
import { invalidArgument } from './arguments.ts';
import type { AnswerHeaders } from './object-headers.ts';

export interface CustomerKey {
  secret: Secret;
  /** base64, as it was sent. */
  md5: string;
}

type KeyRequest = Pick<OperationRequest, 'headers' | 'mayCarrySecrets'>;

interface KeyHeaders {
  readonly algorithm: string;
  readonly key: string;
  readonly md5: string;
}

const OWN = headersUnder('x-amz-');
const OF_SOURCE = headersUnder('x-amz-copy-source-');
const ENCRYPTION = 'x-amz-server-side-encryption';
const ALGORITHM = 'AES256';
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const KEYS_MUST = 'Requests specifying Server Side Encryption with Customer provided keys must';

/** The headers that carry a customer's key, of an object or of the source of a copy. */
export const CUSTOMER_KEY_HEADERS: readonly string[] = [...Object.values(OWN), ...Object.values(OF_SOURCE)];

function headersUnder(prefix: string): KeyHeaders {
  const start = `${prefix}server-side-encryption-customer`;
  return { algorithm: `${start}-algorithm`, key: `${start}-key`, md5: `${start}-key-md5` };
}

/**
 * The key of the object or upload that the request is about; undefined when it brings none. InvalidRequest over a
 * connection that others may read, InvalidArgument and InvalidEncryptionAlgorithmError for what is wrong with the headers.
 */
export function parseCustomerKey(request: KeyRequest): CustomerKey | undefined {
  if (!hasSome(request, OWN)) return undefined;
  const method = request.headers[ENCRYPTION];
  requireSecrecy(request);
  if (method !== undefined) {
    const message =
      'Server Side Encryption with Customer provided key is incompatible with the encryption method specified';
    throw refuse(message, method);
  }
  return readKey(request, OWN);
}

/** The same for the source of a copy. */
export function parseSourceKey(request: KeyRequest): CustomerKey | undefined {
  if (!hasSome(request, OF_SOURCE)) return undefined;
  requireSecrecy(request);
  return readKey(request, OF_SOURCE);
}

function hasSome({ headers }: KeyRequest, names: KeyHeaders): boolean {
  return (
    headers[names.algorithm] !== undefined ||
    headers[names.key] !== undefined ||
    headers[names.md5] !== undefined
  );
}

function requireSecrecy({ mayCarrySecrets }: KeyRequest): void {
  if (mayCarrySecrets) return;
  throw new AppError('InvalidRequest', { message: `${KEYS_MUST} be made over a secure connection.` });
}

/** In AWS's order: a wrong digest is reported before a wrong length. */
function readKey({ headers }: KeyRequest, names: KeyHeaders): CustomerKey {
  const { [names.algorithm]: algorithm, [names.key]: key, [names.md5]: md5 } = headers;
  if (!algorithm) throw refuse(`${KEYS_MUST} provide a valid encryption algorithm.`);
  if (!key) throw refuse(`${KEYS_MUST} provide an appropriate secret key.`);
  if (algorithm !== ALGORITHM) {
    throw new AppError('InvalidEncryptionAlgorithmError', { fields: argument(algorithm) });
  }
  if (!md5) throw refuse(`${KEYS_MUST} provide the client calculated MD5 of the secret key.`);
  const bytes = BASE64.test(key) ? Buffer.from(key, 'base64') : undefined;
  if (bytes !== undefined && hash('md5', bytes, 'base64') !== md5) {
    throw refuse('The calculated MD5 hash of the key did not match the hash that was provided.');
  }
  if (bytes?.length !== KEY_BYTES) {
    throw refuse('The secret key was invalid for the specified algorithm.');
  }
  return { secret: createSecretKey(bytes), md5 };
}

/** AWS names this argument whichever header is meant, and null for its value: so no key is ever echoed. */
function refuse(message: string, value = 'null'): AppError {
  return invalidArgument({ name: ENCRYPTION, value, message });
}

function argument(value: string): Record<string, string> {
  return { ArgumentName: ENCRYPTION, ArgumentValue: value };
}

/** InvalidRequest unless the key, or none, is the one that the object was stored with (s3-behaviour 34: 400, not 403). */
export function requireObjectKey(
  { objects }: Pick<OperationContext, 'objects'>,
  version: Pick<VersionRecord, 'kek'>,
  customerKey: CustomerKey | undefined,
): void {
  const fit = objects.judgeKey(version, customerKey?.secret);
  if (fit === 'fits') return;
  throw new AppError('InvalidRequest', {
    message: {
      missing:
        'The object was stored using a form of Server Side Encryption. The correct parameters must be provided to retrieve the object.',
      needless: 'The encryption parameters are not applicable to this object.',
      other: `${KEYS_MUST} provide the correct secret key.`,
    }[fit],
  });
}

/** InvalidRequest unless the key, or none, is the one that the upload was begun with. */
export function requireUploadKey(
  { objects }: Pick<OperationContext, 'objects'>,
  upload: Pick<UploadRecord, 'kek'>,
  customerKey: CustomerKey | undefined,
): void {
  const fit = objects.judgeKey(upload, customerKey?.secret);
  if (fit === 'fits') return;
  throw new AppError('InvalidRequest', {
    message:
      fit === 'other'
        ? 'The provided encryption parameters did not match the ones used originally.'
        : 'The multipart upload initiate requested encryption. Subsequent part requests must include the appropriate encryption parameters.',
  });
}

/** Says on an answer which key was used. */
export function addCustomerKey(answer: AnswerHeaders, customerKey: CustomerKey | undefined): void {
  if (customerKey !== undefined) Object.assign(answer, customerKeyAnswer(customerKey));
}

/** The headers that say so: none where there is no key. */
export function customerKeyAnswer(customerKey: CustomerKey | undefined): AnswerHeaders {
  if (customerKey === undefined) return {};
  return {
    [`${ENCRYPTION}-customer-algorithm`]: ALGORITHM,
    [`${ENCRYPTION}-customer-key-MD5`]: customerKey.md5,
  };
}
