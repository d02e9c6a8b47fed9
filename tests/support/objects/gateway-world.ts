// A gateway over real shards and a real data path in memory, on a free loopback port, for tests of what is between a
// socket and the pipeline. Accounts are made at once; their secrets are sealed as in the product.

import { toHex, utf8 } from '../../../src/base/bytes/bytes.ts';
import { createIdentityFeed } from '../../../src/coordination/identity-feed.ts';
import {
  createGateway,
  type Gateway,
  type GatewayDependencies,
  type GatewaySettings,
} from '../../../src/gateway/http/server.ts';
import { createLoopbackMetadata } from '../../../src/platform/memory/loopback-metadata.ts';
import { createKeyring } from '../../../src/platform/memory/memory-keyring.ts';
import { systemClock, systemRandom } from '../../../src/platform/system-clock.ts';
import type { KeyringPort } from '../../../src/ports/keyring.ts';
import type { MetadataPort } from '../../../src/ports/metadata/port.ts';
import type { StateMachine } from '../../../src/ports/state-machine.ts';
import type { AccountId } from '../../../src/types/names.ts';
import type { AccountState } from '../../../src/types/records/rows.ts';
import { leaveCoverage } from '../run/operation-coverage.ts';
import type { Credentials } from '../servers/s3-client.ts';
import { type ObjectWorld, openObjectWorld } from './object-world.ts';

export interface GatewayWorld extends ObjectWorld {
  gateway: Gateway;
  endpoint: string;
  host: string;
  port: number;
  /** What secrets are sealed with. */
  keyring: KeyringPort;
  /** Of an account that is the operator's. */
  root: Credentials;
  /** Fields of the lines "request" so far. */
  requests(): readonly Readonly<Record<string, unknown>>[];
  /** Fields of every line at level error. */
  faults(): readonly Readonly<Record<string, unknown>>[];
  makeAccount(name: string): Promise<Credentials & { accountId: AccountId; canonicalId: string }>;
  setState(accountId: AccountId, state: AccountState): Promise<void>;
  close(): Promise<void>;
}

const overBytes = (metadata: MetadataPort) => createLoopbackMetadata({ metadata, random: systemRandom });

export async function openGatewayWorld(
  options: {
    settings?: Partial<GatewaySettings>;
    deps?: Partial<GatewayDependencies>;
    /** What the gateway asks goes through it. */
    intercept?(shards: MetadataPort): MetadataPort;
    /** What the gateway and its object store ask is serialised, as between machines. */
    isSerialized?: boolean;
    machine?: StateMachine;
    bodyBufferBytes?: number;
  } = {},
): Promise<GatewayWorld> {
  const { machine, bodyBufferBytes, isSerialized } = options;
  const intercept = isSerialized === true ? overBytes : options.intercept;
  const world = await openObjectWorld({
    ...(isSerialized === true && { intercept: overBytes }),
    ...(machine && { machine }),
    ...(bodyBufferBytes !== undefined && { bodyBufferBytes }),
  });
  const keyring = createKeyring();
  const { shards } = world.metadata;
  const metadata = world.times.learnFrom(intercept?.(shards) ?? shards);
  const lines: { level: string; event: string; fields: Record<string, unknown> }[] = [];
  const at = (level: string) => (fields: object, event: string) => {
    lines.push({ level, event, fields: { ...fields } });
  };
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  const identityFeed = createIdentityFeed({
    metadata: options.deps?.metadata ?? metadata,
    clock: systemClock,
    log,
    gateway: toHex(systemRandom.bytes(8)),
  });
  const closing = new AbortController();
  const following = identityFeed.follow(closing.signal);
  const gateway = createGateway({
    settings: {
      host: '127.0.0.1',
      port: 0,
      domains: ['s3.test', 'eu.s3.test'],
      publicNames: [],
      trustedProxies: [],
      takesSigV2: true,
      answersSosapi: true,
      takesSecretsOverHttp: false,
      headerTimeoutMs: 60_000,
      idleTimeoutMs: 60_000,
      keepAliveTimeoutMs: 60_000,
      connectionsMax: 1000,
      requestsInFlightMax: 900,
      lifecycleDayMs: 24 * 3600 * 1000,
      trafficFlushMs: 60_000,
      ...options.settings,
    },
    metadata,
    objects: world.store,
    keyring,
    identityFeed,
    clock: systemClock,
    random: systemRandom,
    log,
    telemetry: { count() {}, observe() {}, gauge() {}, gaugeAll() {} },
    isReady: () => true,
    readMetrics: async () => ({ contentType: 'text/plain', text: 'metrics' }),
    version: '1.2.3',
    readCapacity: async () => ({ totalBytes: 1000, availableBytes: 400 }),
    operatorApi: {
      answer: async ({ method, url, caller }) => ({
        status: 200,
        contentType: 'application/json',
        body: JSON.stringify({ method, url, account: caller.account.name }),
      }),
    },
    ...options.deps,
  });
  const { host, port } = await gateway.start();

  async function makeAccount(name: string) {
    const accountId = String(Math.floor(Math.random() * 1e12)).padStart(12, '0') as AccountId;
    const accessKey = `KEY${accountId}`;
    const secretKey = `secret-of-${name}-${accountId}`;
    const canonicalId = accountId.repeat(6).slice(0, 64);
    const made = await world.metadata.execute('create-account', {
      account: {
        accountId,
        name,
        email: `${accountId}@example.com`,
        canonicalId,
        state: 'paid',
        bucketsMax: 1000,
        isRoot: name === 'root',
      },
      accessKey: { accessKey, sealedSecret: keyring.wrap(utf8(secretKey)) },
    });
    if (made.kind !== 'created') throw new Error(made.field);
    return { accountId, accessKey, secretKey, canonicalId };
  }

  return {
    ...world,
    gateway,
    keyring,
    host,
    port,
    endpoint: `http://${host}:${port}`,
    root: await makeAccount('root'),
    requests: () => lines.filter(({ event }) => event === 'request').map(({ fields }) => fields),
    faults: () => lines.filter(({ level }) => level === 'error').map(({ fields }) => fields),
    makeAccount,
    async setState(accountId, state) {
      await world.metadata.execute('set-account', { accountId, changes: { state } });
    },
    async close() {
      await gateway.drain(0);
      closing.abort();
      await following;
      const shown = lines.map(({ fields, ...head }) => ({ ...fields, ...head }));
      await leaveCoverage(shown, { isOdd: true });
    },
  };
}
