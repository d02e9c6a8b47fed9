import { afterAll, expect, test } from 'vitest';
import { DriveHangs } from '../../base/drive-hangs.ts';
import { systemClock } from '../system-clock.ts';
import { startCommitQueue } from './commit-queue.ts';

const AFTER_MS = 200;
const COLUMNS = [{ name: 'rows', nativeName: 'rows', isPrefixFree: false }];
const ROWS = [{ column: 'rows', key: Uint8Array.of(1), value: Uint8Array.of(2) }];

const late = new BroadcastChannel('late-answers');
afterAll(() => late.close());

/** Over a committer thread that answers nothing before `answer` is called, and then so. */
async function startHanging(answer: string) {
  const program = `
    import { parentPort } from 'node:worker_threads';
    const late = new BroadcastChannel('late-answers');
    parentPort.on('message', (frame) => {
      late.onmessage = () => parentPort.postMessage(${answer});
    });
    parentPort.postMessage({ kind: 'ready' });`;
  const url = new URL(`data:text/javascript,${encodeURIComponent(program)}`);
  const hangs = { clock: systemClock, afterMs: AFTER_MS };
  const queue = await startCommitQueue({ handle: 0n, columns: COLUMNS, hangs }, url);
  return { queue, answer: () => late.postMessage('now') };
}

test('an unanswered write fails the store, and no caller waits for it any more', async () => {
  const { queue, answer } = await startHanging(`{ kind: 'written', frame }`);
  const outcomes = Promise.allSettled([queue.commit(ROWS), queue.commit(ROWS)]);
  expect(await queue.failed).toBeInstanceOf(DriveHangs);
  for (const { status } of await outcomes) expect(status).toBe('rejected');
  await expect(queue.commit(ROWS)).rejects.toBeInstanceOf(DriveHangs);
  const stopped = queue.stop();
  answer();
  expect(await stopped).toBeUndefined();
});

test('a late answer reaches only the caller that closes the queue', async () => {
  const { queue, answer } = await startHanging(
    `{ kind: 'failed', message: 'bad sector', isCorruption: false }`,
  );
  const commit = queue.commit(ROWS).catch((error: unknown) => error);
  // It is asked to end before it is known that the drive hangs.
  const stopped = queue.stop();
  expect(await commit).toBeInstanceOf(DriveHangs);
  answer();
  expect((await stopped)?.message).toBe('bad sector');
});
