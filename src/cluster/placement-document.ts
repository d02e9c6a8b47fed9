// A placement map as the document that the coordinator keeps.
import { fromBase64, toBase64 } from '../lib/bytes.ts';
import type { PlacementMap } from '../ports/placement.ts';
import type { PlacementDocument } from '../ports/placement-map.ts';
import { decodePlacement, encodePlacement } from './placement-record.ts';

export function documentOf(map: PlacementMap): PlacementDocument {
  return { version: map.version, map: toBase64(encodePlacement(map)) };
}

/** Throws BrokenInvariant for what is no map. */
export function placementOf({ map }: PlacementDocument): PlacementMap {
  return decodePlacement(fromBase64(String(map)));
}
