// Members of sub-accounts: people who sign in. Each is an IAM user of the sub-account, whose policy is the member's role.
import type { ClockPort, RandomPort } from '../ports/clock.ts';
import type { MetadataPort } from '../ports/metadata/port.ts';
import { LIMITS } from '../types/limits.ts';
import type { AccountId } from '../types/names.ts';
import { identityKeys, type UserRecord } from '../types/records/identity-records.ts';
import type { CustomerRecord, MemberRecord } from '../types/records/tenancy-records.ts';
import { checkAccountFields, checkPrintable, normaliseEmail, refuse } from './account-rules.ts';
import { type IdentityStore, withIdentities } from './identity-store.ts';
import { MEMBER_PATH, MEMBER_POLICY, memberPolicy, readRole } from './member-roles.ts';
import { mintIdentityId } from './mint-keys.ts';
import type { SecretHasher } from './partner-logins.ts';
import { noteUse, takeFromUser } from './policy-uses.ts';
import type { MemberChanges, MemberView, NewMember, Tenancy } from './tenancy.ts';
import { isVisible, requireAct, tenantOf } from './tenancy-rules.ts';
import {
  checkLoginPassword,
  holds,
  meets,
  mergeTexts,
  pageOf,
  type TenancyTree,
  taken,
} from './tenancy-tree.ts';

type Members = Pick<Tenancy, 'listMembers' | 'getMember' | 'createMember' | 'changeMember' | 'deleteMember'>;

/** As IAM has names of users. */
const USERNAME = /^[\w+=,.@-]{1,64}$/;
const PLACE_FIELDS = ['address1', 'address2', 'country', 'city', 'state', 'zip', 'phone'] as const;

export function createMembers(deps: {
  tree: TenancyTree;
  metadata: MetadataPort;
  hasher: Pick<SecretHasher, 'hash'>;
  clock: ClockPort;
  random: RandomPort;
}): Members {
  const { tree, clock, random } = deps;
  const { directory } = tree;

  /**
   * Where an active Root is to be one no more: another one, which stays. Its record is written along with the change, so that of two
   * Roots that go at once one does not. Throws ValidationError for the last one.
   */
  async function rootBeside({ customerId, id, role, status }: MemberRecord): Promise<MemberRecord[]> {
    if (role !== 'Root' || status !== 'active') return [];
    const isRoot = (one: RoleNow) => one.role === 'Root' && one.status === 'active';
    const others = directory
      .all('member')
      .filter((one) => one.customerId === customerId && one.id !== id && isRoot(one));
    const records = await directory.read(
      'member',
      others.map((one) => one.id),
    );
    const other = records.find(isRoot);
    if (other === undefined) refuse({ memberRole: 'the last Root of a sub-account stays' });
    return [other as MemberRecord];
  }

  /** What replaces what. Throws ValidationError. */
  async function changed(member: MemberRecord, changes: MemberChanges) {
    const role = changes.role === undefined ? member.role : readRole(changes.role);
    const isOn = changes.reinstate === true ? true : changes.active;
    const status = isOn === undefined ? member.status : isOn ? 'active' : 'deactivated';
    const { username = member.username } = changes;
    checkMember({ ...member, ...changes, username });
    const beside = role === 'Root' && status === 'active' ? [] : await rootBeside(member);
    const place = Object.fromEntries(PLACE_FIELDS.map((field) => [field, changes[field]]));
    const names = { firstName: changes.firstName, lastName: changes.lastName };
    const record: MemberRecord = { ...mergeTexts(member, { ...place, ...names }), username, role, status };
    return { record, replace: [replaced(member, record), ...beside.map((other) => replaced(other, other))] };
  }

  function viewOf(member: MemberRecord, { accountId }: Pick<CustomerRecord, 'accountId'>): MemberView {
    const {
      kind: _kind,
      revision: _revision,
      customerId,
      deletedAtMs: _deleted,
      userId: _,
      ...rest
    } = member;
    return { ...rest, subAccountId: customerId, accountId, mfa: false };
  }

  async function mfaOf(accountId: AccountId, member: MemberRecord): Promise<boolean> {
    const user = await withIdentities(deps, accountId, (store) => userOf(store, member));
    return user !== undefined && user.mfaDevices.length > 0;
  }

  /**
   * Whether the user is what a creation of an earlier release has left that was cut short: there the member's record was written
   * last. Anybody else's may have keys, which would get the rights of the new member.
   */
  async function isLeftOver(user: UserRecord, customerId: number): Promise<boolean> {
    const { path, accessKeys, mfaDevices, groups, attachedPolicies, boundary, tags } = user;
    const has = [accessKeys, mfaDevices, groups, attachedPolicies, tags].some(({ length }) => length > 0);
    if (path !== MEMBER_PATH || has || boundary !== undefined) return false;
    if (user.inlinePolicies.some(({ name }) => name !== MEMBER_POLICY)) return false;
    // It may have come with its member since this request began.
    await directory.refresh();
    const entries = directory.all('member').filter((one) => one.customerId === customerId);
    const records = await directory.read(
      'member',
      entries.flatMap(({ id, deletedAtMs }) => (deletedAtMs === undefined ? [id] : [])),
    );
    return !records.some(({ userId, userName }) =>
      userId === undefined
        ? identityKeys.user(userName) === identityKeys.user(user.name)
        : userId === user.id,
    );
  }

  return {
    async listMembers(caller, filter, page) {
      await directory.refresh();
      const found = await tree.filter(caller, 'member', (entry) => {
        if (entry.deletedAtMs !== undefined) return false;
        if (!meets(filter.id, entry.id) || !meets(filter.subAccountId, entry.customerId)) return false;
        if (!meets(filter.status, entry.status) || !holds(entry.username, filter.username)) return false;
        const customer = directory.find('customer', entry.customerId);
        if (customer === undefined || customer.deletedAtMs !== undefined) return false;
        return isVisible(caller, tree.aboveCustomer(customer));
      });
      const { items, total } = pageOf(found, page);
      const ids = items.map(({ id }) => id);
      const records = await directory.read('member', ids);
      const views = records.flatMap((record) => {
        const customer = directory.find('customer', record.customerId);
        return customer === undefined ? [] : [viewOf(record, customer)];
      });
      return { items: views, total };
    },
    async getMember(caller, id) {
      await directory.refresh();
      const { member, customer } = await tree.requireMember(caller, id);
      return { ...viewOf(member, customer), mfa: await mfaOf(customer.accountId, member) };
    },
    async createMember(caller, input: NewMember) {
      requireAct(caller, 'change');
      await directory.refresh();
      const customer = await tree.requireCustomer(caller, input.subAccountId, { field: 'subAccountId' });
      const username = input.username ?? input.email;
      const role = readRole(input.role);
      checkMember({ ...input, username });
      const { firstName, lastName } = input;
      checkPrintable({ firstName, lastName });
      const place = mergeTexts({}, Object.fromEntries(PLACE_FIELDS.map((field) => [field, input[field]])));
      checkLoginPassword(input.password);
      const others = await tree.filter(
        caller,
        'member',
        (one) => one.deletedAtMs === undefined && one.username.toLowerCase() === username.toLowerCase(),
      );
      if (others.length > 0) throw taken('username', 'A member with this username already exists.');
      const { accountId } = customer;
      const passwordHash = await deps.hasher.hash(tenantOf(caller), input.password);
      const nowMs = clock.wallMs();
      // Its record and its user, in one commit: who is refused leaves nothing, and changes nothing of another one.
      const member = await withIdentities(deps, accountId, async (store) => {
        const key = identityKeys.user(username);
        const user = await store.find('user', key);
        if (user !== undefined && !(await isLeftOver(user, customer.id)))
          throw taken('username', 'The sub-account has another user of this name.');
        const made: UserRecord = {
          kind: 'user',
          id: user?.id ?? mintIdentityId(random, 'AIDA'),
          name: username,
          path: MEMBER_PATH,
          createdAtMs: nowMs,
          inlinePolicies: [{ name: MEMBER_POLICY, text: memberPolicy(role, { isActive: true }) }],
          attachedPolicies: [],
          tags: [],
          groups: [],
          accessKeys: [],
          mfaDevices: [],
          loginProfile: {
            createdAtMs: nowMs,
            changedAtMs: nowMs,
            passwordHash,
            mustReset: input.passwordResetRequired ?? false,
          },
        };
        if (user === undefined) {
          store.putUnseen(key, made);
          await store.count('user', { add: 1, max: LIMITS.usersMax });
        } else store.put(key, made);
        store.put(identityKeys.id(made.id), { kind: 'index', to: key });
        return store.addRecord({
          ...place,
          kind: 'member',
          customerId: customer.id,
          username,
          email: normaliseEmail(input.email),
          firstName,
          lastName,
          role,
          status: 'active',
          userName: username,
          userId: made.id,
        });
      });
      return viewOf(member() as MemberRecord, customer);
    },
    async changeMember(caller, id, changes: MemberChanges) {
      requireAct(caller, 'change');
      await directory.refresh();
      const { member: found, customer } = await tree.requireMember(caller, id);
      const { accountId } = customer;
      // Refused before its password is hashed, which takes a whole processor.
      await changed(found, changes);
      if (changes.password !== undefined) checkLoginPassword(changes.password);
      const passwordHash = changes.password && (await deps.hasher.hash(tenantOf(caller), changes.password));
      // Its record and what its user may do, in one commit: nothing that ends halfway leaves one without the other.
      const record = await withIdentities(deps, accountId, async (store) => {
        const { member } = await tree.requireMember(caller, id);
        const { record: after, replace } = await changed(member, changes);
        store.replaceRecords(replace);
        const user = await userOf(store, member);
        if (user === undefined) return after;
        const own = after.role === member.role ? user : await withoutExtras(store, user);
        store.put(identityKeys.user(user.name), {
          ...withRole(own, after),
          ...(changes.mfa === false && { mfaDevices: [] }),
          ...(passwordHash && {
            loginProfile: {
              createdAtMs: user.loginProfile?.createdAtMs ?? clock.wallMs(),
              changedAtMs: clock.wallMs(),
              passwordHash,
              mustReset: false,
            },
          }),
        });
        if (changes.mfa === false) await freeDevices(store, user);
        return after;
      });
      return { ...viewOf(record, customer), mfa: await mfaOf(accountId, record) };
    },
    async deleteMember(caller, id) {
      requireAct(caller, 'delete');
      await directory.refresh();
      const { customer } = await tree.requireMember(caller, id);
      await withIdentities(deps, customer.accountId, async (store) => {
        const { member } = await tree.requireMember(caller, id);
        const beside = await rootBeside(member);
        const record: MemberRecord = { ...member, status: 'deleted', deletedAtMs: clock.wallMs() };
        store.replaceRecords([replaced(member, record), ...beside.map((other) => replaced(other, other))]);
        const user = await userOf(store, member);
        if (user === undefined) return;
        await withoutExtras(store, user);
        const { boundary } = user;
        if (boundary !== undefined)
          await noteUse(store, { arn: boundary, as: 'bounded', kind: 'user', name: user.name }, -1);
        store.remove(identityKeys.user(user.name));
        store.remove(identityKeys.id(user.id));
        await store.count('user', { add: -1 });
        await freeDevices(store, user);
        for (const { accessKey } of user.accessKeys) store.changeKey({ kind: 'delete', accessKey });
      });
    },
  };
}

type RoleNow = Pick<MemberRecord, 'role' | 'status'>;

function replaced(before: MemberRecord, record: MemberRecord) {
  return { record, ifRevision: before.revision };
}

function withRole(user: UserRecord, { role, status }: RoleNow): UserRecord {
  const isActive = status === 'active';
  const others = user.inlinePolicies.filter(({ name }) => name !== MEMBER_POLICY);
  return {
    ...user,
    inlinePolicies: [...others, { name: MEMBER_POLICY, text: memberPolicy(role, { isActive }) }],
  };
}

/** Without all that lets it do something beside its role. A boundary, which lets it do nothing, stays. */
async function withoutExtras(store: IdentityStore, user: UserRecord): Promise<UserRecord> {
  const inlinePolicies = user.inlinePolicies.filter(({ name }) => name === MEMBER_POLICY);
  return { ...(await takeFromUser(store, user)), inlinePolicies };
}

/** By its id: the name that it was made with may be another user's by now, or nobody's. undefined: IAM has deleted it. */
async function userOf(store: IdentityStore, member: MemberRecord): Promise<UserRecord | undefined> {
  const { userId, userName } = member;
  if (userId === undefined) return store.find('user', identityKeys.user(userName));
  const index = await store.find('index', identityKeys.id(userId));
  return index?.to === undefined ? undefined : store.find('user', index.to);
}

/** The MFA devices of a user are nobody's from now on. */
async function freeDevices(store: IdentityStore, { mfaDevices }: UserRecord): Promise<void> {
  const keys = mfaDevices.map(identityKeys.mfaDevice);
  for (const [at, device] of (await store.findAll('mfa-device', keys)).entries()) {
    const key = keys[at];
    if (device === undefined || key === undefined) continue;
    const { enabled: _, ...record } = device;
    store.put(key, record);
  }
}

function checkMember(member: { username: string; email: string; firstName: string; lastName: string }): void {
  const { username, email, firstName, lastName } = member;
  checkAccountFields({ email });
  if (!USERNAME.test(username))
    refuse({ username: 'must have 1 to 64 letters, digits, or characters of "_+=,.@-"' });
  for (const [field, value] of Object.entries({ firstName, lastName }))
    if (value.trim() === '' || value.length > 100) refuse({ [field]: 'must have 1 to 100 characters' });
}
