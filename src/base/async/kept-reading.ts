// Reads something that is dear to read and cheap to repeat: whoever asks while it is read, or shortly afterwards, is given
// the same.

export interface KeptReadingOptions {
  /** How long what was read is given to others. A failure is given only to those who wait for it. */
  readonly keptMs: number;
  /** A monotonic clock. */
  nowMs(): number;
}

/** As `read`, but called no more often than once in `keptMs`, and never while it is under way. */
export function keepReading<T>(read: () => Promise<T>, options: KeptReadingOptions): () => Promise<T> {
  const { keptMs, nowMs } = options;
  let reading: Promise<T> | undefined;
  let kept: { value: T; atMs: number } | undefined;

  async function readAnew(): Promise<T> {
    try {
      const value = await read();
      kept = { value, atMs: nowMs() };
      return value;
    } finally {
      reading = undefined;
    }
  }

  return async () => {
    if (kept !== undefined && nowMs() - kept.atMs < keptMs) return kept.value;
    kept = undefined;
    reading ??= readAnew();
    return reading;
  };
}
