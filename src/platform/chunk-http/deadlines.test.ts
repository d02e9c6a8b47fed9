import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { Deadlines } from './deadlines.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

function open() {
  const clock = createManualClock(0);
  const deadlines = new Deadlines(clock);
  const late: string[] = [];
  const add = (name: string, afterMs: number) => deadlines.add(afterMs, () => void late.push(name));
  const advance = async (ms: number) => {
    clock.advance(ms);
    await turn();
    return late.splice(0);
  };
  return { deadlines, add, advance };
}

test('each fires once, at its time, in whatever order they were set', async () => {
  const { add, advance } = open();
  add('c', 30);
  add('a', 10);
  add('b', 20);
  await turn();
  expect(await advance(9)).toEqual([]);
  expect(await advance(1)).toEqual(['a']);
  add('soon', 5);
  await turn();
  expect(await advance(5)).toEqual(['soon']);
  expect(await advance(5)).toEqual(['b']);
  expect(await advance(100)).toEqual(['c']);
  add('again', 10);
  expect(await advance(10)).toEqual(['again']);
});

test('a removed one does not fire, and none after all were cleared', async () => {
  const { deadlines, add, advance } = open();
  const removed = add('removed', 10);
  add('kept', 10);
  deadlines.remove(removed);
  expect(await advance(10)).toEqual(['kept']);
  add('cleared', 10);
  deadlines.clear();
  expect(await advance(100)).toEqual([]);
});
