// Connections of every framing, right and wrong, against a whole server: pipelined requests, refused and early answered
// uploads, unanswered Expect, chunks and lengths, closed halves. What the server executes is what was meant as requests, in
// order, and never a part of a body. Two fixed seeds and one of its own, 150 connections each; by hand more:
// HOLDFAST_TEST_FUZZ_CONNECTIONS=20000 npm test -- tests/faults/fuzz-connections.test.ts
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../support/free-ports.ts';
import {
  expectTrapsWork,
  expectUntouched,
  type FuzzTarget,
  fuzzConnections,
  inFlightAt,
  prepareFuzz,
} from '../support/judge-connections.ts';
import { startServer, type TestServer } from '../support/start-server.ts';

const CONNECTIONS = Number(process.env.HOLDFAST_TEST_FUZZ_CONNECTIONS ?? 150);
const SEED = process.env.HOLDFAST_TEST_SEED ?? String(Date.now());
/** Judged together. */
const ROUND = 500;

let server: TestServer;
let target: FuzzTarget;
beforeAll(async () => {
  const inner = `127.0.0.1:${await freePort()}`;
  server = await startServer({ countsForCoverage: false, settings: { 'health.listen': inner } });
  const { host } = new URL(server.endpoint);
  target = { server, access: server, host, isProxied: false, inFlight: inFlightAt(inner) };
  await expectTrapsWork(target);
});
afterAll(() => server.stop());

test.each(['one', 'two', SEED])('seed %s', { timeout: 60_000 + CONNECTIONS * 500 }, async (seed) => {
  await prepareFuzz(target);
  for (let from = 0; from < CONNECTIONS; from += ROUND) {
    const to = Math.min(from + ROUND, CONNECTIONS);
    const { executed, answered } = await fuzzConnections(target, { seed, from, to });
    // A fuzz that is refused at the door shows nothing.
    expect(Math.min(executed, answered)).toBeGreaterThan((to - from) / 2);
  }
  await expectUntouched(target);
});
