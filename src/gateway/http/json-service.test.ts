import { expect, test } from 'vitest';
import { createJsonService } from './json-service.ts';

test('a long answer is written in turns, as bytes, and others have theirs meanwhile', async () => {
  const items = Array.from({ length: 1000 }, (_, id) => ({ id, text: 'ü'.repeat(4000) }));
  const service = createJsonService<undefined>({
    bodyBytesMax: 1024,
    plugin: async (app) => {
      app.get('/long', async () => ({ data: { items } }));
      app.get('/short', async () => ({ data: null }));
    },
  });
  const ask = (url: string, payer: string) =>
    service.answer({ method: 'GET', url, payer, body: Buffer.alloc(0), caller: undefined });
  await ask('/short', 'one');
  const order: string[] = [];
  const long = ask('/long', 'one').then((answer) => {
    order.push('long');
    return answer;
  });
  await ask('/short', 'other').then(() => order.push('short'));
  const { body } = await long;
  expect(order).toEqual(['short', 'long']);
  expect(Buffer.isBuffer(body) && body.toString()).toBe(JSON.stringify({ data: { items } }));
});
