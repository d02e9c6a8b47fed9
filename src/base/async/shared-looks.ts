// Looks at what may change at any time, shared by all who ask for the same thing at the same time. Nobody is answered by a look that
// had begun before he asked; so of one thing one look is under way, and one more follows it for all who have come meanwhile. One that hangs is not
// waited for: the next one begins beside it.

/** What `look` finds from now on. Its error is that of all who share it. */
export type SharedLooks<T> = (key: string) => Promise<T>;

interface Looks<T> {
  underWay: Promise<T>;
  next: Promise<T> | undefined;
}

/** A look that takes longer hangs: whoever asks waits for the bound of one look and this time, and not for those of two. */
const HANGS_MS = 1000;

/** `clock` absent: a look is waited for, however long it takes. */
export function createSharedLooks<T>(
  look: (key: string) => Promise<T>,
  clock?: { sleep(ms: number, signal: AbortSignal): Promise<void> },
): SharedLooks<T> {
  const looks = new Map<string, Looks<T>>();

  function begin(key: string): Promise<T> {
    const one: Looks<T> = { underWay: look(key), next: undefined };
    looks.set(key, one);
    const end = () => {
      // The next one has its own place by now.
      if (one.next === undefined) looks.delete(key);
    };
    one.underWay.then(end, end);
    return one.underWay;
  }

  async function endOrHang(underWay: Promise<T>): Promise<void> {
    const ended = new AbortController();
    const end = () => ended.abort();
    const over = underWay.then(end, end);
    await (clock === undefined ? over : Promise.race([over, clock.sleep(HANGS_MS, ended.signal)]));
  }

  return (key) => {
    const before = looks.get(key);
    if (before === undefined) return begin(key);
    before.next ??= endOrHang(before.underWay).then(() => begin(key));
    return before.next;
  };
}
