import { beforeEach, expect, test } from 'vitest';
import { rowKey } from '../../src/metadata/engine/row-keys.ts';
import { accountRow, bucketRow, nameRow } from '../../src/metadata/schema/keyspace.ts';
import type { KvPut } from '../../src/ports/kv.ts';
import type { RowAddress } from '../../src/ports/state-machine.ts';
import type { AccountId, BucketId, BucketName } from '../../src/types/names.ts';
import {
  accountCodec,
  type BucketRecord,
  bucketCodec,
  type NameRecord,
  nameCodec,
} from '../../src/types/records/rows.ts';
import { NameHistory } from './name-history.ts';

const OWNER = '000000000011' as AccountId;
const ONE = '1111111111111111' as BucketId;
const TWO = '2222222222222222' as BucketId;
const red = 'red' as BucketName;
const blue = 'blue' as BucketName;
const HOME = 1;

let history: NameHistory;
let step: number;
beforeEach(() => {
  history = new NameHistory([OWNER]);
  step = 0;
});

function apply(shard: number, ...rows: { at: RowAddress; value: Uint8Array | null }[]): void {
  const puts = rows.map(({ at, value }): KvPut => {
    return { column: at.table.column, key: rowKey(shard, at.table, at.key), value };
  });
  step++;
  history.apply(
    shard,
    { seq: step, epoch: 1, timeMs: 0, requestId: undefined, digest: '', rows: puts },
    step,
  );
}

const account = (bucketCount: number) => ({
  at: accountRow(OWNER),
  value: accountCodec.encode({
    accountId: OWNER,
    name: 'o',
    email: 'o',
    canonicalId: 'o',
    state: 'paid',
    isRoot: false,
    bucketsMax: 2,
    bucketCount,
    createdAtMs: 0,
  }),
});
const bucket = (bucketId: BucketId, name: BucketName, state: BucketRecord['state'] = 'open') => ({
  at: bucketRow(bucketId),
  value: bucketCodec.encode({
    bucketId,
    name,
    state,
    owner: OWNER,
    nameEpoch: 1,
    createdAtMs: 0,
    cfgVersion: 1,
    versioning: 'unversioned',
  }),
});
const name = (called: BucketName, bucketId: BucketId, state: NameRecord['state'] = 'active') => ({
  at: nameRow(called),
  value: nameCodec.encode({ state, bucketId, homeShard: HOME, owner: OWNER, createdAtMs: 0 }),
});

test('a name leads to its bucket once it is open', () => {
  apply(0, account(1), name(red, ONE, 'creating'));
  apply(HOME, bucket(ONE, red));
  apply(0, name(red, ONE));
  const leads = (from: number, to: number) =>
    history.moments(red, { from, to }).map((moment) => moment.leads);
  expect(leads(1, 3)).toEqual([undefined, undefined, undefined, ONE]);
  expect(leads(4, 4)).toEqual([ONE]);
  history.checkRest();
});

test('a name under way at rest is reported', () => {
  apply(0, account(1), name(red, ONE, 'creating'));
  expect(() => history.checkRest()).toThrow('I16: the name red is still creating');
});

test('two buckets with one name, and one that returns', () => {
  apply(HOME, bucket(ONE, red));
  expect(() => apply(HOME, bucket(TWO, red))).toThrow('I13');
  history = new NameHistory([OWNER]);
  apply(HOME, bucket(ONE, red, 'deleted'));
  expect(() => apply(HOME, bucket(ONE, red))).toThrow('I13');
});

test('a name with a wrong bucket at rest, and a bucket without a name', () => {
  apply(0, account(1), name(red, ONE));
  apply(HOME, bucket(ONE, blue));
  expect(() => history.checkRest()).toThrow('I13: at rest the name red leads to');
  apply(0, account(0), { at: nameRow(red), value: null });
  expect(() => history.checkRest()).toThrow(`I13: at rest nothing leads to bucket ${ONE}`);
});

test('an account with a wrong count, or too many', () => {
  expect(() => apply(0, account(0), name(red, ONE))).toThrow('counts 0 buckets, and has names of 1');
  history = new NameHistory([OWNER]);
  const third = '3333333333333333' as BucketId;
  const all = [name(red, ONE), name(blue, TWO), name('grey' as BucketName, third)];
  expect(() => apply(0, account(3), ...all)).toThrow('has 3 buckets of 2');
});
