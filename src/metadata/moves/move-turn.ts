// Whose turns the steps of a prefix's MOVE take, and the looks for its keys: they name no bucket that somebody believes in, so
// they say it themselves.
import type { MoveTurn } from '../../ports/metadata/moves.ts';

export function ownerOfTurn({ owner, bucketId }: MoveTurn): string {
  return owner ?? bucketId;
}
