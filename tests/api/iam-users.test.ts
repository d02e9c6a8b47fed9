// Users of an account by the IAM API.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callIam } from '../support/servers/iam-api.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

const call = (Action: string, parameters: Record<string, string | number | boolean> = {}) =>
  callIam(server, { Action, ...parameters });

test('a user is made with path and tags, and shown as it was made', async () => {
  const made = await call('CreateUser', {
    UserName: 'Ann',
    Path: '/staff/ops/',
    'Tags.member.1.Key': 'team',
    'Tags.member.1.Value': 'a + b',
    'Tags.member.2.Key': 'empty',
    'Tags.member.2.Value': '',
  });
  expect(made.status).toBe(200);
  const shown = await call('GetUser', { UserName: 'ANN' });
  expect(shown.text('UserId')).toBe(made.text('UserId'));
  expect(shown.text('UserName')).toBe('Ann');
  expect(shown.text('Path')).toBe('/staff/ops/');
  expect(shown.text('Arn')).toMatch(/^arn:aws:iam::\d{12}:user\/staff\/ops\/Ann$/);
  expect(shown.text('CreateDate')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  expect([shown.texts('Key'), shown.texts('Value')]).toEqual([
    ['team', 'empty'],
    ['a + b', ''],
  ]);
});

test('names that differ in case alone are one name', async () => {
  expect((await call('CreateUser', { UserName: 'once' })).status).toBe(200);
  expect(await call('CreateUser', { UserName: 'ONCE' })).toMatchObject({
    status: 409,
    code: 'EntityAlreadyExists',
    message: 'User with name ONCE already exists.',
  });
});

test('users that are made at once are all made, one for each name', async () => {
  const names = ['p1', 'p2', 'p3', 'p4', 'p4', 'p5', 'p6', 'p7'];
  const answers = await Promise.all(names.map((UserName) => call('CreateUser', { UserName })));
  const codes = answers.map(({ status }) => status).sort();
  expect(codes).toEqual([...Array(7).fill(200), 409]);
});
