// What every test file begins with. Bytes are compared as such: `toEqual` would look at each byte as at a property of an object,
// and takes a second for a few hundred KiB. Bytes of different classes are left to it, and so is the text of a failure.
import { expect } from 'vitest';

/** Files of a group share a process, and one comparison is enough. */
const ADDED = Symbol.for('holdfast.comparesBytes');
const shared = globalThis as { [ADDED]?: true };

function areEqualBytes(a: unknown, b: unknown): boolean | undefined {
  if (!(a instanceof Uint8Array && b instanceof Uint8Array) || a.constructor !== b.constructor)
    return undefined;
  return Buffer.compare(a, b) === 0;
}

if (shared[ADDED] === undefined) {
  shared[ADDED] = true;
  expect.addEqualityTesters([areEqualBytes]);
}
