// Pages of rows that end at a number of rows or at a number of bytes: rows of versions may be some hundred KiB large.

interface Row {
  key: Uint8Array;
  value: Uint8Array;
}

/**
 * Whether there is nothing behind these rows. True only where it is sure: after false the caller reads on, and may find
 * nothing. The store counts its prefix of each key as well, so it ends a page some bytes earlier.
 */
export function isLastPage(rows: readonly Row[], asked: { limit: number; bytesMax: number }): boolean {
  if (rows.length >= asked.limit) return false;
  let sizeBytes = 0;
  for (const { key, value } of rows) sizeBytes += key.length + value.length;
  return sizeBytes < asked.bytesMax / 2;
}
