// What hashing and sealing cost by body size, on the calling thread and on worker threads: bodies a second, and how long
// the calling thread is busy for each. LIMITS.codecInlineBytesMax is chosen by it. Run: npx node bench/seal.ts [--seconds N]
import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import type { SealerOptions } from '../src/base/crypto/body-sealer.ts';
import { layPlaintext, sealedBytes } from '../src/base/crypto/seal.ts';
import { inlineCodecPool } from '../src/platform/codec/inline-codec-pool.ts';
import { createCodecPool } from '../src/platform/codec/piscina-codec-pool.ts';
import type { CodecPoolPort } from '../src/ports/codec-pool.ts';
import { LIMITS } from '../src/types/limits.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const { values: flags } = parseArgs({ options: { seconds: { type: 'string', default: '2' } } });
const durationMs = Number(flags.seconds) * 1000;
const blockBytes = LIMITS.sealBlockBytes;
const content = randomBytes(MiB);
/** Small bodies must not be taken for inline ones by the pool that is measured. */
const ON_A_THREAD = Number.MAX_SAFE_INTEGER;

const DIGESTS: Record<string, Pick<SealerOptions, 'hashes' | 'crcs'>> = {
  'seal only': { hashes: [], crcs: [] },
  'MD5, CRC32': { hashes: ['MD5'], crcs: ['CRC32'] },
  'and CRC32C': { hashes: ['MD5'], crcs: ['CRC32', 'CRC32C'] },
  'and CRC64NVME': { hashes: ['MD5'], crcs: ['CRC32', 'CRC64NVME'] },
  'and SHA256': { hashes: ['MD5', 'SHA256'], crcs: ['CRC32'] },
};

async function sealBody(
  pool: CodecPoolPort,
  sizeBytes: number,
  digests: Pick<SealerOptions, 'hashes' | 'crcs'>,
) {
  const sealer = pool.open({
    blobId: '0'.repeat(32),
    dataKey: content.subarray(0, 32),
    blockBytes,
    ...digests,
    sizeBytes: ON_A_THREAD,
  });
  const seals: Promise<unknown>[] = [];
  for (let at = 0; at < sizeBytes; at += MiB) {
    const chunkBytes = Math.min(MiB, sizeBytes - at);
    const memory = Buffer.allocUnsafeSlow(sealedBytes({ sizeBytes: chunkBytes, blockBytes })).buffer;
    const bytes = new Uint8Array(memory);
    layPlaintext(bytes, content.subarray(0, chunkBytes), { offsetBytes: 0, blockBytes });
    seals.push(sealer.seal({ bytes, sizeBytes: chunkBytes, isLast: at + chunkBytes >= sizeBytes }));
    if (seals.length >= LIMITS.chunksInFlightPerBody) await seals.shift();
  }
  await Promise.all(seals);
  await sealer.finish();
  sealer.abandon();
}

async function measure(
  name: string,
  pool: CodecPoolPort,
  sizeBytes: number,
  digests: Pick<SealerOptions, 'hashes' | 'crcs'>,
): Promise<void> {
  const startedAt = performance.now();
  const cpu = process.cpuUsage();
  const loop = performance.eventLoopUtilization();
  let count = 0;
  const run = async () => {
    while (performance.now() - startedAt < durationMs) {
      await sealBody(pool, sizeBytes, digests);
      count++;
      // As in a server, the loop turns between two bodies.
      await new Promise(setImmediate);
    }
  };
  await Promise.all(Array.from({ length: 8 }, run));
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const busyMs = performance.eventLoopUtilization(loop).active;
  console.log(
    `${name}: ${(count / seconds).toFixed(0)}/s, ${((count * sizeBytes) / MiB / seconds).toFixed(0)} MiB/s, ` +
      `${((user + system) / count).toFixed(0)} us CPU, ${((busyMs * 1000) / count).toFixed(0)} us of the calling thread`,
  );
}

const standard = DIGESTS['MD5, CRC32'] ?? { hashes: [], crcs: [] };
const workers = availableParallelism();
const threads = createCodecPool({ workers });
await sealBody(threads, MiB, standard);
for (const sizeBytes of [4 * KiB, 16 * KiB, 64 * KiB, 128 * KiB, 256 * KiB, MiB, 16 * MiB]) {
  console.log(`bodies of ${sizeBytes / KiB} KiB, MD5 and CRC32`);
  await measure('  inline   ', inlineCodecPool, sizeBytes, standard);
  await measure(`  ${workers} threads`, threads, sizeBytes, standard);
}
console.log('chunks of 1 MiB, inline');
for (const [name, digests] of Object.entries(DIGESTS))
  await measure(`  ${name.padEnd(14)}`, inlineCodecPool, MiB, digests);
await threads.close();
