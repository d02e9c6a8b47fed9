import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { DriveHangs } from '../lib/drive-hangs.ts';
import { startCommitQueue } from './commit-queue.ts';
import { systemClock } from './system-clock.ts';

const AFTER_MS = 200;
const COLUMNS = [{ name: 'rows', nativeName: 'rows', isPrefixFree: false }];
const ROWS = [{ column: 'rows', key: Uint8Array.of(1), value: Uint8Array.of(2) }];

/** A committer thread that is there, and then does with what it is sent what `onMessage` says. */
function start(onMessage: string) {
  const program = `
    import { parentPort } from 'node:worker_threads';
    parentPort.on('message', (frame) => { ${onMessage} });
    parentPort.postMessage({ kind: 'ready' });`;
  const url = new URL(`data:text/javascript,${encodeURIComponent(program)}`);
  return startCommitQueue(
    { handle: 0n, columns: COLUMNS, hangs: { clock: systemClock, afterMs: AFTER_MS } },
    url,
  );
}

test('a write that is not answered has failed: the store has, and nobody waits for it any more', async () => {
  const queue = await start('');
  const commits = [queue.commit(ROWS), queue.commit(ROWS)];
  const outcomes = Promise.allSettled(commits);
  expect(await queue.failed).toBeInstanceOf(DriveHangs);
  for (const { status } of await outcomes) expect(status).toBe('rejected');
  await expect(queue.commit(ROWS)).rejects.toBeInstanceOf(DriveHangs);
});

test('an end that is asked for while a write hangs comes when the write has failed', async () => {
  const queue = await start('');
  const commit = queue.commit(ROWS).catch((error: unknown) => error);
  await queue.stop();
  expect(await commit).toBeInstanceOf(DriveHangs);
});

test('an answer that comes after all is heard by nobody', async () => {
  const late = new BroadcastChannel('late-answer');
  const queue = await start(`
    const late = new BroadcastChannel('late-answer');
    late.onmessage = () => {
      parentPort.postMessage({ kind: 'written', frame });
      late.postMessage('answered');
    };`);
  const commit = queue.commit(ROWS).catch((error: unknown) => error);
  expect(await commit).toBeInstanceOf(DriveHangs);
  const answered = new Promise((resolve) => {
    late.onmessage = resolve;
  });
  late.postMessage('go');
  await answered;
  await setImmediate();
  late.close();
  await queue.stop();
});
