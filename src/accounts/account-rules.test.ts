import { expect, test } from 'vitest';
import { AppError } from '../types/errors.ts';
import { type AccountFields, BUCKETS_MAX_CEILING, checkAccountFields } from './account-rules.ts';

const VALID = {
  name: 'Backup team, Zürich',
  email: "o'neil+s3@example.com",
  accessKey: 'AKIA_an.access-key',
  secretKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY==',
  canonicalId: 'a0'.repeat(32),
  bucketsMax: 0,
};

function fieldsRefused(fields: AccountFields): string[] {
  try {
    checkAccountFields(fields);
  } catch (error) {
    if (error instanceof AppError && error.code === 'ValidationError') return Object.keys(error.fields);
    throw error;
  }
  return [];
}

test('takes what clients bring along', () => {
  expect(fieldsRefused(VALID)).toEqual([]);
  expect(fieldsRefused({})).toEqual([]);
  expect(fieldsRefused({ name: 'abc', bucketsMax: BUCKETS_MAX_CEILING })).toEqual([]);
  expect(fieldsRefused({ name: '🪣'.repeat(100) })).toEqual([]);
});

test.each<[string, AccountFields]>([
  ['name', { name: 'ab' }],
  ['name', { name: 'x'.repeat(101) }],
  ['name', { name: ' abc' }],
  ['name', { name: 'abc ' }],
  ['name', { name: 'a\u0001bc' }],
  ['name', { name: 'abc\ud800' }],
  ['email', { email: 'nobody' }],
  ['email', { email: 'a@b@c' }],
  ['email', { email: 'a b@c' }],
  ['email', { email: `a@${'b'.repeat(253)}` }],
  ['accessKey', { ...VALID, accessKey: 'a/b/c' }],
  ['accessKey', { ...VALID, accessKey: 'ab' }],
  ['secretKey', { ...VALID, secretKey: 'short' }],
  ['secretKey', { ...VALID, secretKey: 'eight chars' }],
  ['secretKey', { accessKey: 'AKIA' }],
  ['accessKey', { secretKey: VALID.secretKey }],
  ['canonicalId', { canonicalId: 'A0'.repeat(32) }],
  ['canonicalId', { canonicalId: 'a0' }],
  ['bucketsMax', { bucketsMax: -1 }],
  ['bucketsMax', { bucketsMax: 1.5 }],
  ['bucketsMax', { bucketsMax: BUCKETS_MAX_CEILING + 1 }],
])('refuses a bad %s: %o', (field, fields) => {
  expect(fieldsRefused(fields)).toEqual([field]);
});

test('names every bad field at once', () => {
  expect(fieldsRefused({ name: '', email: '' })).toEqual(['name', 'email']);
});
