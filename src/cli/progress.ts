// How far a long command has come, on the terminal of who waits for it; nothing where standard error is no terminal.
import { type Options, SingleBar } from 'cli-progress';

export interface Progress {
  /** `value` so far; of `total` where that is known. */
  at(value: number): void;
  end(): void;
}

const OPTIONS: Options = { hideCursor: true, clearOnComplete: true, fps: 5 };

/** A bar that fills. `format`: of a value, for people. */
export function startBar(
  what: string,
  total: number,
  format: (value: number) => string,
  stream: NodeJS.WritableStream = process.stderr,
): Progress {
  const bar = new SingleBar({
    ...OPTIONS,
    stream,
    format: `${what} {bar} {percentage} %  {done} of {all}  {eta_formatted} left`,
  });
  bar.start(total, 0, { done: format(0), all: format(total) });
  return { at: (value) => bar.update(value, { done: format(value) }), end: () => bar.stop() };
}

/** A number that grows, where nobody knows to what. */
export function startCount(
  what: string,
  format: (value: number) => string,
  stream: NodeJS.WritableStream = process.stderr,
): Progress {
  const bar = new SingleBar({ ...OPTIONS, stream, format: `${what} {done} in {duration_formatted}` });
  bar.start(Number.MAX_SAFE_INTEGER, 0, { done: format(0) });
  return { at: (value) => bar.update(value, { done: format(value) }), end: () => bar.stop() };
}
