// Answers that begin before their outcome is known, on a real connection: white space first, then the document, or the
// error that came of it.
import { afterEach, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { parseXml } from '../../base/xml/parse-xml.ts';
import { systemClock } from '../../platform/system-clock.ts';
import { AppError } from '../../types/errors.ts';
import { answerWhenDone } from './extensions/answer-when-done.ts';
import { defineOperation, type OperationResult } from './operation.ts';
import { s3Document } from './request/vendor.ts';

let world: GatewayWorld | undefined;
afterEach(() => world?.close());

/** A server whose one operation ends as `work` does, and for which all waiting is short. */
async function serve(work: () => Promise<OperationResult>): Promise<Response> {
  const slow = defineOperation({
    name: 'Slow',
    match: { method: 'GET', on: 'service' },
    logName: 'REST.GET.SLOW',
    body: 'none',
    auth: 'none',
    errors: [],
    parse: () => undefined,
    access: () => [],
    run: (context) => answerWhenDone(context, work()),
  });
  const sleep = (_ms: number, signal?: AbortSignal) => systemClock.sleep(10, signal);
  const clock = { ...systemClock, sleep };
  world = await openGatewayWorld({ deps: { operations: [slow], clock } });
  return fetch(world.endpoint);
}

/** Reads until there is white space behind the declaration, then lets the work end, then reads the rest. */
async function readWhile(answer: Response, end: () => void): Promise<string> {
  let text = '';
  for await (const piece of answer.body ?? []) {
    text += Buffer.from(piece).toString('utf8');
    if (/\?>\s{3,}$/.test(text)) end();
  }
  return text;
}

test('white space, then the document', async () => {
  const work = Promise.withResolvers<OperationResult>();
  const answer = await serve(() => work.promise);
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/xml']);
  const text = await readWhile(answer, () =>
    work.resolve({ status: 200, body: { kind: 'xml', text: s3Document('Done', '<A>1</A>') } }),
  );
  const root = parseXml(Buffer.from(text), { depthMax: 4 });
  expect([root.name, root.children[0]?.text]).toEqual(['Done', '1']);
});

test('white space, then the error, which is also logged', async () => {
  const work = Promise.withResolvers<OperationResult>();
  const answer = await serve(() => work.promise);
  const text = await readWhile(answer, () => work.reject(new AppError('InvalidPart')));
  const root = parseXml(Buffer.from(text), { depthMax: 4 });
  expect([root.name, root.children[0]?.text]).toEqual(['Error', 'InvalidPart']);
  await expect.poll(() => world?.requests()).toMatchObject([{ status: 200, errorCode: 'InvalidPart' }]);
});

test('an error in time has its own status', async () => {
  const answer = await serve(() => Promise.reject(new AppError('InvalidPart')));
  expect(answer.status).toBe(400);
});

test('a request lasts as long as its work, even if its client has left', async () => {
  const work = Promise.withResolvers<OperationResult>();
  const answer = await serve(() => work.promise);
  await answer.body?.cancel();
  // Long enough for the server to see it, and for more white space than it would take.
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(world?.gateway.oldestRequestMs()).toBeDefined();
  work.resolve({ status: 200, body: { kind: 'xml', text: s3Document('Done') } });
  await expect.poll(() => world?.gateway.oldestRequestMs()).toBeUndefined();
});
