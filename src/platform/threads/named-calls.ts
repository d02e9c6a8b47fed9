// A table of functions of one thread that another calls over their line, each with one argument of plain data.
import type { Answerer, ThreadLine } from './thread-line.ts';

/** Type parameters cannot say "plain data": callers see to it. */
// biome-ignore lint/suspicious/noExplicitAny: arguments of all functions of a table
export type CallTable = Readonly<Record<string, (argument: any) => unknown>>;

/** The functions of `T` as they are on the other side of a line. */
export type Remote<T extends CallTable> = {
  readonly [N in keyof T]: (...argument: Parameters<T[N]>) => Promise<Awaited<ReturnType<T[N]>>>;
};

export function serveCalls(line: ThreadLine, table: CallTable): void {
  const answerers = Object.entries(table).map(([name, run]): [string, Answerer] => [
    name,
    async (argument: unknown) => ({ value: await run(argument) }),
  ]);
  line.serve(Object.fromEntries(answerers));
}

export function remoteCalls<T extends CallTable>(
  line: ThreadLine,
  names: readonly (keyof T & string)[],
): Remote<T> {
  const calls = names.map((name) => [
    name,
    async (argument: unknown) => (await line.ask(name, argument)).value,
  ]);
  return Object.fromEntries(calls) as Remote<T>;
}
