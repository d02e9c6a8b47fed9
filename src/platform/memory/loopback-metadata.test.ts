import { expect, test } from 'vitest';
import { openNoteShards } from '../../../tests/support/metadata/note-shards.ts';
import { createSeededRandom } from '../../../tests/support/run/simulated.ts';
import { createLoopbackMetadata } from './loopback-metadata.ts';

test('a lost reply is requested again under the same id: one effect, the first outcome', async () => {
  const { shards } = await openNoteShards();
  let lostCount = 0;
  const metadata = createLoopbackMetadata({
    metadata: shards,
    random: createSeededRandom(1),
    losesReply: () => ++lostCount > 0,
  });
  const write = (text: string) => ({ bucketId: 'b', key: 'x', text }) as never;
  const first = await metadata.execute({ shard: 0 }, 'write-note' as never, write('one'));
  expect(first).toMatchObject({ kind: 'done', value: { kind: 'written', replaced: null } });
  const second = await metadata.execute({ shard: 0 }, 'write-note' as never, write('two'));
  expect(second).toMatchObject({ kind: 'done', value: { replaced: 'one' } });
  expect(lostCount).toBe(2);
});

test('arguments and results are copies of plain data', async () => {
  const query = { bucketId: 'b', limit: 3 };
  const given: unknown[] = [];
  const metadata = createLoopbackMetadata({
    metadata: {
      shardCount: 7,
      execute: async () => ({ kind: 'busy' }),
      async query(_envelope, _name, query) {
        given.push(query);
        return {
          kind: 'done',
          value: { bytes: Uint8Array.of(1, 2), query, missing: undefined } as never,
          timeMs: 5,
        };
      },
    },
    random: createSeededRandom(1),
  });
  const reply = await metadata.query({ shard: 3 }, 'list-notes' as never, query as never);
  expect(given).toEqual([query]);
  expect(given[0]).not.toBe(query);
  expect(reply).toEqual({ kind: 'done', value: { bytes: Buffer.of(1, 2), query }, timeMs: 5 });
  expect(metadata.shardCount).toBe(7);
});
