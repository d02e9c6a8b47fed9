import { expect, test } from 'vitest';
import { AppError } from '../../../types/errors.ts';
import type { OperationResult } from '../operation.ts';
import { answerWhenDone } from './answer-when-done.ts';

const RESULT: OperationResult = { status: 200, headers: { a: 'b' }, body: { kind: 'xml', text: '<Done/>' } };

/** Its sleeps end on request, or when they are cancelled. */
function stoppedClock() {
  let ring = () => {};
  const isCalledOff: boolean[] = [];
  const sleep = (_ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      ring = resolve;
      signal?.addEventListener('abort', () => {
        isCalledOff.push(true);
        resolve();
      });
    });
  return { clock: { wallMs: () => 0, monotonicMs: () => 0, sleep }, ring: () => ring(), isCalledOff };
}

test('work that ends in time is answered normally, and the timer is cancelled', async () => {
  const { clock, isCalledOff } = stoppedClock();
  expect(await answerWhenDone({ clock }, Promise.resolve(RESULT))).toBe(RESULT);
  expect(isCalledOff).toEqual([true]);
});

test('an error in time is the error of the request', async () => {
  const { clock } = stoppedClock();
  const work = Promise.reject(new AppError('NoSuchUpload'));
  await expect(answerWhenDone({ clock }, work)).rejects.toThrowError(
    expect.objectContaining({ code: 'NoSuchUpload' }),
  );
});

test('late work is answered in the body', async () => {
  const { clock, ring } = stoppedClock();
  const work = Promise.withResolvers<OperationResult>();
  const answer = answerWhenDone({ clock }, work.promise);
  ring();
  const { status, body } = await answer;
  expect(status).toBe(200);
  work.resolve(RESULT);
  expect(body?.kind === 'slow-xml' && (await body.text)).toBe('<Done/>');
});
