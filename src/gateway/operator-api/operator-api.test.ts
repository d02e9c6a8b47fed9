// What the operator API makes of any path and any body; what its calls do is in tests/api.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { byteText, nearly } from '../../../tests/support/properties.ts';
import { AppError } from '../../types/errors.ts';
import type { AccountRecord } from '../../types/records/rows.ts';
import type { EndpointContext } from './endpoint.ts';
import { answerOperator, ENDPOINTS, OPERATOR_PREFIX } from './operator-api.ts';

/** Whatever is called has nothing to tell: only what is asked is looked at. */
const nothing = new Proxy(() => {}, {
  get: () => nothing,
  apply: () => {
    throw new AppError('NoSuchEntity');
  },
}) as unknown as EndpointContext;
const account = { isRoot: true } as AccountRecord;

const bodies = nearly(
  ['{"name":"a name","email":"a@b.c"}', '{"state":"paid","bucketsMax":5}', '{"readData":true}', '{}', ''],
  [
    '{',
    '}',
    '[',
    '"',
    ':',
    ',',
    '"__proto__":1',
    '"constructor":{}',
    'null',
    '1e999',
    '-',
    '\\u0000',
    '\xff',
    '0'.repeat(400),
  ],
);
const segments = fc.oneof(
  fc.constantFrom('%zz', '%00', '%2F', '', '..', '__proto__', '1', '-1', '1e9'),
  byteText,
);

test('any call is answered, or refused as the mistake of who calls', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...ENDPOINTS),
      segments,
      bodies,
      fc.boolean(),
      async (row, segment, text, isPlain) => {
        const url = OPERATOR_PREFIX + (isPlain ? row.path : row.path.replace(/:\w+/g, () => segment));
        const request = {
          method: row.method,
          url,
          body: Buffer.from(text, 'latin1'),
          account,
          accessKey: 'AK',
        };
        const error = await answerOperator(nothing, request).then(
          () => undefined,
          (caught: unknown) => caught,
        );
        if (error === undefined) return;
        if (!(error instanceof AppError)) throw error;
        expect(['NoSuchEntity', 'ValidationError', 'InvalidURI', 'MethodNotAllowed']).toContain(error.code);
      },
    ),
    { numRuns: 1500 },
  );
});
