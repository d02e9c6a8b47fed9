// Groups that take turns: who is next, who is passed over, and that nobody is lost.
import { expect, test } from 'vitest';
import { createTenantQueue } from './tenant-queue.ts';

const anyone = () => true;

test('a group with many entries waits for the others after each of its turns', () => {
  const turns = createTenantQueue<string>();
  for (const item of ['a1', 'a2', 'a3']) turns.add(['a'], item);
  turns.add(['b'], 'b1');
  turns.add(['c'], 'c1');
  turns.add(['b'], 'b2');
  expect(Array.from({ length: 6 }, () => turns.next(anyone))).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  expect([turns.size, turns.next(anyone)]).toEqual([0, undefined]);
});

test('addresses of one account share its turns', () => {
  const turns = createTenantQueue<string>();
  for (const address of ['1', '2', '3']) turns.add(['a', address], `a${address}`);
  turns.add(['b', '1'], 'b1');
  turns.add(['b', '1'], 'b2');
  expect(Array.from({ length: 5 }, () => turns.next(anyone))).toEqual(['a1', 'b1', 'a2', 'b2', 'a3']);
});

test('within an account signers take turns, however many addresses one of them has', () => {
  const turns = createTenantQueue<string>();
  for (const address of ['1', '2', '3']) turns.add(['a', 'url', address], `url${address}`);
  for (const item of ['own1', 'own2']) turns.add(['a', 'own', '9'], item);
  turns.add(['b', 'own', '1'], 'b1');
  const order = Array.from({ length: 6 }, () => turns.next(anyone));
  expect(order).toEqual(['url1', 'b1', 'own1', 'url2', 'own2', 'url3']);
  expect([turns.size, turns.next(anyone)]).toEqual([0, undefined]);
});

test('a group whose first entry may not go is skipped and keeps its place', () => {
  const turns = createTenantQueue<string>();
  turns.add(['a'], 'a1');
  turns.add(['b'], 'b1');
  expect(turns.next((item) => item.startsWith('b'))).toBe('b1');
  turns.add(['b'], 'b2');
  expect(turns.next(anyone)).toBe('a1');
});

test('an entry that goes ahead does so within its group only', () => {
  const turns = createTenantQueue<string>();
  turns.add(['a'], 'a1');
  turns.add(['b'], 'b1');
  turns.add(['b'], 'b2', { isAhead: true });
  expect([turns.next(anyone), turns.next(anyone), turns.next(anyone)]).toEqual(['a1', 'b2', 'b1']);
});

test('a removed entry gets no turn', () => {
  const turns = createTenantQueue<string>();
  turns.add(['a'], 'a1');
  turns.add(['a'], 'a2', { isAhead: true });
  expect([turns.remove(['a'], 'a2'), turns.remove(['a'], 'a2')]).toEqual([true, false]);
  expect([...turns]).toEqual(['a1']);
  expect([turns.remove(['a'], 'a1'), turns.size, turns.next(anyone)]).toEqual([true, 0, undefined]);
});
