import { expect, test } from 'vitest';
import { createByteGate } from './byte-gate.ts';

const turn = () => new Promise(setImmediate);

test('lets through what fits, in order, and what is too large alone', async () => {
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
