// Assertions for what must be true. A failure is a bug of ours, never the answer to bad input.

/** Thrown when an invariant is broken: answered as 500 InternalError and logged with its stack. */
export class BrokenInvariant extends Error {
  override name = 'BrokenInvariant';
}

/** Throws {@link BrokenInvariant} unless `condition` holds. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new BrokenInvariant(message);
}

/** Returns `value`, which must be there: for index access and map look-ups that cannot miss. */
export function must<T>(value: T | undefined | null, message: string): T {
  if (value === undefined || value === null) throw new BrokenInvariant(message);
  return value;
}

/** Marks a branch that the type system has shown to be unreachable. */
export function unreachable(value: never): never {
  throw new BrokenInvariant(`unreachable: ${String(value)}`);
}
