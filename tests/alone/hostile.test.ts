// The attacks of bench/hostile.ts in short: while one goes on, another account is answered, and never refused. What an
// attack costs in time and memory is measured there.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ATTACKS, prepare } from '../../bench/hostile/attacks.ts';
import { Crowd } from '../../bench/hostile/crowd.ts';
import { neighbourWork, prepareNeighbour, type Work } from '../../bench/hostile/neighbour.ts';
import type { Access } from '../support/servers/raw-s3.ts';
import { createAccount } from '../support/servers/s3-api.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

/** Of each kind of request. */
const ROUNDS = 2;
/** For a busy machine: what is measured is not how fast they are answered. */
const PATIENCE_MS = 60_000;

let server: TestServer;
let attacker: Access;
let work: Work[];

beforeAll(async () => {
  server = await startServer({ child: true, countsForCoverage: false });
  attacker = await createAccount(server);
  const neighbour = await createAccount(server);
  await prepare(attacker, 1000);
  await prepareNeighbour(neighbour);
  work = neighbourWork(neighbour, server, PATIENCE_MS);
});
afterAll(() => server?.stop());

describe('another account is served meanwhile', () => {
  test.each(ATTACKS)('$name', async (attack) => {
    const { hostname, port } = new URL(server.endpoint);
    const crowd = new Crowd({ host: hostname, port: Number(port), localAddress: '127.0.0.2' });
    try {
      await attack.begin({ crowd, account: attacker, scale: 1 });
      for (let round = 0; round < ROUNDS; round++) {
        const statuses = await Promise.all(work.map(({ run }) => run()));
        expect(Object.fromEntries(work.map(({ name }, at) => [name, statuses[at]]))).toEqual(
          Object.fromEntries(work.map(({ name }) => [name, 200])),
        );
      }
    } finally {
      await crowd.stop();
    }
  });
});
