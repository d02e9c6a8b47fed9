import { createHash, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { amountOf } from '../../../../tests/support/run/long-form.ts';
import { AppError } from '../../../types/errors.ts';
import { signatureMismatch } from '../../auth/signature-mismatch.ts';
import { redact, redactError } from '../../http/redact.ts';
import { CUSTOMER_KEY_HEADERS, customerKeyAnswer, parseCustomerKey, parseSourceKey } from './customer-key.ts';

const OWN = 'x-amz-server-side-encryption-customer';
const OF_SOURCE = 'x-amz-copy-source-server-side-encryption-customer';
const KEY = Buffer.alloc(32, 7);
const md5Of = (bytes: Buffer) => createHash('md5').update(bytes).digest('base64');

function headersOf(key: Buffer, prefix = OWN): Record<string, string> {
  return {
    [`${prefix}-algorithm`]: 'AES256',
    [`${prefix}-key`]: key.toString('base64'),
    [`${prefix}-key-md5`]: md5Of(key),
  };
}

function refusalOf(
  headers: Record<string, string>,
  { parse = parseCustomerKey, mayCarrySecrets = true } = {},
): Pick<AppError, 'code' | 'status' | 'message' | 'fields'> {
  try {
    parse({ headers, mayCarrySecrets });
  } catch (error) {
    expect(error).toBeInstanceOf(AppError);
    const { code, status, message, fields } = error as AppError;
    return { code, status, message, fields };
  }
  throw new Error('it was taken');
}

const without = (headers: Record<string, string>, ...names: string[]) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));
const invalidArgument = (message: string, value = 'null') => ({
  code: 'InvalidArgument',
  status: 400,
  message,
  fields: { ArgumentName: 'x-amz-server-side-encryption', ArgumentValue: value },
});

test('a key is read, and the answer names it by its MD5', () => {
  const key = parseCustomerKey({ headers: headersOf(KEY), mayCarrySecrets: true });
  expect(key?.secret.export()).toEqual(KEY);
  expect(customerKeyAnswer(key)).toEqual({
    [`${OWN}-algorithm`]: 'AES256',
    [`${OWN}-key-MD5`]: md5Of(KEY),
  });
  expect(customerKeyAnswer(undefined)).toEqual({});
});

test('the key of a copy and that of its source are separate', () => {
  const headers = { ...headersOf(KEY), ...headersOf(Buffer.alloc(32, 8), OF_SOURCE) };
  expect(parseCustomerKey({ headers, mayCarrySecrets: true })?.secret.export()).toEqual(KEY);
  expect(parseSourceKey({ headers, mayCarrySecrets: true })?.secret.export()[0]).toBe(8);
  const plain = { mayCarrySecrets: false, headers: { 'x-amz-server-side-encryption': 'AES256' } };
  expect(parseCustomerKey(plain)).toBeUndefined();
  expect(parseSourceKey({ headers: headersOf(KEY), mayCarrySecrets: true })).toBeUndefined();
});

test('a missing header is named in the error', () => {
  const must = 'Requests specifying Server Side Encryption with Customer provided keys must provide';
  const whole = headersOf(KEY);
  const missing: [string[], string][] = [
    [[`${OWN}-algorithm`], `${must} a valid encryption algorithm.`],
    [[`${OWN}-algorithm`, `${OWN}-key`], `${must} a valid encryption algorithm.`],
    [[`${OWN}-key`], `${must} an appropriate secret key.`],
    [[`${OWN}-key`, `${OWN}-key-md5`], `${must} an appropriate secret key.`],
    [[`${OWN}-key-md5`], `${must} the client calculated MD5 of the secret key.`],
  ];
  for (const [names, message] of missing) {
    expect(refusalOf(without(whole, ...names))).toEqual(invalidArgument(message));
    const emptied = Object.fromEntries(names.map((name) => [name, '']));
    expect(refusalOf({ ...whole, ...emptied })).toEqual(invalidArgument(message));
  }
});

test('headers that do not fit together are named in the error', () => {
  const whole = headersOf(KEY);
  expect(refusalOf({ ...whole, [`${OWN}-algorithm`]: 'aes256' })).toEqual({
    code: 'InvalidEncryptionAlgorithmError',
    status: 400,
    message: 'The Encryption request you specified is not valid. Supported value: AES256.',
    fields: { ArgumentName: 'x-amz-server-side-encryption', ArgumentValue: 'aes256' },
  });
  const otherMd5 = 'The calculated MD5 hash of the key did not match the hash that was provided.';
  expect(refusalOf({ ...whole, [`${OWN}-key-md5`]: md5Of(Buffer.alloc(1)) })).toEqual(
    invalidArgument(otherMd5),
  );
  expect(refusalOf({ ...headersOf(KEY.subarray(1)), [`${OWN}-key-md5`]: 'x' })).toEqual(
    invalidArgument(otherMd5),
  );
  const invalid = 'The secret key was invalid for the specified algorithm.';
  for (const sizeBytes of [1, 16, 24, 31, 33, 64])
    expect(refusalOf(headersOf(randomBytes(sizeBytes)))).toEqual(invalidArgument(invalid));
  for (const key of [
    '*',
    'BwcH BwcH',
    KEY.toString('base64url').padEnd(43, '_'),
    KEY.toString('hex').slice(1),
  ])
    expect(refusalOf({ ...whole, [`${OWN}-key`]: key })).toEqual(invalidArgument(invalid));
  expect(refusalOf({ ...whole, 'x-amz-server-side-encryption': 'AES256' })).toEqual(
    invalidArgument(
      'Server Side Encryption with Customer provided key is incompatible with the encryption method specified',
      'AES256',
    ),
  );
});

test('a key sent without encryption is refused, whatever else is wrong', () => {
  const told = {
    code: 'InvalidRequest',
    status: 400,
    message:
      'Requests specifying Server Side Encryption with Customer provided keys must be made over a secure connection.',
    fields: {},
  };
  expect(refusalOf(headersOf(KEY), { mayCarrySecrets: false })).toEqual(told);
  expect(refusalOf({ [`${OWN}-key`]: 'x' }, { mayCarrySecrets: false })).toEqual(told);
  const ofSource = { parse: parseSourceKey, mayCarrySecrets: false };
  expect(refusalOf(headersOf(KEY, OF_SOURCE), ofSource)).toEqual(told);
});

test('any headers are accepted or refused with 400, and only the algorithm is ever echoed', () => {
  const value = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.base64String(),
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('base64')),
    fc.constantFrom('AES256', 'aws:kms', '', KEY.toString('base64'), md5Of(KEY)),
  );
  const name = fc.constantFrom(...CUSTOMER_KEY_HEADERS, 'x-amz-server-side-encryption');
  const property = fc.property(fc.dictionary(name, value), fc.boolean(), (headers, mayCarrySecrets) => {
    for (const parse of [parseCustomerKey, parseSourceKey]) {
      try {
        const key = parse({ headers, mayCarrySecrets });
        expect(key?.secret.symmetricKeySize ?? 32).toBe(32);
      } catch (error) {
        expect(error).toBeInstanceOf(AppError);
        const { status, message, fields } = error as AppError;
        expect(status).toBe(400);
        const told = { ...fields, ArgumentValue: undefined };
        expect(message + Object.values(told).join('')).toMatch(/^[\x20-\x7e]+$/);
        expect([
          'null',
          undefined,
          headers[`${OWN}-algorithm`],
          headers[`${OF_SOURCE}-algorithm`],
          headers['x-amz-server-side-encryption'],
        ]).toContain(fields.ArgumentValue);
      }
    }
  });
  fc.assert(property, { numRuns: amountOf({ short: 100, long: 500 }) });
});

test('the string to sign in an error contains no key', () => {
  const secret = KEY.toString('base64');
  const canonical = [
    'PUT',
    '/b/k',
    `X-Amz-Server-Side-Encryption-Customer-Key=${encodeURIComponent(secret)}&x=1`,
    `${OWN}-algorithm:AES256`,
    `${OWN}-key:${secret}`,
    `${OWN}-key-md5:${md5Of(KEY)}`,
    `${OF_SOURCE}-key:${secret}`,
    `x-std-server-side-encryption-customer-key:${secret}`,
    '',
    `${OWN}-algorithm;${OWN}-key;${OWN}-key-md5`,
  ].join('\n');
  const told = signatureMismatch(
    { accessKey: 'a', signature: 's' },
    { stringToSign: `GET\n\n\n\n${OWN}-key:${secret}\n/b/k`, canonicalRequest: canonical },
  );
  const bytes = Buffer.from(secret)
    .toString('hex')
    .replace(/..(?!$)/g, '$& ');
  const shownFields = JSON.stringify(redactError(told).fields);
  for (const form of [secret, bytes]) expect(shownFields).not.toContain(form);
  const shown = redact(canonical);
  expect(shown).not.toContain(secret.slice(0, 20));
  expect(shown.split('\n')).toHaveLength(10);
  expect(shown).toContain(`Key=***&x=1`);
  expect(shown).toContain(`${OWN}-key:***\n${OWN}-key-md5:${md5Of(KEY)}`);
  expect(shown.endsWith(`${OWN}-key;${OWN}-key-md5`)).toBe(true);
});
