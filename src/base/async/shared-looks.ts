// Looks at what may change at any time, shared by all who ask for the same thing at the same time. Nobody is answered by a look that
// had begun before he asked; so of one thing one look is under way, and one more follows it for all who have come meanwhile.

/** What `look` finds from now on. Its error is that of all who share it. */
export type SharedLooks<T> = (key: string) => Promise<T>;

interface Looks<T> {
  underWay: Promise<T>;
  next: Promise<T> | undefined;
}

export function createSharedLooks<T>(look: (key: string) => Promise<T>): SharedLooks<T> {
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

  return (key) => {
    const before = looks.get(key);
    if (before === undefined) return begin(key);
    before.next ??= before.underWay.then(
      () => begin(key),
      () => begin(key),
    );
    return before.next;
  };
}
