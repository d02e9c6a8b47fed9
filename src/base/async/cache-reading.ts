// Shares a costly reading: callers during a read, and for a while after it, get the same result.

export interface CacheReadingOptions {
  /** How long what was read is given to others. A failure is given only to those who wait for it. */
  readonly cachedMs: number;
  /** A monotonic clock. */
  nowMs(): number;
}

/** As `read`, but called no more often than once in `cachedMs`, and never while it is under way. */
export function cacheReading<T>(read: () => Promise<T>, options: CacheReadingOptions): () => Promise<T> {
  const { cachedMs, nowMs } = options;
  let reading: Promise<T> | undefined;
  let cached: { value: T; atMs: number } | undefined;

  async function readAnew(): Promise<T> {
    try {
      const value = await read();
      cached = { value, atMs: nowMs() };
      return value;
    } finally {
      reading = undefined;
    }
  }

  return async () => {
    if (cached !== undefined && nowMs() - cached.atMs < cachedMs) return cached.value;
    cached = undefined;
    reading ??= readAnew();
    return reading;
  };
}
