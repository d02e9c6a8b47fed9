import fc from 'fast-check';
import { expect, test } from 'vitest';
import { amountOf } from '../../../../tests/support/run/long-form.ts';
import { finishAtOnce } from '../../../base/async/steps.ts';
import { escapeXml } from '../../../base/xml/write-xml.ts';
import { AppError } from '../../../types/errors.ts';
import { findTagFault, type Tag } from '../../../types/tags.ts';
import { parseTaggingBody, parseTaggingHeader, taggingDocument } from './tagging.ts';

const header = (text: string) => parseTaggingHeader({ 'x-amz-tagging': text });
const parse = (body: Uint8Array) => finishAtOnce(parseTaggingBody(body));
const body = (inner: string) => parse(Buffer.from(`<Tagging>${inner}</Tagging>`));
const tag = (key: string, value: string) => `<Tag><Key>${key}</Key><Value>${value}</Value></Tag>`;
const set = (...tags: string[]) => `<TagSet>${tags.join('')}</TagSet>`;

function codeOf(parse: () => unknown): string {
  try {
    parse();
  } catch (error) {
    if (error instanceof AppError) return error.code;
    throw error;
  }
  return 'none';
}

test.each([
  ['', undefined],
  ['&&', undefined],
  ['a', [['a', '']]],
  ['a=', [['a', '']]],
  [
    '&a=1&&b=2&',
    [
      ['a', '1'],
      ['b', '2'],
    ],
  ],
  ['a=b=c', [['a', 'b=c']]],
  [
    'a+b=c%20d&%2B=%2F',
    [
      ['a b', 'c d'],
      ['+', '/'],
    ],
  ],
  ['%C3%A4=%E6%97%A5', [['ä', '日']]],
  // What a client sends unencoded arrives as a character for each byte.
  ['k=\u00c3\u00a4', [['k', 'ä']]],
] as [string, [string, string][] | undefined][])('the header %j', (text, expected) => {
  expect(header(text)).toEqual(expected?.map(([key, value]) => ({ key, value })));
});

test('no header', () => {
  expect(parseTaggingHeader({})).toBeUndefined();
});

test.each([
  ['=v', 'InvalidArgument'],
  ['a=1&a=2', 'InvalidArgument'],
  ['a=%', 'InvalidArgument'],
  ['%zz', 'InvalidArgument'],
  ['a=%ff', 'InvalidArgument'],
  ['a=b,c', 'InvalidTag'],
  ['a%26=', 'InvalidTag'],
  ['aws:a=b', 'InvalidTag'],
  [Array.from({ length: 11 }, (_, index) => `k${index}`).join('&'), 'InvalidTag'],
  [`${'k'.repeat(129)}=v`, 'InvalidTag'],
  [`k=${'v'.repeat(257)}`, 'InvalidTag'],
])('the header %j is refused', (text, code) => {
  expect(codeOf(() => header(text))).toBe(code);
});

test('documents', () => {
  expect(body('<TagSet/>')).toEqual([]);
  expect(body(`\n ${set(tag('a', ''), ' ', tag(' b ', '&#x41;'))} `)).toEqual([
    { key: 'a', value: '' },
    { key: ' b ', value: 'A' },
  ]);
  expect(body(set('<Tag><Value>v</Value><Key>k</Key></Tag>'))).toEqual([{ key: 'k', value: 'v' }]);
});

test.each([
  ['no set', ''],
  ['two sets', '<TagSet/><TagSet/>'],
  ['a tag without a value', set('<Tag><Key>k</Key></Tag>')],
  ['a tag without a key', set('<Tag><Value>v</Value></Tag>')],
  ['two keys', set('<Tag><Key>k</Key><Key>l</Key><Value>v</Value></Tag>')],
  ['a key of elements', set('<Tag><Key><b/></Key><Value>v</Value></Tag>')],
  ['something else in the set', set('<Label/>')],
  ['something else in a tag', set('<Tag><Key>k</Key><Value>v</Value><More/></Tag>')],
  ['something else beside the set', '<TagSet/><More/>'],
  ['tags without a set', tag('k', 'v')],
])('%s: MalformedXML', (_name, inner) => {
  expect(codeOf(() => body(inner))).toBe('MalformedXML');
});

test('another root, no document, nothing', () => {
  expect(codeOf(() => parse(Buffer.from('<TagSet/>')))).toBe('MalformedXML');
  expect(codeOf(() => parse(Buffer.from('{}')))).toBe('MalformedXML');
  expect(codeOf(() => parse(Buffer.alloc(0)))).toBe('MissingRequestBodyError');
});

test.each([
  [set(tag('k', '1'), tag('k', '2')), { TagKey: 'k' }],
  [set(tag('', 'v')), { TagKey: '' }],
  [set(tag('aws:k', 'v')), { TagKey: 'aws:k' }],
  [set(tag('k', 'a!')), { TagKey: 'k', TagValue: 'a!' }],
])('%s: InvalidTag, with the tag', (inner, fields) => {
  expect(() => body(inner)).toThrowError(expect.objectContaining({ code: 'InvalidTag', fields }));
});

const CODES = ['none', 'InvalidArgument', 'InvalidTag', 'MalformedXML', 'MissingRequestBodyError'];
const oddText = fc.string({
  unit: fc.oneof(
    fc.constantFrom(...'ab=&%+;<>/ä日😀\u0000\ud800'),
    fc.string({ unit: 'binary', maxLength: 1 }),
  ),
  maxLength: 300,
});

test('any header gives a valid set or a refusal', () => {
  fc.assert(
    fc.property(oddText, (text) => {
      const code = codeOf(() => {
        const tags = header(text);
        if (tags !== undefined) expect(findTagFault(tags)).toBeUndefined();
      });
      expect(CODES).toContain(code);
    }),
    { numRuns: amountOf({ short: 400, long: 2000 }) },
  );
});

test('any document gives a valid set or a refusal', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      '<Tag>',
      '</Tag>',
      '<Key>',
      '</Key>',
      '<Value>',
      '</Value>',
      '<TagSet>',
      '</TagSet>',
      '<!--',
      '&amp;',
    ),
    oddText,
    fc.tuple(oddText, oddText).map(([key, value]) => tag(escapeXml(key), escapeXml(value))),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 14 }), fc.boolean(), (pieces, isWrapped) => {
      const inner = isWrapped ? set(...pieces) : pieces.join('');
      expect(CODES).toContain(codeOf(() => expect(findTagFault(body(inner))).toBeUndefined()));
    }),
    { numRuns: amountOf({ short: 200, long: 1000 }) },
  );
});

test('what is written is read again, by document and by header', () => {
  const text = (maxLength: number, minLength = 0) =>
    fc.string({ unit: fc.constantFrom(...'aZ0 +-=._:/@äЖ日٣\u00a0'), minLength, maxLength });
  const tags = fc.uniqueArray(
    fc.record<Tag>({ key: text(128, 1).map((key) => `k${key}`.slice(0, 128)), value: text(256) }),
    { selector: ({ key }) => key, minLength: 1, maxLength: 10 },
  );
  fc.assert(
    fc.property(tags, (given) => {
      const sorted = given.toSorted((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)));
      expect(parse(Buffer.from(taggingDocument(given)))).toEqual(sorted);
      const pairs = given.map(({ key, value }) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`);
      expect(header(pairs.join('&'))).toEqual(given);
    }),
  );
});
