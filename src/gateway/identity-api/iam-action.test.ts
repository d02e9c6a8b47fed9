// What of an action of IAM is run again where others were faster.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { addUser } from '../../../tests/support/objects/identities.ts';
import { callIam } from '../../../tests/support/servers/iam-api.ts';
import { operatorCaller } from '../../../tests/support/servers/operator-caller.ts';
import { systemClock, systemRandom } from '../../platform/system-clock.ts';
import { NO_POLICIES } from '../../policy/evaluate.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../../ports/metadata/port.ts';
import { identityKeys } from '../../types/records/identity-records.ts';
import { requireDone } from '../../types/require-done.ts';
import { ANY_RESOURCE, defineIamAction } from './iam-action.ts';

const CHANGES: ReadonlySet<string> = new Set(['change-identities', 'add-access-key', 'change-access-key']);
/** Done before the next change of identities or keys, once. */
let meanwhile: (() => Promise<unknown>) | undefined;

let shards: MetadataPort;

function intercept(real: MetadataPort): MetadataPort {
  shards = real;
  return {
    ...shards,
    shardCount: shards.shardCount,
    query: (target, name, query) => shards.query(target, name, query),
    async execute(target, name, command) {
      const first = CHANGES.has(name) ? meanwhile : undefined;
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

test('what takes long is done once all is written, and not in each run', async () => {
  const steps: string[] = [];
  const metadata: MetadataPort = {
    ...shards,
    shardCount: shards.shardCount,
    query: (target, name, query) => shards.query(target, name, query),
    async execute(target, name, command) {
      steps.push('write');
      if (steps.length < 6) return { kind: 'done', value: { kind: 'conflict' } } as never;
      return shards.execute(target, name, command);
    },
  };
  const action = defineIamAction({
    name: 'CreateThing',
    parameters: {},
    access: () => [ANY_RESOURCE],
    async run(_, { store }) {
      steps.push('run');
      await store.count('user', { add: 1, max: 100 });
      return async () => {
        steps.push('draw');
        return '<Thing/>';
      };
    },
  });
  const { account, asker } = operatorCaller(Buffer.alloc(0));
  const { accountId } = owner;
  const caller = {
    ...asker,
    accessKey: owner.accessKey,
    account: { ...account, accountId },
    principal: { ...asker.principal, accountId },
    identity: { id: 'root', policies: async () => NO_POLICIES },
  };
  const deps = { metadata, clock: systemClock, random: systemRandom, identities: { requireStill() {} } };
  const asked = { deps, caller, sent: new Map() } as unknown as Parameters<typeof action.perform>[0];
  expect(await action.perform(asked)).toBe('<Thing/>');
  expect(steps).toEqual(['run', 'write', 'run', 'write', 'run', 'write', 'draw']);
});

test.each<[string, Record<string, string>]>([
  ['makes no other', { Action: 'CreateAccessKey' }],
  ['enables no other', { Action: 'UpdateAccessKey', Status: 'Active', AccessKeyId: 'OTHER00000000000' }],
  ['makes no user', { Action: 'CreateUser', UserName: 'heir' }],
])('a root whose key is disabled meanwhile %s', async (_what, asked) => {
  const stolen = await world.makeAccount(`stolen-${++count}`);
  const { accountId } = stolen;
  const system = { shard: SYSTEM_SHARD };
  const disable = (accessKey: string) =>
    shards.execute(system, 'change-access-key', { accountId, accessKey, change: 'disable' });
  const { AccessKeyId: other } = asked;
  if (other !== undefined) {
    const sealedSecret = { by: 'master' as const, keyId: 'k', wrapped: new Uint8Array(60) };
    const accessKey = { accessKey: other, sealedSecret };
    await shards.execute(system, 'add-access-key', { accountId, accessKey });
    await disable(other);
  }
  meanwhile = () => disable(stolen.accessKey);
  expect((await iam(asked, stolen)).status).toBeGreaterThan(400);
  const { accessKeys } = requireDone(await shards.query(system, 'list-access-keys', { accountId }));
  expect(accessKeys.filter(({ isDisabled }) => isDisabled !== true)).toEqual([]);
  const users = { accountId, keys: [identityKeys.user('heir')] };
  expect(requireDone(await shards.query(system, 'read-identities', users)).rows).toEqual([null]);
});

test('who is overtaken by another change does what was asked for', async () => {
  const user = await makeUser();
  const UserName = `user-${count}`;
  meanwhile = () => iam({ Action: 'CreateUser', UserName: 'another' });
  expect(await iam({ Action: 'CreateAccessKey', UserName }, user)).toMatchObject({ status: 200 });
});
