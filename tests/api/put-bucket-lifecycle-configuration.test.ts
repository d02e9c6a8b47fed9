// PutBucketLifecycleConfiguration: what is taken and given back, and what is refused in AWS's words (s3-behaviour 42).
import {
  DeleteBucketLifecycleCommand,
  GetBucketLifecycleConfigurationCommand,
  type LifecycleRule,
  PutBucketLifecycleConfigurationCommand,
} from '@aws-sdk/client-s3';
import { beforeAll, describe, expect, test } from 'vitest';
import type { ErrorCode } from '../../src/types/errors.ts';
import { ENABLED, EXPIRES, FILTER, lifecycleXml, putRules } from '../support/objects/lifecycle-documents.ts';
import { type Account, expectError, expectStatus, useApi, xmlOf } from '../support/servers/s3-api.ts';

const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
});

const MINIMUM = 'x-amz-transition-default-minimum-object-size';
const put = (...rules: string[]) => api.send(putRules(bucket, ...rules));
const putText = (text: string, headers: Record<string, string> = {}) =>
  api.send({ method: 'PUT', path: `/${bucket}?lifecycle`, headers, body: Buffer.from(text) });
const get = () => api.send({ method: 'GET', path: `/${bucket}?lifecycle` });
const rule = (...parts: string[]) => ENABLED + parts.join('');
const filter = (...conditions: string[]) => `<Filter>${conditions.join('')}</Filter>`;
const and = (...conditions: string[]) => filter(`<And>${conditions.join('')}</And>`);
const tag = (key: string, value = 'v') => `<Tag><Key>${key}</Key><Value>${value}</Value></Tag>`;
const noncurrent = (inner: string) => `<NoncurrentVersionExpiration>${inner}</NoncurrentVersionExpiration>`;
const abort = (days: number) =>
  `<AbortIncompleteMultipartUpload><DaysAfterInitiation>${days}</DaysAfterInitiation></AbortIncompleteMultipartUpload>`;
const expiration = (inner: string) => `<Expiration>${inner}</Expiration>`;

describe('what is put comes back', () => {
  const RULES: LifecycleRule[] = [
    { ID: 'all', Filter: {}, Status: 'Enabled', Expiration: { Days: 30 } },
    { ID: 'empty prefix', Filter: { Prefix: '' }, Status: 'Disabled', Expiration: { Days: 1 } },
    {
      ID: 'prefix',
      Filter: { Prefix: 'logs/é&<' },
      Status: 'Enabled',
      Expiration: { Date: new Date('2030-01-01T00:00:00Z') },
      NoncurrentVersionExpiration: { NoncurrentDays: 3, NewerNoncurrentVersions: 100 },
      AbortIncompleteMultipartUpload: { DaysAfterInitiation: 2 },
    },
    {
      ID: 'tag',
      Filter: { Tag: { Key: 'a', Value: '' } },
      Status: 'Enabled',
      NoncurrentVersionExpiration: { NoncurrentDays: 3 },
    },
    { ID: 'larger', Filter: { ObjectSizeGreaterThan: 0 }, Status: 'Enabled', Expiration: { Days: 2 } },
    {
      ID: 'smaller',
      Filter: { ObjectSizeLessThan: 1_099_511_627_776_000 },
      Status: 'Enabled',
      Expiration: { Days: 2_147_483_647 },
    },
    {
      ID: 'and',
      Filter: {
        And: {
          Prefix: 'p',
          Tags: [
            { Key: 'b', Value: '1' },
            { Key: 'a', Value: '2' },
          ],
          ObjectSizeGreaterThan: 5,
          ObjectSizeLessThan: 21_474_836_480,
        },
      },
      Status: 'Enabled',
      Expiration: { Days: 7 },
    },
    {
      ID: 'markers',
      Filter: { Prefix: 'm/' },
      Status: 'Enabled',
      Expiration: { ExpiredObjectDeleteMarker: true },
    },
    {
      ID: 'x'.repeat(255),
      Filter: {},
      Status: 'Enabled',
      Expiration: { ExpiredObjectDeleteMarker: false },
    },
  ];
  const OLD_RULES: LifecycleRule[] = [
    { ID: 'one', Prefix: 'a/', Status: 'Enabled', Expiration: { Days: 1 } },
    {
      ID: 'two',
      Prefix: 'a/b',
      Status: 'Disabled',
      AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 },
    },
  ];

  test.each([
    ['with filters', RULES],
    ['with prefixes of the rules themselves', OLD_RULES],
  ])('s3-behaviour 42: through the SDK, %s', async (_name, Rules) => {
    const Bucket = await api.makeBucket();
    const stored = await api.s3.send(
      new PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration: { Rules } }),
    );
    expect(stored.TransitionDefaultMinimumObjectSize).toBe('all_storage_classes_128K');
    const found = await api.s3.send(new GetBucketLifecycleConfigurationCommand({ Bucket }));
    expect(found).toMatchObject({ Rules, TransitionDefaultMinimumObjectSize: 'all_storage_classes_128K' });
    expect(found.Rules).toEqual(Rules);
    await api.s3.send(new DeleteBucketLifecycleCommand({ Bucket }));
    await expect(api.s3.send(new GetBucketLifecycleConfigurationCommand({ Bucket }))).rejects.toMatchObject({
      name: 'NoSuchLifecycleConfiguration',
    });
  });

  test('as AWS writes it, whatever the order of elements, with a declaration and a namespace', async () => {
    const { body, ...request } = putRules(bucket);
    const text = lifecycleXml(
      `${EXPIRES}<ID>r1</ID>${filter('<Prefix>logs/</Prefix>')}${ENABLED}`,
      `<Status>Disabled</Status>${and('<ObjectSizeGreaterThan>5</ObjectSizeGreaterThan>', '<ObjectSizeLessThan>21474836480</ObjectSizeLessThan>')}${expiration('<Date>2031-02-03</Date>')}<ID>r2</ID>`,
    ).replace('>', ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/">');
    const answer = await api.send({ ...request, body: Buffer.from(`<?xml version="1.0"?>\n${text}`) });
    expectStatus(answer, 200);
    expect(answer.body).toHaveLength(0);
    expect((await get()).body.toString()).toBe(
      '<?xml version="1.0" encoding="UTF-8"?>\n<LifecycleConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">' +
        '<Rule><ID>r1</ID><Filter><Prefix>logs/</Prefix></Filter><Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule>' +
        '<Rule><ID>r2</ID><Filter><And><ObjectSizeGreaterThan>5</ObjectSizeGreaterThan><ObjectSizeLessThan>21474836480</ObjectSizeLessThan></And></Filter>' +
        '<Status>Disabled</Status><Expiration><Date>2031-02-03T00:00:00.000Z</Date></Expiration></Rule></LifecycleConfiguration>',
    );
  });

  test('an id that is absent or empty is made up, once for all', async () => {
    const idsNow = async () => xmlOf(await get()).children.map(({ children }) => children[0]?.text);
    expectStatus(await put(rule(FILTER, EXPIRES), rule('<ID></ID>', FILTER, EXPIRES)), 200);
    const ids = await idsNow();
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) {
      expect(Buffer.from(id ?? '', 'base64').toString()).toMatch(
        /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      );
    }
    expect(await idsNow()).toEqual(ids);
  });

  test('it replaces what was there as a whole; 1000 rules are not too many', async () => {
    const rules = Array.from({ length: 1000 }, (_, at) =>
      rule(`<ID>rule ${at}</ID>`, filter(`<Prefix>folder ${at}/</Prefix>`), EXPIRES),
    );
    expectStatus(await put(...rules), 200);
    expect(xmlOf(await get()).children).toHaveLength(1000);
    expectStatus(await put(rule(FILTER, EXPIRES)), 200);
    expect(xmlOf(await get()).children).toHaveLength(1);
    expectError(await put(...rules, rule(FILTER, EXPIRES)), {
      status: 400,
      code: 'InvalidRequest',
      Message: 'The number of lifecycle rules must not exceed the allowed limit of 1000 rules.',
    });
  });

  test('the smallest size of transitions is kept with it', async () => {
    const text = lifecycleXml(rule(FILTER, EXPIRES));
    expect((await putText(text)).headers[MINIMUM]).toBe('all_storage_classes_128K');
    for (const value of ['varies_by_storage_class', 'all_storage_classes_128K']) {
      expect((await putText(text, { [MINIMUM]: value })).headers[MINIMUM]).toBe(value);
      expect((await get()).headers[MINIMUM]).toBe(value);
    }
    expectError(await putText(text, { [MINIMUM]: '1' }), {
      status: 400,
      code: 'InvalidRequest',
      Message: 'Invalid TransitionDefaultMinimumObjectSize found: 1',
    });
  });

  test('a checksum is looked at, and not demanded', async () => {
    const text = lifecycleXml(rule(FILTER, EXPIRES));
    expectStatus(await putText(text), 200);
    const headers = { 'content-md5': 'AAAAAAAAAAAAAAAAAAAAAA==' };
    expectError(await putText(text, headers), { status: 400, code: 'BadDigest' });
  });
});

type Refused = [name: string, rules: string[], code: ErrorCode, message?: string];
const sizes = (greater: number, less: number) =>
  and(
    `<ObjectSizeGreaterThan>${greater}</ObjectSizeGreaterThan>`,
    `<ObjectSizeLessThan>${less}</ObjectSizeLessThan>`,
  );
const greaterThan = (size: string) => filter(`<ObjectSizeGreaterThan>${size}</ObjectSizeGreaterThan>`);
const lessThan = (size: string) => filter(`<ObjectSizeLessThan>${size}</ObjectSizeLessThan>`);
const old = (prefix: string, ...more: string[]) => rule(`<Prefix>${prefix}</Prefix>`, ...more);

const REFUSED: Refused[] = [
  ['no rule', [], 'InvalidRequest', 'At least one lifecycle rule must be specified.'],
  ['no action', [rule(FILTER)], 'InvalidRequest', 'At least one action needs to be specified in a rule'],
  ['no status', [FILTER + EXPIRES], 'MalformedXML'],
  ['a status of another spelling', [`<Status>enabled</Status>${FILTER}${EXPIRES}`], 'MalformedXML'],
  ['neither Filter nor Prefix', [rule(EXPIRES)], 'MalformedXML'],
  ['both Filter and Prefix', [rule(FILTER, '<Prefix>a</Prefix>', EXPIRES)], 'MalformedXML'],
  ['an unknown element', [rule(FILTER, EXPIRES, '<DelMarkerExpiration/>')], 'MalformedXML'],
  ['two expirations', [rule(FILTER, EXPIRES, EXPIRES)], 'MalformedXML'],
  [
    'a Prefix of its own behind a Filter',
    [rule(FILTER, EXPIRES), old('a', EXPIRES)],
    'InvalidRequest',
    'Base level prefix cannot be used in Lifecycle V2, prefixes are only supported in the Filter.',
  ],
  [
    'a Filter behind a Prefix of its own',
    [old('a', EXPIRES), rule(FILTER, EXPIRES)],
    'InvalidRequest',
    'Filter element can only be used in Lifecycle V2.',
  ],
  [
    'a prefix of its own twice',
    [old('a', EXPIRES), old('b', EXPIRES), old('a', abort(1))],
    'InvalidRequest',
    "Found two rules with same prefix 'a'",
  ],
  [
    'prefixes of their own that overlap',
    [old('dir/', abort(1)), old('x', abort(1)), old('di', abort(1), EXPIRES)],
    'InvalidRequest',
    "Found overlapping prefixes 'dir/' and 'di' for same action type 'AbortIncompleteMultipartUpload'",
  ],
  [
    'one id twice',
    [rule('<ID>a</ID>', FILTER, EXPIRES), rule('<ID>a</ID>', FILTER, EXPIRES)],
    'InvalidArgument',
    'Rule ID must be unique. Found same ID for more than one rule',
  ],
  [
    'a long id',
    [rule(`<ID>${'x'.repeat(256)}</ID>`, FILTER, EXPIRES)],
    'InvalidArgument',
    'ID length should not exceed allowed limit of 255',
  ],
  ['two conditions outside of And', [rule(filter('<Prefix>a</Prefix>', tag('a')), EXPIRES)], 'MalformedXML'],
  ['two tags outside of And', [rule(filter(tag('a'), tag('b')), EXPIRES)], 'MalformedXML'],
  ['And with one condition', [rule(and('<Prefix>a</Prefix>'), EXPIRES)], 'MalformedXML'],
  ['And with nothing', [rule(and(), EXPIRES)], 'MalformedXML'],
  [
    'And beside another condition',
    [rule(filter(`<And>${tag('a')}${tag('b')}</And>`, '<Prefix>a</Prefix>'), EXPIRES)],
    'MalformedXML',
  ],
  ['a condition that is unknown', [rule(filter('<StorageClass>A</StorageClass>'), EXPIRES)], 'MalformedXML'],
  ['a tag without a value', [rule(filter('<Tag><Key>a</Key></Tag>'), EXPIRES)], 'MalformedXML'],
  [
    'one tag twice',
    [rule(and(tag('a', '1'), tag('a', '2')), EXPIRES)],
    'InvalidRequest',
    'Duplicate Tag Keys are not allowed.',
  ],
  [
    'a long key of a tag',
    [rule(filter(tag('x'.repeat(129))), EXPIRES)],
    'InvalidTag',
    'The TagKey you have provided is invalid',
  ],
  [
    'a long value of a tag',
    [rule(filter(tag('a', 'x'.repeat(257))), EXPIRES)],
    'InvalidTag',
    'The TagValue you have provided is invalid',
  ],
  [
    'more tags than an object has',
    [rule(and(...Array.from({ length: 11 }, (_, at) => tag(`t${at}`))), EXPIRES)],
    'InvalidTag',
    'Object tags cannot be greater than 10',
  ],
  [
    'a prefix that is longer than any key',
    [rule(filter(`<Prefix>${'é'.repeat(513)}</Prefix>`), EXPIRES)],
    'InvalidArgument',
    'Rule prefix cannot be longer than maximum allowed key length of 1024',
  ],
  ...(['-1', '1099511627776001'] as const).map(
    (size): Refused => [
      `a size above ${size}`,
      [rule(greaterThan(size), EXPIRES)],
      'InvalidRequest',
      "'ObjectSizeGreaterThan' should be between 0 and 1099511627776000.",
    ],
  ),
  ...(['0', '-5'] as const).map(
    (size): Refused => [
      `a size below ${size}`,
      [rule(lessThan(size), EXPIRES)],
      'InvalidRequest',
      "'ObjectSizeLessThan' should be between 1 and 1099511627776000.",
    ],
  ),
  ['a size that is no number', [rule(lessThan('1.5'), EXPIRES)], 'MalformedXML'],
  [
    'sizes that exclude one another',
    [rule(sizes(5, 5), EXPIRES)],
    'InvalidRequest',
    "'ObjectSizeLessThan' has to be a value greater than 'ObjectSizeGreaterThan'.",
  ],
  ...(['0', '-1'] as const).map(
    (days): Refused => [
      `${days} days`,
      [rule(FILTER, expiration(`<Days>${days}</Days>`))],
      'InvalidArgument',
      "'Days' for Expiration action must be a positive integer",
    ],
  ),
  ['days that are no number', [rule(FILTER, expiration('<Days>soon</Days>'))], 'MalformedXML'],
  ['too many days', [rule(FILTER, expiration('<Days>2147483648</Days>'))], 'MalformedXML'],
  ['an expiration of nothing', [rule(FILTER, expiration(''))], 'MalformedXML'],
  [
    'days and a date',
    [rule(FILTER, expiration('<Days>1</Days><Date>2030-01-01T00:00:00Z</Date>'))],
    'MalformedXML',
  ],
  [
    'days and expired markers',
    [rule(FILTER, expiration('<Days>1</Days><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>'))],
    'MalformedXML',
  ],
  ...(['2030-01-01T01:00:00Z', '2030-01-01T00:00:00.001Z', '2030-01-01T00:00:00+01:00'] as const).map(
    (date): Refused => [
      `the date ${date}`,
      [rule(FILTER, expiration(`<Date>${date}</Date>`))],
      'InvalidArgument',
      "'Date' must be at midnight GMT",
    ],
  ),
  ...(
    ['tomorrow', 'Fri, 01 Jan 2016 00:00:00 GMT', '2030-02-30', '2030-13-01', '2030-01-01T24:61:00Z'] as const
  ).map(
    (date): Refused => [
      `the date ${date}`,
      [rule(FILTER, expiration(`<Date>${date}</Date>`))],
      'MalformedXML',
    ],
  ),
  ...(['true', 'false'] as const).flatMap((value): Refused[] => {
    const marker = expiration(`<ExpiredObjectDeleteMarker>${value}</ExpiredObjectDeleteMarker>`);
    const name = 'ExpiredObjectDeleteMarker cannot be specified with';
    return [
      [`markers (${value}) with tags`, [rule(filter(tag('a')), marker)], 'InvalidRequest', `${name} Tags.`],
      [
        `markers (${value}) with sizes`,
        [rule(sizes(1, 9), marker)],
        'InvalidRequest',
        `${name} Object Size.`,
      ],
    ];
  }),
  [
    'markers that are neither',
    [rule(FILTER, expiration('<ExpiredObjectDeleteMarker>yes</ExpiredObjectDeleteMarker>'))],
    'MalformedXML',
  ],
  [
    'uploads with tags',
    [rule(and('<Prefix>a</Prefix>', tag('a')), abort(1))],
    'InvalidRequest',
    'AbortIncompleteMultipartUpload cannot be specified with Tags.',
  ],
  [
    'uploads with sizes',
    [rule(greaterThan('1'), abort(1), EXPIRES)],
    'InvalidRequest',
    'AbortIncompleteMultipartUpload cannot be specified with Object Size.',
  ],
  [
    'uploads after no day',
    [rule(FILTER, abort(0))],
    'InvalidArgument',
    "'DaysAfterInitiation' for AbortIncompleteMultipartUpload action must be a positive integer",
  ],
  [
    'uploads without days',
    [rule(FILTER, '<AbortIncompleteMultipartUpload></AbortIncompleteMultipartUpload>')],
    'MalformedXML',
  ],
  [
    'noncurrent versions after no day',
    [rule(FILTER, noncurrent('<NoncurrentDays>0</NoncurrentDays>'))],
    'InvalidArgument',
    "'NoncurrentDays' for NoncurrentVersionExpiration action must be a positive integer",
  ],
  [
    'noncurrent versions by count alone',
    [rule(FILTER, noncurrent('<NewerNoncurrentVersions>1</NewerNoncurrentVersions>'))],
    'MalformedXML',
  ],
  [
    'no newer versions',
    [
      rule(
        FILTER,
        noncurrent('<NoncurrentDays>1</NoncurrentDays><NewerNoncurrentVersions>0</NewerNoncurrentVersions>'),
      ),
    ],
    'InvalidArgument',
    "'NewerNoncurrentVersions' for NoncurrentVersionExpiration action must be a positive integer",
  ],
  [
    'more newer versions than 100',
    [
      rule(
        FILTER,
        noncurrent(
          '<NoncurrentDays>1</NoncurrentDays><NewerNoncurrentVersions>101</NewerNoncurrentVersions>',
        ),
      ),
    ],
    'InvalidArgument',
    "'NewerNoncurrentVersions' for NoncurrentVersionExpiration action must not exceed 100",
  ],
  [
    'newer versions in the old form',
    [
      old(
        'a',
        noncurrent('<NoncurrentDays>1</NoncurrentDays><NewerNoncurrentVersions>1</NewerNoncurrentVersions>'),
      ),
    ],
    'InvalidRequest',
    'NewerNoncurrentVersions element can only be used in Lifecycle V2.',
  ],
];

test('s3-behaviour 42: a wrong Status is MalformedXML, Days 0 InvalidArgument', async () => {
  const expires = (days: number) => expiration(`<Days>${days}</Days>`);
  for (const status of ['enabled', 'On', ''])
    expectError(await put(`<Status>${status}</Status>${FILTER}${expires(1)}`), {
      status: 400,
      code: 'MalformedXML',
    });
  expectError(await put(rule(FILTER, expires(0))), { status: 400, code: 'InvalidArgument' });
});

test('s3-behaviour 42: a Filter holds And with tags, prefix and both size bounds, or is empty', async () => {
  const bounds = [
    '<ObjectSizeGreaterThan>5</ObjectSizeGreaterThan>',
    '<ObjectSizeLessThan>9</ObjectSizeLessThan>',
  ];
  expectStatus(await put(rule(and('<Prefix>a</Prefix>', tag('a'), tag('b'), ...bounds), EXPIRES)), 200);
  const stored = (await get()).body.toString();
  for (const part of ['<And>', '<Key>a</Key>', '<Key>b</Key>', '<Prefix>a</Prefix>', ...bounds])
    expect(stored).toContain(part);
  expectStatus(await put(rule('<Filter></Filter>', EXPIRES)), 200);
});

test.each(REFUSED)(
  '%s is refused, and the rules that were there stay',
  async (_name, rules, code, Message) => {
    expectStatus(await put(rule('<ID>stays</ID>', FILTER, EXPIRES)), 200);
    expectError(await put(...rules), { status: 400, code, ...(Message !== undefined && { Message }) });
    expect((await get()).body.toString()).toContain('<ID>stays</ID>');
  },
);

test.each([
  '<Transition><Days>30</Days><StorageClass>GLACIER</StorageClass></Transition>',
  '<NoncurrentVersionTransition><NoncurrentDays>30</NoncurrentDays><StorageClass>GLACIER</StorageClass></NoncurrentVersionTransition>',
])('another storage class is not there: %s', async (transition) => {
  expectError(await put(rule(FILTER, EXPIRES, transition)), { status: 501, code: 'NotImplemented' });
  // What AWS refuses is refused as AWS does.
  expectError(await put(rule(FILTER, transition, abort(0))), { status: 400, code: 'InvalidArgument' });
});

test('what is no document, and what is too long', async () => {
  expectError(await putText(''), { status: 400, code: 'MissingRequestBodyError' });
  expectError(await putText('<LifecycleConfiguration>'), { status: 400, code: 'MalformedXML' });
  expectError(await putText('<Other/>'), { status: 400, code: 'MalformedXML' });
  const long = lifecycleXml(rule(FILTER, EXPIRES, ' '.repeat(60_000).repeat(9)));
  expectError(await putText(long), { status: 400, code: 'MaxMessageLengthExceeded' });
});

test('only the owner may, and only of an existing bucket', async () => {
  const stranger: Account = await api.makeAccount();
  const denied = { status: 403, code: 'AccessDenied' } as const;
  const request = putRules(bucket, rule(FILTER, EXPIRES));
  expectError(await api.send(request, stranger), denied);
  const headers = { 'x-amz-expected-bucket-owner': stranger.canonicalId };
  expectError(await api.send({ ...request, headers }), denied);
  const nowhere = putRules('no-such-bucket-here', rule(FILTER, EXPIRES));
  expectError(await api.send(nowhere), { status: 404, code: 'NoSuchBucket' });
});
