// Groups of an account by the IAM API.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callIam } from '../support/servers/iam-api.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

type Parameters = Record<string, string | number | boolean>;
const call = (Action: string, parameters: Parameters = {}) => callIam(server, { Action, ...parameters });
const ok = async (Action: string, parameters: Parameters) => {
  const answer = await call(Action, parameters);
  expect(answer.status, answer.xml).toBe(200);
  return answer;
};

test('a group is made, shown and listed by path', async () => {
  const made = await ok('CreateGroup', { GroupName: 'Admins', Path: '/g/' });
  expect(made.text('GroupId')).toMatch(/^AGPA[A-Z2-7]{17}$/);
  expect(made.text('Arn')).toMatch(/^arn:aws:iam::\d{12}:group\/g\/Admins$/);
  const shown = await ok('GetGroup', { GroupName: 'admins' });
  expect(shown.text('GroupId')).toBe(made.text('GroupId'));
  expect(shown.xml).toContain('<Users></Users><IsTruncated>false</IsTruncated>');
  await ok('CreateGroup', { GroupName: 'others' });
  expect((await ok('ListGroups', { PathPrefix: '/g/' })).texts('GroupName')).toEqual(['Admins']);
  expect((await ok('ListGroups', {})).texts('GroupName')).toContain('others');
  expect(await call('CreateGroup', { GroupName: 'ADMINS' })).toMatchObject({
    status: 409,
    code: 'EntityAlreadyExists',
    message: 'Group with name ADMINS already exists.',
  });
});

test('users come and go, once each, and are shown page by page', async () => {
  const GroupName = 'members';
  await ok('CreateGroup', { GroupName });
  for (const UserName of ['m2', 'm1', 'm3']) {
    await ok('CreateUser', { UserName });
    await ok('AddUserToGroup', { GroupName, UserName });
    await ok('AddUserToGroup', { GroupName, UserName });
  }
  const first = await ok('GetGroup', { GroupName, MaxItems: 2 });
  expect([first.texts('UserName'), first.text('IsTruncated')]).toEqual([['m1', 'm2'], 'true']);
  const second = await ok('GetGroup', { GroupName, Marker: first.text('Marker') ?? '' });
  expect([second.texts('UserName'), second.text('IsTruncated')]).toEqual([['m3'], 'false']);
  expect((await ok('ListGroupsForUser', { UserName: 'm1' })).texts('GroupName')).toEqual([GroupName]);
  await ok('RemoveUserFromGroup', { GroupName, UserName: 'm1' });
  await ok('RemoveUserFromGroup', { GroupName, UserName: 'm1' });
  expect((await ok('ListGroupsForUser', { UserName: 'm1' })).texts('GroupName')).toEqual([]);
  expect((await ok('GetGroup', { GroupName })).texts('UserName')).toEqual(['m2', 'm3']);
  expect(await call('AddUserToGroup', { GroupName, UserName: 'nobody' })).toMatchObject({
    status: 404,
    message: 'The user with name nobody cannot be found.',
  });
  expect(await call('AddUserToGroup', { GroupName: 'none', UserName: 'm1' })).toMatchObject({
    status: 404,
    message: 'The group with name none cannot be found.',
  });
});

test('a group gets another name, and its users stay in it', async () => {
  await ok('CreateGroup', { GroupName: 'old' });
  await ok('CreateGroup', { GroupName: 'used' });
  await ok('CreateUser', { UserName: 'stays' });
  await ok('AddUserToGroup', { GroupName: 'old', UserName: 'stays' });
  expect(await call('UpdateGroup', { GroupName: 'old', NewGroupName: 'USED' })).toMatchObject({
    status: 409,
    code: 'EntityAlreadyExists',
  });
  await ok('UpdateGroup', { GroupName: 'old', NewGroupName: 'new', NewPath: '/n/' });
  expect(await call('GetGroup', { GroupName: 'old' })).toMatchObject({ status: 404 });
  const shown = await ok('GetGroup', { GroupName: 'new' });
  expect([shown.texts('UserName'), shown.text('Path')]).toEqual([['stays'], '/n/']);
  expect((await ok('ListGroupsForUser', { UserName: 'stays' })).texts('GroupName')).toEqual(['new']);
});

test('a group with users is not deleted, an empty one is', async () => {
  const GroupName = 'going';
  await ok('CreateGroup', { GroupName });
  await ok('CreateUser', { UserName: 'inside' });
  await ok('AddUserToGroup', { GroupName, UserName: 'inside' });
  expect(await call('DeleteGroup', { GroupName })).toMatchObject({
    status: 409,
    code: 'DeleteConflict',
    message: 'Cannot delete entity, must remove users from group first.',
  });
  await ok('RemoveUserFromGroup', { GroupName, UserName: 'inside' });
  await ok('DeleteGroup', { GroupName });
  expect(await call('DeleteGroup', { GroupName })).toMatchObject({ status: 404, code: 'NoSuchEntity' });
});

test('a user is in ten groups at most', async () => {
  const UserName = 'everywhere';
  await ok('CreateUser', { UserName });
  for (let number = 0; number <= 10; number++) {
    const GroupName = `ten-${number}`;
    await ok('CreateGroup', { GroupName });
    const added = await call('AddUserToGroup', { GroupName, UserName });
    if (number < 10) expect(added.status).toBe(200);
    else {
      expect(added).toMatchObject({
        status: 409,
        code: 'LimitExceeded',
        message: 'Cannot exceed quota for GroupsPerUser: 10',
      });
    }
  }
});

test('the details of the account and simulations know the groups of a user by their names', async () => {
  const GroupName = 'Readers';
  await ok('CreateGroup', { GroupName });
  const made = await ok('CreateUser', { UserName: 'reader' });
  await ok('AddUserToGroup', { GroupName, UserName: 'reader' });
  const statement = { Effect: 'Allow', Action: 's3:GetObject', Resource: '*' };
  const PolicyDocument = JSON.stringify({ Version: '2012-10-17', Statement: [statement] });
  await ok('PutGroupPolicy', { GroupName, PolicyName: 'read', PolicyDocument });
  const details = await ok('GetAccountAuthorizationDetails', { 'Filter.member.1': 'User' });
  expect(details.xml).toContain('<GroupList><member>Readers</member></GroupList>');
  const simulated = await ok('SimulatePrincipalPolicy', {
    PolicySourceArn: made.text('Arn') ?? '',
    'ActionNames.member.1': 's3:GetObject',
  });
  expect(simulated.text('EvalDecision')).toBe('allowed');
});
