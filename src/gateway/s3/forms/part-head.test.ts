import { expect, test } from 'vitest';
import { parseBoundary, parsePartHead } from './part-head.ts';

test.each([
  ['multipart/form-data; boundary=abc', 'abc'],
  ['Multipart/Form-Data;boundary="a b;c"', 'a b;c'],
  ['multipart/form-data; charset=utf-8; boundary=----WebKitFormBoundaryX', '----WebKitFormBoundaryX'],
  ["multipart/form-data; boundary='()+_,-./:=?", "'()+_,-./:=?"],
])('the boundary of %s', (contentType, boundary) => {
  expect(parseBoundary(contentType)).toBe(boundary);
});

test.each([undefined, '', 'text/html', 'multipart/mixed; boundary=a', 'multipart/form-data-x; boundary=a'])(
  '%s is no form: 412 PreconditionFailed',
  (contentType) => {
    const Condition = 'Bucket POST must be of the enclosure-type multipart/form-data';
    const expected = expect.objectContaining({ code: 'PreconditionFailed', fields: { Condition } });
    expect(() => parseBoundary(contentType)).toThrow(expected);
  },
);

test.each([
  'multipart/form-data',
  'multipart/form-data; boundary=',
  'multipart/form-data; boundary="a "',
  'multipart/form-data; boundary="a',
  'multipart/form-data; boundary=a b',
  `multipart/form-data; boundary=${'a'.repeat(71)}`,
  'multipart/form-data; boundary="a\u00e9"',
])('a boundary that cannot be told: %s', (contentType) => {
  expect(() => parseBoundary(contentType)).toThrow(expect.objectContaining({ code: 'MalformedPOSTRequest' }));
});

const head = (rest: string) => parsePartHead([`Content-Disposition: form-data; ${rest}`]);

test.each([
  ['name="a"', 'a', undefined],
  ['name=a', 'a', undefined],
  ['NAME="a"; FileName=""', 'a', ''],
  ['name="a \\"b\\" \\\\ c"; filename="x"', 'a "b" \\ c', 'x'],
  ['name="file"; filename="C:\\dir\\a file.txt"', 'file', 'a file.txt'],
  ['name="file"; filename="/dir/a;b.txt"', 'file', 'a;b.txt'],
  ['name="file"; filename="a"; filename*=UTF-8\'\'b%20c', 'file', 'b c'],
  ['name="a"; name="b"; other=1;', 'a', undefined],
])('%s', (rest, name, fileName) => {
  expect(head(rest)).toEqual({ name, fileName });
});

test('other headers of a part are passed over', () => {
  const lines = ['Content-Type: text/plain', 'content-disposition:form-data;name=a', 'X: y'];
  expect(parsePartHead(lines)).toEqual({ name: 'a', fileName: undefined });
});

test('a line with a bare line feed behind many blanks is refused in less than 50 ms', () => {
  const startedMs = performance.now();
  expect(() => parsePartHead([`X:${' '.repeat(40_000)}\nfoo`])).toThrow(
    expect.objectContaining({ code: 'MalformedPOSTRequest' }),
  );
  // It took 1.3 s.
  expect(performance.now() - startedMs).toBeLessThan(50);
});

test.each(['\r', '\n', '\0'])('no line has the character %j', (character) => {
  const lines = [`X: a${character}b`, 'Content-Disposition: form-data; name=a'];
  expect(() => parsePartHead(lines)).toThrow(expect.objectContaining({ code: 'MalformedPOSTRequest' }));
});

test('a long run of what could be a parameter is refused at once', () => {
  expect(() => head(`name="${'\\'.repeat(10_000)}`)).toThrow();
  expect(() => head(`name=a${'; '.repeat(5000)}x`)).toThrow();
});
