import { expect, test } from 'vitest';
import { openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';

const NAME = 'look-at-all';

test('a pass begins, goes on behind the item that it has reached, and ends', async () => {
  const world = await openMetadata();
  const scan = async () => {
    const reply = await world.shards.query({ shard: 0 }, 'get-scan', { name: NAME });
    return reply.kind === 'done' ? reply.value.scan : undefined;
  };
  expect(await scan()).toBeNull();
  const begun = await world.execute('note-scan', { name: NAME, step: 'begin' });
  const beganAtMs = begun.kind === 'noted' ? begun.scan.beganAtMs : 0;
  await world.execute('note-scan', { name: NAME, step: 'reach', beganAtMs, after: { index: 7 } });
  expect(await scan()).toEqual({ beganAtMs, isUnderWay: true, after: { index: 7 } });
  const ended = await world.execute('note-scan', { name: NAME, step: 'end', beganAtMs });
  expect(ended).toMatchObject({ kind: 'noted', scan: { isUnderWay: false, ended: { beganAtMs } } });
});

test('a step of a pass that has ended, or that another one has followed, changes nothing', async () => {
  const world = await openMetadata();
  const first = await world.execute('note-scan', { name: NAME, step: 'begin' });
  const beganAtMs = first.kind === 'noted' ? first.scan.beganAtMs : 0;
  const other = await world.execute('note-scan', { name: 'another', step: 'reach', beganAtMs, after: 1 });
  expect(other).toEqual({ kind: 'gone' });
  world.clock.advance(1000);
  const second = await world.execute('note-scan', { name: NAME, step: 'begin' });
  expect(await world.execute('note-scan', { name: NAME, step: 'reach', beganAtMs, after: 1 })).toEqual({
    kind: 'gone',
  });
  const again = second.kind === 'noted' ? second.scan.beganAtMs : 0;
  await world.execute('note-scan', { name: NAME, step: 'end', beganAtMs: again });
  expect(await world.execute('note-scan', { name: NAME, step: 'end', beganAtMs: again })).toEqual({
    kind: 'gone',
  });
});
