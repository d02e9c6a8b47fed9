// Work of which few at a time may be under way of one owner, and of all: it keeps much memory, and is short.
import { createFairTurns } from './fair-turns.ts';

/** Does the work in a place of the owner, and gives it back. Who waits in a place for another one of the same kind waits for ever. */
export type OwnerPlaces = <T>(owner: string, work: () => Promise<T>) => Promise<T>;

export function createOwnerPlaces(): OwnerPlaces {
  const turns = createFairTurns();
  return async (owner, work) => {
    const end = await turns.begin({ owner, work: 'places' });
    try {
      return await work();
    } finally {
      end();
    }
  };
}
