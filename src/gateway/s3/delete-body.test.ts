import { expect, test } from 'vitest';
import { parseDeleteBody } from './delete-body.ts';

const document = (inner: string) => Buffer.from(`<Delete>${inner}</Delete>`);
const object = (key: string, more = '') => `<Object><Key>${key}</Key>${more}</Object>`;
const refusal = (code: string) => expect.objectContaining({ code });

test('keys and versions, as they stand', () => {
  const longKey = 'k'.repeat(1025);
  expect(
    parseDeleteBody(
      document(
        object(' a b&#10;') +
          object('a&amp;b', '<VersionId>null</VersionId>') +
          object('c', '<VersionId></VersionId>') +
          object(longKey),
      ),
    ),
  ).toEqual({
    isQuiet: false,
    entries: [
      { kind: 'item', key: ' a b\n' },
      { kind: 'item', key: 'a&b', versionId: 'null' },
      { kind: 'refused', key: 'c', versionId: '', code: 'NoSuchVersion' },
      { kind: 'refused', key: longKey, code: 'KeyTooLongError' },
    ],
  });
});

test('quiet', () => {
  expect(parseDeleteBody(document(`<Quiet>true</Quiet>${object('a')}`)).isQuiet).toBe(true);
  expect(parseDeleteBody(document(`<Quiet>false</Quiet>${object('a')}`)).isQuiet).toBe(false);
});

test.each([
  ['no object', ''],
  ['1001 objects', object('a').repeat(1001)],
  ['no key', '<Object/>'],
  ['an empty key', object('')],
  ['two keys', object('a', '<Key>b</Key>')],
])('%s: MalformedXML', (_name, inner) => {
  expect(() => parseDeleteBody(document(inner))).toThrowError(refusal('MalformedXML'));
});

test('1000 objects are taken', () => {
  expect(parseDeleteBody(document(object('a').repeat(1000))).entries).toHaveLength(1000);
});

test.each(['ETag', 'LastModifiedTime', 'Size'])('a condition by %s is not ignored', (name) => {
  expect(() => parseDeleteBody(document(object('a', `<${name}>1</${name}>`)))).toThrowError(
    refusal('NotImplemented'),
  );
});

test('no body', () => {
  expect(() => parseDeleteBody(Buffer.alloc(0))).toThrowError(refusal('MissingRequestBodyError'));
});
