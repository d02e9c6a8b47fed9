import { expect, test } from 'vitest';
import { protocolError } from './protocol-errors.ts';

test.each(['ECANCELED', 'ETIMEDOUT', 'ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC', undefined])(
  'a connection that fails by %s has sent no bad request',
  (code) => {
    expect(
      protocolError(Object.assign(new Error('it failed'), code === undefined ? {} : { code })),
    ).toBeUndefined();
  },
);
