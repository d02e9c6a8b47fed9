// IAM by today's boto3 and by the AWS CLI. The checks of boto3 are functions of iam_checks.py, which drive every action; here
// each becomes a test.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientWorld, openWorld, PROGRAMS } from '../support/clients/clients.ts';

const SCRIPT = join(import.meta.dirname, 'iam_checks.py');
const NAMES = [...readFileSync(SCRIPT, 'utf8').matchAll(/^def check_(\w+)/gm)].map((match) => match[1] ?? '');

/** Of all checks together. */
const RUN_TIMEOUT_MS = 400_000;

let world: ClientWorld;
beforeAll(async () => {
  world = await openWorld({ transport: 'http' });
}, RUN_TIMEOUT_MS);
afterAll(() => world.close());

describe('boto3', () => {
  const errors = new Map<string, string | null>();

  beforeAll(async () => {
    const ran = await world.run(PROGRAMS.pypiPython, [SCRIPT, world.server.endpoint], {
      env: world.awsVariables(),
    });
    for (const line of ran.stdout.trim().split('\n')) {
      const { name, error } = JSON.parse(line) as { name: string; error: string | null };
      errors.set(name, error);
    }
  }, RUN_TIMEOUT_MS);

  test.each(NAMES)('%s', (name) => {
    expect(errors.has(name), 'the script reported this check').toBe(true);
    expect(errors.get(name)).toBeNull();
  });
});

describe('the AWS CLI', () => {
  const aws = async (...args: string[]) => {
    const ran = await world.run(PROGRAMS.pypiAws, ['--endpoint-url', world.server.endpoint, 'iam', ...args], {
      env: { ...world.awsVariables(), AWS_PAGER: '' },
    });
    return ran.stdout.trim() === '' ? {} : JSON.parse(ran.stdout);
  };

  test('users, groups and keys', async () => {
    const user = ['--user-name', 'cli-user'];
    const group = ['--group-name', 'cli-group'];
    const { User } = await aws('create-user', ...user, '--path', '/cli/', '--tags', 'Key=a,Value=b c');
    expect(User).toMatchObject({ Path: '/cli/', Tags: [{ Key: 'a', Value: 'b c' }] });
    await aws('create-group', ...group);
    await aws('add-user-to-group', ...group, ...user);
    expect(await aws('get-group', ...group)).toMatchObject({ Users: [{ UserId: User.UserId }] });
    const { AccessKey } = await aws('create-access-key', ...user);
    expect(await aws('list-access-keys', ...user)).toMatchObject({
      AccessKeyMetadata: [{ AccessKeyId: AccessKey.AccessKeyId, Status: 'Active' }],
    });
    const listed = await aws('list-users', '--path-prefix', '/cli/', '--query', 'Users[].UserName');
    expect(listed).toEqual(['cli-user']);
    expect(await aws('get-account-summary')).toMatchObject({ SummaryMap: { GroupsQuota: 300 } });
  });
});
