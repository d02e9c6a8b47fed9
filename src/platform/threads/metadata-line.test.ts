import { MessageChannel } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { openNoteShards } from '../../../tests/support/metadata/note-shards.ts';
import { createLineMetadata, serveMetadata } from './metadata-line.ts';
import { createThreadLine } from './thread-line.ts';

async function openMetadata() {
  const { shards } = await openNoteShards();
  const { port1, port2 } = new MessageChannel();
  const far = createThreadLine(port2, () => {});
  serveMetadata(far, shards);
  const near = createThreadLine(port1, () => {});
  return { shards, near, metadata: createLineMetadata(near, shards.shardCount), close: () => port1.close() };
}

const write = (text: string) => ({ bucketId: 'b', key: 'x', text }) as never;

test('commands and queries reach the shards, and their replies come back', async () => {
  const { shards, metadata, close } = await openMetadata();
  const first = await metadata.execute({ shard: 0 }, 'write-note' as never, write('one'));
  expect(first).toMatchObject({ kind: 'done', value: { kind: 'written', replaced: null } });
  const second = await metadata.execute({ shard: 0 }, 'write-note' as never, write('two'));
  expect(second).toMatchObject({ kind: 'done', value: { replaced: 'one' } });
  const query = { bucketId: 'b', limit: 3 } as never;
  const here = await shards.query({ shard: 0 }, 'list-notes' as never, query);
  const there = await metadata.query({ shard: 0 }, 'list-notes' as never, query);
  expect({ ...there, timeMs: 0 }).toEqual({ ...here, timeMs: 0 });
  expect(metadata.shardCount).toBe(shards.shardCount);
  close();
});

test('a line with too many questions under way is busy', async () => {
  const { near, metadata, close } = await openMetadata();
  const full = { ...near, hasRoom: () => false } as typeof near;
  expect(await createLineMetadata(full, 1).query({ shard: 0 }, 'list-notes' as never, {} as never)).toEqual({
    kind: 'busy',
  });
  expect(
    (await metadata.query({ shard: 0 }, 'list-notes' as never, { bucketId: 'b', limit: 1 } as never)).kind,
  ).toBe('done');
  close();
});
