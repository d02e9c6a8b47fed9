import { expect, test } from 'vitest';
import type { ResultOf } from '../../ports/metadata/port.ts';
import type { BlobId } from '../../types/names.ts';
import { COPIES_UNKNOWN } from '../../types/repair-entries.ts';
import type { AskPrimary } from '../status/ask-primary.ts';
import { whyNeeded } from './why-needed.ts';

type Page = ResultOf<'list-debts'>;

function debt(copies: number, holders: string): Page['debts'][number] {
  const ranges = [{ from: 0, to: 1, holders: [...holders] }];
  const record = { copies, ranges, mapVersion: 1, notedAtMs: 1, mark: '00' };
  return { blobId: '00' as BlobId, debt: record, sizeBytes: 1, chunkSizeBytes: 1 };
}

/** `shards`: the pages of each shard; `x` is to be removed. */
function why(...shards: (Page['debts'][] | undefined)[]): Promise<string | undefined> {
  const ask = (async (shard: number, _name: string, { after }: { after?: { copies: number } }) => {
    const pages = shards[shard];
    if (pages === undefined) return undefined;
    const at = after === undefined ? 0 : after.copies;
    const next = at + 1 < pages.length ? { copies: at + 1, notedAtMs: 0, blobId: '00' as BlobId } : undefined;
    return { debts: pages[at] ?? [], ...(next && { next }) };
  }) as AskPrimary;
  return whyNeeded(ask, { shardCount: shards.length, disks: new Set(['x']) });
}

test('a disk is not needed for chunks with two other known copies', async () => {
  expect(await why([[]], [[debt(2, 'ab')], [debt(3, 'abc')]])).toBeUndefined();
});

test.each([
  ['a debt names it', [[debt(2, 'ab')], [debt(3, 'abx')]]],
  ['nobody else is known to have it', [[debt(0, '')]]],
  ['one other has it', [[debt(1, 'a')]]],
  ['it is not said who has it', [[debt(2, '')]]],
  ['so many have it that not all are named', [[debt(2, 'abcdefghijklmnop')]]],
  ['nobody has looked yet', [[debt(COPIES_UNKNOWN, '')]]],
  ['there are too many debts to read', Array.from({ length: 26 }, () => [debt(2, 'ab')])],
  ['a shard does not answer', undefined],
])('a disk is needed when %s', async (_why, pages) => {
  expect(await why([[]], pages)).toMatch(/^shard 1 /);
});
