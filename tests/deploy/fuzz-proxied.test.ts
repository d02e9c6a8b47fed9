// The connections of tests/faults/fuzz-connections.test.ts through HAProxy as deploy/ has it, whose connections to the gateway
// are shared among clients: each gets the answers to its own requests, and no part of a body is executed. One fixed seed and
// one of its own, 80 connections each and for each way to share; by hand more:
// HOLDFAST_TEST_FUZZ_CONNECTIONS=20000 npm test -- tests/deploy/fuzz-proxied.test.ts
import { afterAll, beforeAll, test } from 'vitest';
import { freePorts } from '../support/cluster/free-ports.ts';
import { expectTrapsWork, type FuzzTarget, fuzzSeed, inFlightAt } from '../support/fuzz/judge-connections.ts';
import { amountOf } from '../support/run/long-form.ts';
import { openExampleProxies } from '../support/servers/example-proxy.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const CONNECTIONS = amountOf({ short: 40, long: 5_000, byHand: process.env.HOLDFAST_TEST_FUZZ_CONNECTIONS });
const SEED = process.env.HOLDFAST_TEST_SEED ?? String(Date.now());
const NAME = 's3.example.net';

const proxies = openExampleProxies(NAME);
let server: TestServer;
let inner: string;
beforeAll(async () => {
  const own = await proxies.certificateOf('gateway-1');
  const [port = 0] = await freePorts(1);
  inner = `127.0.0.1:${port}`;
  const tls = { 'tls.mode': 'files', 'tls.cert': own.cert, 'tls.key': own.key };
  server = await startServer({
    countsForCoverage: false,
    settings: { trustedProxies: '127.0.0.1', domain: NAME, 'health.listen': inner, ...tls },
  });
});
afterAll(async () => {
  proxies.end();
  await server.stop();
});

test.each(['safe', 'aggressive', 'always'])(
  `http-reuse %s, seed ${SEED}`,
  { timeout: 120_000 + CONNECTIONS * 1000 },
  async (reuse) => {
    const [port = 0, alive = 0, closed = 0] = await freePorts(3);
    const gateways = [new URL(server.endpoint).host, `127.0.0.1:${closed}`] as const;
    await proxies.start(await proxies.configure({ gateways, ports: [port, alive], reuse }));
    const access = { ...server, endpoint: `https://127.0.0.1:${port}` };
    const target: FuzzTarget = { server, access, host: NAME, isProxied: true, inFlight: inFlightAt(inner) };
    await expectTrapsWork(target);
    for (const seed of ['one', SEED]) await fuzzSeed(target, seed, CONNECTIONS);
  },
);
