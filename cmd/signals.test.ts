import { expect, test } from 'vitest';
import { onSignals } from './signals.ts';

test('a wish to stop that arrives twice counts once, a later one means now', () => {
  const seen: string[] = [];
  let nowMs = 0;
  const actions = {
    drain: () => seen.push('drain'),
    stopNow: (signal: string) => seen.push(`stop now, ${signal}`),
    reload: () => seen.push('reload'),
  };
  const release = onSignals(actions, () => nowMs);
  try {
    process.emit('SIGHUP', 'SIGHUP');
    process.emit('SIGINT', 'SIGINT');
    nowMs = 5;
    process.emit('SIGTERM', 'SIGTERM');
    expect(seen).toEqual(['reload', 'drain']);
    nowMs = 1005;
    process.emit('SIGINT', 'SIGINT');
    process.emit('SIGHUP', 'SIGHUP');
    expect(seen).toEqual(['reload', 'drain', 'stop now, SIGINT', 'reload']);
  } finally {
    release();
  }
});
