/**
 * The reason given to a signal that only ends a wait. One for all: `abort()` without a reason makes an exception with its
 * stack, which costs more than such a wait. Nobody reads it.
 */
export const CANCELLED = new Error('it is over');
