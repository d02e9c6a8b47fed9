// What the machine itself can do, measured in the same run: a bare HTTP server under the same generator, MD5,
// AES-256-GCM, and synced writes through the store's own key-value port. Figures are shares of these.
import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { openRocksdbKv } from '../src/platform/rocksdb/rocksdb-kv.ts';

const MiB = 1024 * 1024;
const KV_SECONDS = 3;

export interface MachineBounds {
  md5MiBps: number;
  aesGcmMiBps: number;
  /** 4 KiB rows, 32 commits in flight. */
  kvSmallPerSecond: number;
  /** 1 MiB rows, 8 commits in flight. */
  kvLargeMiBps: number;
}

interface PlainServer {
  endpoint: string;
  stop(): Promise<void>;
}

/** A server that reads bodies to the end and answers GET /plain/SIZE with that many bytes; in a thread of its own. */
export function startPlainServer(relayTo?: string): Promise<PlainServer> {
  const worker = new Worker(new URL('./plain-server.ts', import.meta.url), { workerData: { relayTo } });
  return new Promise((resolve, reject) => {
    worker.once('error', reject);
    worker.once('message', (port: number) =>
      resolve({ endpoint: `http://127.0.0.1:${port}`, stop: async () => void (await worker.terminate()) }),
    );
  });
}

/** One that passes on the bytes of another plain server: each byte crosses a socket twice, as in a cluster. */
export async function startPlainRelay(): Promise<PlainServer> {
  const origin = await startPlainServer();
  const relay = await startPlainServer(origin.endpoint);
  const stop = async () => void (await Promise.all([relay.stop(), origin.stop()]));
  return { endpoint: relay.endpoint, stop };
}

export async function measureMachine(): Promise<MachineBounds> {
  return { md5MiBps: md5Rate(), aesGcmMiBps: aesRate(), ...(await kvRates()) };
}

function md5Rate(): number {
  const piece = randomBytes(MiB);
  return rate(() => createHash('md5').update(piece).digest());
}

function aesRate(): number {
  const piece = randomBytes(MiB);
  const key = randomBytes(32);
  return rate(() => {
    const cipher = createCipheriv('aes-256-gcm', key, randomBytes(12));
    cipher.update(piece);
    cipher.final();
  });
}

/** Calls a second for work on 1 MiB, over half a second. */
function rate(work: () => void): number {
  const startedAt = performance.now();
  let count = 0;
  while (performance.now() - startedAt < 500) {
    work();
    count++;
  }
  return (count * 1000) / (performance.now() - startedAt);
}

async function kvRates(): Promise<Pick<MachineBounds, 'kvSmallPerSecond' | 'kvLargeMiBps'>> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-kv-'));
  try {
    const kv = await openRocksdbKv({
      folder: join(folder, 'kv'),
      columns: { values: { reads: 'async', content: 'ciphertext' } },
    });
    let next = 0;
    const write = async (options: { sizeBytes: number; inFlight: number }): Promise<number> => {
      const value = randomBytes(options.sizeBytes);
      const startedAt = performance.now();
      const until = startedAt + KV_SECONDS * 1000;
      let count = 0;
      const loop = async () => {
        while (performance.now() < until) {
          const key = Buffer.alloc(8);
          key.writeDoubleBE(next++);
          // The commit takes its bytes over, so each has its own.
          await kv.commit([{ column: 'values', key, value: new Uint8Array(value) }]);
          count++;
        }
      };
      await Promise.all(Array.from({ length: options.inFlight }, loop));
      return (count * 1000) / (performance.now() - startedAt);
    };
    const kvSmallPerSecond = await write({ sizeBytes: 4096, inFlight: 32 });
    const kvLargeMiBps = await write({ sizeBytes: MiB, inFlight: 8 });
    await kv.close();
    return { kvSmallPerSecond, kvLargeMiBps };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
