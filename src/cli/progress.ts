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
  return show(bar, format, total);
}

/** A number that grows, where nobody knows to what. */
export function startCount(
  what: string,
  format: (value: number) => string,
  stream: NodeJS.WritableStream = process.stderr,
): Progress {
  const bar = new SingleBar({ ...OPTIONS, stream, format: `${what} {done} in {duration_formatted}` });
  return show(bar, format, Number.MAX_SAFE_INTEGER);
}

/** Who ends the command by Ctrl-C gets the terminal back as it was; what else that means is for others, or ends the process. */
function show(bar: SingleBar, format: (value: number) => string, total: number): Progress {
  // Other listeners for the signal get it once this one is removed.
  const isForOthers = process.listenerCount('SIGINT') > 0;
  const onInterrupt = () => {
    bar.stop();
    if (!isForOthers) process.kill(process.pid, 'SIGINT');
  };
  process.once('SIGINT', onInterrupt);
  bar.start(total, 0, { done: format(0), all: format(total) });
  return {
    at: (value) => bar.update(value, { done: format(value) }),
    end() {
      process.off('SIGINT', onInterrupt);
      bar.stop();
    },
  };
}
