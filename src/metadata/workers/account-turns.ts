// Work of many accounts in turns: one step for each account, then the next one's, and of an account's tasks one after
// another. So an account with many tasks, or a large one, delays the others by one step at most for each that is under way.

export interface AccountTurns<Task> {
  /**
   * Runs steps of these tasks until none has more to do, or `hasEnded`. The account that has waited longest, over all calls,
   * is next. `step` resolves with true if the task has more to do; a task whose step fails is left out of this call.
   */
  take(tasks: readonly Task[], hasEnded: () => boolean): Promise<{ hasMore: boolean; failures: unknown[] }>;
}

interface Waiting<Task> {
  account: string;
  tasks: Task[];
}

export function createAccountTurns<Task>(options: {
  /** Steps at once, each of another account. */
  atOnceMax: number;
  accountOf(task: Task): string;
  idOf(task: Task): string;
  /** `underWay`: so many steps at once, this one included. */
  step(task: Task, underWay: number): Promise<boolean>;
}): AccountTurns<Task> {
  const { atOnceMax, accountOf, idOf, step } = options;
  /** When each account, and each task, had its last turn, in turns. Of those that were there at the last call. */
  let lastTurns = new Map<string, number>();
  let turn = 0;

  const accountName = (account: string) => `account ${account}`;
  const taskName = (task: Task) => `task ${idOf(task)}`;
  const lastTurn = (name: string) => lastTurns.get(name) ?? 0;

  function inOrder(tasks: readonly Task[]): Waiting<Task>[] {
    const byAccount = new Map<string, Task[]>();
    for (const task of tasks) {
      const account = accountOf(task);
      byAccount.set(account, [...(byAccount.get(account) ?? []), task]);
    }
    const names = [...[...byAccount.keys()].map(accountName), ...tasks.map(taskName)];
    lastTurns = new Map(names.map((name) => [name, lastTurn(name)]));
    for (const own of byAccount.values()) own.sort((a, b) => lastTurn(taskName(a)) - lastTurn(taskName(b)));
    const waiting = [...byAccount].map(([account, own]) => ({ account, tasks: own }));
    return waiting.sort((a, b) => lastTurn(accountName(a.account)) - lastTurn(accountName(b.account)));
  }

  return {
    async take(tasks, hasEnded) {
      const waiting = inOrder(tasks);
      const failures: unknown[] = [];
      const atOnce = Math.min(atOnceMax, waiting.length);
      const takeTurns = async () => {
        for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
          const task = next.tasks.shift() as Task;
          lastTurns.set(accountName(next.account), ++turn);
          lastTurns.set(taskName(task), turn);
          try {
            if (await step(task, atOnce)) next.tasks.push(task);
          } catch (error) {
            failures.push(error);
          }
          if (next.tasks.length > 0) waiting.push(next);
          if (hasEnded()) return;
        }
      };
      await Promise.all(Array.from({ length: atOnce }, takeTurns));
      return { hasMore: waiting.length > 0, failures };
    },
  };
}
