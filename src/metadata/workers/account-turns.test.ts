// Turns of accounts: who waits for whom, and what failures and an end in between leave.
import { expect, test } from 'vitest';
import { createAccountTurns } from './account-turns.ts';

const never = () => false;
const accountOf = (task: string) => task.split('/')[0] as string;
const idOf = (task: string) => task;

/** Tasks that have so many steps each; the order of all steps is noted. */
function counted(left: Record<string, number>, atOnceMax = 1) {
  const made: string[] = [];
  const turns = createAccountTurns<string>({
    atOnceMax,
    accountOf,
    idOf,
    async step(task) {
      made.push(task);
      left[task] = (left[task] ?? 0) - 1;
      return (left[task] ?? 0) > 0;
    },
  });
  const tasks = () => Object.keys(left).filter((task) => (left[task] ?? 0) > 0);
  return { turns, made, tasks };
}

test('an account waits for one step of each other account, however many tasks they have', async () => {
  const { turns, made, tasks } = counted({ 'a/1': 3, 'a/2': 3, 'a/3': 3, 'b/1': 2 });
  expect(await turns.take(tasks(), never)).toEqual({ hasMore: false, failures: [] });
  expect(made.slice(0, 4)).toEqual(['a/1', 'b/1', 'a/2', 'b/1']);
  expect(made).toHaveLength(11);
});

test('calls that end after each step continue with the account that has waited longest', async () => {
  const { turns, made, tasks } = counted({ 'a/1': 2, 'a/2': 2, 'b/1': 2, 'c/1': 1 });
  while (tasks().length > 0) await turns.take(tasks(), () => true);
  expect(made).toEqual(['a/1', 'b/1', 'c/1', 'a/2', 'b/1', 'a/1', 'a/2']);
});

test('a stalled step does not take turns from other accounts', async () => {
  let end = (_: boolean) => {};
  const stands = new Promise<boolean>((resolve) => {
    end = resolve;
  });
  let left = 5;
  const turns = createAccountTurns<string>({
    atOnceMax: 2,
    accountOf,
    idOf,
    async step(task) {
      if (task === 'a/1') return stands;
      left--;
      if (left === 0) end(false);
      return left > 0;
    },
  });
  expect(await turns.take(['a/1', 'b/1'], never)).toEqual({ hasMore: false, failures: [] });
  expect(left).toBe(0);
});

test('a failed task is left out, and the others get their steps', async () => {
  const made: string[] = [];
  const error = new Error('not this one');
  const turns = createAccountTurns<string>({
    atOnceMax: 2,
    accountOf,
    idOf,
    async step(task) {
      if (task === 'a/1') throw error;
      made.push(task);
      return false;
    },
  });
  expect(await turns.take(['a/1', 'a/2', 'b/1'], never)).toEqual({ hasMore: false, failures: [error] });
  expect(made.sort()).toEqual(['a/2', 'b/1']);
});
