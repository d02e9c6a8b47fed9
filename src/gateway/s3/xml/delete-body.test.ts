import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyText } from '../../../../tests/support/run/properties.ts';
import { finishAtOnce } from '../../../base/async/steps.ts';
import { escapeXml } from '../../../base/xml/write-xml.ts';
import { parseDeleteBody } from './delete-body.ts';

const parse = (body: Uint8Array) => finishAtOnce(parseDeleteBody(body));
const document = (inner: string) => Buffer.from(`<Delete>${inner}</Delete>`);
const object = (key: string, more = '') => `<Object><Key>${key}</Key>${more}</Object>`;
const refusal = (code: string) => expect.objectContaining({ code });

test('keys and versions are read unchanged', () => {
  const longKey = 'k'.repeat(1025);
  expect(
    parse(
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
  expect(parse(document(`<Quiet>true</Quiet>${object('a')}`)).isQuiet).toBe(true);
  expect(parse(document(`<Quiet>false</Quiet>${object('a')}`)).isQuiet).toBe(false);
});

test.each([
  ['no object', ''],
  ['1001 objects', object('a').repeat(1001)],
  ['no key', '<Object/>'],
  ['an empty key', object('')],
  ['two keys', object('a', '<Key>b</Key>')],
])('%s: MalformedXML', (_name, inner) => {
  expect(() => parse(document(inner))).toThrowError(refusal('MalformedXML'));
});

test('1000 objects are taken', () => {
  expect(parse(document(object('a').repeat(1000))).entries).toHaveLength(1000);
});

test('conditions per key, in the forms that SDKs write', () => {
  const at = Date.UTC(1994, 10, 6, 8, 49, 37);
  const more = (time: string) => `<ETag>"x"</ETag><LastModifiedTime>${time}</LastModifiedTime><Size>5</Size>`;
  const times = ['Sun, 06 Nov 1994 08:49:37 GMT', '1994-11-06T08:49:37.000Z', '1994-11-06T08:49:37Z'];
  const { entries } = parse(document(times.map((time) => object('a', more(time))).join('')));
  const conditions = { ifMatch: ['x'], ifMatchLastModifiedMs: at, ifMatchSizeBytes: 5 };
  expect(entries).toEqual(times.map(() => ({ kind: 'item', key: 'a', etag: '"x"', conditions })));
});

test.each([
  ['ETag', 'a b'],
  ['ETag', ''],
  ['LastModifiedTime', 'soon'],
  ['LastModifiedTime', '1994-13-06T08:49:37Z'],
  ['Size', '-1'],
  ['Size', '1.5'],
])('%s of %j: MalformedXML', (name, text) => {
  expect(() => parse(document(object('a', `<${name}>${text}</${name}>`)))).toThrowError(
    refusal('MalformedXML'),
  );
});

test('no body', () => {
  expect(() => parse(Buffer.alloc(0))).toThrowError(refusal('MissingRequestBodyError'));
});

test('every key that XML can write is read back unchanged', () => {
  fc.assert(
    fc.property(fc.array(anyText, { minLength: 1 }), fc.boolean(), (keys, isQuiet) => {
      const objects = keys.map((text) => `<Object><Key>${escapeXml(text)}</Key></Object>`).join('');
      const body = Buffer.from(`<Delete><Quiet>${isQuiet}</Quiet>${objects}</Delete>`);
      expect(parse(body)).toEqual({
        isQuiet,
        entries: keys.map((text) => ({ kind: 'item', key: text })),
      });
    }),
  );
});
