// Any headers about a body, in any form: they are understood before a byte of it is read, or refused.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { amountOf } from '../../../../tests/support/run/long-form.ts';
import { nearly, outcomeOf } from '../../../../tests/support/run/properties.ts';
import { readPayload } from '../../auth/payload-form.ts';
import type { Exchange } from '../../http/exchange.ts';
import { openBody } from './open-body.ts';

const NAMES = [
  ...[
    'content-md5',
    'x-amz-trailer',
    'x-amz-decoded-content-length',
    'x-amz-sdk-checksum-algorithm',
    'transfer-encoding',
  ],
  ...['x-amz-checksum-crc32', 'x-amz-checksum-crc32c', 'x-amz-checksum-crc64nvme', 'x-amz-checksum-sha1'],
];
const VALID = [
  ...[
    '1B2M2Y8AsgTpgAmY7PhCfg==',
    'AAAAAA==',
    'AAAAAAAAAAA=',
    'x-amz-checksum-crc32',
    'CRC32',
    '5',
    '0',
    'chunked',
  ],
  ...[
    'UNSIGNED-PAYLOAD',
    'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
    'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
    '0'.repeat(64),
  ],
];
const texts = nearly(VALID, ['=', 'A', '-', ' ', '9'.repeat(20), '\xff', 'x-amz-', '-TRAILER']);

test('any body has a size, comes in HTTP chunks, or is refused', () => {
  const headers = fc.dictionary(fc.constantFrom(...NAMES), texts);
  const declared = fc.option(fc.nat(), { nil: undefined });
  fc.assert(
    fc.property(
      headers,
      fc.option(texts),
      declared,
      fc.boolean(),
      (given, sha256, declaredBytes, mayBeAbsent) => {
        const exchange = { body: { declaredBytes } } as Exchange;
        const sent = { ...given, ...(sha256 !== null && { 'x-amz-content-sha256': sha256 }) };
        const outcome = outcomeOf(() => {
          const { form } = readPayload(sent, new Map());
          return openBody(exchange, { headers: sent, form, seed: undefined, mayBeAbsent });
        });
        if ('code' in outcome) return;
        const { sizeBytes, contentMd5, contentSha256 } = outcome.value;
        if (sizeBytes === undefined)
          expect((sent as Record<string, string>)['transfer-encoding']).toMatch(/^chunked$/i);
        else expect(Number.isSafeInteger(sizeBytes) && sizeBytes >= 0).toBe(true);
        expect(contentMd5 ?? '0'.repeat(32)).toMatch(/^[0-9a-f]{32}$/);
        expect(contentSha256 ?? '0'.repeat(64)).toMatch(/^[0-9a-f]{64}$/);
      },
    ),
    { numRuns: amountOf({ short: 200, long: 1000 }) },
  );
});
