// What of a body's intake no client can show at will; the rest is in server.test.ts.
import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createManualClock } from '../../tests/support/simulated.ts';
import { BodyIntake } from './body-intake.ts';

test('a client that has left before anybody reads its body is not waited for', async () => {
  const request = new IncomingMessage(new Socket());
  request.headers = { 'content-length': '10' };
  const intake = new BodyIntake({
    request,
    response: new ServerResponse(request),
    clock: createManualClock(0),
    queues: { usedBytes: 0 },
  });
  request.destroy();
  await once(request, 'close');
  await expect(intake.read()).rejects.toMatchObject({ code: 'IncompleteBody' });
  expect(intake.waitingSinceMs).toBeUndefined();
});
