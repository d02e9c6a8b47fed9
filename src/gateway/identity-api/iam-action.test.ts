// What of an action of IAM is run again where others were faster.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { addUser } from '../../../tests/support/objects/identities.ts';
import { callIam } from '../../../tests/support/servers/iam-api.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';

/** Done before the next change of identities, once. */
let meanwhile: (() => Promise<unknown>) | undefined;

function intercept(shards: MetadataPort): MetadataPort {
  return {
    ...shards,
    shardCount: shards.shardCount,
    query: (target, name, query) => shards.query(target, name, query),
    async execute(target, name, command) {
      const first = name === 'change-identities' ? meanwhile : undefined;
      if (first !== undefined) {
        meanwhile = undefined;
        await first();
      }
      return shards.execute(target, name, command);
    },
  };
}

let world: GatewayWorld;
let owner: Awaited<ReturnType<GatewayWorld['makeAccount']>>;
beforeAll(async () => {
  world = await openGatewayWorld({ intercept });
  owner = await world.makeAccount('owner');
});
afterAll(() => world.close());

let count = 0;
const makeUser = () =>
  addUser(world, owner.accountId, {
    name: `user-${++count}`,
    statements: [{ Effect: 'Allow', Action: 'iam:*', Resource: '*' }],
  });
const iam = (
  parameters: Record<string, string>,
  credentials: { accessKey: string; secretKey: string } = owner,
) => callIam({ ...credentials, endpoint: world.endpoint }, parameters, { credentials });

test.each([
  ['its policy is deleted', 'AccessDenied', () => ({ Action: 'DeleteUserPolicy', PolicyName: 'inline' })],
  [
    'its key is disabled',
    'InvalidClientTokenId',
    (AccessKeyId: string) => ({ Action: 'UpdateAccessKey', AccessKeyId, Status: 'Inactive' }),
  ],
] as const)('who is overtaken by a change is refused where %s by it', async (_how, code, changeOf) => {
  const user = await makeUser();
  const UserName = `user-${count}`;
  meanwhile = async () => {
    expect(await iam({ UserName, ...changeOf(user.accessKey) })).toMatchObject({ status: 200 });
    // The gateway knows: a real one knows before it answers.
    await expect
      .poll(async () => (await iam({ Action: 'GetUser' }, user)).code, { timeout: 10_000 })
      .toBe(code);
  };
  expect(await iam({ Action: 'CreateAccessKey', UserName }, user)).toMatchObject({ status: 403, code });
  const keys = await iam({ Action: 'ListAccessKeys', UserName });
  expect(keys.texts('AccessKeyId')).toEqual([user.accessKey]);
});

test('who is overtaken by another change does what was asked for', async () => {
  const user = await makeUser();
  const UserName = `user-${count}`;
  meanwhile = () => iam({ Action: 'CreateUser', UserName: 'another' });
  expect(await iam({ Action: 'CreateAccessKey', UserName }, user)).toMatchObject({ status: 200 });
});
