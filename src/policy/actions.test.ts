import { expect, test } from 'vitest';
import { POLICY_ACTIONS } from '../types/policy/actions.ts';
import { ACTIONS, findAction } from './actions.ts';
import { CONDITION_KEYS, findConditionKey, normalizeKey, tagValue } from './condition-keys.ts';

test('every action that an operation asks for is a row, and not an inert one', () => {
  expect(POLICY_ACTIONS.filter((action) => findAction(action)?.isInert !== false)).toEqual([]);
});

test('no action is there twice, in any case', () => {
  const names = ACTIONS.map(({ action }) => action.toLowerCase());
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
});

test('extensions 3.3: every action of IAM has its row', () => {
  const entities = ['User', 'Group', 'Role'];
  const names = [
    ...['CreateUser', 'DeleteUser', 'GetUser', 'ListUsers', 'UpdateUser', 'ChangePassword'],
    ...['Create', 'Delete', 'Get', 'Update'].map((verb) => `${verb}LoginProfile`),
    ...['CreateAccessKey', 'DeleteAccessKey', 'ListAccessKeys', 'UpdateAccessKey', 'GetAccessKeyLastUsed'],
    ...['CreateGroup', 'DeleteGroup', 'GetGroup', 'ListGroups', 'UpdateGroup', 'ListGroupsForUser'],
    ...['AddUserToGroup', 'RemoveUserFromGroup'],
    ...['CreateRole', 'DeleteRole', 'GetRole', 'ListRoles', 'UpdateAssumeRolePolicy'],
    ...[
      'CreatePolicy',
      'DeletePolicy',
      'GetPolicy',
      'ListPolicies',
      'CreatePolicyVersion',
      'DeletePolicyVersion',
    ],
    ...['GetPolicyVersion', 'ListPolicyVersions', 'SetDefaultPolicyVersion', 'ListEntitiesForPolicy'],
    ...entities.flatMap((entity) => [`Attach${entity}Policy`, `Detach${entity}Policy`]),
    ...entities.flatMap((entity) => [`ListAttached${entity}Policies`, `List${entity}Policies`]),
    ...entities.flatMap((entity) => ['Put', 'Get', 'Delete'].map((verb) => `${verb}${entity}Policy`)),
    ...['CreateAccountAlias', 'DeleteAccountAlias', 'ListAccountAliases', 'GetAccountSummary'],
    ...['GetAccountAuthorizationDetails'],
    ...['Get', 'Update', 'Delete'].map((verb) => `${verb}AccountPasswordPolicy`),
    ...['CreateVirtualMFADevice', 'DeleteVirtualMFADevice', 'EnableMFADevice', 'DeactivateMFADevice'],
    ...['ListMFADevices', 'ListVirtualMFADevices', 'ResyncMFADevice'],
  ];
  expect(names.filter((name) => findAction(`iam:${name}`) === undefined)).toEqual([]);
});

test('every key of a row is in the table, and every key of the table that is not global is of a row', () => {
  const used = new Set(ACTIONS.flatMap(({ keys }) => keys));
  const names = CONDITION_KEYS.map(({ name }) => name);
  expect([...used].filter((name) => !names.includes(name))).toEqual([]);
  expect(names.filter((name) => !name.startsWith('aws:') && !used.has(name))).toEqual([]);
});

test('s3-behaviour 21: the stored tags are a key of reads, of tagging and of ACLs, and of no write or deletion', () => {
  const having = ACTIONS.filter(({ keys }) => keys.includes('s3:ExistingObjectTag/'));
  expect(
    having.map(({ action }) => action).filter((action) => /:(?:Put|Delete)Object(?:Version)?$/.test(action)),
  ).toEqual([]);
  expect(having.map(({ action }) => action)).toEqual(
    expect.arrayContaining(['s3:GetObject', 's3:GetObjectTagging', 's3:GetObjectAcl']),
  );
});

test('keys are found in any case, families by any tag', () => {
  expect(findConditionKey(normalizeKey('AWS:sourceIP'))?.name).toBe('aws:SourceIp');
  expect(findConditionKey(normalizeKey('S3:existingObjectTag/Team/x'))?.name).toBe('s3:ExistingObjectTag/');
  expect(normalizeKey('S3:ExistingObjectTag/Team')).toBe('s3:existingobjecttag/Team');
  expect(findConditionKey('s3:existingobjecttag/')).toBeUndefined();
  expect(findConditionKey('s3:prefix/')).toBeUndefined();
});

test('the value of a tag is that of its very key, else of one in another case', () => {
  const tags = [
    { key: 'Team', value: 'red' },
    { key: 'team', value: 'blue' },
  ];
  expect(tagValue(tags, 'team')).toBe('blue');
  expect(tagValue(tags, 'TEAM')).toBe('red');
  expect(tagValue(tags, 'x')).toBeUndefined();
});
