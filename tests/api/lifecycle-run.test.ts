// Rules are carried out by a server whose lifecycle days are short (settings `lifecycle.day` and `lifecycle.scanInterval`).
import { expect, test } from 'vitest';
import { ENABLED, FILTER, putRules } from '../support/objects/lifecycle-documents.ts';
import { pathOf } from '../support/servers/raw-s3.ts';
import { expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi({ settings: { 'lifecycle.day': '1s', 'lifecycle.scanInterval': '1s' } });

test('an object is gone when its days are over', async () => {
  const bucket = await api.makeBucket();
  await api.send({ method: 'PUT', path: pathOf(bucket, 'k'), body: Buffer.from('12345') });
  const rule = `<ID>r</ID>${ENABLED}${FILTER}<Expiration><Days>1</Days></Expiration>`;
  expectStatus(await api.send(putRules(bucket, rule)), 200);
  let status = 200;
  const untilMs = Date.now() + 30_000;
  while (status === 200 && Date.now() < untilMs)
    ({ status } = await api.send({ method: 'HEAD', path: pathOf(bucket, 'k') }));
  expect(status).toBe(404);
});
