import { expect, test } from 'vitest';
import type { BucketId } from '../../types/names.ts';
import { bucketConfigCodec } from '../../types/records/rows.ts';
import { decodeDocument } from './decoded-documents.ts';

const OF = { bucketId: 'b' as BucketId, kind: 'lifecycle' } as const;
const rowOf = (id: string, ruleCount: number) =>
  bucketConfigCodec.encode({
    document: { rules: Array.from({ length: ruleCount }, (_, at) => ({ id: `${id} ${at}`, filter: {} })) },
    changedAtMs: 1,
  });

test('a large document is decoded once for all who read the same row', () => {
  const document = decodeDocument(rowOf('a', 1000), OF);
  expect(document).toEqual(bucketConfigCodec.decode(rowOf('a', 1000)).document);
  expect(decodeDocument(rowOf('a', 1000), OF)).toBe(document);
});

test('a row that has changed, of another bucket or of another kind is decoded', () => {
  const document = decodeDocument(rowOf('a', 1000), OF);
  const changed = decodeDocument(rowOf('b', 1000), OF);
  expect(changed).toMatchObject({ rules: expect.arrayContaining([{ id: 'b 0', filter: {} }]) });
  expect(decodeDocument(rowOf('b', 1000), { ...OF, bucketId: 'c' as BucketId })).not.toBe(changed);
  expect(decodeDocument(rowOf('b', 1000), { ...OF, kind: 'policy' })).not.toBe(changed);
  expect(decodeDocument(rowOf('a', 1000), OF)).toEqual(document);
});

test('what is kept is bounded in bytes: the document that was read longest ago is decoded anew', () => {
  const first = decodeDocument(rowOf('a', 5000), OF);
  const size = rowOf('a', 5000).length;
  for (let at = 0; at * size < 8 * 1024 * 1024; at++)
    decodeDocument(rowOf('a', 5000), { ...OF, bucketId: `${at}` as BucketId });
  expect(decodeDocument(rowOf('a', 5000), OF)).not.toBe(first);
});
