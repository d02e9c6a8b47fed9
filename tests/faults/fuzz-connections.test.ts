// Connections of every framing, right and wrong, against a whole server: pipelined requests, refused and early answered
// uploads, unanswered Expect, chunks and lengths, closed halves. What the server executes is what was meant as requests, in
// order, and never a part of a body. Two fixed seeds and one of its own, 150 connections each; by hand more:
// HOLDFAST_TEST_FUZZ_CONNECTIONS=20000 npm test -- tests/faults/fuzz-connections.test.ts
import { afterAll, beforeAll, test } from 'vitest';
import { freePort } from '../support/cluster/free-ports.ts';
import { expectTrapsWork, type FuzzTarget, fuzzSeed, inFlightAt } from '../support/fuzz/judge-connections.ts';
import { amountOf } from '../support/run/long-form.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const CONNECTIONS = amountOf({
  short: 150,
  long: 10_000,
  byHand: process.env.HOLDFAST_TEST_FUZZ_CONNECTIONS,
});
const SEED = process.env.HOLDFAST_TEST_SEED ?? String(Date.now());

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

test.each(['one', 'two', SEED])('seed %s', { timeout: 180_000 + CONNECTIONS * 500 }, (seed) =>
  fuzzSeed(target, seed, CONNECTIONS),
);
