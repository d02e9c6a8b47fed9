// Access control lists: canned ones, the stored form, and what they grant to whom.
import { describe, expect, test } from 'vitest';
import { ByteReader, ByteWriter } from '../base/bytes/byte-cursor.ts';
import {
  ACL_PERMISSIONS,
  type AclGroup,
  aclGrantFor,
  aclNeedOf,
  CANNED_ACLS,
  cannedGrants,
  type Grant,
  grantsBytes,
  isPublic,
  readGrants,
  storedGrants,
  writeGrants,
} from './acl.ts';
import type { AccountId } from './names.ts';
import { POLICY_ACTIONS } from './policy/actions.ts';

const owner = '000000000001' as AccountId;
const bucketOwner = '000000000002' as AccountId;
const other = '999999999999' as AccountId;
const all = { grantee: owner, permission: 'FULL_CONTROL' } as const;

describe('canned lists', () => {
  test.each([
    ['private', []],
    ['aws-exec-read', []],
    ['public-read', ['AllUsers READ']],
    ['public-read-write', ['AllUsers READ', 'AllUsers WRITE']],
    ['authenticated-read', ['AuthenticatedUsers READ']],
    ['bucket-owner-read', [`${bucketOwner} READ`]],
    ['bucket-owner-full-control', [`${bucketOwner} FULL_CONTROL`]],
    ['log-delivery-write', ['LogDelivery WRITE', 'LogDelivery READ_ACP']],
  ] as const)('%s of an object has the group grants first, and the owner last', (name, grants) => {
    const texts = cannedGrants(name, { owner, bucketOwner }).map((grant) => Object.values(grant).join(' '));
    expect(texts).toEqual([...grants, `${owner} FULL_CONTROL`]);
  });

  test.each(['private', 'aws-exec-read', 'bucket-owner-read', 'bucket-owner-full-control'] as const)(
    '%s of the bucket owner is not stored',
    (name) => {
      expect(storedGrants(owner, cannedGrants(name, { owner }))).toBeUndefined();
      expect(storedGrants(owner, cannedGrants(name, { owner, bucketOwner: owner }))).toBeUndefined();
    },
  );
});

describe('the stored form', () => {
  test('groups come first, nothing twice, and an empty list is not the one of private', () => {
    const read: Grant = { grantee: 'AllUsers', permission: 'READ' };
    expect(storedGrants(owner, [all, read, all, read])).toEqual([read, all]);
    expect(storedGrants(owner, [])).toEqual([]);
    expect(storedGrants(owner, [{ grantee: other, permission: 'FULL_CONTROL' }])).toHaveLength(1);
    expect(storedGrants(owner, [{ grantee: owner, permission: 'READ' }])).toHaveLength(1);
  });

  test('what is written is read', () => {
    const grantees = [owner, other, 'AllUsers', 'AuthenticatedUsers', 'LogDelivery'] as const;
    const grants = grantees.flatMap((grantee) =>
      ACL_PERMISSIONS.map((permission) => ({ grantee, permission })),
    );
    for (const some of [[], grants.slice(0, 1), grants]) {
      const bytes = Buffer.alloc(grantsBytes(some));
      const writer = new ByteWriter(bytes, 0);
      writeGrants(writer, some);
      writer.end();
      const reader = new ByteReader(bytes, 0);
      expect(readGrants(reader)).toEqual(some);
      reader.end();
    }
  });

  test('an unknown grantee or permission is not taken for another one', () => {
    for (const first of [5, 15, 0x40, 0xf0])
      expect(() => readGrants(new ByteReader(Buffer.from([1, first, 0, 0, 0, 0, 0, 0]), 0))).toThrow();
  });
});

describe('what a list grants', () => {
  const granted = (grants: Grant[] | undefined, caller: AccountId | undefined) =>
    ACL_PERMISSIONS.map((permission) => aclGrantFor({ owner, grants }, caller, permission)).join(' ');

  test('private grants all to the owner alone', () => {
    expect(granted(undefined, owner)).toBe('account account account account account');
    expect(granted(undefined, other)).toBe('none none none none none');
    expect(granted(undefined, undefined)).toBe('none none none none none');
  });

  test('an empty list leaves the owner its list', () => {
    expect(granted([], owner)).toBe('none none account account none');
    expect(granted([], other)).toBe('none none none none none');
  });

  test.each(ACL_PERMISSIONS)('%s grants that, and nothing else', (permission) => {
    const wanted = ACL_PERMISSIONS.map((each) =>
      permission === 'FULL_CONTROL' || each === permission ? 'account' : 'none',
    ).join(' ');
    expect(granted([{ grantee: other, permission }], other)).toBe(wanted);
    expect(granted([{ grantee: other, permission }], undefined)).toBe('none none none none none');
  });

  test.each([
    ['AllUsers', 'everyone', 'everyone'],
    ['AuthenticatedUsers', 'everyone', 'none'],
    ['LogDelivery', 'none', 'none'],
  ] as const)('%s grants a signed caller %s and an anonymous one %s', (grantee, signed, anonymous) => {
    const acl = { owner, grants: [{ grantee: grantee as AclGroup, permission: 'READ' as const }] };
    expect(aclGrantFor(acl, other, 'READ')).toBe(signed);
    expect(aclGrantFor(acl, undefined, 'READ')).toBe(anonymous);
    expect(isPublic(acl.grants)).toBe(grantee !== 'LogDelivery');
  });
});

describe('what actions need', () => {
  test('reading a bucket does not read its objects, and writing one does not give its list away', () => {
    const usual = { isOfNewObject: false };
    expect(aclNeedOf('s3:ListBucket', usual)).toEqual({ of: 'bucket', permission: 'READ' });
    expect(aclNeedOf('s3:GetObject', usual)).toEqual({ of: 'object', permission: 'READ' });
    expect(aclNeedOf('s3:PutObject', usual)).toEqual({ of: 'bucket', permission: 'WRITE' });
    expect(aclNeedOf('s3:PutObjectAcl', usual)).toEqual({ of: 'object', permission: 'WRITE_ACP' });
    expect(aclNeedOf('s3:PutObjectAcl', { isOfNewObject: true })).toEqual({
      of: 'bucket',
      permission: 'WRITE',
    });
  });

  test('no list grants what changes a bucket, its policy, or versions by id', () => {
    const needed = POLICY_ACTIONS.filter((action) => aclNeedOf(action, { isOfNewObject: true }));
    expect(
      needed.filter((action) => /Policy|Versioning|DeleteBucket|DeleteObjectVersion/.test(action)),
    ).toEqual([]);
    expect(needed.length).toBeGreaterThan(10);
    expect(CANNED_ACLS).toHaveLength(8);
  });
});
