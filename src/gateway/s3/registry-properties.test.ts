// Every row of the registry, so that new ones come in by themselves: whatever the head and the document of a request say,
// they are matched, screened and parsed, or refused as the client's mistake.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HEADER_NAMES, PARAMETER_NAMES } from '../../../tests/support/fuzz/fuzz-words.ts';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import { byteText, nearly, outcomeOf } from '../../../tests/support/run/properties.ts';
import { finishAtOnce } from '../../base/async/steps.ts';
import type { BucketName, ObjectKey } from '../../types/names.ts';
import { createMatcher } from './matcher.ts';
import type { OperationRequest } from './operation.ts';
import { OPERATIONS } from './registry.ts';
import type { RequestBody } from './request/request-body.ts';
import { screenHeaders } from './request/screen-headers.ts';
import { UNSUPPORTED } from './unsupported.ts';

const VALUES = [
  ...[
    '',
    '0',
    '1',
    '-1',
    '10001',
    '2147483648',
    'url',
    'true',
    'null',
    '*',
    '"a"',
    'W/"a", b',
    'bytes=0-4',
    'AES256',
  ],
  ...[
    'a=b&c=%20',
    '/bucket/key?versionId=null',
    'CRC32',
    'COMPOSITE',
    'AAAAAA==',
    'COPY',
    'REPLACE',
    'ENABLED',
  ],
  ...['Sun, 06 Nov 1994 08:49:37 GMT', '__proto__', 'constructor', '1YQ', '0'.repeat(44), 'A'.repeat(32)],
];
const value = nearly(VALUES, [
  '"',
  ',',
  ' ',
  '=',
  '&',
  '%',
  '%zz',
  '/',
  '-',
  '\xff',
  '0',
  '*',
  'a',
  '?versionId=',
]);
const text = fc.oneof(value, fc.string({ unit: 'grapheme' }));
const fields = <Text>(names: readonly string[], values: fc.Arbitrary<Text>) =>
  fc.array(fc.tuple(fc.constantFrom(...names), values), { maxLength: 6 });
const heads = fc.record({ parameters: fields(PARAMETER_NAMES, text), headers: fields(HEADER_NAMES, value) });

function requestOf(head: { parameters: [string, string][]; headers: [string, string][] }): OperationRequest {
  const headers: Record<string, string> = Object.create(null);
  for (const [name, sent] of head.headers) headers[name] = sent;
  const body = { sizeBytes: 5, contentMd5: 'd41d8cd98f00b204e9800998ecf8427e' } as unknown as RequestBody;
  const names = { bucket: 'bucket' as BucketName, key: 'key' as ObjectKey };
  const successAction = { status: 204 } as const;
  const query = new Map(head.parameters);
  return { method: 'PUT', ...names, query, headers, body, mayCarrySecrets: true, successAction };
}

describe.each(OPERATIONS.map((row) => [row.name, row] as const))('%s', (_name, row) => {
  test('reads any head, or refuses it', () => {
    const own = [...(row.match.query ?? []), ...('claims' in row ? (row.parameters as string[]) : [])];
    const ofRow = fields([...own.map((term) => term.replace(/=.*/, '')), 'prefix'], text);
    fc.assert(
      fc.property(heads, ofRow, (head, more) => {
        const request = requestOf({ ...head, parameters: [...more, ...head.parameters] });
        outcomeOf(() => screenHeaders(row, request.headers));
        const parsed = outcomeOf(() => row.parse(request));
        if ('value' in parsed) expect(Array.isArray(row.access(parsed.value, undefined))).toBe(true);
      }),
      { numRuns: amountOf({ short: 40, long: 150 }) },
    );
  });
});

const DOCUMENTS = [
  '<Delete><Quiet>true</Quiet><Object><Key>a</Key><VersionId>null</VersionId><ETag>"a"</ETag><Size>1</Size></Object></Delete>',
  '<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"a"</ETag><ChecksumCRC32>AAAAAA==</ChecksumCRC32></Part></CompleteMultipartUpload>',
  '<VersioningConfiguration><Status>Enabled</Status><MfaDelete>Disabled</MfaDelete></VersioningConfiguration>',
  '<CreateBucketConfiguration><LocationConstraint>eu</LocationConstraint><Tags/></CreateBucketConfiguration>',
  '<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>',
  '<ComposeRequest><Component><Key>a</Key><VersionId>null</VersionId><IfMatch>"a"</IfMatch></Component></ComposeRequest>',
  '<ComposeRequest><Component><Key>a</Key></Component><Component><Key>b</Key><VersionID>null</VersionID><IfNoneMatch>*</IfNoneMatch></Component></ComposeRequest>',
];
const XML_PIECES = [
  '<',
  '>',
  '/',
  '&',
  ';',
  '&#0;',
  '&#x10ffff;',
  '<a/>',
  '</Key>',
  '<Key>',
  '-1',
  '__proto__',
  '\xff',
  '\x00',
];

test.each(
  OPERATIONS.filter((row) => 'parseDocument' in row && row.parseDocument !== undefined).map(
    (row) => [row.name, row] as const,
  ),
)('%s reads any document, or refuses it', (_name, row) => {
  fc.assert(
    fc.property(
      nearly(DOCUMENTS, XML_PIECES),
      fc.constantFrom<BufferEncoding>('utf8', 'latin1'),
      (document, encoding) => {
        outcomeOf(() => {
          const steps = row.parseDocument?.(Buffer.from(document, encoding), {} as never);
          if (steps !== undefined) finishAtOnce(steps);
        });
      },
    ),
    { numRuns: amountOf({ short: 80, long: 400 }) },
  );
});

test('any request is matched to a row, or refused', () => {
  const match = createMatcher([...OPERATIONS, ...UNSUPPORTED]);
  const methods = fc.constantFrom(
    'GET',
    'HEAD',
    'PUT',
    'POST',
    'DELETE',
    'OPTIONS',
    'MOVE',
    'PATCH',
    '__proto__',
  );
  const levels = fc.constantFrom('service' as const, 'bucket' as const, 'object' as const);
  fc.assert(
    fc.property(heads, methods, levels, byteText, (head, method, level, name) => {
      const { query, headers } = requestOf({ ...head, parameters: [...head.parameters, [name, name]] });
      const outcome = outcomeOf(() => match({ method, level, key: name, query, headers }));
      if ('value' in outcome) expect(outcome.value.match).toMatchObject({ method, on: level });
      else expect(['InvalidArgument', 'MethodNotAllowed']).toContain(outcome.code);
    }),
    { numRuns: amountOf({ short: 200, long: 1000 }) },
  );
});
