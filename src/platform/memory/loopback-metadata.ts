// The metadata port as it is between processes, inside one: every command, query and reply goes through bytes, and
// every command has a request id, under which it is retried when its reply is lost (R18, R47). Used by tests to prove
// that nothing but plain data crosses the port; it opens no connection.
import { toHex } from '../../base/bytes/bytes.ts';
import { packPlain, unpackPlain } from '../../base/record-codec.ts';
import type { RandomPort } from '../../ports/clock.ts';
import type { Envelope, MetadataPort, Reply } from '../../ports/metadata/port.ts';

export interface LoopbackOptions {
  metadata: MetadataPort;
  random: RandomPort;
  /** Whether the reply to this command is lost on its way; the retry's is not. */
  losesReply?: (name: string) => boolean;
}

interface Message {
  envelope: Envelope;
  name: never;
  body: never;
}

const REQUEST_ID_BYTES = 16;

export function createLoopbackMetadata(options: LoopbackOptions): MetadataPort {
  const { metadata, random, losesReply = () => false } = options;

  async function execute(request: Uint8Array): Promise<Uint8Array> {
    const { envelope, name, body } = unpackPlain(request) as Message;
    return packPlain(await metadata.execute(envelope, name, body));
  }

  async function query(request: Uint8Array): Promise<Uint8Array> {
    const { envelope, name, body } = unpackPlain(request) as Message;
    return packPlain(await metadata.query(envelope, name, body));
  }

  return {
    shardCount: metadata.shardCount,
    async execute(envelope, name, command) {
      const requestId = envelope.requestId ?? toHex(random.bytes(REQUEST_ID_BYTES));
      const request = packPlain({ envelope: { ...envelope, requestId }, name, body: command });
      let reply = await execute(request);
      if (losesReply(name)) reply = await execute(request);
      return unpackPlain(reply) as Reply<never>;
    },
    async query(envelope, name, body) {
      return unpackPlain(await query(packPlain({ envelope, name, body }))) as Reply<never>;
    },
  };
}
