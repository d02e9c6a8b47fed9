import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { LIMITS } from '../../types/limits.ts';
import { createOtherShards } from './other-shards.ts';

const clock = createManualClock(0);
const parts = (...shards: number[]) => new Map(shards.map((shard) => [shard, `for ${shard}`]));

test('all are asked at once, each separately; a failed one is left alone, longer each time, and no other is', async () => {
  const others = createOtherShards(clock);
  const heard: string[] = [];
  const ask = async (shard: number, part: string) => {
    heard.push(part);
    if (shard === 2) throw new Error('no answer');
  };
  const pauses: number[] = [];
  for (let tries = 0; tries < 8; tries++) {
    await others.askEach(parts(1, 2, 3), ask);
    let ms = 0;
    for (; others.isAway(2); ms += 500) {
      await others.askEach(parts(2), ask);
      clock.advance(500);
    }
    pauses.push(ms);
    expect([others.isAway(1), others.isAway(3)]).toEqual([false, false]);
  }
  expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 60, 60].map((seconds) => seconds * 1000));
  expect(pauses.at(-1)).toBe(LIMITS.shardRestMaxMs);
  expect(heard.filter((part) => part === 'for 2')).toHaveLength(8);
  await others.askEach(parts(2), async () => {});
  await others.askEach(parts(2), ask);
  clock.advance(LIMITS.shardRestMinMs);
  expect(others.isAway(2)).toBe(false);
});

test('a late one is waited for no longer, and not asked again before it has answered', async () => {
  const others = createOtherShards(clock);
  const answer = Promise.withResolvers<void>();
  let askedCount = 0;
  const ask = (shard: number) => {
    if (shard === 1) return Promise.resolve();
    askedCount++;
    return answer.promise;
  };
  const asking = others.askEach(parts(1, 2), ask);
  clock.advance(LIMITS.shardLateMs);
  await asking;
  expect([others.isAway(1), others.isAway(2)]).toEqual([false, true]);
  clock.advance(LIMITS.shardRestMaxMs);
  await others.askEach(parts(1, 2), ask);
  expect(askedCount).toBe(1);
  answer.resolve();
  await answer.promise;
  await Promise.resolve();
  expect(others.isAway(2)).toBe(false);
});
