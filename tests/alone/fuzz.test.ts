// Requests of no sense and of nearly some, against a whole server: each is answered by HTTP and with an error of the
// catalogue, none ends in 500, stops the server or keeps its event loop, and in the end nothing has been left behind or gone astray.
// 1,500 requests; by hand more: HOLDFAST_TEST_FUZZ_REQUESTS=30000 npm test -- tests/alone/fuzz.test.ts
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, expect, test, vi } from 'vitest';
import { textOf } from '../../src/base/xml/parse-xml.ts';
import { CLEAN, runFsck } from '../../src/cli/fsck-command.ts';
import { freePort } from '../support/cluster/free-ports.ts';
import { createFuzzSender } from '../support/fuzz/fuzz-exchanges.ts';
import {
  CUSTOMER_KEY,
  DOMAIN,
  type FuzzRequest,
  makeRequest,
  UPLOAD_KEY,
} from '../support/fuzz/fuzz-requests.ts';
import { type FuzzWorld, rollDice } from '../support/fuzz/fuzz-words.ts';
import { amountOf } from '../support/run/long-form.ts';
import { longestTurnMs, TURN_MS_MAX } from '../support/run/loop-watch.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { keyHeaders } from '../support/servers/customer-keys.ts';
import { type RawAnswer, send } from '../support/servers/raw-s3.ts';
import { xmlOf } from '../support/servers/s3-api.ts';
import { startServer } from '../support/servers/start-server.ts';

const REQUESTS = amountOf({ short: 750, long: 20_000, byHand: process.env.HOLDFAST_TEST_FUZZ_REQUESTS });
const SEED = process.env.HOLDFAST_TEST_SEED ?? String(Date.now());
/** The world is made anew behind so many: some will have been deletes. */
const ROUND = 100;
const MiB = 1024 * 1024;
const HEAP_GROWTH_MIB = 48;
/** A line of the test server's log stays for each request. */
const HEAP_GROWTH_KIB_EACH = 4;
/** Open at a time. */
const UPLOADS = 4;
const BUCKETS = ['fuzz-plain', 'fuzz-versions'];
const KEYS = ['a', 'dir/b', 'caf%C3%A9', 'tagged', UPLOAD_KEY, 'sealed', 'with%20space'];

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapMiB(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / MiB;
}

// Half of the seeds come through a proxy that is believed.
const trustedProxies = rollDice(SEED).chance(0.5) ? '127.0.0.1' : '192.0.2.1';
/** Metrics are told there, whoever is believed. */
const inner = `127.0.0.1:${await freePort()}`;
const server = await startServer({
  countsForCoverage: false,
  settings: { domain: DOMAIN, trustedProxies, 'health.listen': inner },
});
afterAll(() => server.stop());

async function put(path: string, body = '', headers: Record<string, string> = {}): Promise<RawAnswer> {
  return send(server, { method: 'PUT', path, body: Buffer.from(body), headers });
}

/** What requests that get far refer to, made anew. */
async function makeWorld(): Promise<FuzzWorld> {
  for (const bucket of BUCKETS) await put(`/${bucket}`);
  const enabled = '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>';
  await put('/fuzz-versions?versioning', enabled);
  for (const bucket of BUCKETS) {
    for (const key of KEYS)
      await put(`/${bucket}/${key}`, 'some bytes', key === 'tagged' ? { 'x-amz-tagging': 'a=b' } : {});
  }
  const stored = await put('/fuzz-versions/a', 'some bytes');
  await put('/fuzz-plain/sealed', 'some bytes', keyHeaders(CUSTOMER_KEY));
  const uploadIds: string[] = [];
  for (let count = 0; count < UPLOADS; count++) {
    const upload = await send(server, { method: 'POST', path: `/fuzz-plain/${UPLOAD_KEY}?uploads` });
    const uploadId = textOf(xmlOf(upload), 'UploadId') ?? '';
    await put(`/fuzz-plain/${UPLOAD_KEY}?partNumber=1&uploadId=${uploadId}`, 'some bytes');
    uploadIds.push(uploadId);
  }
  return {
    buckets: BUCKETS,
    keys: KEYS,
    etag: stored.headers.etag?.replaceAll('"', '') ?? '',
    versionId: String(stored.headers['x-amz-version-id']),
    uploadIds,
    token: `1${Buffer.from('a').toString('base64url')}`,
  };
}

/** The events that no request may cause. */
function faultsSince(lineCount: number) {
  return server
    .logs()
    .slice(lineCount)
    .filter(({ level }) => level === 'error');
}

/** All that it takes to see one failure again. */
function describeFailure(request: FuzzRequest, failure: { index: number; problem: unknown }): string {
  const bytes = JSON.stringify(Buffer.concat([request.head, request.body]).toString('latin1'));
  return `seed ${SEED}, request ${failure.index}: ${String(failure.problem)}\n${bytes.slice(0, 20_000)}`;
}

/** A scrape tells for a second what the last one has read. */
const SEVERAL_SCRAPES_MS = 60_000;

test(`${REQUESTS} requests, seed ${SEED}`, { timeout: 180_000 + REQUESTS * 100 }, async () => {
  const sender = createFuzzSender(server);
  /** A request that keeps the event loop is sent again: it fails when it does so each time. */
  const exchange = async (request: FuzzRequest) => {
    let answer: Awaited<ReturnType<typeof sender.exchange>> = { status: 0 };
    for (let tries = 1; ; tries++) {
      const turnMs = await longestTurnMs(async () => {
        answer = await sender.exchange(request);
      });
      if (turnMs <= TURN_MS_MAX || answer.problem !== undefined) return answer;
      if (tries === 3) return { ...answer, problem: `one turn of the event loop took ${turnMs} ms` };
    }
  };
  const statuses = new Map<number, number>();
  let world = await makeWorld();
  const startMiB = heapMiB();
  for (let index = 0; index < REQUESTS; index++) {
    if (index % ROUND === ROUND - 1) world = await makeWorld();
    const request = makeRequest({ seed: SEED, index, world, access: server });
    const lineCount = server.logs().length;
    const { status, problem } = await exchange(request);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    const [fault] = faultsSince(lineCount);
    if (problem === undefined && fault === undefined) continue;
    const reason =
      problem ?? JSON.stringify(fault, Object.getOwnPropertyNames(fault?.err ?? {}).concat('event', 'err'));
    expect.fail(describeFailure(request, { index, problem: reason }));
  }
  sender.close();
  const told = JSON.stringify([...statuses].sort(([a], [b]) => a - b));
  // A fuzz that is refused at the door shows nothing.
  expect(statuses.get(200) ?? 0, told).toBeGreaterThan(REQUESTS / 20);
  const health = await fetch(`${server.endpoint}/health/ready`);
  expect(health.status).toBe(200);
  // That of health may have been answered a moment ago.
  await vi.waitFor(async () => {
    const metrics = await (await fetch(`http://${inner}/metrics`)).text();
    expect(metrics, 'requests that go on behind their clients').toMatch(/^holdfast_requests_in_flight 0$/m);
  }, SEVERAL_SCRAPES_MS);
  expect(faultsSince(0)).toEqual([]);
  const { context, taken } = createPrintedTool();
  // One that a request has begun may still be under way.
  const ran = () => runFsck(context, { dataDir: server.dataDir });
  const code = await vi.waitFor(ran, { timeout: 60_000, interval: 200 });
  expect(code, taken()).toBe(CLEAN);
  const allowedMiB = HEAP_GROWTH_MIB + (REQUESTS * HEAP_GROWTH_KIB_EACH) / 1024;
  expect(heapMiB() - startMiB, `growth in MiB; ${told}`).toBeLessThan(allowedMiB);
});
