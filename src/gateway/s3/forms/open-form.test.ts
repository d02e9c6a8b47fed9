// How much of a form is read before its sender is known, and for how long. What forms do is in tests/api/post-object.test.ts.
import { expect, test } from 'vitest';
import { ACCOUNT, AWS, openSigningWorld } from '../../../../tests/support/objects/signing-world.ts';
import { BOUNDARY, formBody, signForm } from '../../../../tests/support/servers/forms.ts';
import { createFairShare } from '../../../base/async/fair-share.ts';
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { Exchange } from '../../http/exchange.ts';
import { openForm } from './open-form.ts';

const { identities, clock } = await openSigningWorld(Date.now());
const rules = { service: 's3', takesSigV2: true };
const shedding = { refuse: () => new AppError('SlowDown'), noteYield() {} };
const unverifiedForms = createFairShare({ limit: 4 * LIMITS.formFieldsBytesMax, weights: [1] });
const deps = { identities, clock, rules, shedding, unverifiedForms };

/** A client that sends these pieces, and then nothing more. */
function clientOf(
  pieces: Buffer[],
  { address = 'a', declaredBytes }: { address?: string; declaredBytes?: number } = {},
) {
  const failed = Promise.withResolvers<never>();
  let readBytes = 0;
  let turns = 0;
  const body = {
    declaredBytes,
    async turn() {
      turns++;
    },
    async read() {
      const piece = pieces.shift();
      if (piece === undefined) return failed.promise;
      readBytes += piece.length;
      return piece;
    },
    fail: (error: AppError) => failed.reject(error),
  };
  const client = { remoteAddress: address };
  const exchange = { body, client, tenant: { account: undefined, address }, headers: { values: {} } };
  return { exchange: exchange as unknown as Exchange, readBytes: () => readBytes, turns: () => turns };
}

const open = ({ exchange }: ReturnType<typeof clientOf>) =>
  openForm(deps, { exchange, boundary: BOUNDARY, bucket: 'bucket', row: {} });

test('fields that do not come in time are RequestTimeout, and count against their address until then', async () => {
  const first = open(clientOf([Buffer.from('--')]));
  const refused = expect(first).rejects.toMatchObject({ code: 'RequestTimeout' });
  const second = expect(open(clientOf([]))).rejects.toMatchObject({ code: 'RequestTimeout' });
  await expect(open(clientOf([]))).rejects.toMatchObject({ code: 'SlowDown' });
  // Another address has its own share.
  const other = expect(open(clientOf([], { address: 'b' }))).rejects.toMatchObject({
    code: 'RequestTimeout',
  });
  clock.advance(LIMITS.formFieldsMaxMs);
  await Promise.all([refused, second, other]);
  const again = expect(open(clientOf([]))).rejects.toMatchObject({ code: 'RequestTimeout' });
  clock.advance(LIMITS.formFieldsMaxMs);
  await again;
});

test('the lines of a form take turns of those who read bodies', async () => {
  const line = '--B\r\nContent-Disposition: form-data; name="x-ignore-';
  const fields = Array.from({ length: 180 }, (_, at) => `${line}${at}"\r\n\r\n\r\n`).join('');
  const client = clientOf([Buffer.from(`${fields}--B--\r\n`.replaceAll('--B', `--${BOUNDARY}`))]);
  // There is no file behind them.
  await expect(open(client)).rejects.toMatchObject({ code: 'InvalidArgument' });
  expect(client.turns()).toBe(2);
});

test('the file of a form that is open may take its time, and nothing of it is read before it is asked for', async () => {
  const fields = signForm({ ...AWS, endpoint: '' }, 'bucket', [['key', 'k']]);
  const body = formBody({ fields, file: 'x'.repeat(1000) });
  const cut = body.indexOf('x'.repeat(1000)) + 10;
  const client = clientOf([body.subarray(0, cut), body.subarray(cut, cut + 100), body.subarray(cut + 100)]);
  const form = await open(client);
  expect(form.authentication.caller).toMatchObject({ kind: 'account', account: { accountId: ACCOUNT } });
  expect(client.readBytes()).toBe(cut);
  clock.advance(2 * LIMITS.formFieldsMaxMs);
  const read: number[] = [];
  const stream = form.body.stream[Symbol.asyncIterator]();
  for (let next = await stream.next(); next.done !== true && read.length < 2; next = await stream.next()) {
    read.push(client.readBytes());
  }
  expect(read).toEqual([cut, cut + 100]);
});
