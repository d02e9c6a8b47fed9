// The codec pool without threads: for small bodies, for tests and simulation, and where no workers are wanted.
import { createBodySealer } from '../../base/crypto/body-sealer.ts';
import { openBlocks } from '../../base/crypto/seal.ts';
import type { BodySealer, CodecPoolPort } from '../../ports/codec-pool.ts';

export const inlineCodecPool: CodecPoolPort = {
  open: openInline,
  openBlocks: async (blocks) => openBlocks(blocks),
  async close() {},
};

function openInline(options: Parameters<CodecPoolPort['open']>[0]): BodySealer {
  const sealer = createBodySealer(options);
  return {
    seal: async (chunk) => ({ bytes: chunk.bytes, ...sealer.seal(chunk) }),
    finish: async () => sealer.finish(),
    abandon() {},
  };
}
