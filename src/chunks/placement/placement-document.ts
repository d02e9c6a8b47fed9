// A placement map as the document in the coordinator.
import { fromBase64, toBase64 } from '../../base/bytes/bytes.ts';
import type { PlacementMap } from '../../ports/placement.ts';
import type { PlacementDocument } from '../../ports/placement-map.ts';
import { decodePlacement, encodePlacement } from './placement-record.ts';

export function documentOf(map: PlacementMap): PlacementDocument {
  return { version: map.version, map: toBase64(encodePlacement(map)) };
}

/** The last decoded one: a process reads the same document many times, and decoding a large one takes milliseconds. */
let decoded: { text: string; map: PlacementMap } | undefined;

/** Throws BrokenInvariant if it is not a map. */
export function placementOf({ map }: PlacementDocument): PlacementMap {
  const text = String(map);
  if (decoded?.text === text) return decoded.map;
  decoded = { text, map: decodePlacement(fromBase64(text)) };
  return decoded.map;
}
