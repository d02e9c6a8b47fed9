import { expect, test } from 'vitest';
import { createByteGate } from './byte-gate.ts';

const turn = () => new Promise(setImmediate);

test('admits what fits, in order, and what is too large alone', async () => {
  const gate = createByteGate(100);
  const passed: number[] = [];
  const enter = (sizeBytes: number) => void gate.enter(sizeBytes).then(() => passed.push(sizeBytes));
  for (const sizeBytes of [60, 40, 50, 10, 500, 5]) enter(sizeBytes);
  await turn();
  expect(passed).toEqual([60, 40]);
  gate.leave(40);
  await turn();
  expect(passed).toEqual([60, 40]);
  gate.leave(60);
  await turn();
  expect(passed).toEqual([60, 40, 50, 10]);
  gate.leave(50);
  gate.leave(10);
  await turn();
  expect(passed).toEqual([60, 40, 50, 10, 500]);
  gate.leave(500);
  await turn();
  expect(passed).toEqual([60, 40, 50, 10, 500, 5]);
});

test('a cancelled wait admits those behind it, and holds no room', async () => {
  const gate = createByteGate(100);
  const passed: number[] = [];
  const given = new AbortController();
  let askedCount = 0;
  const giveUp = () => {
    askedCount++;
    return given.signal;
  };
  const enter = (sizeBytes: number, how?: () => AbortSignal) =>
    gate.enter(sizeBytes, how).then(
      () => void passed.push(sizeBytes),
      (error: unknown) => error,
    );
  void enter(60, giveUp);
  const refused = enter(50, giveUp);
  void enter(30);
  await turn();
  expect([passed, askedCount]).toEqual([[60], 1]);
  given.abort('nobody waits');
  expect(await refused).toBe('nobody waits');
  expect(passed).toEqual([60, 30]);
  expect(await enter(20, giveUp)).toBe('nobody waits');
  gate.leave(60);
  gate.leave(30);
  void enter(100, giveUp);
  await turn();
  expect(passed).toEqual([60, 30, 100]);
});
