import { expect, test } from 'vitest';
import { LIMITS } from '../../types/limits.ts';
import { type CommitGroup, startCommitQueue } from './commit-queue.ts';

const COLUMNS = [{ name: 'rows', nativeName: 'rows', isPrefixFree: false }];

/** Over a committer thread that has written whatever it is sent. */
async function startWriting() {
  const program = `
    import { parentPort } from 'node:worker_threads';
    parentPort.on('message', (frame) => parentPort.postMessage({ kind: 'written', frame }));
    parentPort.postMessage({ kind: 'ready' });`;
  const groups: CommitGroup[] = [];
  const url = new URL(`data:text/javascript,${encodeURIComponent(program)}`);
  const onGroup = (group: CommitGroup) => void groups.push(group);
  return { groups, queue: await startCommitQueue({ handle: 0n, columns: COLUMNS, onGroup }, url) };
}

test('a group has a bounded number of rows, and one commit at least', async () => {
  const { groups, queue } = await startWriting();
  const { commitGroupRowsMax } = LIMITS;
  const rowCounts = [commitGroupRowsMax / 2, commitGroupRowsMax / 2, 1, commitGroupRowsMax + 1, 1, 1];
  const rowsOf = (count: number) =>
    Array.from({ length: count }, () => ({ column: 'rows', key: Uint8Array.of(1), value: null }));
  await Promise.all(rowCounts.map((count) => queue.commit(rowsOf(count))));
  expect(groups.map(({ commitCount }) => commitCount)).toEqual([2, 1, 1, 2]);
  await queue.stop();
});
