import { expect, test } from 'vitest';
import { parseAddress, parseObjectAddress, parseVersionAddress } from './object-address.ts';

test.each([
  ['b', { bucket: 'b' }],
  ['b/', { bucket: 'b' }],
  ['b/k', { bucket: 'b', key: 'k' }],
  ['s3://b/dir/k ?', { bucket: 'b', key: 'dir/k ?' }],
  ['s3://b', { bucket: 'b' }],
  ['b//k', { bucket: 'b', key: '/k' }],
])('%s', (text, address) => {
  expect(parseAddress(text)).toEqual(address);
});

test('no bucket, or no object where one is asked for', () => {
  expect(() => parseAddress('/k')).toThrow('names no bucket');
  expect(() => parseAddress('s3://')).toThrow('names no bucket');
  expect(() => parseObjectAddress('b/')).toThrow('names no object');
});

test('a version, and what only looks like one', () => {
  expect(parseVersionAddress('b/k?versionId=null')).toEqual({ bucket: 'b', key: 'k', versionId: 'null' });
  expect(parseVersionAddress('b/k?versionId=')).toEqual({ bucket: 'b', key: 'k?versionId=' });
});
