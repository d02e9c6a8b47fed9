import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { SimulatedExtents } from '../../../tests/support/disks/simulated-extents.ts';
import { must } from '../../base/assert.ts';
import { utf8 } from '../../base/bytes/bytes.ts';
import { AlignedMemory } from './aligned-memory.ts';
import { BLOCK_BYTES, recordBytes } from './extent-record.ts';
import { Extents } from './extents.ts';
import { RecordMemory } from './record-memory.ts';

const BODY_BYTES = 100_000;
const key = utf8('key');

async function open(received: RecordMemory) {
  const io = new SimulatedExtents(() => 0);
  // Too little for a record: what is copied into it fails.
  const memory = new AlignedMemory(BLOCK_BYTES);
  return { io, extents: await Extents.open({ io, memory, received, fileBytes: 1024 * 1024, live: [] }) };
}

test('a body that has arrived in a record is written out of it', async () => {
  const received = new RecordMemory(2 * recordBytes(BODY_BYTES));
  const { io, extents } = await open(received);
  const content = randomBytes(BODY_BYTES);
  const body = must(received.take(BODY_BYTES), 'there is room');
  body.bytes.set(content);
  const writing = extents.append({ key, body: body.bytes });
  while (!io.step()) await Promise.resolve();
  const place = await writing;
  expect((await extents.read(key, place))?.equals(content)).toBe(true);
  // One of another place is not taken for it.
  await expect(extents.append({ key, body: randomBytes(BODY_BYTES) })).rejects.toThrow();
});

test('its memory is used again when the giver and the write are done with it', async () => {
  const received = new RecordMemory(recordBytes(BODY_BYTES));
  const { io, extents } = await open(received);
  const body = must(received.take(BODY_BYTES), 'there is room');
  const writing = extents.append({ key, body: body.bytes });
  expect(received.take(BODY_BYTES)).toBeUndefined();
  body.release();
  expect(received.take(BODY_BYTES)).toBeUndefined();
  while (!io.step()) await Promise.resolve();
  await writing;
  const next = must(received.take(BODY_BYTES), 'there is room again');
  next.release();
  // What was released is nobody's record.
  expect(received.recordOf(next.bytes)).toBeUndefined();
});
