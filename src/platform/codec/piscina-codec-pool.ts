// The codec pool on worker threads. Small bodies are worked on where they are (a hop costs more than their work);
// larger ones on one thread each, chunks moved there and back without a copy.
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { isMarkedAsUntransferable, MessageChannel } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { assert, must } from '../../base/assert.ts';
import type { BodyHashes } from '../../base/crypto/body-sealer.ts';
import type { BlocksToOpen } from '../../base/crypto/seal.ts';
import type { BodySealer, CodecPoolPort, SealedChunk } from '../../ports/codec-pool.ts';
import { LIMITS } from '../../types/limits.ts';
import { inlineCodecPool } from './inline-codec-pool.ts';
import {
  type FromWorker,
  memoryToMove,
  type SealedWhole,
  type ToWorker,
  type WholeBody,
} from './piscina-codec-worker.ts';

type OpenOptions = Parameters<CodecPoolPort['open']>[0];

/** Bodies per thread: tasks wait for their clients most of the time. What bounds bodies is the body budget. */
const BODIES_PER_THREAD_MAX = 100_000;

/**
 * V8's memory for new objects of a thread, MiB. What is large here lies outside of it (bytes of bodies); the process's own setting
 * (cmd/process-settings.json) would give each thread 48.
 */
const YOUNG_MIB = 6;

/** How many threads a setting means. */
export function codecWorkers(workers: number | 'auto'): number {
  return workers === 'auto' ? availableParallelism() : workers;
}

/** The threads start here. `workers`: their number, 0 for none, `auto` for one per processor. */
export function createCodecPool(options: { workers: number | 'auto' }): CodecPoolPort {
  const threads = codecWorkers(options.workers);
  if (threads === 0) return inlineCodecPool;
  const piscina = new Piscina({
    filename: fileURLToPath(new URL('./piscina-codec-worker.ts', import.meta.url)),
    minThreads: threads,
    maxThreads: threads,
    concurrentTasksPerWorker: BODIES_PER_THREAD_MAX,
    recordTiming: false,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MIB },
  });
  return {
    open(body) {
      if (body.sizeBytes <= LIMITS.codecInlineBytesMax) return inlineCodecPool.open(body);
      return new ThreadSealer(piscina, body);
    },
    async openBlocks(blocks) {
      const { chunk, position, fromBlock, toBlock } = blocks;
      const isSmall = (toBlock - fromBlock) * position.blockBytes <= LIMITS.codecInlineBytesMax;
      if (isSmall || !mayMove(chunk)) return inlineCodecPool.openBlocks(blocks);
      const task: BlocksToOpen = { ...blocks, dataKey: Uint8Array.from(blocks.dataKey) };
      return piscina.run(task, { name: 'openChunk', transferList: [chunk.buffer] });
    },
    close: () => piscina.destroy(),
  };
}

/** Not a part of larger memory, and not memory of the database's. */
function mayMove({ buffer, byteLength }: Uint8Array<ArrayBuffer>): boolean {
  return byteLength === buffer.byteLength && !isMarkedAsUntransferable(buffer);
}

/** A body of one chunk is a single call of the pool, a longer one a task with a port, opened by the first chunk. */
class ThreadSealer implements BodySealer {
  readonly #piscina: Piscina;
  readonly #options: OpenOptions;
  #stream: SealerStream | undefined;
  #whole: Promise<SealedWhole> | undefined;

  constructor(piscina: Piscina, options: OpenOptions) {
    this.#piscina = piscina;
    // A view would take all the memory beneath it along to the thread.
    this.#options = { ...options, dataKey: Uint8Array.from(options.dataKey) };
  }

  async seal(chunk: Parameters<BodySealer['seal']>[0]): Promise<SealedChunk> {
    if (chunk.isLast && this.#stream === undefined) {
      assert(this.#whole === undefined, 'nothing follows the last chunk');
      const task: WholeBody = { options: this.#options, chunk };
      this.#whole = this.#piscina.run(task, { name: 'sealWhole', transferList: memoryToMove(chunk) });
      const { hashes: _, ...sealed } = await this.#whole;
      return sealedIn(chunk, sealed);
    }
    this.#stream ??= new SealerStream(this.#piscina, this.#options);
    const reply = await this.#stream.ask({ kind: 'chunk', ...chunk }, memoryToMove(chunk));
    assert(reply.kind === 'sealed', 'answers come in order');
    return sealedIn(chunk, reply.chunk);
  }

  async finish(): Promise<BodyHashes> {
    if (this.#whole !== undefined) return (await this.#whole).hashes;
    const reply = await must(this.#stream, 'a body has a chunk').ask({ kind: 'finish' }, []);
    assert(reply.kind === 'finished', 'answers come in order');
    this.abandon();
    return reply.hashes;
  }

  abandon(): void {
    this.#stream?.close();
  }
}

/** The other thread's view of shared memory is not ours. */
function sealedIn({ bytes }: Pick<SealedChunk, 'bytes'>, sealed: SealedChunk): SealedChunk {
  return bytes.buffer instanceof ArrayBuffer ? sealed : { ...sealed, bytes };
}

/** The calling thread's end of a body's port. */
class SealerStream {
  readonly #port: MessageChannel['port1'];
  readonly #asked: { resolve(reply: FromWorker): void; reject(error: Error): void }[] = [];
  #failure: Error | undefined;

  constructor(piscina: Piscina, options: OpenOptions) {
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.on('message', (reply: FromWorker) => {
      if (reply.kind === 'failed') this.#fail(new Error(`sealing failed: ${reply.message}`));
      else this.#asked.shift()?.resolve(reply);
      this.#closeWhenAnswered();
    });
    const task = { options, port: port2 };
    const ended = piscina.run(task, { name: 'sealStream', transferList: [port2] });
    ended.then(
      () => this.#fail(new Error('the sealer is closed')),
      (error) => this.#fail(new Error('the codec thread has failed', { cause: error })),
    );
  }

  ask(message: ToWorker, moved: ArrayBuffer[]): Promise<FromWorker> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#asked.push({ resolve, reject });
      this.#port.postMessage(message, moved);
    });
  }

  /** What was asked before is answered: until then the thread may be writing into memory that it shares. */
  close(): void {
    this.#failure ??= new Error('the sealer is closed');
    this.#closeWhenAnswered();
  }

  #closeWhenAnswered(): void {
    if (this.#failure !== undefined && this.#asked.length === 0) this.#port.close();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#asked.splice(0)) reject(error);
    this.#port.close();
  }
}
