// Sizes as people write them: 5TiB.

const KIB = 1024;

/** Name of a unit -> bytes, smallest first. */
export const BYTE_UNITS: ReadonlyMap<string, number> = new Map([
  ['B', 1],
  ['KiB', KIB],
  ['MiB', KIB ** 2],
  ['GiB', KIB ** 3],
  ['TiB', KIB ** 4],
]);

/** `5TiB`, `5 TiB` or a bare number of bytes; undefined for anything else. */
export function parseByteSize(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,15}) ?([A-Za-z]*)$/.exec(text) ?? [];
  const factor = unit === '' ? 1 : BYTE_UNITS.get(unit);
  return digits === undefined || factor === undefined ? undefined : Number(digits) * factor;
}
