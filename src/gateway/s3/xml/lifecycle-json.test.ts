import { expect, test } from 'vitest';
import { finishAtOnce } from '../../../base/async/steps.ts';
import { utf8 } from '../../../base/bytes/bytes.ts';
import { readLifecycleText } from './lifecycle-json.ts';
import { LIFECYCLE_ROOT, lifecycleDocument, readRules } from './lifecycle-xml.ts';
import { readXmlBody } from './xml-body.ts';

const RULES = {
  Rules: [
    {
      ID: 'one',
      Filter: {
        And: {
          Prefix: 'a/',
          Tags: [
            { Key: 'k', Value: 'v' },
            { Key: 'l', Value: '' },
          ],
          ObjectSizeGreaterThan: 5,
        },
      },
      Status: 'Enabled',
      Expiration: { Days: 3 },
      NoncurrentVersionExpiration: { NoncurrentDays: 2, NewerNoncurrentVersions: 4 },
    },
    {
      Filter: { Tag: { Key: 'k', Value: 'v' } },
      Status: 'Disabled',
      Expiration: { Date: '2030-01-01T00:00:00+00:00' },
    },
    { Prefix: '', Status: 'Enabled', AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 } },
    { Filter: {}, Status: 'Enabled', Expiration: { ExpiredObjectDeleteMarker: true } },
  ],
};
const XML =
  '<LifecycleConfiguration>' +
  '<Rule><ID>one</ID><Filter><And><Prefix>a/</Prefix><Tag><Key>k</Key><Value>v</Value></Tag><Tag><Key>l</Key><Value></Value></Tag>' +
  '<ObjectSizeGreaterThan>5</ObjectSizeGreaterThan></And></Filter><Status>Enabled</Status><Expiration><Days>3</Days></Expiration>' +
  '<NoncurrentVersionExpiration><NoncurrentDays>2</NoncurrentDays><NewerNoncurrentVersions>4</NewerNoncurrentVersions></NoncurrentVersionExpiration></Rule>' +
  '<Rule><Filter><Tag><Key>k</Key><Value>v</Value></Tag></Filter><Status>Disabled</Status><Expiration><Date>2030-01-01T00:00:00+00:00</Date></Expiration></Rule>' +
  '<Rule><Prefix></Prefix><Status>Enabled</Status><AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload></Rule>' +
  '<Rule><Filter></Filter><Status>Enabled</Status><Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration></Rule>' +
  '</LifecycleConfiguration>';

const read = (text: string) => finishAtOnce(readLifecycleText(text));

test('JSON of the AWS CLI says the same as the XML', () => {
  const rules = read(JSON.stringify(RULES, undefined, 2));
  expect(rules).toHaveLength(4);
  expect(rules).toEqual(read(`\n${XML}`));
  // What get-bucket-lifecycle-configuration prints.
  const printed = { TransitionDefaultMinimumObjectSize: 'all_storage_classes_128K', ...RULES };
  expect(read(JSON.stringify(printed))).toEqual(rules);
});

test.each<[name: string, text: string]>([
  ['no JSON', '{'],
  ['no object', '[]'],
  ['null', '{"Rules":[null]}'],
  ['rules that are no list', '{"Rules":{}}'],
  ['another field', '{"Rule":[]}'],
  ['a field of a rule that is unknown', '{"Rules":[{"Filter":{},"Status":"Enabled","Expires":1}]}'],
  ['a list where none is', '{"Rules":[{"Filter":[],"Status":"Enabled"}]}'],
  ['the name of a field of every object', '{"Rules":[{"constructor":1}]}'],
  ['what has too many values', `{"Rules":[${Array(20_000).fill('{"Status":"Enabled"}').join(',')}]}`],
  ['what is deep', `{"Rules":[${'{"Filter":'.repeat(2000)}1${'}'.repeat(2000)}]}`],
])('%s is refused', (_name, text) => {
  expect(() => read(text)).toThrow();
});

test('what is written is read back as it was', async () => {
  const rules = [
    {
      id: 'a & b',
      isEnabled: true,
      filter: { prefix: '', tags: [{ key: 'k', value: '<' }], sizeLessThan: 9 },
      expiration: { atMs: Date.UTC(2030, 0, 1) },
    },
    {
      id: 'c',
      isEnabled: false,
      filter: { prefix: 'p' },
      hasOldPrefix: true as const,
      abortUploadsAfterDays: 1,
    },
  ];
  const text = await lifecycleDocument({ turn: async () => {} }, { rules });
  const found = finishAtOnce(readXmlBody(utf8(text), LIFECYCLE_ROOT, readRules));
  expect(found).toMatchObject([
    { id: 'a & b', filter: rules[0]?.filter, expiration: rules[0]?.expiration },
    { id: 'c', prefix: 'p', isEnabled: false, abortUploadsAfterDays: 1 },
  ]);
});
