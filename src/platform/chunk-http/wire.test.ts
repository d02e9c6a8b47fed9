import { describe, expect, test } from 'vitest';
import { packPlain } from '../../base/record-codec.ts';
import type { BlobId } from '../../types/names.ts';
import { BATCHES, batchPath, packBatch, parsePath, unpackBatch } from './wire.ts';

const DISK = 'd'.repeat(32);
const id = { blobId: '0123456789ab00070123456789abcdef' as BlobId, index: 4 };
const pull = { sizeBytes: 10, checksum: 0xffff_ffff, from: { diskId: DISK, address: '[::1]:9000' } };

test('each batch has a path that parses to it', () => {
  for (const name of BATCHES) expect(parsePath(batchPath(DISK, name))).toEqual({ diskId: DISK, kind: name });
  expect(parsePath(`/disks/${DISK}/drop-everything`)).toBeUndefined();
});

test('the body of a batch is read back unchanged', () => {
  const fence = { shard: 7, incarnation: 2, epoch: 9 };
  const body = { ids: [id], fence, after: id, limit: 5, readBytes: true, homes: [7, 8], pull };
  expect(unpackBatch(packBatch(body))).toEqual(body);
  expect(unpackBatch(packBatch({}))).toEqual({
    ids: [],
    limit: 0,
    readBytes: false,
    homes: [],
    fence: undefined,
    after: undefined,
    pull: undefined,
  });
});

describe('is refused:', () => {
  const packed = [pull.sizeBytes, pull.checksum, DISK, pull.from.address];
  const withPull = (at: number, value: unknown) => ({
    pull: packed.map((own, i) => (i === at ? value : own)),
  });
  test.each<[string, unknown]>([
    ['no map', 5],
    ['an id of another form', { ids: [['short', 1]] }],
    ['a fence of another form', { fence: '1.2' }],
    ['a limit below zero', { limit: -1 }],
    ['a home that is no shard', { homes: [1, -1] }],
    ['homes that are no list', { homes: 'all' }],
    ['a word for a boolean', { readBytes: 'yes' }],
    ['a chunk that is too large', withPull(0, 1e9)],
    ['a checksum below zero', withPull(1, -1)],
    ['another disk than there can be', withPull(2, 'disk')],
    ['an address that is a path', withPull(3, '127.0.0.1:1/elsewhere')],
    ['an address without end', withPull(3, 'a'.repeat(301))],
  ])('%s', (_what, body) => expect(unpackBatch(packPlain(body))).toBeUndefined());
});
