// What the codec pool's threads run. A body of one chunk is one call; a longer one is a task that lives as long as the
// body, fed through a port of its own, so that its hash states stay on one thread. Waiting for a slow client costs a
// task nothing: threads run many of them.
import type { MessagePort } from 'node:worker_threads';
import { move, transferableSymbol, valueSymbol } from 'piscina';
import {
  type BodyHashes,
  createBodySealer,
  type PlainChunk,
  type SealerOptions,
} from '../../base/crypto/body-sealer.ts';
import { type BlocksToOpen, openBlocks } from '../../base/crypto/seal.ts';
import type { SealedChunk } from '../../ports/codec-pool.ts';

export type ToWorker = ({ kind: 'chunk' } & PlainChunk) | { kind: 'finish' };

/** One for each message, in order. */
export type FromWorker =
  | { kind: 'sealed'; chunk: SealedChunk }
  | { kind: 'finished'; hashes: BodyHashes }
  | { kind: 'failed'; message: string };

export interface WholeBody {
  options: SealerOptions;
  chunk: PlainChunk;
}

export interface SealedWhole extends SealedChunk {
  hashes: BodyHashes;
}

/** What goes to another thread with a chunk. Memory that threads share stays where it is. */
export function memoryToMove({ bytes: { buffer } }: Pick<PlainChunk, 'bytes'>): ArrayBuffer[] {
  return buffer instanceof ArrayBuffer ? [buffer] : [];
}

/** A body of one chunk. */
export function sealWhole({ options, chunk }: WholeBody): SealedWhole {
  const sealer = createBodySealer(options);
  const sealed: SealedWhole = { bytes: chunk.bytes, ...sealer.seal(chunk), hashes: sealer.finish() };
  // Piscina unwraps it: the caller gets the value, its buffer having been moved.
  return move({
    [transferableSymbol]: memoryToMove(chunk),
    [valueSymbol]: sealed,
  }) as unknown as SealedWhole;
}

/** Pieces of one sealed chunk. They go to the caller without a copy. */
export function openChunk(blocks: BlocksToOpen): Uint8Array<ArrayBuffer>[] {
  const opened = openBlocks(blocks);
  return move({
    [transferableSymbol]: opened.map(({ buffer }) => buffer),
    [valueSymbol]: opened,
  }) as unknown as Uint8Array<ArrayBuffer>[];
}

/** A body of many chunks. Resolves when the other side closes the port. */
export function sealStream({ options, port }: { options: SealerOptions; port: MessagePort }): Promise<void> {
  const sealer = createBodySealer(options);
  port.on('message', (message: ToWorker) => {
    try {
      answer(message);
    } catch (error) {
      post({ kind: 'failed', message: error instanceof Error ? error.message : String(error) }, []);
    }
  });
  return new Promise((resolve) => {
    port.on('close', resolve);
  });

  function answer(message: ToWorker): void {
    if (message.kind === 'finish') {
      post({ kind: 'finished', hashes: sealer.finish() }, []);
      return;
    }
    const { bytes } = message;
    post({ kind: 'sealed', chunk: { bytes, ...sealer.seal(message) } }, memoryToMove(message));
  }

  function post(reply: FromWorker, moved: ArrayBuffer[]): void {
    port.postMessage(reply, moved);
  }
}
