import { expect, test } from 'vitest';
import type { BucketName } from '../../../types/names.ts';
import { parseDestination } from './destination.ts';

const bucket = 'here' as BucketName;

test.each([
  ['a b', 'a b'],
  ['a%20b', 'a b'],
  ['100%', '100%'],
  ['50% a%20b', '50% a b'],
  ['50%2 %zz%41', '50%2 %zzA'],
  ['%2525', '%25'],
  ['/here/a', 'a'],
])('%s is %s', (destination, key) => {
  expect(parseDestination({ destination }, bucket)).toBe(key);
});
