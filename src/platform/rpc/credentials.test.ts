import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  type AddressBook,
  createCounts,
  createEvents,
  makeCertificates,
  nodeId,
  openCredentials,
  type RpcNode,
  secretSecurity,
  startRpcNode,
} from '../../../tests/support/coordination/rpc-nodes.ts';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { must } from '../../base/assert.ts';
import { Refusal } from '../../base/refusal.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { LIMITS } from '../../types/limits.ts';
import { systemClock, systemRandom } from '../system-clock.ts';
import { makeNodeCertificate } from '../tls/cluster-certificates.ts';
import { TlsError } from '../tls/tls.ts';
import { createCallServer } from './call-server.ts';
import { isLoopbackHost, openRpcCredentials, type RpcSecurity } from './credentials.ts';
import { createPeerServer } from './peer-server.ts';
import { startRpcServer } from './rpc-server.ts';

const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const DAY_MS = 24 * 3_600_000;

describe('a shared secret', () => {
  test.each(['127.0.0.1', '127.9.8.7', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', 'localhost'])(
    'is for %s',
    (host) => expect(isLoopbackHost(host)).toBe(true),
  );
  test.each([
    '0.0.0.0',
    '::',
    '10.0.0.1',
    '128.0.0.1',
    '::2',
    'localhost.example',
    'example',
    '127.0.0.1.',
    '',
  ])('is not for %j', (host) => expect(isLoopbackHost(host)).toBe(false));

  test('is refused at start for an address beyond this machine', async () => {
    const credentials = await openCredentials(secretSecurity);
    const deps = {
      clock: systemClock,
      random: systemRandom,
      log: createEvents().log,
      telemetry: createCounts(),
    };
    const handler = {
      ticket: () => ({ processId: 'p', monotonicMs: 0, wallMs: 0 }),
      handle: () => Promise.reject(),
    };
    const start = startRpcServer({
      ...deps,
      self: { clusterId: 'c', nodeId: nodeId(1) },
      listen: { host: '0.0.0.0', port: 0 },
      credentials,
      calls: createCallServer({ ...deps, handler }),
      peers: createPeerServer(deps),
    });
    await expect(start).rejects.toThrow(Refusal);
    await expect(start).rejects.toThrow(/0\.0\.0\.0 is not a loopback address.*holdfast cluster certs/);
  });

  test('is not shown to an address beyond this machine', async () => {
    const addresses: AddressBook = new Map([[nodeId(2), '192.0.2.1:1']]);
    const node = await startRpcNode({
      nodeId: nodeId(1),
      credentials: await openCredentials(secretSecurity),
      addresses,
    });
    closers.push(node.close);
    const call = {
      kind: 'query',
      envelope: { shard: 1 },
      name: 'get-version',
      body: 1,
      budgetMs: 1,
    } as const;
    await expect(node.calls.call(nodeId(2), call, new AbortController().signal)).rejects.toThrow(
      '192.0.2.1 is not a loopback address',
    );
  });

  test('has a least length', async () => {
    const security: RpcSecurity = { mode: 'secret', secret: 'x'.repeat(LIMITS.clusterSecretBytesMin - 1) };
    await expect(openCredentials(security)).rejects.toThrow('at least 32 characters');
  });
});

describe('certificates', () => {
  let made: Awaited<ReturnType<typeof makeCertificates>>;
  beforeEach(async () => {
    made = await makeCertificates();
    closers.push(() => made.remove());
  });

  test.each([
    [
      'the key is of another',
      () => copyFileSync(join(made.folder, 'ca-key.pem'), made.security.key),
      /key is of another/,
    ],
    [
      'the authority is missing',
      () => ({ ...made.security, ca: join(made.folder, 'none.pem') }),
      /^cannot read .*none\.pem/,
    ],
    [
      'the authority is no certificate',
      () => copyFileSync(made.security.key, made.security.ca),
      /ca-cert\.pem holds no certificate/,
    ],
    [
      'the authority is damaged',
      () =>
        writeFileSync(
          made.security.ca,
          readFileSync(made.security.ca, 'utf8').replace(/\n.{9}/, '\nAAAAAAAAA'),
        ),
      /ca-cert\.pem is not usable/,
    ],
    [
      'another authority has signed it',
      async () => {
        const other = await makeCertificates();
        closers.push(other.remove);
        return { ...made.security, ca: other.security.ca };
      },
      /was not signed by the authority/,
    ],
  ])('are refused when %s', async (_, spoil, message) => {
    const security = (await spoil()) ?? made.security;
    await expect(openCredentials(security)).rejects.toThrow(TlsError);
    await expect(openCredentials(security)).rejects.toThrow(message);
  });

  test.each([
    ['has ended', 826 * DAY_MS, /is valid from .* not now/],
    ['is of the future', -DAY_MS, /is valid from .* not now/],
  ])('are refused when the certificate %s', async (_, aheadMs, message) => {
    const clock = createManualClock(Date.now() + aheadMs);
    const open = openRpcCredentials(made.security, { clock, log: createEvents().log });
    await expect(open).rejects.toThrow(message);
  });

  test('that end within a month are logged each day', async () => {
    const { events, log } = createEvents();
    const manual = createManualClock(Date.now() + 700 * DAY_MS);
    let looks = 0;
    const clock: ClockPort = {
      ...manual,
      sleep(ms, signal) {
        looks++;
        return manual.sleep(ms, signal);
      },
    };
    const credentials = await openRpcCredentials(made.security, { clock, log });
    closers.push(() => credentials.close());
    const pass = async (ms: number) => {
      const before = looks;
      manual.advance(ms);
      await expect.poll(() => looks, { interval: 5 }).toBe(before + 1);
      return events.map(({ event }) => event);
    };
    expect(await pass(LIMITS.credentialsReloadMs)).toEqual([]);
    const told = 'cluster-certificate-ends-soon';
    expect(await pass(100 * DAY_MS)).toEqual([told]);
    expect(await pass(LIMITS.credentialsReloadMs)).toEqual([told]);
    expect(await pass(DAY_MS)).toEqual([told, told]);
  });
});

describe('replaced certificate files', () => {
  /** Resolves when the event is logged. */
  function awaitEvents() {
    const { events, log } = createEvents();
    const waiting = new Map<string, () => void>();
    const note = (fields: object, event: string) => {
      log.info(fields, event);
      waiting.get(event)?.();
    };
    const watched: Logger = { debug: note, info: note, warn: note, error: note };
    const next = (event: string) => new Promise<void>((resolve) => waiting.set(event, resolve));
    return { events, log: watched, next };
  }

  const call = { kind: 'query', envelope: { shard: 1 }, name: 'get-version', body: 1, budgetMs: 1 } as const;
  const reaches = (from: RpcNode, to: string) =>
    from.calls.call(to, call, AbortSignal.timeout(5000)).then(
      ({ kind }) => kind === 'unknown',
      () => false,
    );

  test('are used while the node runs, in both directions; bad ones are logged and not used', async () => {
    const [made, next] = [await makeCertificates(), await makeCertificates()];
    closers.push(made.remove, next.remove);
    const clock = createManualClock(Date.now());
    const { events, log, next: nextEvent } = awaitEvents();
    const credentials = await openRpcCredentials(made.security, { clock, log });
    closers.push(() => credentials.close());
    const told: string[] = [];
    must(credentials.certificates, 'those of the files').follow(({ cert }) => told.push(cert));
    const addresses: AddressBook = new Map();
    const start = async (options: { nodeId: string; security?: RpcSecurity }) => {
      const own = options.security === undefined ? credentials : await openCredentials(options.security);
      closers.push(own.close);
      const node = await startRpcNode({ nodeId: options.nodeId, credentials: own, addresses });
      closers.push(node.close);
      return node;
    };
    const node = await start({ nodeId: nodeId(1) });
    const ofNext = await start({ nodeId: nodeId(2), security: next.security });
    expect([await reaches(node, nodeId(2)), await reaches(ofNext, nodeId(1))]).toEqual([false, false]);

    copyFileSync(next.security.cert, made.security.cert);
    const refused = nextEvent('cluster-certificate-refused');
    clock.advance(LIMITS.credentialsReloadMs);
    await refused;
    copyFileSync(next.security.key, made.security.key);
    copyFileSync(next.security.ca, made.security.ca);
    const reloaded = nextEvent('cluster-certificate-reloaded');
    clock.advance(LIMITS.credentialsReloadMs);
    await reloaded;
    expect(events.map(({ event }) => event)).toEqual([
      'cluster-certificate-refused',
      'cluster-certificate-reloaded',
    ]);
    expect(told).toHaveLength(2);
    expect(told[1]).toBe(readFileSync(next.security.cert, 'utf8'));
    // New ones, because the failed attempts of the others are waited for.
    const third = await start({ nodeId: nodeId(3), security: next.security });
    const fourth = await start({ nodeId: nodeId(4) });
    expect([await reaches(third, nodeId(1)), await reaches(fourth, nodeId(2))]).toEqual([true, true]);
  });

  test('are read again on request', async () => {
    const made = await makeCertificates();
    closers.push(made.remove);
    const { events, log } = createEvents();
    const credentials = await openRpcCredentials(made.security, {
      clock: createManualClock(Date.now()),
      log,
    });
    closers.push(() => credentials.close());
    await credentials.reload();
    expect(events).toEqual([]);
    const other = await makeNodeCertificate({
      folder: made.folder,
      name: 'b',
      hosts: ['b'],
      nowMs: Date.now(),
    });
    copyFileSync(other.cert, made.security.cert);
    await expect(credentials.reload()).rejects.toThrow('key is of another');
    copyFileSync(other.key, made.security.key);
    await credentials.reload();
    expect(events.map(({ event }) => event)).toEqual(['cluster-certificate-reloaded']);
  });
});
