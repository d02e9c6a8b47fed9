/**
 * Why a signal aborts that does nothing but end a wait: one for all, because `abort()` makes an exception with its stack each
 * time, which costs more than such a wait. Nobody is told of it.
 */
export const CANCELLED = new Error('it is over');
