// A gateway thread of a single node: a gateway with its listener, caches, codec threads and data path, over the stores of the
// main thread. It is put together as a gateway of a cluster is (cmd/cluster/gateway.ts). Wiring only; gateway-threads.ts
// starts it.
import { workerData } from 'node:worker_threads';
import { createAccounts } from '../../src/accounts/accounts.ts';
import { must } from '../../src/base/assert.ts';
import { createPushedIdentityFeed } from '../../src/coordination/pushed-identity-feed.ts';
import { createGateway, type Gateway } from '../../src/gateway/http/server.ts';
import { capacityOfDisks } from '../../src/gateway/s3/sosapi/capacity.ts';
import { leaseQuotas } from '../../src/metadata/quotas/lease-quotas.ts';
import { createShardTimes } from '../../src/objects/shard-times.ts';
import { createKeyring, type MasterKeyList } from '../../src/platform/memory/memory-keyring.ts';
import { createLineChunks } from '../../src/platform/threads/chunk-line.ts';
import { createLineMetadata, joinMetadata } from '../../src/platform/threads/metadata-line.ts';
import { remoteCalls, serveCalls } from '../../src/platform/threads/named-calls.ts';
import type { ThreadLine } from '../../src/platform/threads/thread-line.ts';
import { readVersion } from '../../src/platform/version.ts';
import type { MetadataPort } from '../../src/ports/metadata/port.ts';
import { gatewaySettings, startListening } from '../listening.ts';
import { createBuffers, openObjects } from '../open-objects.ts';
import { accountApis } from '../operator-parts.ts';
import type { GatewayThreadData } from './gateway-threads.ts';
import { MAIN_CALLS, type MainCalls, type ThreadCalls, type ThreadStart } from './thread-calls.ts';
import { openLine, openThreadContext } from './thread-entry.ts';

/** What the main thread asks of a gateway that takes connections. */
type OpenThread = Omit<ThreadCalls, 'open'>;

const line = openLine();
serveCalls(line, {
  async open(start: ThreadStart) {
    const { port, calls } = await openGateway(start, line);
    serveCalls(line, calls);
    return port;
  },
});

async function openGateway(
  start: ThreadStart,
  line: ThreadLine,
): Promise<{ port: number; calls: OpenThread }> {
  const main = remoteCalls<MainCalls>(line, MAIN_CALLS);
  const { threads, number } = start;
  const threadContext = openThreadContext(line, { config: start.config, thread: number });
  const { config, log, telemetry, clock, random, loop, closing } = threadContext;
  const buffers = createBuffers(config, { threads });
  const chunks = createLineChunks(line, (buffer) => buffers.give(buffer));
  const keyring = createKeyring({ initial: masterKeysOf(start.masterKeys) });
  const times = createShardTimes(clock);
  const identities = createPushedIdentityFeed();
  const shards = times.learnFrom(openMetadata(line, start.shardCount));
  const metadata = leaseQuotas(shards, { clock, log, telemetry });
  const fenceOf = (shard: number) => must(start.fences[shard], `no shard ${shard}`);
  const lost = {
    note: async (...[id, kind]: Parameters<NonNullable<Parameters<typeof openObjects>[1]['lost']>['note']>) =>
      main.noteLost({ id, kind }),
  };
  const stores = { chunks, keyring, fenceOf, lost };
  const objects = openObjects(threadContext, stores, { buffers, times, threads });
  const accounts = createAccounts({ metadata, keyring, random });
  const state = { isReady: false };
  const services = {
    metadata,
    objects,
    keyring,
    identityFeed: identities.feed,
    clock,
    random,
    log,
    telemetry,
  };
  const gateway: Gateway = createGateway({
    ...services,
    settings: gatewaySettings(config, start.certificate, { threads }),
    isReady: () => state.isReady,
    readMetrics: () => main.readMetrics(),
    version: readVersion(),
    readCapacity: async () => capacityOfDisks([await chunks.usage()], { copies: 1 }),
    ...accountApis(threadContext, { ...services, accounts, ...operatedBy(main) }),
  });
  const port = await startListening(gateway, config);
  return {
    port,
    calls: {
      setReady(isReady) {
        state.isReady = isReady;
      },
      pulse() {
        const oldestMs = gateway.oldestRequestMs();
        return {
          oldestRequestAgeMs: oldestMs === undefined ? null : clock.monotonicMs() - oldestMs,
          hasRoom: gateway.hasRoom(),
          loopHeldMs: loop.heldMs(),
        };
      },
      takeIdentities: (changes) => identities.take(changes),
      takeMasterKeys: (keys) => keyring.follow(masterKeysOf(keys)),
      setCertificate: (certificate) => gateway.setCertificate(certificate),
      readFigures: () => telemetry.figures(),
      async drain(timeoutMs) {
        state.isReady = false;
        await gateway.drain(timeoutMs);
        await closing.disposeAsync();
        log.flush();
      },
    },
  };
}

/** Shards are asked where they are: in the metadata threads, or in the main thread. */
function openMetadata(main: ThreadLine, shardCount: number): MetadataPort {
  const { metadataPorts } = workerData as GatewayThreadData;
  const lines = metadataPorts.map((port) => openLine(port));
  return joinMetadata(
    (lines.length === 0 ? [main] : lines).map((line) => createLineMetadata(line, shardCount)),
  );
}

/** What operators work with in the main thread. */
function operatedBy(main: Remote) {
  return {
    readStatus: () => main.readStatus(),
    wakeRotation: () => void main.wakeRotation(),
    rotation: {
      begin: () => main.beginRotation(),
      progress: () => main.readRotation(),
      remove: (keyId: string) => main.removeKey(keyId),
    },
    timeJumps: {
      unacceptedMs: () => main.readTimeJump(),
      accept: (atMostMs: number) => main.acceptTimeJump(atMostMs),
    },
    fsck: {
      begin: (options: Parameters<MainCalls['beginFsck']>[0]) => main.beginFsck(options),
      look: (id: number, from: number) => main.lookAtFsck({ id, from }),
      cancel: (id: number) => main.cancelFsck(id),
    },
  };
}
type Remote = ReturnType<typeof remoteCalls<MainCalls>>;

function masterKeysOf({ activeKeyId, keys }: MasterKeyList) {
  return { activeKeyId, keys: new Map(keys.map(([keyId, key]) => [keyId, Uint8Array.from(key)])) };
}
