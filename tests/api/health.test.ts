// /health/live and /health/ready: for load balancers and supervisors, without credentials.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

test.each(['/health/live', '/health/ready'])('%s is 200 while the server serves', async (path) => {
  const answer = await fetch(server.endpoint + path);
  expect([answer.status, await answer.json()]).toEqual([200, { status: 'ok' }]);
  expect((await fetch(server.endpoint + path, { method: 'HEAD' })).status).toBe(200);
  expect((await fetch(`${server.endpoint}${path}?probe=1`)).status).toBe(200);
});

test('there are no other health pages, and no other methods', async () => {
  expect((await fetch(`${server.endpoint}/health`)).status).toBe(404);
  expect((await fetch(`${server.endpoint}/health/other`)).status).toBe(404);
  expect((await fetch(`${server.endpoint}/health/live`, { method: 'PUT' })).status).toBe(405);
});
