import { describe, expect, test } from 'vitest';
import {
  type ConditionRefusal,
  checkDeleteConditions,
  checkWriteConditions,
  type WriteConditions,
} from './preconditions.ts';

const etag = '0123456789abcdef0123456789abcdef';
const object = { etag, modifiedAtMs: 1_700_000_000_123, sizeBytes: 5 };
const failed = (condition: string): ConditionRefusal => ({ kind: 'precondition-failed', condition });

describe('of an existing object', () => {
  test.each<[WriteConditions, ConditionRefusal | undefined]>([
    [{}, undefined],
    [{ ifMatch: [etag] }, undefined],
    [{ ifMatch: '*' }, undefined],
    [{ ifMatch: ['other', etag] }, undefined],
    [{ ifMatch: [] }, failed('If-Match')],
    [{ ifMatch: ['*'] }, failed('If-Match')],
    [{ ifNoneMatch: ['other', etag] }, failed('If-None-Match')],
    [{ ifMatch: ['other'] }, failed('If-Match')],
    [{ ifNoneMatch: ['other'] }, undefined],
    [{ ifNoneMatch: [etag] }, failed('If-None-Match')],
    [{ ifNoneMatch: '*' }, failed('If-None-Match')],
    [{ ifMatch: [etag], ifNoneMatch: [etag] }, failed('If-None-Match')],
    [{ ifMatchLastModifiedMs: 1_700_000_000_000 }, undefined],
    [{ ifMatchLastModifiedMs: 1_700_000_000_999 }, undefined],
    [{ ifMatchLastModifiedMs: 1_700_000_001_000 }, failed('x-amz-if-match-last-modified-time')],
    [{ ifMatchSizeBytes: 5 }, undefined],
    [{ ifMatchSizeBytes: 6 }, failed('x-amz-if-match-size')],
  ])('%j', (conditions, refusal) => {
    expect(checkWriteConditions(object, conditions)).toEqual(refusal);
    expect(checkDeleteConditions(object, conditions)).toEqual(refusal);
  });
});

describe('of a missing object', () => {
  test.each<[WriteConditions | undefined, ConditionRefusal | undefined]>([
    [undefined, undefined],
    [{}, undefined],
    [{ ifNoneMatch: '*' }, undefined],
    [{ ifNoneMatch: [etag] }, undefined],
    [{ ifMatch: [etag] }, { kind: 'no-such-key' }],
    [{ ifMatch: '*' }, { kind: 'no-such-key' }],
    [{ ifMatch: [] }, { kind: 'no-such-key' }],
    [{ ifMatchSizeBytes: 0 }, { kind: 'no-such-key' }],
    [{ ifMatchLastModifiedMs: 0 }, { kind: 'no-such-key' }],
  ])('27: a write with %j', (conditions, refusal) => {
    expect(checkWriteConditions(undefined, conditions)).toEqual(refusal);
  });

  test('25: a delete changes nothing, whatever the conditions', () => {
    expect(checkDeleteConditions(undefined, { ifMatch: [etag], ifMatchSizeBytes: 5 })).toBeUndefined();
  });
});
