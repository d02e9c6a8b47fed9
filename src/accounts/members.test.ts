import { beforeEach, expect, test } from 'vitest';
import { type MetadataShards, openMetadata } from '../../tests/support/metadata/metadata-shards.ts';
import { createSeededRandom } from '../../tests/support/run/simulated.ts';
import { createKeyring } from '../platform/memory/memory-keyring.ts';
import { identityKeys, type UserRecord } from '../types/records/identity-records.ts';
import { createAccounts } from './accounts.ts';
import { createTenancy, type TenancyParts } from './create-tenancy.ts';
import { type IdentityStore, withIdentities } from './identity-store.ts';
import { memberPolicy } from './member-roles.ts';
import { noteUse } from './policy-uses.ts';
import type { CustomerView } from './tenancy.ts';
import { OPERATOR } from './tenancy-rules.ts';

const PASSWORD = 'Secret-1';
const ADMINISTRATOR = 'arn:aws:iam::aws:policy/AdministratorAccess';

let world: MetadataShards;
let tenancy: TenancyParts['tenancy'];
let customer: CustomerView;
beforeEach(async () => {
  world = await openMetadata();
  const { shards: metadata, clock } = world;
  const deps = { metadata, keyring: createKeyring(), random: createSeededRandom(7), clock };
  const nothing = async () => undefined;
  // Nothing is waited for between two attempts.
  const eager = { wallMs: () => clock.wallMs(), monotonicMs: () => clock.monotonicMs(), sleep: nothing };
  tenancy = createTenancy({
    ...deps,
    clock: eager,
    log: { warn() {} },
    accounts: createAccounts(deps),
    hasher: { hash: async () => 'h', verify: async () => true },
    resetRootMfa: nothing,
    setPlanQuota: nothing,
  }).tenancy;
  const control = { level: 'control' as const, name: 'Control', email: 'p@example.com' };
  const { id: controlAccountId } = await tenancy.createPartner(OPERATOR, control);
  const given = { controlAccountId, name: 'own', email: 'own@example.com', password: PASSWORD };
  customer = await tenancy.createCustomer(OPERATOR, given);
});

function addMember(username: string, role: string) {
  const person = { firstName: 'A', lastName: 'B', password: PASSWORD, subAccountId: customer.id };
  return tenancy.createMember(OPERATOR, { ...person, username, email: `${username}@example.com`, role });
}

function edit<T>(work: (store: IdentityStore) => Promise<T>): Promise<T> {
  const { shards: metadata, clock } = world;
  const deps = { metadata, clock, random: createSeededRandom(9) };
  return withIdentities(deps, customer.accountId, work);
}

/** All rows of users, groups and policies of the sub-account. */
async function identityRows() {
  const ranges = [{ prefix: '', limit: 100 }];
  const { ranges: found } = await world.query('read-identities', { accountId: customer.accountId, ranges });
  return (found[0] ?? []).map(({ key, record }) => [key, record]);
}

/** As IAM does it, by the member itself. */
async function giveItself(username: string): Promise<void> {
  await edit(async (store) => {
    const key = identityKeys.user(username);
    const user = await store.find('user', key);
    if (user === undefined) throw new Error('no user');
    const given: UserRecord = {
      ...user,
      inlinePolicies: [...user.inlinePolicies, { name: 'mine', text: '{}' }],
      attachedPolicies: [ADMINISTRATOR],
      groups: ['AGPA1'],
      boundary: ADMINISTRATOR,
    };
    store.put(key, given);
    store.putUnseen(identityKeys.member('AGPA1', username), { kind: 'index', to: key });
    const use = { arn: ADMINISTRATOR, kind: 'user' as const, name: username };
    await noteUse(store, { ...use, as: 'attached' }, 1);
    if (user.boundary === undefined) await noteUse(store, { ...use, as: 'bounded' }, 1);
  });
}

test('a member that gave itself something by IAM has its role alone once that is changed, and can be deleted', async () => {
  await addMember('root', 'Root');
  const before = await identityRows();
  const { id } = await addMember('ann', 'Administrator');
  await giveItself('ann');
  await tenancy.changeMember(OPERATOR, id, { firstName: 'Ann' });
  const user = () => edit((store) => store.find('user', identityKeys.user('ann')));
  expect(await user()).toMatchObject({ attachedPolicies: [ADMINISTRATOR], groups: ['AGPA1'] });
  await tenancy.changeMember(OPERATOR, id, { role: 'Read Only' });
  expect(await user()).toMatchObject({
    inlinePolicies: [{ name: 'member-role' }],
    attachedPolicies: [],
    groups: [],
    boundary: ADMINISTRATOR,
  });
  await giveItself('ann');
  await tenancy.deleteMember(OPERATOR, id);
  expect(await identityRows()).toEqual(before);
});

test('of two members of one name that are made at once the one that is refused changes nothing of the other', async () => {
  const roles = ['Read Only', 'Root'];
  const ended = await Promise.allSettled(roles.map((role) => addMember('ann', role)));
  const made = ended.flatMap((one) => (one.status === 'fulfilled' ? [one.value.role] : []));
  expect(made).toHaveLength(1);
  const user = await edit((store) => store.find('user', identityKeys.user('ann')));
  expect(user?.inlinePolicies.map(({ text }) => text)).toEqual([
    memberPolicy(made[0] ?? 'Root', { isActive: true }),
  ]);
});

test('a change of role that is refused leaves a member what it has beside its role', async () => {
  await addMember('root', 'Root');
  await addMember('bob', 'Full Access');
  const { id } = await addMember('ann', 'Administrator');
  await giveItself('ann');
  const user = () => edit((store) => store.find('user', identityKeys.user('ann')));
  const before = await user();
  await expect(
    tenancy.changeMember(OPERATOR, id, { role: 'Read Only', username: 'bob' }),
  ).rejects.toBeInstanceOf(Error);
  const after = await user();
  expect(after).toEqual({ ...before, inlinePolicies: expect.arrayContaining(before?.inlinePolicies ?? []) });
});

test('of two Roots that are deleted, or lowered, at once one stays', async () => {
  const [ann, bob] = [await addMember('ann', 'Root'), await addMember('bob', 'Root')];
  const ended = await Promise.allSettled([
    tenancy.deleteMember(OPERATOR, ann.id),
    tenancy.deleteMember(OPERATOR, bob.id),
  ]);
  expect(ended.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  const { items } = await tenancy.listMembers(OPERATOR, {}, { page: 1, size: 10 });
  expect(items).toMatchObject([{ role: 'Root', status: 'active' }]);
  const name = items[0]?.username ?? '';
  const user = await edit((store) => store.find('user', identityKeys.user(name)));
  expect(user?.inlinePolicies[0]?.text).toContain('Allow');
});
