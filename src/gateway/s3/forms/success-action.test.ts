import { expect, test } from 'vitest';
import { textToBytes } from '../../../base/text/uri.ts';
import type { ObjectKey } from '../../../types/names.ts';
import { redirectTo, successActionOf } from './success-action.ts';

const actionOf = (fields: Record<string, string>) =>
  successActionOf(
    new Map(Object.entries(fields).map(([name, value]) => [name, { name, value: textToBytes(value) }])),
  );

test.each([
  ['200', 200],
  ['201', 201],
  ['204', 204],
  ['404', 204],
  ['', 204],
  ['0200', 204],
])('s3-behaviour 18: success_action_status of "%s" is %i', (text, status) => {
  expect(actionOf({ success_action_status: text })).toEqual({ status });
});

test.each(['/relative', 'x', 'javascript:alert(1)', 'ftp://host/', 'http://', 'http://host:x/'])(
  's3-behaviour 18: no notice is taken of %s, which is no URL of the web',
  (url) => {
    expect(actionOf({ success_action_redirect: url })).toEqual({ status: 204 });
  },
);

test('s3-behaviour 18: the old name of the redirect counts where the new one is absent', () => {
  expect(actionOf({ redirect: 'http://a/' }).redirect).toBe('http://a/');
  expect(actionOf({ redirect: 'http://a/', success_action_redirect: 'http://b' }).redirect).toBe('http://b');
});

test('a URL that no header can carry is written in its one plain form', () => {
  expect(actionOf({ redirect: 'http://a/é b\r\nx: y' }).redirect).toBe('http://a/%C3%A9%20bx:%20y');
});

test('no notice is taken of a URL whose host would be long to encode, in whatever spelling', () => {
  for (const host of ['\u4e00'.repeat(254), '%E4%B8%80'.repeat(64), `user@${'\u00e9'.repeat(254)}:80`]) {
    expect(actionOf({ redirect: `http:\\\\${host}/` })).toEqual({ status: 204 });
  }
  expect(actionOf({ redirect: `http://\u00e9.test/${'\u00e9'.repeat(300)}` }).redirect).toMatch(
    /^http:..xn--9ca.test/,
  );
});

test.each([
  ['http://a/b', 'http://a/b?bucket=b&key=x%2Fy+%C3%A9%2B&etag=%22e%22'],
  ['http://a/?q=1', 'http://a/?q=1&bucket=b&key=x%2Fy+%C3%A9%2B&etag=%22e%22'],
  ['http://a/#f?', 'http://a/?bucket=b&key=x%2Fy+%C3%A9%2B&etag=%22e%22#f?'],
])('s3-behaviour 18: %s gets bucket, key and etag', (url, expected) => {
  expect(redirectTo(url, { bucket: 'b', key: 'x/y é+' as ObjectKey, etag: '"e"' })).toBe(expected);
});
