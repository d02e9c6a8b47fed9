// What may be under way yet: what has no answer, and for a while what was begun behind an answer or by who has gone.
import { expect, test } from 'vitest';
import { Attempts } from './attempts.ts';

test('an attempt without an end continues, and a later one was not under way', () => {
  const attempts = new Attempts();
  attempts.begin(1000);
  expect([attempts.mayGoOn(999, 1500), attempts.mayGoOn(1000, 900_000)]).toEqual([false, true]);
});

test('the effect of a lost attempt may appear later than that of an answered one', () => {
  const [answered, gone] = [new Attempts(), new Attempts()];
  answered.begin(1000)(2000, true);
  gone.begin(1000)(2000, false);
  const mayGoOn = (nowMs: number) => [answered, gone].map((attempts) => attempts.mayGoOn(1500, nowMs));
  expect([mayGoOn(4000), mayGoOn(10_000), mayGoOn(120_000)]).toEqual([
    [true, true],
    [false, true],
    [false, false],
  ]);
});

test('ended attempts were not under way', () => {
  const attempts = new Attempts();
  attempts.begin(1000)(2000, true);
  expect(attempts.mayGoOn(60_000, 60_000)).toBe(false);
});
